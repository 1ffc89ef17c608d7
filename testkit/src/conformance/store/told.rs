//! Facts that are told directly, and values that stay rejected.

use throughline_core::ErrorKind;
use throughline_core::access::Actor;
use throughline_core::fact::{Fact, FactKind, FactStatus, NewFact, Place, RejectionKey};
use throughline_core::ids::SessionId;
use throughline_core::ports::{Erasure, LedgerLimits, Store, Write};

use super::super::runner::Scenario;
use super::erasure::erase;
use super::scenarios;
use super::support::{Port, facts, put_one};
use crate::build::{at, batch, fact, retraction, say, scope, slot_fact, slot_retraction};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["told":
    a_told_fact_has_no_session_and_no_source,
    a_told_fact_takes_the_place_of_what_holds,
    a_fact_is_read_by_its_id_in_its_own_scope,
    a_rejected_value_never_holds_again,
    a_rejected_value_without_a_rival_is_not_written,
    an_allowed_value_holds_again,
    a_rejection_is_of_its_scope_alone,
    erasing_messages_leaves_what_was_told,
    erasing_a_restatement_leaves_what_was_told_holding,
    erasing_does_not_bring_a_rejected_value_back,
    erasing_a_scope_takes_what_was_told,
    a_fact_keeps_the_actor_who_stated_it_first,
    the_users_word_takes_the_place_of_a_models,
    holders_are_what_a_new_fact_would_meet,
    rejected_values_come_first_under_a_limit_of_their_own,
    nobody_elses_word_brings_back_what_the_user_replaced,
    a_slot_that_a_model_forgot_stays_settled,
    a_model_overrides_nothing_that_was_settled,
    what_was_taken_back_holds_again_only_on_the_users_word,
    a_rejected_fact_is_told_as_such_until_it_is_told_again,
];

async fn tell(store: &Port, user: &str, new: NewFact) -> Fact {
    let id = new.id;
    let applied =
        store.apply(batch(&scope(user)).with(Write::PutFact(Box::new(new)))).await.unwrap();
    assert_eq!(applied.facts, [id]);
    store.fact(&scope(user), id).await.unwrap().unwrap()
}

async fn state(store: &Port, user: &str, new: NewFact) {
    let said = say(&new.text.clone()).fact(new).build();
    put_one(store, &scope(user), "s1", said).await;
}

async fn write(store: &Port, user: &str, write: Write) {
    store.apply(batch(&scope(user)).with(write)).await.unwrap();
}

async fn holding(store: &Port, user: &str) -> Vec<String> {
    let held = facts(store, &scope(user)).await;
    held.into_iter().filter(Fact::holds).map(|fact| fact.text).collect()
}

fn town(value: &str, seconds: i64) -> NewFact {
    slot_fact("user", "town", value, at(seconds))
}

const OSLO: RejectionKey = RejectionKey::from_bytes([7; 16]);

/// A fact that bears a key under which it may have been rejected.
fn keyed(fact: NewFact) -> NewFact {
    NewFact { rejection: vec![RejectionKey::from_bytes([1; 16]), OSLO], ..fact }
}

async fn a_told_fact_has_no_session_and_no_source(store: Port) {
    let told = tell(&store, "a", town("Oslo", 1)).await;
    assert_eq!((told.session, told.sources.len(), told.number), (None, 0, 1));
    assert_eq!((told.weight, told.status), (1.0, FactStatus::Active));
    assert_eq!(holding(&store, "a").await.len(), 1);
    // What a message says of it later strengthens it, and is its source.
    state(&store, "a", town("Oslo", 2)).await;
    let held = store.fact(&scope("a"), told.id).await.unwrap().unwrap();
    assert_eq!((held.sources.len(), held.weight, held.observed_at), (1, 2.0, at(2)));
}

async fn a_told_fact_takes_the_place_of_what_holds(store: Port) {
    state(&store, "a", town("Oslo", 9)).await;
    state(&store, "a", fact("Bees hum", at(1))).await;
    // Also of what was observed later, and of what says the same.
    let bergen = tell(&store, "a", town("Bergen", 2)).await;
    assert_eq!(bergen.observed_at, at(9));
    let bees = tell(&store, "a", fact("Bees hum", at(2))).await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held[0].status, FactStatus::Superseded(bergen.id));
    assert_eq!(held[1].status, FactStatus::Superseded(bees.id));
    assert_eq!(holding(&store, "a").await, [bergen.text, bees.text]);
}

async fn a_fact_is_read_by_its_id_in_its_own_scope(store: Port) {
    let told = tell(&store, "a", town("Oslo", 1)).await;
    let newer = tell(&store, "a", town("Bergen", 2)).await;
    let old = store.fact(&scope("a"), told.id).await.unwrap().unwrap();
    assert_eq!(old.status, FactStatus::Superseded(newer.id), "also one that does not hold");
    assert_eq!(store.fact(&scope("b"), told.id).await.unwrap(), None);
}

async fn a_rejected_value_never_holds_again(store: Port) {
    state(&store, "a", keyed(town("Oslo", 1))).await;
    tell(&store, "a", slot_retraction("user", "town", at(2))).await;
    write(&store, "a", Write::Reject(vec![OSLO])).await;
    for seconds in [1, 3] {
        state(&store, "a", keyed(town("Oslo", seconds))).await;
        assert_eq!(holding(&store, "a").await, [""; 0], "{seconds}");
    }
    state(&store, "a", town("Bergen", 4)).await;
    state(&store, "a", keyed(town("Oslo", 5))).await;
    let held = holding(&store, "a").await;
    assert!(held.len() == 1 && held[0].contains("Bergen"), "{held:?}");
}

async fn a_rejected_value_without_a_rival_is_not_written(store: Port) {
    write(&store, "a", Write::Reject(vec![OSLO])).await;
    state(&store, "a", keyed(fact("I live in Oslo", at(1)))).await;
    assert_eq!(facts(&store, &scope("a")).await, []);
}

async fn an_allowed_value_holds_again(store: Port) {
    write(&store, "a", Write::Reject(vec![OSLO])).await;
    write(&store, "a", Write::Reject(vec![OSLO])).await;
    write(&store, "a", Write::Allow(vec![OSLO, RejectionKey::from_bytes([9; 16])])).await;
    state(&store, "a", keyed(town("Oslo", 1))).await;
    assert_eq!(holding(&store, "a").await.len(), 1);
}

async fn a_rejection_is_of_its_scope_alone(store: Port) {
    write(&store, "a", Write::Reject(vec![OSLO])).await;
    state(&store, "b", keyed(town("Oslo", 1))).await;
    assert_eq!(holding(&store, "b").await.len(), 1);
}

async fn erasing_messages_leaves_what_was_told(store: Port) {
    let said = say("Oslo it is").fact(town("Oslo", 1)).build();
    let message = said.id;
    put_one(&store, &scope("a"), "s1", said).await;
    let told = tell(&store, "a", town("Bergen", 2)).await;
    let restated = say("Bergen it is").fact(town("Bergen", 3)).build();
    let second = restated.id;
    put_one(&store, &scope("a"), "s1", restated).await;
    erase(&store, &scope("a"), Erasure::Messages(vec![message, second])).await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.len(), 1, "{held:?}");
    assert_eq!((held[0].id, held[0].status, held[0].weight), (told.id, FactStatus::Active, 1.0));
    assert_eq!((held[0].session.as_ref().map(SessionId::as_str), held[0].sources.len()), (None, 0));
}

async fn erasing_a_restatement_leaves_what_was_told_holding(store: Port) {
    state(&store, "a", town("Oslo", 1)).await;
    let told = tell(&store, "a", town("Bergen", 2)).await;
    let restated = say("Bergen it is").fact(town("Bergen", 3)).build();
    let message = restated.id;
    put_one(&store, &scope("a"), "s1", restated).await;
    erase(&store, &scope("a"), Erasure::Messages(vec![message])).await;
    assert_eq!(holding(&store, "a").await, [told.text]);
}

async fn erasing_does_not_bring_a_rejected_value_back(store: Port) {
    state(&store, "a", keyed(town("Oslo", 1))).await;
    tell(&store, "a", slot_retraction("user", "town", at(2))).await;
    write(&store, "a", Write::Reject(vec![OSLO])).await;
    let again = say("Oslo").fact(keyed(town("Oslo", 3))).build();
    put_one(&store, &scope("a"), "s1", again).await;
    let third = say("Oslo").fact(keyed(town("Oslo", 4))).build();
    let message = third.id;
    put_one(&store, &scope("a"), "s1", third).await;
    tell(&store, "a", retraction("Bees hum", at(2))).await;
    erase(&store, &scope("a"), Erasure::Messages(vec![message])).await;
    assert_eq!(holding(&store, "a").await, [""; 0]);
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.iter().filter(|fact| fact.kind == FactKind::Retraction).count(), 2);
}

fn by(actor: Actor, fact: NewFact) -> NewFact {
    NewFact { actor, ..fact }
}

async fn a_fact_keeps_the_actor_who_stated_it_first(store: Port) {
    let quoted = [Actor::User, Actor::Api, Actor::Import];
    for (n, actor) in (1..).zip(quoted) {
        state(&store, "a", by(actor, slot_fact("user", &format!("slot {n}"), "x", at(n)))).await;
        state(&store, "a", slot_fact("user", &format!("slot {n}"), "x", at(10 + n))).await;
    }
    let told = tell(&store, "a", by(Actor::Api, town("Oslo", 1))).await;
    assert_eq!((told.actor, told.rejected), (Actor::Api, false));
    let held = facts(&store, &scope("a")).await;
    let actors: Vec<Actor> = held.iter().map(|fact| fact.actor).collect();
    assert_eq!(actors[..3], quoted);
    assert_eq!(held.len(), 4, "a restatement is no second fact");
}

async fn the_users_word_takes_the_place_of_a_models(store: Port) {
    let model = || by(Actor::Model, town("Oslo", 5));
    put_one(&store, &scope("a"), "s1", say("Oslo").by(Actor::Model).fact(model()).build()).await;
    let own = say("Oslo it is").fact(town("Oslo", 2)).build();
    let message = own.id;
    put_one(&store, &scope("a"), "s1", own).await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.iter().map(Fact::holds).collect::<Vec<_>>(), [false, true]);
    assert_eq!((held[1].actor, held[1].observed_at), (Actor::User, at(5)));
    // A model that says it once more changes nothing of it.
    state(&store, "a", by(Actor::Model, town("Oslo", 6))).await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!((held.len(), held[1].actor, held[1].weight), (2, Actor::User, 2.0));
    erase(&store, &scope("a"), Erasure::Messages(vec![message])).await;
    let held = facts(&store, &scope("a")).await;
    let holds: Vec<Actor> = held.iter().filter(|f| f.holds()).map(|fact| fact.actor).collect();
    assert_eq!(holds, [Actor::Model], "without the user's word it is the model's again");
}

async fn holders_are_what_a_new_fact_would_meet(store: Port) {
    let bees = tell(&store, "a", by(Actor::User, fact("Bees hum", at(1)))).await;
    tell(&store, "a", by(Actor::User, town("Oslo", 1))).await;
    let bergen = tell(&store, "a", by(Actor::User, town("Bergen", 2))).await;
    tell(&store, "a", by(Actor::Api, fact("Ants march", at(1)))).await;
    let gone = tell(&store, "a", retraction("Ants march", at(2))).await;
    let news = [fact("Bees hum", at(9)), town("Turku", 9), fact("Ants march", at(9))];
    let mut places: Vec<Place> = news.iter().map(NewFact::place).collect();
    places.push(fact("Wasps sting", at(9)).place());
    let found = store.holders(&scope("a"), &places).await.unwrap();
    assert_eq!(found.len(), 3, "{found:?}");
    for (place, id, corrects) in
        [(places[0], bees.id, false), (places[1], bergen.id, true), (places[2], gone.id, true)]
    {
        let (_, holder) = found.iter().find(|(at, _)| *at == place).unwrap();
        assert_eq!((holder.id, holder.corrects), (id, corrects));
        assert_eq!(holder.of_settled, holder.id == gone.id, "{holder:?}");
    }
    assert_eq!(store.holders(&scope("b"), &places).await.unwrap(), []);
    assert_eq!(store.holders(&scope("a"), &[]).await.unwrap(), []);
}

async fn rejected_values_come_first_under_a_limit_of_their_own(store: Port) {
    let slot = |n: i64, value: &str| slot_fact("user", &format!("slot {n}"), value, at(n));
    for n in 1..=4 {
        tell(&store, "a", slot(n, "old")).await;
    }
    for n in 1..=4 {
        let actor = if n == 2 { Actor::Model } else { Actor::Api };
        tell(&store, "a", NewFact { rejects: n < 3, actor, ..slot(n, "new") }).await;
    }
    let read = async |superseded, rejected| {
        let limits = LedgerLimits { superseded, rejected, ..LedgerLimits::default() };
        let found = store.ledger(&scope("a"), limits).await.unwrap().superseded;
        let slots = found.into_iter().map(|old| (old.fact.attribute.unwrap(), old.ended_by));
        slots.map(|(slot, by)| format!("{slot} {by}")).collect::<Vec<_>>()
    };
    let all = ["slot 2 model", "slot 1 api", "slot 4 api", "slot 3 api"];
    assert_eq!(read(9, 9).await, all);
    assert_eq!(read(0, 1).await, all[..1]);
    assert_eq!(read(1, 0).await, all[2..3]);
    // Who superseded it first, whatever holds now.
    tell(&store, "a", by(Actor::Model, slot_retraction("user", "slot 1", at(9)))).await;
    assert_eq!(read(0, 9).await, all[..2]);
}

async fn nobody_elses_word_brings_back_what_the_user_replaced(store: Port) {
    for actor in [Actor::Import, Actor::Model] {
        let user = actor.as_str();
        state(&store, user, town("Oslo", 1)).await;
        state(&store, user, town("Bergen", 2)).await;
        state(&store, user, by(actor, town("Oslo", 3))).await;
        assert_eq!(holding(&store, user).await, ["town of user is Bergen"], "{user}");
        assert_eq!(facts(&store, &scope(user)).await.len(), 2, "{user}: it is not kept");
        state(&store, user, town("Oslo", 4)).await;
        assert_eq!(holding(&store, user).await, ["town of user is Oslo"], "{user}");
    }
    // What another value of theirs replaced is no decision of the user.
    state(&store, "files", by(Actor::Import, town("Oslo", 1))).await;
    state(&store, "files", by(Actor::Import, town("Bergen", 2))).await;
    state(&store, "files", by(Actor::Import, town("Oslo", 3))).await;
    assert_eq!(holding(&store, "files").await, ["town of user is Oslo"]);
}

async fn a_slot_that_a_model_forgot_stays_settled(store: Port) {
    tell(&store, "a", by(Actor::Api, town("Oslo", 1))).await;
    let forgets = |value: &str, seconds| NewFact {
        value: Some(value.into()),
        ..by(Actor::Model, slot_retraction("user", "town", at(seconds)))
    };
    tell(&store, "a", forgets("Oslo", 2)).await;
    let other = Write::PutFact(Box::new(by(Actor::Model, town("Turku", 3))));
    let error = store.apply(batch(&scope("a")).with(other)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    tell(&store, "a", by(Actor::Model, town("Oslo", 4))).await;
    // What nobody settled it may forget and tell anew.
    state(&store, "b", town("Oslo", 1)).await;
    tell(&store, "b", forgets("Oslo", 2)).await;
    tell(&store, "b", by(Actor::Model, town("Turku", 3))).await;
    assert_eq!(holding(&store, "b").await, ["town of user is Turku"]);
}

async fn a_model_overrides_nothing_that_was_settled(store: Port) {
    let model = |value: &str, seconds| by(Actor::Model, town(value, seconds));
    let told = tell(&store, "told", by(Actor::Api, town("Oslo", 1))).await;
    state(&store, "corrected", town("Bergen", 1)).await;
    state(&store, "corrected", town("Oslo", 2)).await;
    state(&store, "retracted", town("Turku", 1)).await;
    state(&store, "retracted", slot_retraction("user", "town", at(2))).await;
    for user in ["told", "corrected", "retracted"] {
        let write = Write::PutFact(Box::new(model("Turku", 9)));
        let error = store.apply(batch(&scope(user)).with(write)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{user}: {error}");
        let before = holding(&store, user).await;
        state(&store, user, model("Turku", 9)).await;
        assert_eq!(holding(&store, user).await, before, "{user}");
    }
    // What nobody settled it may bring up to date, and it may say what holds.
    state(&store, "free", town("Oslo", 1)).await;
    tell(&store, "free", model("Turku", 2)).await;
    assert_eq!(holding(&store, "free").await, ["town of user is Turku"]);
    assert_eq!(tell(&store, "told", model("Oslo", 3)).await.actor, Actor::Model);
    assert_eq!(store.fact(&scope("told"), told.id).await.unwrap().unwrap().actor, Actor::Api);
}

async fn what_was_taken_back_holds_again_only_on_the_users_word(store: Port) {
    let taken_back =
        || NewFact { value: Some("Oslo".into()), ..slot_retraction("user", "town", at(2)) };
    for actor in [Actor::Import, Actor::Model] {
        let user = actor.as_str();
        // In any order.
        for (n, seconds) in [(1, 1), (2, 3)] {
            let name = format!("{user}-{n}");
            state(&store, &name, town("Oslo", 1)).await;
            let (first, second) = match n {
                1 => (taken_back(), by(actor, town("Oslo", 3))),
                _ => (by(actor, town("Oslo", seconds)), taken_back()),
            };
            state(&store, &name, first).await;
            state(&store, &name, second).await;
            let held = holding(&store, &name).await;
            // A restatement of what its user stated has the actor of the first statement.
            let stays = n == 2;
            assert_eq!(held.is_empty(), !stays, "{name}: {held:?}");
        }
        let name = format!("{user}-open");
        state(&store, &name, fact("Bees hum", at(1))).await;
        state(&store, &name, retraction("Bees hum", at(2))).await;
        state(&store, &name, by(actor, fact("Bees hum", at(3)))).await;
        assert_eq!(holding(&store, &name).await, [""; 0], "{name}");
        assert_eq!(facts(&store, &scope(&name)).await.len(), 2, "and is not kept");
        state(&store, &name, fact("Bees hum", at(4))).await;
        assert_eq!(holding(&store, &name).await.len(), 1, "{name}");
    }
}

async fn a_rejected_fact_is_told_as_such_until_it_is_told_again(store: Port) {
    let told = tell(&store, "a", town("Oslo", 1)).await;
    let corrected = NewFact { rejects: true, ..town("Bergen", 2) };
    let bergen = tell(&store, "a", corrected).await;
    tell(&store, "a", town("Turku", 3)).await;
    let rejected = async || {
        let held = facts(&store, &scope("a")).await;
        let rejected: Vec<_> =
            held.into_iter().filter(|fact| fact.rejected).map(|f| f.id).collect();
        rejected
    };
    assert_eq!(rejected().await, [told.id], "what was only brought up to date is not");
    assert!(!bergen.rejected);
    tell(&store, "a", town("Oslo", 4)).await;
    assert_eq!(rejected().await, []);
    let gone = tell(&store, "a", fact("Bees hum", at(1))).await;
    tell(&store, "a", NewFact { rejects: true, ..retraction("Bees hum", at(2)) }).await;
    assert_eq!(rejected().await, [gone.id]);
}

async fn erasing_a_scope_takes_what_was_told(store: Port) {
    tell(&store, "a", town("Oslo", 1)).await;
    write(&store, "a", Write::Reject(vec![OSLO])).await;
    erase(&store, &scope("a"), Erasure::Scope { through: 0, documents: 0 }).await;
    assert_eq!(facts(&store, &scope("a")).await, []);
    state(&store, "a", keyed(town("Oslo", 1))).await;
    assert_eq!(holding(&store, "a").await.len(), 1, "nothing is rejected any more");
}
