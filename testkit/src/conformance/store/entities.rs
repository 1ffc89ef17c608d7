//! Typed values: one row for each kind and value of a session.

use throughline_core::entity::EntityKind;
use throughline_core::ports::Store;

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, entities, put, put_one};
use crate::build::{at, message, say, scope, session};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["entities":
    every_field_is_kept,
    a_value_seen_again_gains_a_source,
    an_older_message_does_not_turn_back_time,
    a_message_is_a_source_once,
    another_kind_or_session_is_another_entity,
    the_most_recently_seen_come_first,
    a_late_message_is_seen_when_it_was_said,
    ties_are_ordered_by_kind_and_value,
    a_limit_keeps_the_first,
];

const URL: &str = "https://example.org/ä?b=1";

async fn every_field_is_kept(store: Port) {
    let scope = scope("a");
    for kind in EntityKind::ALL {
        let said = say("seen").at(at(4)).entity(kind, URL).build();
        let new = said.entities[0].clone();
        let source = put_one(&store, &scope, kind.as_str(), said).await.id;
        let held = entities(&store, &scope, kind.as_str()).await;
        assert_eq!(held.len(), 1);
        assert_eq!((held[0].id, held[0].kind, held[0].value.as_str()), (new.id, kind, URL));
        assert_eq!((&held[0].sources, held[0].last_at), (&vec![source], at(4)));
        assert_eq!(held[0].session, session(kind.as_str()));
    }
}

async fn a_value_seen_again_gains_a_source(store: Port) {
    let scope = scope("a");
    let seen = |seconds| say("seen").at(at(seconds)).entity(EntityKind::Url, URL).build();
    let messages = [seen(1), seen(2), seen(3)];
    let first = messages[0].entities[0].id;
    let ids: Vec<_> = messages.iter().map(|message| message.id).collect();
    let [one, two, three] = messages;
    put(&store, &scope, "s1", vec![one, message("between"), two]).await;
    put_one(&store, &scope, "s1", three).await;
    let held = entities(&store, &scope, "s1").await;
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].id, held[0].last_at), (first, at(3)));
    assert_eq!(held[0].sources, ids, "first one first");
}

async fn an_older_message_does_not_turn_back_time(store: Port) {
    let scope = scope("a");
    for seconds in [9, 1] {
        let said = say("seen").at(at(seconds)).entity(EntityKind::Url, URL).build();
        put_one(&store, &scope, "s1", said).await;
    }
    assert_eq!(entities(&store, &scope, "s1").await[0].last_at, at(9));
}

async fn a_message_is_a_source_once(store: Port) {
    let scope = scope("a");
    let said = say("seen twice").entity(EntityKind::Url, URL).entity(EntityKind::Url, URL).build();
    let source = put_one(&store, &scope, "s1", said).await.id;
    let held = entities(&store, &scope, "s1").await;
    assert_eq!((held.len(), &held[0].sources), (1, &vec![source]));
}

async fn another_kind_or_session_is_another_entity(store: Port) {
    let scope = scope("a");
    let said = say("seen")
        .entity(EntityKind::Name, "Ana")
        .entity(EntityKind::Project, "Ana")
        .entity(EntityKind::Name, "ana")
        .build();
    put_one(&store, &scope, "s1", said).await;
    let other = say("seen").entity(EntityKind::Name, "Ana").build();
    put_one(&store, &scope, "s2", other).await;
    assert_eq!(entities(&store, &scope, "s1").await.len(), 3);
    let other = entities(&store, &scope, "s2").await;
    assert_eq!((other.len(), other[0].sources.len()), (1, 1));
}

async fn told(store: &Port, limit: usize) -> Vec<String> {
    let found = store.entities(&scope("a"), &session("s1"), limit).await.unwrap();
    found.into_iter().map(|entity| entity.value).collect()
}

async fn the_most_recently_seen_come_first(store: Port) {
    for (seconds, value) in [(1, "m"), (2, "z"), (3, "a"), (4, "m"), (5, "b")] {
        let said = say("seen").at(at(seconds)).entity(EntityKind::Name, value).build();
        put_one(&store, &scope("a"), "s1", said).await;
    }
    assert_eq!(told(&store, 10).await, ["b", "m", "a", "z"]);
}

/// `last_at` is when a value was last seen, and that is what "recently" is about.
async fn a_late_message_is_seen_when_it_was_said(store: Port) {
    for (seconds, value) in [(8, "new"), (2, "old"), (5, "between")] {
        let said = say("seen").at(at(seconds)).entity(EntityKind::Name, value).build();
        put_one(&store, &scope("a"), "s1", said).await;
    }
    assert_eq!(told(&store, 10).await, ["new", "between", "old"]);
}

/// Kinds whose order is the same by name and by declaration; values by their bytes.
async fn ties_are_ordered_by_kind_and_value(store: Port) {
    let said = say("seen")
        .entity(EntityKind::Phone, "1")
        .entity(EntityKind::Name, "a")
        .entity(EntityKind::Date, "2")
        .entity(EntityKind::Name, "Z")
        .entity(EntityKind::Address, "é")
        .entity(EntityKind::Address, "z")
        .build();
    put_one(&store, &scope("a"), "s1", said).await;
    let found = told(&store, 10).await;
    let at = |value: &str| found.iter().position(|held| held == value).unwrap();
    assert!(at("z") < at("é"), "{found:?}");
    assert!(at("é") < at("Z") && at("é") < at("2"), "address first: {found:?}");
    assert!(at("Z") < at("a"), "{found:?}");
    assert!(at("2") < at("1") && at("a") < at("1"), "phone last: {found:?}");
}

async fn a_limit_keeps_the_first(store: Port) {
    for (seconds, value) in (1..).zip(["a", "b", "c"]) {
        let said = say("seen").at(at(seconds)).entity(EntityKind::Name, value).build();
        put_one(&store, &scope("a"), "s1", said).await;
    }
    assert_eq!(told(&store, 2).await, ["c", "b"]);
    assert_eq!(told(&store, 0).await, [""; 0]);
}
