//! The outbox: what vector indexes read to become complete.

use throughline_core::Scope;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::page::PageRequest;
use throughline_core::ports::{OutboxText, ScopeTotals, Store};
use throughline_core::text::{PassageSizes, passages};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, put_one};
use crate::build::{at, fact, say, scope, slot_fact};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["outbox":
    messages_wait_in_order_of_commit,
    the_passages_of_a_message_stay_together,
    facts_wait_by_number,
    nothing_waits_in_an_unknown_scope,
    scopes_are_listed_with_their_totals,
];

async fn waiting(store: &Port, namespace: Namespace, after: u64, limit: usize) -> Vec<OutboxText> {
    store.texts_after(&scope("a"), namespace, after, limit).await.unwrap()
}

fn texts(waiting: &[OutboxText]) -> Vec<&str> {
    waiting.iter().map(|waits| waits.text.as_str()).collect()
}

async fn messages_wait_in_order_of_commit(store: Port) {
    for (of, text) in [("s1", "one"), ("s2", "two"), ("s1", "three")] {
        put_one(&store, &scope("a"), of, say(text).build()).await;
        put_one(&store, &scope("b"), of, say("of another").build()).await;
    }
    let all = waiting(&store, Namespace::Message, 0, 99).await;
    assert_eq!(texts(&all), ["one", "two", "three"]);
    let keys = [(1, 0), (2, 0), (1, 1)].map(|(session, at)| UnitKey::message(session, at));
    assert_eq!(all.iter().map(|waits| waits.key).collect::<Vec<_>>(), keys);
    assert_eq!(all.iter().map(|waits| waits.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(texts(&waiting(&store, Namespace::Message, 1, 1).await), ["two"]);
    assert_eq!(waiting(&store, Namespace::Message, 3, 99).await, []);
    assert_eq!(waiting(&store, Namespace::Message, u64::MAX, 99).await, []);
}

async fn the_passages_of_a_message_stay_together(store: Port) {
    let long = "A sentence that takes its time to come to its end. ".repeat(100);
    let count = passages(&long, PassageSizes::MESSAGE).len();
    assert!(count > 2);
    put_one(&store, &scope("a"), "s1", say("short").build()).await;
    put_one(&store, &scope("a"), "s1", say(&long).build()).await;
    put_one(&store, &scope("a"), "s1", say("last").build()).await;
    let found = waiting(&store, Namespace::Message, 1, 2).await;
    assert_eq!(found.len(), count);
    assert!(found.iter().all(|waits| waits.seq == 2));
    let whole: Vec<&str> =
        passages(&long, PassageSizes::MESSAGE).into_iter().map(|range| &long[range]).collect();
    assert_eq!(texts(&found), whole);
    let positions: Vec<u32> = found.iter().map(|waits| waits.key.position()).collect();
    assert!(positions.is_sorted() && positions[0] == 1, "{positions:?}");
}

async fn facts_wait_by_number(store: Port) {
    let message =
        say("said").fact(fact("first", at(1))).fact(slot_fact("user", "port", "1", at(1)));
    put_one(&store, &scope("a"), "s1", message.build()).await;
    let message = say("more").fact(slot_fact("user", "port", "2", at(2)));
    put_one(&store, &scope("a"), "s1", message.build()).await;
    let all = waiting(&store, Namespace::Fact, 0, 99).await;
    assert_eq!(texts(&all), ["first", "port of user is 1", "port of user is 2"]);
    assert_eq!(all.iter().map(|waits| waits.key).collect::<Vec<_>>(), [1, 2, 3].map(UnitKey::fact));
    assert_eq!(texts(&waiting(&store, Namespace::Fact, 1, 1).await), ["port of user is 1"]);
}

async fn nothing_waits_in_an_unknown_scope(store: Port) {
    for namespace in Namespace::ALL {
        assert_eq!(waiting(&store, namespace, 0, 99).await, []);
    }
}

async fn scopes_are_listed_with_their_totals(store: Port) {
    let scopes = [scope("b"), scope("a"), Scope::new("acme", "a", Some("alfred")).unwrap()];
    for scope in &scopes {
        put_one(&store, scope, "s1", say("said").fact(fact("stated", at(1))).build()).await;
    }
    let mut listed = Vec::new();
    let mut page = PageRequest::first(2).unwrap();
    loop {
        let found = store.scopes(&page).await.unwrap();
        listed.extend(found.items);
        match found.next_cursor {
            Some(cursor) => page = PageRequest::first(2).unwrap().after(&cursor).unwrap(),
            None => break,
        }
    }
    assert_eq!(
        listed.iter().map(|(scope, _)| scope).collect::<Vec<_>>(),
        [0, 1, 2].map(|at| &scopes[at])
    );
    let tokens = listed[0].1.tokens;
    let expected = ScopeTotals { messages: 1, tokens, last_seq: 1, facts: 1, documents: 0 };
    assert!(listed.iter().all(|(_, totals)| *totals == expected), "{listed:?}");
}
