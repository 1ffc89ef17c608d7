//! A long append pauses, so that others go first and whoever waits for it can give it up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use throughline_core::fact::{Extracted, FactExtractor};
use throughline_core::services::sessions::SessionService;
use throughline_core::session::{NewMessage, Role};
use throughline_testkit::build::{scope, session};
use throughline_testkit::memory::MemoryStore;
use throughline_testkit::{FakeClock, SequentialIds, WordTokenizer};

/// Counts the messages that it reads.
#[derive(Default)]
struct Counting(AtomicUsize);

impl FactExtractor for Counting {
    fn name(&self) -> &str {
        "counting/1"
    }

    fn extract(&self, _: &str) -> Vec<Extracted> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    }
}

#[tokio::test]
async fn append_that_is_given_up_prepares_no_more_messages() {
    let read = Arc::new(Counting::default());
    let store = Arc::new(MemoryStore::default());
    let (clock, ids) = (Arc::new(FakeClock::default()), Arc::new(SequentialIds::default()));
    let sessions = SessionService::new(store, clock, ids, Arc::new(WordTokenizer::exact()), None)
        .with_extractor(read.clone());
    let long = || NewMessage::new(Role::User, "It rains. ".repeat(10_000));
    let messages = || (0..8).map(|_| long()).collect::<Vec<_>>();
    let (scope, session) = (scope("ada"), session("s"));
    let mut append = Box::pin(sessions.append(&scope, &session, messages()));
    while read.0.load(Ordering::Relaxed) == 0 {
        assert!(futures_util::poll!(&mut append).is_pending());
    }
    drop(append);
    assert_eq!(read.0.load(Ordering::Relaxed), 1);
    let appended = sessions.append(&scope, &session, messages()).await.unwrap();
    assert_eq!((appended.len(), read.0.load(Ordering::Relaxed)), (8, 9));
}
