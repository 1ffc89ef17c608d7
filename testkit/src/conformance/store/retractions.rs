//! A retraction holds the slot, or the statement, that it takes back, and is no fact that holds.

use throughline_core::fact::{Fact, FactKind, FactStatus, NewFact, SupersededFact};
use throughline_core::ports::{Ledger, LedgerLimits, Store};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, facts, put_one};
use crate::build::{at, fact, retraction, say, scope, slot_fact, slot_retraction};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["retractions":
    what_is_taken_back_does_not_hold,
    any_order_of_arrival_ends_the_same,
    what_is_stated_again_later_holds_again,
    a_retraction_is_no_active_fact,
    other_statements_are_not_taken_back,
    a_retraction_said_again_strengthens,
    superseded_facts_come_with_what_holds_now,
    a_value_that_came_back_is_not_superseded,
    the_newest_changes_come_first,
];

async fn state(store: &Port, user: &str, new: NewFact) -> u64 {
    let said = say(&new.text.clone()).fact(new).build();
    put_one(store, &scope(user), "s1", said).await.seq
}

async fn holding(store: &Port, user: &str) -> Vec<String> {
    let held = facts(store, &scope(user)).await;
    held.into_iter().filter(Fact::holds).map(|fact| fact.text).collect()
}

fn town(value: &str, seconds: i64) -> NewFact {
    slot_fact("user", "town", value, at(seconds))
}

async fn superseded(store: &Port, user: &str) -> Vec<SupersededFact> {
    let limits = LedgerLimits { superseded: 99, ..LedgerLimits::default() };
    store.ledger(&scope(user), limits).await.unwrap().superseded
}

async fn what_is_taken_back_does_not_hold(store: Port) {
    state(&store, "a", town("Oslo", 1)).await;
    state(&store, "a", fact("Bees hum", at(1))).await;
    state(&store, "a", slot_retraction("user", "town", at(2))).await;
    state(&store, "a", retraction("Bees hum", at(2))).await;
    assert_eq!(holding(&store, "a").await, [""; 0]);
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.len(), 4, "what was stated is listed");
    assert_eq!(held[0].status, FactStatus::Superseded(held[2].id));
    assert_eq!(held[1].status, FactStatus::Superseded(held[3].id));
}

async fn any_order_of_arrival_ends_the_same(store: Port) {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (n, order) in orders.into_iter().enumerate() {
        let slotted = [town("Oslo", 1), town("Bergen", 2), slot_retraction("user", "town", at(3))];
        let open =
            [fact("Bees hum", at(1)), fact("Bees hum", at(2)), retraction("Bees hum", at(3))];
        for (kind, said) in [("slot", slotted), ("open", open)] {
            let user = format!("{kind}-{n}");
            for index in order {
                state(&store, &user, said[index].clone()).await;
            }
            assert_eq!(holding(&store, &user).await, [""; 0], "{kind} {order:?}");
        }
    }
}

async fn what_is_stated_again_later_holds_again(store: Port) {
    for new in [
        town("Oslo", 1),
        slot_retraction("user", "town", at(2)),
        town("Oslo", 3),
        fact("Bees hum", at(1)),
        retraction("Bees hum", at(2)),
        fact("Bees hum", at(3)),
    ] {
        state(&store, "a", new).await;
    }
    assert_eq!(holding(&store, "a").await, ["town of user is Oslo", "Bees hum"]);
    // What was taken back earlier arrives late.
    state(&store, "a", slot_retraction("user", "town", at(2))).await;
    assert_eq!(holding(&store, "a").await.len(), 2);
}

async fn a_retraction_is_no_active_fact(store: Port) {
    state(&store, "a", slot_retraction("user", "town", at(2))).await;
    state(&store, "a", retraction("Bees hum", at(2))).await;
    let of = scope("a");
    assert_eq!(store.active_facts(&of, &[1, 2]).await.unwrap(), []);
    let limits = LedgerLimits { standing: 9, newest: 9, superseded: 9, rejected: 9 };
    assert_eq!(store.ledger(&of, limits).await.unwrap(), Ledger::default());
    let held = facts(&store, &of).await;
    assert_eq!(held.len(), 2);
    assert!(held.iter().all(|fact| fact.kind == FactKind::Retraction && !fact.holds()));
}

async fn other_statements_are_not_taken_back(store: Port) {
    state(&store, "a", town("Oslo", 1)).await;
    state(&store, "a", fact("town of user is Oslo", at(1))).await;
    state(&store, "a", slot_fact("ana", "town", "Oslo", at(1))).await;
    state(&store, "a", fact("Bees hum", at(1))).await;
    state(&store, "a", slot_retraction("user", "street", at(2))).await;
    state(&store, "a", retraction("Cats purr", at(2))).await;
    assert_eq!(holding(&store, "a").await.len(), 4);
}

async fn a_retraction_said_again_strengthens(store: Port) {
    for seconds in 1..=3 {
        state(&store, "a", slot_retraction("user", "town", at(seconds))).await;
        state(&store, "a", retraction("Bees hum", at(seconds))).await;
    }
    let held = facts(&store, &scope("a")).await;
    let told: Vec<_> = held.iter().map(|fact| (fact.weight, fact.observed_at)).collect();
    assert_eq!(told, [(3.0, at(3)), (3.0, at(3))]);
}

async fn superseded_facts_come_with_what_holds_now(store: Port) {
    let first = state(&store, "a", town("Bergen", 1)).await;
    let again = state(&store, "a", town("Bergen", 2)).await;
    state(&store, "a", town("Oslo", 3)).await;
    let now = state(&store, "a", town("Turku", 4)).await;
    state(&store, "a", town("Turku", 5)).await;
    let found = superseded(&store, "a").await;
    let told: Vec<(&str, &str)> = found
        .iter()
        .map(|old| (old.fact.value.as_deref().unwrap(), old.by.value.as_deref().unwrap()))
        .collect();
    assert_eq!(told, [("Oslo", "Turku"), ("Bergen", "Turku")]);
    assert_eq!(found[1].said, [first, again]);
    assert_eq!((found[0].by_said, found[1].by_said), (now, now));
    assert_eq!((found[1].fact.sources.len(), found[1].by.sources.len()), (2, 2));
    assert!(found.iter().all(|old| old.by.holds() && !old.fact.holds()));
    assert_eq!(superseded(&store, "b").await, []);
}

async fn a_value_that_came_back_is_not_superseded(store: Port) {
    for (value, seconds) in [("Oslo", 1), ("Bergen", 2), ("Oslo", 3)] {
        state(&store, "a", town(value, seconds)).await;
    }
    let found = superseded(&store, "a").await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].fact.value.as_deref(), Some("Bergen"));
    for new in [fact("Bees hum", at(1)), retraction("Bees hum", at(2))] {
        state(&store, "a", new).await;
    }
    let found = superseded(&store, "a").await;
    assert_eq!((found.len(), found[0].fact.text.as_str()), (2, "Bees hum"));
    assert_eq!(found[0].by.kind, FactKind::Retraction);
    state(&store, "a", fact("Bees hum", at(3))).await;
    assert_eq!(superseded(&store, "a").await.len(), 1);
}

async fn the_newest_changes_come_first(store: Port) {
    for n in 1..=4 {
        state(&store, "a", slot_fact("user", &format!("slot {n}"), "old", at(n))).await;
    }
    for n in [2, 4, 1, 3] {
        state(&store, "a", slot_fact("user", &format!("slot {n}"), "new", at(10 + n))).await;
    }
    let found = superseded(&store, "a").await;
    let told: Vec<&str> = found.iter().filter_map(|old| old.fact.attribute.as_deref()).collect();
    assert_eq!(told, ["slot 3", "slot 1", "slot 4", "slot 2"]);
    let limits = LedgerLimits { superseded: 2, ..LedgerLimits::default() };
    let two = store.ledger(&scope("a"), limits).await.unwrap().superseded;
    assert_eq!(two, found[..2]);
}
