//! Versions of a session's summary.

use throughline_core::ports::{Store, Write};
use throughline_core::summary::{Summary, SummaryLine};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, head, put};
use crate::build::{append, at, batch, message, scope, session, summary};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["summaries":
    every_field_is_kept,
    all_versions_are_listed_oldest_first,
    the_latest_is_the_newest_version,
    the_session_tells_what_its_latest_summary_covers,
    a_summary_without_lines_is_kept,
    sessions_have_summaries_of_their_own,
];

async fn put_summary(store: &Port, summary: Summary) {
    let write = Write::PutSummary(Box::new(summary));
    store.apply(batch(&scope("a")).with(write)).await.unwrap();
}

/// `count` versions of the session `of`, each built on the one before.
async fn versions(store: &Port, of: &str, count: u64) -> Vec<Summary> {
    let said = (0..3).map(|n| message(&format!("message {n}"))).collect();
    let applied = put(store, &scope("a"), of, said).await;
    let sources: Vec<_> = applied.iter().map(|message| message.id).collect();
    let mut versions: Vec<Summary> = Vec::new();
    for version in 1..=count {
        let next = Summary {
            previous: versions.last().map(|summary| summary.id),
            ..summary(of, version, version * 20, &sources)
        };
        put_summary(store, next.clone()).await;
        versions.push(next);
    }
    versions
}

async fn every_field_is_kept(store: Port) {
    let applied = put(&store, &scope("a"), "s1", vec![message("one"), message("two")]).await;
    let line = |n: usize, text: &str| SummaryLine { source: applied[n].id, text: text.to_owned() };
    let full = Summary {
        to_position: 17,
        from_at: at(-5),
        to_at: at(50),
        // In the order said, which is neither that of ids nor of texts.
        lines: vec![line(1, "user: zebra"), line(0, "ana: été"), line(1, "user: apple")],
        tokens: 123,
        ..summary("s1", 1, 2, &[])
    };
    put_summary(&store, full.clone()).await;
    let held = store.latest_summary(&scope("a"), &session("s1")).await.unwrap();
    assert_eq!(held, Some(full));
}

async fn all_versions_are_listed_oldest_first(store: Port) {
    let versions = versions(&store, "s1", 12).await;
    let held = store.summaries(&scope("a"), &session("s1")).await.unwrap();
    assert_eq!(held, versions);
}

async fn the_latest_is_the_newest_version(store: Port) {
    let versions = versions(&store, "s1", 11).await;
    let held = store.latest_summary(&scope("a"), &session("s1")).await.unwrap();
    assert_eq!(held.as_ref(), versions.last());
}

async fn the_session_tells_what_its_latest_summary_covers(store: Port) {
    let scope = scope("a");
    versions(&store, "s1", 2).await;
    assert_eq!(head(&store, &scope, "s1").await.summarized, 40);
    let two = batch(&scope)
        .with(append("s1", message("one more")))
        .with(Write::PutSummary(Box::new(summary("s1", 3, 60, &[]))))
        .with(Write::PutSummary(Box::new(summary("s1", 4, 80, &[]))));
    store.apply(two).await.unwrap();
    let head = head(&store, &scope, "s1").await;
    assert_eq!((head.summarized, head.messages), (80, 4));
}

async fn a_summary_without_lines_is_kept(store: Port) {
    put(&store, &scope("a"), "s1", vec![message("one")]).await;
    let empty = summary("s1", 1, 1, &[]);
    put_summary(&store, empty.clone()).await;
    let held = store.summaries(&scope("a"), &session("s1")).await.unwrap();
    assert_eq!(held, [empty]);
}

async fn sessions_have_summaries_of_their_own(store: Port) {
    let first = versions(&store, "s1", 2).await;
    let second = versions(&store, "s2", 3).await;
    for (of, expected) in [("s1", first), ("s2", second)] {
        let held = store.summaries(&scope("a"), &session(of)).await.unwrap();
        assert_eq!(held, expected);
    }
}
