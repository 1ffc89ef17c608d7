//! Versions of a session's summary.

use throughline_core::Result;
use throughline_core::ports::{Erasure, Store, Write};
use throughline_core::summary::{Summary, SummaryLine, SummaryWriter};

use super::super::runner::Scenario;
use super::erasure::erase;
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
    newest_versions_await_a_model_until_they_are_rewritten,
    rewritten_version_keeps_all_but_lines_tokens_and_writer,
    a_version_that_awaits_no_model_is_not_rewritten,
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

fn awaiting(summary: Summary) -> Summary {
    Summary { writer: SummaryWriter::AwaitsModel, ..summary }
}

/// What a model made of a version.
fn written(summary: &Summary, lines: Vec<SummaryLine>) -> Summary {
    let writer = SummaryWriter::Model("model:test:m/1".to_owned());
    Summary { lines, tokens: 4, writer, ..summary.clone() }
}

async fn rewrite(store: &Port, user: &str, summary: Summary) -> Result<()> {
    let write = Write::RewriteSummary(Box::new(summary));
    store.apply(batch(&scope(user)).with(write)).await.map(|_| ())
}

async fn newest_versions_await_a_model_until_they_are_rewritten(store: Port) {
    let mut awaiting_now = Vec::new();
    for of in ["s1", "s2", "s3"] {
        let said = put(&store, &scope("a"), of, vec![message("one")]).await;
        let first = awaiting(summary(of, 1, 1, &[said[0].id]));
        put_summary(&store, first.clone()).await;
        awaiting_now.push(first);
    }
    // One that is older than another of its session is nobody's work any more.
    put_summary(&store, summary("s3", 2, 2, &[])).await;
    let of_session = |summary: &Summary| summary.session.as_str().to_owned();
    let waiting = async |user: &str, limit: usize| {
        let mut found = store.awaiting_summaries(&scope(user), limit).await.unwrap();
        found.sort_by_key(of_session);
        found
    };
    assert_eq!(waiting("a", 9).await, awaiting_now[..2]);
    assert_eq!(waiting("a", 1).await.len(), 1);
    assert!(waiting("b", 9).await.is_empty());
    rewrite(&store, "a", written(&awaiting_now[0], Vec::new())).await.unwrap();
    assert_eq!(waiting("a", 9).await, awaiting_now[1..2]);
}

async fn rewritten_version_keeps_all_but_lines_tokens_and_writer(store: Port) {
    let scope = scope("a");
    let said = put(&store, &scope, "s1", vec![message("one"), message("two")]).await;
    let rolled = awaiting(summary("s1", 1, 2, &[said[0].id, said[1].id]));
    put_summary(&store, rolled.clone()).await;
    let before = head(&store, &scope, "s1").await;
    let line = SummaryLine { source: said[1].id, text: "Two was said.".to_owned() };
    let other = Summary { covered: 99, to_position: 99, ..written(&rolled, vec![line.clone()]) };
    rewrite(&store, "a", other).await.unwrap();
    let held = store.latest_summary(&scope, &session("s1")).await.unwrap();
    assert_eq!(held, Some(written(&rolled, vec![line])));
    let after = head(&store, &scope, "s1").await;
    assert!(after.version > before.version, "who keeps heads by version reads this one anew");
    assert_eq!((after.summarized, after.messages), (before.summarized, before.messages));
}

async fn a_version_that_awaits_no_model_is_not_rewritten(store: Port) {
    let said = put(&store, &scope("a"), "s1", vec![message("one")]).await;
    let rolled = awaiting(summary("s1", 1, 1, &[said[0].id]));
    put_summary(&store, rolled.clone()).await;
    let of_another = Summary { id: summary("s1", 1, 1, &[]).id, ..rolled.clone() };
    for (user, unknown) in [("a", of_another), ("b", rolled.clone())] {
        let refused = rewrite(&store, user, unknown).await.unwrap_err();
        assert!(refused.is_lost_race(), "{user}");
    }
    rewrite(&store, "a", written(&rolled, Vec::new())).await.unwrap();
    let twice = rewrite(&store, "a", written(&rolled, rolled.lines.clone())).await.unwrap_err();
    assert!(twice.is_lost_race());
    let erasure = Erasure::Messages(vec![said[0].id]);
    erase(&store, &scope("a"), erasure).await;
    let gone = rewrite(&store, "a", rolled.clone()).await.unwrap_err();
    assert!(gone.is_lost_race());
    assert!(store.session(&scope("b"), &session("s1")).await.unwrap().is_none());
}
