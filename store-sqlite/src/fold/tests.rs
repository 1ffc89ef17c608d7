//! What holds before, during and after a fold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use throughline_core::ids::MessageId;
use throughline_core::index::{IndexUnit, Namespace, UnitKey};
use throughline_core::ports::{
    Erasure, LexicalIndex, Store, VectorIndex, VectorSpace, Write, WriteBatch,
};
use throughline_core::session::PreparedMessage;
use throughline_testkit::build;

use super::*;
use crate::apply::apply;
use crate::connection::{SqliteOptions, open_writer};
use crate::store::SqliteStore;

const USER: &str = "ada";

pub(crate) fn open(file: &Path) -> WriteConnection {
    WriteConnection::new(open_writer(&SqliteOptions::new(file)).unwrap())
}

fn space() -> VectorSpace {
    VectorSpace { id: "numbers".to_owned(), dimensions: 2 }
}

/// The n-th unit has a term that all have, one of a hundred and two of its own.
fn unit(n: usize) -> IndexUnit {
    let names = ["all".to_owned(), format!("few-{}", n % 100), format!("a-{n}"), format!("b-{n}")];
    let mut terms: Vec<(TermId, u16)> = names.iter().map(|name| (TermId::of(name), 2)).collect();
    terms.sort_unstable();
    let angle = n as f32;
    IndexUnit { terms, length: 8, vector: Some(vec![angle.cos(), angle.sin()]) }
}

/// Messages of one unit each.
pub(crate) fn messages(numbers: std::ops::Range<usize>) -> Vec<PreparedMessage> {
    let message =
        |n| PreparedMessage { units: vec![unit(n)], ..build::message(&format!("number {n}")) };
    numbers.map(message).collect()
}

/// Odd and even messages go to sessions of their own, so that later units have smaller keys.
pub(crate) fn batch(messages: &[PreparedMessage]) -> WriteBatch {
    let empty =
        WriteBatch { space: Some(space()), ..WriteBatch::new(build::scope(USER), build::at(0)) };
    messages.iter().zip(0..).fold(empty, |batch, (message, at)| {
        batch.with(Write::AppendMessage {
            session: build::session(&format!("session-{}", at % 2)),
            message: Arc::new(message.clone()),
        })
    })
}

fn write(connection: &WriteConnection, batch: &WriteBatch) {
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    apply(connection, batch).unwrap();
    connection.execute_batch("COMMIT").unwrap();
}

/// Units in tails and blocks of words, and vectors in tails.
pub(crate) fn held(connection: &Connection) -> [u64; 3] {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(
        count("SELECT coalesce(sum(tail), 0) FROM lex_stats"),
        count("SELECT count(*) FROM lex_tail")
    );
    assert_eq!(
        count("SELECT coalesce(sum(tail), 0) FROM vector_state"),
        count("SELECT count(*) FROM vector_tail")
    );
    [
        count("SELECT count(*) FROM lex_tail"),
        count("SELECT count(*) FROM lex_block"),
        count("SELECT count(*) FROM vector_tail"),
    ]
}

/// What recall is told of every term, and of the vectors.
type Answers = (BTreeMap<TermId, Vec<UnitKey>>, Vec<UnitKey>);

/// As another process sees it, which has the same file open.
async fn answers(file: &Path, numbers: usize) -> Answers {
    let store = SqliteStore::open(SqliteOptions::new(file)).unwrap();
    let terms: BTreeSet<TermId> =
        (0..numbers).flat_map(|n| unit(n).terms).map(|(term, _)| term).collect();
    let terms: Vec<TermId> = terms.into_iter().collect();
    let (scope, space) = (build::scope(USER), space());
    let found = store.postings(&scope, Namespace::Message, &terms, usize::MAX).await.unwrap();
    let frequencies = store.frequencies(&scope, Namespace::Message, &terms).await.unwrap();
    for (list, frequency) in found.lists.iter().zip(frequencies) {
        assert_eq!(list.len() as u64, frequency);
        assert!(list.iter().all(|posting| (posting.count, posting.length) == (2, 8)));
    }
    let lists = found.lists.iter().map(|list| list.iter().map(|posting| posting.key).collect());
    let near = store
        .search(&scope, Namespace::Message, &space, &[1.0, 0.0], usize::MAX, &[])
        .await
        .unwrap();
    (terms.into_iter().zip(lists).collect(), near.iter().map(|hit| hit.key).collect())
}

#[tokio::test]
async fn recall_is_the_same_at_every_slice_of_a_fold() {
    let folder = tempfile::tempdir().unwrap();
    let (folded, never) = (folder.path().join("folded.db"), folder.path().join("never.db"));
    let (connection, other) = (open(&folded), open(&never));
    let mut numbers = 600;
    for connection in [&connection, &other] {
        write(connection, &batch(&messages(0..numbers)));
    }
    let mut slices = 0;
    while connection.is_due() {
        assert_eq!(answers(&folded, numbers).await, answers(&never, numbers).await, "{slices}");
        connection.fold_slice();
        slices += 1;
        if slices == 2 {
            // What comes while a fold is half done has terms on both sides of where it is.
            for connection in [&connection, &other] {
                write(connection, &batch(&messages(numbers..numbers + 20)));
            }
            numbers += 20;
        }
    }
    assert!(slices >= 3, "{slices}");
    assert_eq!(answers(&folded, numbers).await, answers(&never, numbers).await);
    let [tail, blocks, vectors] = held(&connection);
    assert!(tail < 40 && blocks > 1_000 && vectors == 620 - FOLD_AT, "{tail} {blocks} {vectors}");
    assert_eq!(held(&other), [620, 0, 620]);
}

#[tokio::test]
async fn an_erasure_reaches_what_is_half_folded() {
    let folder = tempfile::tempdir().unwrap();
    for slices in 0..4 {
        let file = folder.path().join(format!("{slices}.db"));
        let connection = open(&file);
        let said = messages(0..600);
        write(&connection, &batch(&said));
        for _ in 0..slices {
            connection.fold_slice();
        }
        let whole = answers(&file, 600).await;
        // The store derives from a text what was indexed of it; here that is told directly.
        let gone: Vec<(UnitKey, IndexUnit)> =
            (100..160).map(|n| (UnitKey::message(1 + n % 2, n / 2), unit(n as usize))).collect();
        let keys: Vec<UnitKey> = gone.iter().map(|(key, _)| *key).collect();
        lexical::remove(&connection, 1, Namespace::Message, &gone).unwrap();
        vectors::remove_everywhere(&connection, 1, Namespace::Message, &keys).unwrap();
        let expected: Answers = (
            whole
                .0
                .into_iter()
                .map(|(term, list)| {
                    (term, list.into_iter().filter(|k| !keys.contains(k)).collect())
                })
                .collect(),
            whole.1.into_iter().filter(|key| !keys.contains(key)).collect(),
        );
        assert_eq!(answers(&file, 600).await, expected, "after {slices} slices");
        while connection.is_due() {
            connection.fold_slice();
        }
        assert_eq!(answers(&file, 600).await, expected, "after {slices} slices and the rest");
    }
}

#[tokio::test]
async fn a_message_erased_amid_a_fold_is_gone_from_tail_and_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let connection = open(&file);
    let said: Vec<PreparedMessage> = (0..600)
        .map(|n| build::message(&format!("harbor kettle{n} lantern{} granite{n}", n % 7)))
        .collect();
    write(&connection, &batch(&said));
    connection.fold_slice();
    connection.fold_slice();
    let ids: Vec<MessageId> = said.iter().step_by(3).map(|message| message.id).collect();
    let erase = Write::Erase { erasure: Erasure::Messages(ids), seed: build::id() };
    write(&connection, &WriteBatch::new(build::scope(USER), build::at(1)).with(erase));
    let store = SqliteStore::open(SqliteOptions::new(&file)).unwrap();
    let terms: Vec<TermId> = said
        .iter()
        .step_by(3)
        .flat_map(|message| &message.units)
        .flat_map(|unit| unit.terms.iter().map(|(term, _)| *term))
        .collect();
    let scope = build::scope(USER);
    let found = store.postings(&scope, Namespace::Message, &terms, usize::MAX).await.unwrap();
    assert_eq!(found.stats.units, 400);
    let left: BTreeSet<UnitKey> = found.lists.iter().flatten().map(|posting| posting.key).collect();
    assert_eq!(left.len(), 400, "each has a common word, and none of the erased ones is found");
}

#[tokio::test]
async fn what_a_process_leaves_unfolded_the_next_one_folds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let connection = open(&file);
    write(&connection, &batch(&messages(0..600)));
    connection.fold_slice();
    connection.fold_slice();
    let before = answers(&file, 600).await;
    drop(connection);
    assert_eq!(answers(&file, 600).await, before);
    // It folds after its first write, at the latest when it is closed.
    let store = SqliteStore::open(SqliteOptions::new(&file)).unwrap();
    store.apply(batch(&messages(600..601))).await.unwrap();
    drop(store);
    let [tail, _, vectors] = held(&open(&file));
    assert!(tail < FOLD_AT && vectors < FOLD_AT, "{tail} {vectors}");
    let after = answers(&file, 600).await;
    assert_eq!(after.1.len(), before.1.len() + 1);
}

#[test]
fn no_batch_leaves_a_tail_of_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let connection = open(&folder.path().join("store.db"));
    let mut longest = 0;
    for first in (0..5_000).step_by(250) {
        write(&connection, &batch(&messages(first..first + 250)));
        let [words, _, vectors] = held(&connection);
        assert!(words < MOST_TAIL && vectors < MOST_TAIL, "{words} {vectors}");
        longest = longest.max(words);
    }
    assert!(longest > MOST_TAIL - 300);
}

#[test]
fn the_longer_a_tail_the_more_slices_come_before_the_next_writes() {
    let folder = tempfile::tempdir().unwrap();
    let connection = open(&folder.path().join("store.db"));
    let tail = |scope_id| Tail::Words { scope_id, namespace: 0 };
    for (scope, units, slices) in [
        (1, FOLD_AT - 1, 0),
        (1, FOLD_AT, 0),
        (1, 2 * FOLD_AT - 1, 0),
        (1, 2 * FOLD_AT, 1),
        (2, 3 * FOLD_AT, 2),
        (1, MOST_TAIL - 1, 6),
    ] {
        connection.grown(tail(scope), units);
        assert_eq!(connection.slices_behind(), slices, "{units}");
    }
    // None of them is there: a slice looks for itself.
    connection.fold_slice();
    connection.fold_slice();
    assert!(!connection.is_due());
}
