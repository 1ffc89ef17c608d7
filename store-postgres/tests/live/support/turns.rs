//! Batches that writers repeat until they are acknowledged, and what must be there of them.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use throughline_core::ids::MessageId;
use throughline_core::page::PageRequest;
use throughline_core::ports::{HeadLimits, SessionRepo, Store, WriteBatch};
use throughline_core::session::Message;
use throughline_store_postgres::PostgresStore;
use throughline_testkit::build::{append, batch, say, scope, session};
use uuid::Uuid;

pub(crate) const WRITERS: usize = 4;
/// Sessions are fewer than writers, so that writers meet in them.
const SESSIONS: usize = 2;

/// The n-th batch of a writer: the same whenever it is repeated.
pub(crate) fn turn(writer: usize, n: usize) -> WriteBatch {
    let mut batch = batch(&scope("ana"));
    for part in 0..=n % 3 {
        let text = format!("{writer} says {n} {part}");
        let session = format!("s{}", writer % SESSIONS);
        let mut said = say(&text).external(&text).build();
        // The builder's ids count up alike in every process.
        let process = u128::from(std::process::id()) << 96;
        said.id = MessageId::from_uuid(Uuid::from_u128(said.id.as_uuid().as_u128() ^ process));
        batch.writes.push(append(&session, said));
    }
    batch
}

/// The external ids of a batch.
fn ids(writer: usize, n: usize) -> Vec<String> {
    (0..=n % 3).map(|part| format!("{writer} says {n} {part}")).collect()
}

/// What the writers left: each writer's acknowledged batches, and at most one more that was under way.
pub(crate) async fn check(store: &PostgresStore, done: [usize; WRITERS]) {
    // A batch that was under way at the kill is there or not; repeated, it is there once.
    for (writer, done) in done.into_iter().enumerate() {
        store.apply(turn(writer, done)).await.unwrap();
    }
    let mut seqs = Vec::new();
    for at in 0..SESSIONS {
        let of = format!("s{at}");
        let held = messages(store, &of).await;
        let mut found: Vec<String> =
            held.iter().map(|m| m.external_id.as_ref().unwrap().as_str().to_owned()).collect();
        let writers = (0..WRITERS).filter(|writer| writer % SESSIONS == at);
        let mut expected: Vec<String> = writers
            .flat_map(|writer| (0..=done[writer]).flat_map(move |n| ids(writer, n)))
            .collect();
        found.sort();
        expected.sort();
        assert!(found == expected, "{of}: {} messages of {}", found.len(), expected.len());
        let positions: Vec<u32> = held.iter().map(|message| message.position).collect();
        assert_eq!(positions, (0..u32::try_from(held.len()).unwrap()).collect::<Vec<u32>>());
        let limits = HeadLimits { messages: 1, entities: 1 };
        let head = store.head(&scope("ana"), &session(&of), limits).await.unwrap().unwrap().session;
        let tokens: u64 = held.iter().map(|message| u64::from(message.tokens)).sum();
        assert_eq!((head.messages, head.tokens), (held.len() as u64, tokens), "{of}");
        seqs.extend(held.iter().map(|message| message.seq));
    }
    seqs.sort_unstable();
    let all = seqs.len() as u64;
    assert!(seqs == (1..=all).collect::<Vec<u64>>(), "{all} sequence numbers have no gap");
    let totals = store.totals(&scope("ana")).await.unwrap();
    assert_eq!((totals.messages, totals.last_seq), (all, all));
}

async fn messages(store: &PostgresStore, of: &str) -> Vec<Message> {
    let mut held = Vec::new();
    let mut page = PageRequest::first(500).unwrap();
    loop {
        let found = store.messages(&scope("ana"), &session(of), &page).await.unwrap();
        held.extend(found.items);
        let Some(next) = found.next_cursor else { return held };
        page = page.after(&next).unwrap();
    }
}
