//! A slot holds one current value: the latest stated, in whatever order statements arrive.

use throughline_core::fact::{Fact, FactStatus, NewFact};
use throughline_core::ports::Store;

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, facts, put, put_one};
use crate::build::{at, fact, say, scope, session, slot_fact};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["slots":
    a_later_value_supersedes,
    an_earlier_value_that_arrives_late_is_superseded,
    any_order_of_arrival_ends_with_the_latest_value,
    one_instant_leaves_one_value,
    a_value_that_comes_back_holds_again,
    a_strengthened_value_holds_against_what_was_said_between,
    sessions_share_a_slot,
    another_slot_is_never_superseded,
    a_fact_without_a_slot_is_never_superseded,
    what_was_superseded_stays_listed,
];

async fn state(store: &Port, of: &str, facts: Vec<NewFact>) {
    let messages =
        facts.into_iter().map(|fact| say(&fact.text.clone()).fact(fact).build()).collect();
    put(store, &scope("a"), of, messages).await;
}

fn town(value: &str, seconds: i64) -> NewFact {
    slot_fact("user", "town", value, at(seconds))
}

async fn held(store: &Port) -> Vec<Fact> {
    facts(store, &scope("a")).await
}

/// Values that hold.
fn current(facts: &[Fact]) -> Vec<&str> {
    facts
        .iter()
        .filter(|fact| fact.status == FactStatus::Active)
        .filter_map(|fact| fact.value.as_deref())
        .collect()
}

async fn a_later_value_supersedes(store: Port) {
    let (old, new) = (town("Bergen", 1), town("Oslo", 2));
    let by = new.id;
    state(&store, "s1", vec![old]).await;
    state(&store, "s1", vec![new]).await;
    let held = held(&store).await;
    assert_eq!(held.len(), 2);
    assert_eq!(held[0].status, FactStatus::Superseded(by));
    assert_eq!((held[0].observed_at, held[0].weight), (at(1), 1.0));
    assert_eq!((held[1].id, held[1].status), (by, FactStatus::Active));
}

async fn an_earlier_value_that_arrives_late_is_superseded(store: Port) {
    let (new, old) = (town("Oslo", 2), town("Bergen", 1));
    let by = new.id;
    state(&store, "s1", vec![new]).await;
    state(&store, "s1", vec![old]).await;
    let held = held(&store).await;
    assert_eq!(held.len(), 2, "what was once stated is listed");
    assert_eq!((held[0].id, held[0].status), (by, FactStatus::Active));
    assert_eq!((held[0].weight, held[0].sources.len()), (1.0, 1));
    assert_eq!(held[1].status, FactStatus::Superseded(by));
}

async fn any_order_of_arrival_ends_with_the_latest_value(store: Port) {
    let orders = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
    for (n, order) in orders.into_iter().enumerate() {
        let user = scope(&format!("user-{n}"));
        for seconds in order {
            let said =
                town(["", "Bergen", "Oslo", "Turku"][seconds], i64::try_from(seconds).unwrap());
            let said = say("where I live").fact(said).build();
            put_one(&store, &user, "s1", said).await;
        }
        let held = facts(&store, &user).await;
        assert_eq!(held.len(), 3, "{order:?}");
        assert_eq!(current(&held), ["Turku"], "{order:?}");
    }
}

async fn one_instant_leaves_one_value(store: Port) {
    state(&store, "s1", vec![town("Bergen", 1), town("Oslo", 1), town("Turku", 1)]).await;
    let held = held(&store).await;
    assert_eq!(held.len(), 3);
    assert_eq!(current(&held).len(), 1, "{held:?}");
}

async fn a_value_that_comes_back_holds_again(store: Port) {
    state(&store, "s1", vec![town("Oslo", 1), town("Bergen", 2), town("Oslo", 3)]).await;
    let held = held(&store).await;
    assert_eq!(current(&held), ["Oslo"]);
    let active = held.iter().find(|fact| fact.status == FactStatus::Active);
    assert_eq!(active.unwrap().observed_at, at(3));
}

async fn a_strengthened_value_holds_against_what_was_said_between(store: Port) {
    state(&store, "s1", vec![town("Oslo", 1), town("Oslo", 5), town("Bergen", 3)]).await;
    let held = held(&store).await;
    assert_eq!(current(&held), ["Oslo"]);
    assert_eq!(held[1].status, FactStatus::Superseded(held[0].id));
}

async fn sessions_share_a_slot(store: Port) {
    state(&store, "s1", vec![town("Bergen", 1)]).await;
    state(&store, "s2", vec![town("Oslo", 2)]).await;
    let held = held(&store).await;
    assert_eq!(current(&held), ["Oslo"]);
    assert_eq!((&held[0].session, &held[1].session), (&Some(session("s1")), &Some(session("s2"))));
}

async fn another_slot_is_never_superseded(store: Port) {
    let stated = vec![
        slot_fact("user", "town", "Oslo", at(1)),
        slot_fact("user", "birth town", "Oslo", at(2)),
        slot_fact("ana", "town", "Oslo", at(3)),
        slot_fact("user town", "", "Oslo", at(4)),
        slot_fact("user", "towns", "Oslo", at(5)),
    ];
    state(&store, "s1", stated).await;
    let held = held(&store).await;
    assert_eq!(current(&held), ["Oslo"; 5]);
}

async fn a_fact_without_a_slot_is_never_superseded(store: Port) {
    let subject_only =
        NewFact { subject: Some("user".to_owned()), ..fact("User lives in Bergen", at(1)) };
    let attribute_only =
        NewFact { attribute: Some("town".to_owned()), ..fact("Town is Turku", at(1)) };
    state(&store, "s1", vec![subject_only, attribute_only, town("Oslo", 2)]).await;
    for fact in held(&store).await {
        assert_eq!(fact.status, FactStatus::Active, "{}", fact.text);
    }
}

async fn what_was_superseded_stays_listed(store: Port) {
    let values = ["Bergen", "Oslo", "Turku", "Riga"];
    let stated = (1..).zip(values).map(|(seconds, value)| town(value, seconds)).collect();
    state(&store, "s1", stated).await;
    let held = held(&store).await;
    let told: Vec<&str> = held.iter().filter_map(|fact| fact.value.as_deref()).collect();
    assert_eq!(told, values);
    for pair in held.windows(2) {
        assert_eq!(pair[0].status, FactStatus::Superseded(pair[1].id));
    }
}
