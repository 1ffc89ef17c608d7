//! Facts as they are stored, restated and found.

use throughline_core::fact::{Fact, FactKind, FactStatus, NewFact};
use throughline_core::ids::MessageId;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{IndexStats, LedgerLimits, Store};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, facts, postings, put_one};
use crate::build::{at, fact, message, retraction, say, scope, session, slot_fact};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["facts":
    every_field_is_kept,
    a_fact_may_be_stated_in_an_earlier_message,
    a_fact_of_a_message_that_is_gone_is_not_stored,
    numbers_are_of_the_scope,
    a_restatement_strengthens,
    a_restatement_is_told_by_what_it_says,
    an_older_restatement_does_not_turn_back_time,
    other_statements_stand_beside_each_other,
    a_message_is_a_source_once,
    active_facts_are_given_in_the_order_asked,
    active_facts_leave_out_what_is_not_active,
    facts_are_indexed_under_their_numbers,
    a_restatement_is_indexed_once,
    standing_facts_are_the_instructions_and_preferences_that_hold,
    the_last_stated_standing_facts_come_first,
    the_newest_facts_are_those_that_hold,
];

/// A message that states something; its id.
async fn state(store: &Port, of: &str, fact: NewFact) -> MessageId {
    let said = say(&fact.text.clone()).fact(fact).build();
    put_one(store, &scope("a"), of, said).await.id
}

async fn every_field_is_kept(store: Port) {
    let full = NewFact {
        kind: FactKind::Decision,
        tags: vec!["project:alfred".to_owned(), "ünïcode".to_owned()],
        ..slot_fact("project alfred", "database", "SQLite", at(7))
    };
    let bare = NewFact { extracted_by: None, ..fact("Bees hum", at(-3)) };
    let sources =
        [state(&store, "s1", full.clone()).await, state(&store, "s2", bare.clone()).await];
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.len(), 2);
    for (((held, new), number), source) in held.iter().zip([full, bare]).zip(1..).zip(sources) {
        assert_eq!((held.id, held.number, held.kind), (new.id, number, new.kind));
        assert_eq!(held.session, Some(session(&format!("s{number}"))));
        assert_eq!((&held.text, &held.tags), (&new.text, &new.tags));
        assert_eq!((&held.subject, &held.attribute), (&new.subject, &new.attribute));
        assert_eq!((&held.value, held.observed_at), (&new.value, new.observed_at));
        assert_eq!((&held.sources, held.weight), (&vec![source], 1.0));
        assert_eq!(held.status, FactStatus::Active);
        assert_eq!(held.extracted_by, new.extracted_by);
    }
}

async fn a_fact_may_be_stated_in_an_earlier_message(store: Port) {
    let first = put_one(&store, &scope("a"), "s1", say("It leaves at 7:40.").build()).await.id;
    let old =
        NewFact { stated_in: Some(first), ..slot_fact("project", "leaves at", "7:40", at(1)) };
    let new = slot_fact("project", "leaves at", "8:15", at(2));
    let said = say("At 8:15, not 7:40.").fact(old).fact(new.clone()).build();
    let second = put_one(&store, &scope("a"), "s2", said).await.id;
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held[0].sources, [first]);
    assert_eq!(held[0].session, Some(session("s1")));
    assert_eq!(held[0].status, FactStatus::Superseded(new.id));
    assert_eq!((&held[1].sources, held[1].status), (&vec![second], FactStatus::Active));
}

async fn a_fact_of_a_message_that_is_gone_is_not_stored(store: Port) {
    let nowhere = MessageId::from_uuid(fact("x", at(1)).id.as_uuid());
    let old = NewFact { stated_in: Some(nowhere), ..fact("Bees hum", at(1)) };
    let said = say("Not so.").fact(old).fact(fact("Cats purr", at(2))).build();
    put_one(&store, &scope("a"), "s1", said).await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.iter().map(|fact| fact.text.as_str()).collect::<Vec<_>>(), ["Cats purr"]);
}

async fn numbers_are_of_the_scope(store: Port) {
    for (of, text) in [("s1", "Bees hum"), ("s2", "Cats purr"), ("s1", "Dogs bark")] {
        state(&store, of, fact(text, at(1))).await;
    }
    let held = facts(&store, &scope("a")).await;
    let numbers: Vec<u32> = held.iter().map(|fact| fact.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

async fn a_restatement_strengthens(store: Port) {
    for restated in [
        [fact("Bees hum", at(1)), fact("Bees hum", at(5)), fact("Bees hum", at(9))],
        [1, 5, 9].map(|seconds| slot_fact("user", "town", "Oslo", at(seconds))),
    ] {
        let before = facts(&store, &scope("a")).await.len();
        let (first, text) = (restated[0].id, restated[0].text.clone());
        let mut sources = Vec::new();
        for (of, fact) in ["s1", "s2", "s1"].into_iter().zip(restated) {
            sources.push(state(&store, of, fact).await);
        }
        let held = facts(&store, &scope("a")).await;
        assert_eq!(held.len(), before + 1, "one fact");
        let held = &held[before];
        assert_eq!((held.id, &held.text), (first, &text));
        assert_eq!((held.weight, held.observed_at), (3.0, at(9)));
        assert_eq!(held.sources, sources, "first one first");
        assert_eq!(held.session, Some(session("s1")), "where it was first stated");
        assert_eq!(held.status, FactStatus::Active);
    }
}

async fn a_restatement_is_told_by_what_it_says(store: Port) {
    state(&store, "s1", fact("The café opens at 8", at(1))).await;
    state(&store, "s1", fact("the CAFE opens  at 8!", at(2))).await;
    state(&store, "s1", slot_fact("User", "Home town", "The Hague", at(1))).await;
    state(&store, "s1", slot_fact("user", "home-town", "the hague.", at(2))).await;
    // A sign is not punctuation: this is another value.
    state(&store, "s1", slot_fact("user", "budget", "€900", at(1))).await;
    state(&store, "s1", slot_fact("user", "budget", "$900", at(2))).await;
    let held = facts(&store, &scope("a")).await;
    let told: Vec<(&str, f32)> = held.iter().map(|f| (f.text.as_str(), f.weight)).collect();
    let expected = [("The café opens at 8", 2.0), ("Home town of User is The Hague", 2.0)];
    assert_eq!(told[..2], expected);
    let active: Vec<&str> = held[2..]
        .iter()
        .filter(|fact| fact.status == FactStatus::Active)
        .filter_map(|fact| fact.value.as_deref())
        .collect();
    assert_eq!(active, ["$900"]);
}

async fn an_older_restatement_does_not_turn_back_time(store: Port) {
    state(&store, "s1", fact("Bees hum", at(9))).await;
    state(&store, "s1", fact("Bees hum", at(1))).await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!((held.len(), held[0].weight, held[0].observed_at), (1, 2.0, at(9)));
}

async fn other_statements_stand_beside_each_other(store: Port) {
    let close = slot_fact("user", "town", "Oslo", at(1));
    let same_words = fact(&close.text, at(2));
    let stated = [
        fact("My dog is named Rex", at(1)),
        fact("My dog is named Max", at(2)),
        fact("My dog was named Rex", at(3)),
        close,
        same_words,
    ];
    for fact in stated {
        state(&store, "s1", fact).await;
    }
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.len(), 5);
    for fact in held {
        assert_eq!((fact.status, fact.weight), (FactStatus::Active, 1.0), "{}", fact.text);
    }
}

async fn a_message_is_a_source_once(store: Port) {
    let said = say("Bees hum. Bees hum.")
        .fact(fact("Bees hum", at(1)))
        .fact(fact("Bees hum", at(1)))
        .build();
    let source = put_one(&store, &scope("a"), "s1", said).await.id;
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].sources, [source]);
}

async fn active_facts_are_given_in_the_order_asked(store: Port) {
    for text in ["Bees hum", "Cats purr", "Dogs bark", "Eels swim"] {
        state(&store, "s1", fact(text, at(1))).await;
    }
    let found = store.active_facts(&scope("a"), &[3, 1, 4]).await.unwrap();
    let found: Vec<&str> = found.iter().map(|fact| fact.text.as_str()).collect();
    assert_eq!(found, ["Dogs bark", "Bees hum", "Eels swim"]);
    assert_eq!(store.active_facts(&scope("a"), &[]).await.unwrap(), []);
}

async fn active_facts_leave_out_what_is_not_active(store: Port) {
    state(&store, "s1", slot_fact("user", "town", "Bergen", at(1))).await;
    state(&store, "s1", slot_fact("user", "town", "Oslo", at(2))).await;
    let asked = [0, 1, 2, 3, u32::MAX];
    let found = store.active_facts(&scope("a"), &asked).await.unwrap();
    let numbers: Vec<u32> = found.iter().map(|fact| fact.number).collect();
    assert_eq!(numbers, [2]);
}

async fn facts_are_indexed_under_their_numbers(store: Port) {
    put_one(&store, &scope("a"), "s1", message("bees, bees")).await;
    state(&store, "s1", fact("Bees hum", at(1))).await;
    state(&store, "s1", fact("Bees, bees and cats", at(1))).await;
    let found = postings(&store, &scope("a"), Namespace::Fact, &["cat", "bee"]).await;
    assert_eq!(found.stats, IndexStats { units: 2, length: 5 });
    let told: Vec<Vec<_>> = found
        .lists
        .iter()
        .map(|list| list.iter().map(|p| (p.key, p.count, p.length)).collect())
        .collect();
    let (first, second) = (UnitKey::fact(1), UnitKey::fact(2));
    assert_eq!(told, [vec![(second, 1, 3)], vec![(first, 1, 2), (second, 2, 3)]]);
}

async fn a_restatement_is_indexed_once(store: Port) {
    for seconds in 1..=3 {
        state(&store, "s1", fact("Bees hum", at(seconds))).await;
    }
    let found = postings(&store, &scope("a"), Namespace::Fact, &["bee"]).await;
    assert_eq!(found.stats, IndexStats { units: 1, length: 2 });
    assert_eq!(found.lists[0].len(), 1);
}

fn of_kind(kind: FactKind, text: &str, seconds: i64) -> NewFact {
    NewFact { kind, ..fact(text, at(seconds)) }
}

async fn standing(store: &Port, user: &str, limit: usize) -> Vec<Fact> {
    let limits = LedgerLimits { standing: limit, ..LedgerLimits::default() };
    let read = store.ledger(&scope(user), limits).await.unwrap();
    assert_eq!((read.newest, read.superseded), (Vec::new(), Vec::new()));
    read.standing
}

async fn newest(store: &Port, user: &str, limit: usize) -> Vec<Fact> {
    let limits = LedgerLimits { newest: limit, ..LedgerLimits::default() };
    store.ledger(&scope(user), limits).await.unwrap().newest
}

fn texts(facts: &[Fact]) -> Vec<&str> {
    facts.iter().map(|fact| fact.text.as_str()).collect()
}

async fn standing_facts_are_the_instructions_and_preferences_that_hold(store: Port) {
    let rule = |value: &str, seconds: i64| NewFact {
        kind: FactKind::Instruction,
        ..slot_fact("user", "language", value, at(seconds))
    };
    let source = state(&store, "s1", rule("French", 1)).await;
    state(&store, "s2", of_kind(FactKind::Preference, "I prefer tea", 2)).await;
    for kind in FactKind::ALL.into_iter().filter(|kind| !kind.is_standing()) {
        state(&store, "s1", of_kind(kind, &format!("a {kind}"), 3)).await;
    }
    let held = standing(&store, "a", 9).await;
    assert_eq!(texts(&held), ["I prefer tea", "language of user is French"]);
    assert_eq!((held[1].sources.clone(), held[1].status), (vec![source], FactStatus::Active));
    state(&store, "s1", rule("Dutch", 4)).await;
    state(&store, "s1", retraction("I prefer tea", at(5))).await;
    let held = standing(&store, "a", 9).await;
    assert_eq!(texts(&held), ["language of user is Dutch"]);
    assert_eq!(standing(&store, "b", 9).await, []);
}

async fn the_last_stated_standing_facts_come_first(store: Port) {
    for (text, seconds) in [("one", 5), ("two", 9), ("three", 9), ("four", 1), ("one", 7)] {
        state(&store, "s1", of_kind(FactKind::Instruction, text, seconds)).await;
    }
    let held = standing(&store, "a", 9).await;
    assert_eq!(texts(&held), ["three", "two", "one", "four"]);
    assert_eq!(standing(&store, "a", 2).await, held[..2]);
    assert_eq!(standing(&store, "a", 0).await, []);
}

async fn the_newest_facts_are_those_that_hold(store: Port) {
    for (value, seconds) in [("Bergen", 1), ("Oslo", 2)] {
        state(&store, "s1", slot_fact("user", "town", value, at(seconds))).await;
    }
    state(&store, "s1", fact("Bees hum", at(3))).await;
    state(&store, "s1", fact("Cats purr", at(1))).await;
    state(&store, "s1", retraction("Bees hum", at(4))).await;
    let held = newest(&store, "a", 9).await;
    assert_eq!(texts(&held), ["Cats purr", "town of user is Oslo"]);
    assert_eq!(texts(&newest(&store, "a", 1).await), ["Cats purr"]);
    assert_eq!(newest(&store, "b", 9).await, []);
}
