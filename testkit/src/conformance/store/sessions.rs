//! Sessions and what they count.

use throughline_core::entity::EntityKind;
use throughline_core::index::UnitKey;
use throughline_core::page::PageRequest;
use throughline_core::ports::{HeadLimits, RECENT_BYTES, ScopeTotals, Store, Write};
use throughline_core::session::{Message, Role};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, Snapshot, contents, head, put, put_one};
use crate::build::{at, batch, external, job, message, say, scope, session, summary};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["sessions":
    what_was_never_written_reads_as_nothing,
    the_first_message_creates_the_session,
    a_session_counts_messages_tokens_and_positions,
    times_are_of_the_first_and_the_latest_message,
    numbers_follow_the_order_of_creation,
    ids_are_told_apart_byte_by_byte,
    totals_are_of_all_sessions,
    a_head_is_what_its_parts_are,
    a_head_has_no_more_messages_than_a_turn_reads,
    only_what_shows_messages_reads_their_parts,
    a_head_is_equal_while_its_version_is,
];

async fn what_was_never_written_reads_as_nothing(store: Port) {
    let scope = scope("a");
    let of = session("s1");
    assert!(Snapshot::of(&store, &scope).await.is_empty());
    assert_eq!(store.session(&scope, &of).await.unwrap(), None);
    assert_eq!(store.recent_messages(&scope, &of, 5).await.unwrap(), []);
    assert_eq!(store.latest_summary(&scope, &of).await.unwrap(), None);
    assert_eq!(store.entities(&scope, &of, 5).await.unwrap(), []);
    put_one(&store, &scope, "s2", message("another")).await;
    assert_eq!(store.session(&scope, &of).await.unwrap(), None);
    assert_eq!(store.recent_messages(&scope, &of, 5).await.unwrap(), []);
    assert_eq!(store.latest_summary(&scope, &of).await.unwrap(), None);
    assert_eq!(store.entities(&scope, &of, 5).await.unwrap(), []);
    assert_eq!(store.summaries(&scope, &of).await.unwrap(), []);
}

async fn the_first_message_creates_the_session(store: Port) {
    let scope = scope("a");
    let said = say("hello there").at(at(30)).build();
    let tokens = said.tokens;
    put_one(&store, &scope, "s1", said).await;
    let head = head(&store, &scope, "s1").await;
    assert_eq!((head.id, head.number), (session("s1"), 1));
    assert_eq!((head.created_at, head.last_at), (at(30), at(30)));
    assert_eq!((head.messages, head.tokens), (1, tokens.into()));
    assert_eq!((head.summarized, head.next_position), (0, 1));
}

async fn a_session_counts_messages_tokens_and_positions(store: Port) {
    let scope = scope("a");
    let long = message(&"A sentence of some length here. ".repeat(120));
    assert!(long.units.len() > 2, "several passages");
    let prepared = [message("one"), long, say("two").role(Role::Tool).build()];
    let tokens: u64 = prepared.iter().map(|message| u64::from(message.tokens)).sum();
    let units: usize = prepared.iter().map(|message| message.units.len()).sum();
    let [first, second, third] = prepared;
    put(&store, &scope, "s1", vec![first, second]).await;
    put_one(&store, &scope, "s1", third).await;
    let head = head(&store, &scope, "s1").await;
    assert_eq!((head.messages, head.tokens), (3, tokens));
    assert_eq!(head.next_position as usize, units);
}

async fn times_are_of_the_first_and_the_latest_message(store: Port) {
    let scope = scope("a");
    for seconds in [50, 90, 10] {
        put_one(&store, &scope, "s1", say("a time").at(at(seconds)).build()).await;
    }
    let head = head(&store, &scope, "s1").await;
    assert_eq!((head.created_at, head.last_at), (at(50), at(90)));
}

async fn numbers_follow_the_order_of_creation(store: Port) {
    let scope = scope("a");
    for of in ["z", "m", "a"] {
        put_one(&store, &scope, of, message("hello")).await;
    }
    put_one(&store, &scope, "z", message("again")).await;
    for (number, of) in (1..).zip(["z", "m", "a"]) {
        assert_eq!(head(&store, &scope, of).await.number, number, "{of}");
    }
}

async fn ids_are_told_apart_byte_by_byte(store: Port) {
    let scope = scope("a");
    let ids = ["s", "S", "s s", "é", "e\u{301}", "ß", "ss", "100", "0100"];
    for id in ids {
        put_one(&store, &scope, id, message(&format!("of {id}"))).await;
    }
    for (number, id) in (1..).zip(ids) {
        let head = head(&store, &scope, id).await;
        assert_eq!((head.number, head.messages), (number, 1), "{id:?}");
        assert_eq!(head.id, session(id));
    }
}

async fn totals_are_of_all_sessions(store: Port) {
    let scope = scope("a");
    let prepared: Vec<_> = ["one two", "three", "four five six"].map(message).into();
    let tokens = prepared.iter().map(|message| u64::from(message.tokens)).sum();
    for (of, message) in ["s1", "s2", "s1"].into_iter().zip(prepared) {
        put_one(&store, &scope, of, message).await;
    }
    let expected = ScopeTotals { messages: 3, tokens, last_seq: 3, facts: 0, documents: 0 };
    assert_eq!(store.totals(&scope).await.unwrap(), expected);
}

async fn a_head_is_what_its_parts_are(store: Port) {
    let (scope, of) = (scope("a"), session("s1"));
    let limits = HeadLimits { messages: 3, entities: 2 };
    assert_eq!(store.head(&scope, &of, limits).await.unwrap(), None);
    for n in 0..5 {
        let said = say(&format!("message {n}")).at(at(n)).entity(EntityKind::Id, &format!("K-{n}"));
        put_one(&store, &scope, "s1", said.build()).await;
        put_one(&store, &scope, "s2", message("another thread")).await;
    }
    for version in 1..=2 {
        let put = Write::PutSummary(Box::new(summary("s1", version, version, &[])));
        store.apply(batch(&scope).with(put)).await.unwrap();
    }
    for (messages, entities) in [(3, 2), (0, 0), (9, 9)] {
        let found = store.head(&scope, &of, HeadLimits { messages, entities }).await.unwrap();
        let found = found.expect("the session exists");
        assert_eq!(found.session, head(&store, &scope, "s1").await);
        let recent = store.recent_messages(&scope, &of, messages).await.unwrap();
        assert_eq!((found.recent.len(), &found.recent), (messages.min(5), &recent));
        assert_eq!(found.summary, store.latest_summary(&scope, &of).await.unwrap());
        assert_eq!(found.entities, store.entities(&scope, &of, entities).await.unwrap());
    }
    assert_eq!(store.head(&crate::build::scope("b"), &of, limits).await.unwrap(), None);
}

async fn a_head_has_no_more_messages_than_a_turn_reads(store: Port) {
    let (scope, of) = (scope("a"), session("s1"));
    let json = format!("\"{}\"", "x".repeat(RECENT_BYTES / 8 - 2));
    let limits = HeadLimits { messages: 9, entities: 0 };
    for text in ["one", "two", "three", "four"] {
        put_one(&store, &scope, "s1", say(text).json(&json, &json).build()).await;
    }
    put_one(&store, &scope, "s1", message("five")).await;
    let head = store.head(&scope, &of, limits).await.unwrap().unwrap();
    assert_eq!(contents(&head.recent), ["two", "three", "four", "five"]);
}

async fn only_what_shows_messages_reads_their_parts(store: Port) {
    let (scope, of) = (scope("a"), session("s1"));
    let said = say("one").json("[1]", "[2]").external("x1").build();
    let applied = put_one(&store, &scope, "s1", said).await;
    let key = UnitKey::message(head(&store, &scope, "s1").await.number, applied.position);
    let at = store.messages_at(&scope, &[key]).await.unwrap().remove(0).1;
    let recent = store.recent_messages(&scope, &of, 1).await.unwrap().remove(0);
    assert_eq!((&at.parts, &at.attachments), (&None, &None));
    assert_eq!(*at, recent);
    let page = PageRequest::first(1).unwrap();
    let whole = store.messages(&scope, &of, &page).await.unwrap().items.remove(0);
    let json = |text: &str| Some(text.to_owned());
    let expected = Message { parts: json("[1]"), attachments: json("[2]"), ..recent };
    assert_eq!(whole, expected);
    let limits = HeadLimits { messages: 1, entities: 0 };
    let shown = store.head(&scope, &of, limits).await.unwrap().unwrap().recent;
    let found = store.messages_by_external_id(&scope, &of, &[external("x1")]).await.unwrap();
    assert_eq!([shown, found], [vec![whole.clone()], vec![whole]]);
}

async fn a_head_is_equal_while_its_version_is(store: Port) {
    let (scope, of) = (scope("a"), session("s1"));
    let limits = HeadLimits { messages: 3, entities: 2 };
    put_one(&store, &scope, "s1", say("one").external("x1").build()).await;
    let before = store.head(&scope, &of, limits).await.unwrap().unwrap();
    // Neither a replay, nor another session, nor a job is a change of it.
    put_one(&store, &scope, "s1", say("one").external("x1").build()).await;
    put_one(&store, &scope, "s2", message("another thread")).await;
    store.apply(batch(&scope).with(Write::EnqueueJob(job("embed", "s1")))).await.unwrap();
    assert_eq!(store.head(&scope, &of, limits).await.unwrap().unwrap(), before);
    let said = say("two").entity(EntityKind::Id, "K-1").build();
    put_one(&store, &scope, "s1", said).await;
    let after = store.head(&scope, &of, limits).await.unwrap().unwrap();
    assert!(after.session.version > before.session.version);
    assert_ne!(after, before);
}
