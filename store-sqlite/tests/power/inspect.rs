//! Starts on what a cut left, as the program would, and judges it.

use throughline_core::Error;
use throughline_core::index::{IndexUnit, Namespace, Posting, TermId, UnitKey};
use throughline_core::page::PageRequest;
use throughline_core::ports::{LexicalIndex, SessionRepo, Store, VectorIndex};
use throughline_core::session::{Message, PreparedMessage, Role};
use throughline_store_sqlite::{SqliteOptions, SqliteStore};

use crate::camera::Cut;
use crate::load::{Load, SESSIONS, append, message, scope, session, space};

/// Opens what a cut left and checks that it is whole: the file, and that each session holds its
/// first batches, each of them entirely, with counters and index to match; and that it can be
/// written again. Returns how many batches each session holds.
pub(crate) async fn inspect(load: &Load, cut: &Cut) -> [usize; SESSIONS] {
    let options =
        SqliteOptions { readers: 1, ..SqliteOptions::new(cut.directory.join("throughline.db")) };
    let failed = |what: &str, error: Error| -> ! { panic!("{cut}: {what}: {error:?}") };
    let store = SqliteStore::open(options).unwrap_or_else(|error| failed("does not open", error));
    let health = store.health(true).await.unwrap_or_else(|error| failed("is not checked", error));
    assert!(health.problems.is_empty(), "{cut}: {:?}", health.problems);

    let mut held = [0; SESSIONS];
    let mut present = Present::default();
    for (index, held) in held.iter_mut().enumerate() {
        *held = check_session(&store, load, index, cut, &mut present).await;
    }
    check_scope(&store, load, cut, &mut present).await;

    let next = message(Role::User, "Written after the power came back.".to_owned(), None);
    let applied = store.apply(append(0, std::slice::from_ref(&next))).await;
    let applied = applied.unwrap_or_else(|error| failed("takes no append", error));
    let told = applied.messages[0];
    let expected: u32 = load.0[0][..held[0]].iter().flatten().map(units).sum();
    assert_eq!((told.id, told.replayed), (next.id, false), "{cut}");
    assert_eq!((told.seq, told.position), (present.seqs.len() as u64 + 1, expected), "{cut}");
    let last = store.recent_messages(&scope(), &session(0), 1).await.unwrap();
    assert_eq!(last[0].content, next.content, "{cut}");
    held
}

/// What was found, over all sessions.
#[derive(Default)]
struct Present<'l> {
    seqs: Vec<u64>,
    tokens: u64,
    units: Vec<(UnitKey, &'l IndexUnit)>,
}

fn units(message: &PreparedMessage) -> u32 {
    u32::try_from(message.units.len()).unwrap()
}

async fn messages(store: &SqliteStore, index: usize) -> Vec<Message> {
    let mut all = Vec::new();
    let mut page = PageRequest::first(500).unwrap();
    loop {
        let found = store.messages(&scope(), &session(index), &page).await.unwrap();
        all.extend(found.items);
        match found.next_cursor {
            Some(cursor) => page = PageRequest::first(500).unwrap().after(&cursor).unwrap(),
            None => return all,
        }
    }
}

/// Checks that a session holds whole batches from the first one on, and counts them.
async fn check_session<'l>(
    store: &SqliteStore,
    load: &'l Load,
    index: usize,
    cut: &Cut,
    present: &mut Present<'l>,
) -> usize {
    let found = messages(store, index).await;
    let record = store.session(&scope(), &session(index)).await.unwrap();
    let mut left = found.as_slice();
    let mut position = 0;
    let mut tokens = 0;
    let mut batches = 0;
    for batch in &load.0[index] {
        if left.is_empty() {
            break;
        }
        assert!(left.len() >= batch.len(), "{cut}: batch {batches} of thread {index} is torn");
        let (now, later) = left.split_at(batch.len());
        for (message, sent) in now.iter().zip(batch) {
            assert_eq!((message.id, message.position), (sent.id, position), "{cut}");
            assert!(message.content == sent.content, "{cut}: content of {}", sent.id);
            assert_eq!((message.role, message.tokens), (sent.role, sent.tokens), "{cut}");
            assert_eq!(message.external_id, sent.external_id, "{cut}");
            for (unit, position) in sent.units.iter().zip(position..) {
                present.units.push((UnitKey::message(message.session_number, position), unit));
            }
            present.seqs.push(message.seq);
            position += units(sent);
            tokens += u64::from(sent.tokens);
        }
        left = later;
        batches += 1;
    }
    assert!(left.is_empty(), "{cut}: thread {index} holds messages that nobody sent");
    present.tokens += tokens;
    let counted = record.map(|record| (record.messages, record.tokens, record.next_position));
    let expected = (!found.is_empty()).then_some((found.len() as u64, tokens, position));
    assert_eq!(counted, expected, "{cut}: the record of thread {index}");
    batches
}

/// Checks the totals, the order of commit, and that the index holds exactly the messages.
async fn check_scope(store: &SqliteStore, load: &Load, cut: &Cut, present: &mut Present<'_>) {
    let count = present.seqs.len() as u64;
    present.seqs.sort_unstable();
    assert!(present.seqs.iter().copied().eq(1..=count), "{cut}: gaps in {:?}", present.seqs);
    let totals = store.totals(&scope()).await.unwrap();
    let told = (totals.messages, totals.tokens, totals.last_seq);
    assert_eq!(told, (count, present.tokens, count), "{cut}");

    let terms = load.common_terms();
    let index = store.postings(&scope(), Namespace::Message, &terms, usize::MAX).await.unwrap();
    let length: u64 = present.units.iter().map(|(_, unit)| u64::from(unit.length)).sum();
    assert_eq!(index.stats.units, present.units.len() as u64, "{cut}");
    assert_eq!(index.stats.length, length, "{cut}");
    present.units.sort_unstable_by_key(|(key, _)| *key);
    let (scope, space, question) = (scope(), space(), [1.0, 0.0]);
    let near = store.search(&scope, Namespace::Message, &space, &question, usize::MAX, &[]);
    let mut near: Vec<UnitKey> = near.await.unwrap().iter().map(|hit| hit.key).collect();
    near.sort_unstable();
    let keys = present.units.iter().map(|(key, _)| *key);
    assert!(keys.eq(near), "{cut}: the vectors are not those of the messages");
    let through = store.watermark(&scope, Namespace::Message, &space).await.unwrap();
    assert_eq!(through, count, "{cut}: the watermark of the vectors");
    for (term, list) in terms.into_iter().zip(index.lists) {
        let expected: Vec<Posting> =
            present.units.iter().filter_map(|(key, unit)| posting(*key, unit, term)).collect();
        assert!(list == expected, "{cut}: the index does not hold the messages");
    }
}

fn posting(key: UnitKey, unit: &IndexUnit, term: TermId) -> Option<Posting> {
    let at = unit.terms.binary_search_by_key(&term, |(held, _)| *held).ok()?;
    Some(Posting { key, count: unit.terms[at].1, length: unit.length })
}
