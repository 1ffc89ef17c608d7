//! Messages that a model reads, the facts that it finds in them, and what that takes.

use throughline_core::access::Actor;
use throughline_core::fact::{Fact, FactStatus, NewFact, RejectionKey};
use throughline_core::ids::{MessageId, TenantId};
use throughline_core::index::Namespace;
use throughline_core::ports::{Erasure, Store, TenantBatch, TenantWrite, Write};
use throughline_core::session::PreparedMessage;
use throughline_core::usage::{ModelUse, ModelWork, UsageDay};

use super::super::runner::Scenario;
use super::erasure::erase;
use super::scenarios;
use super::support::{Port, facts, postings, put, put_one};
use crate::build::{at, batch, fact, message, say, scope, slot_fact};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["reading":
    unread_messages_come_in_order_of_commit,
    a_message_is_read_once,
    an_erased_message_is_not_read_any_more,
    a_fact_of_an_earlier_message_comes_as_if_with_it,
    a_fact_of_a_message_that_is_gone_is_not_added,
    a_rejected_fact_of_an_earlier_message_is_not_added,
    an_inferred_fact_goes_with_its_message,
    an_inferred_fact_ends_nothing_that_the_user_said,
    erasing_beside_an_inferred_fact_keeps_what_the_user_said,
    model_use_adds_up_by_day_and_model,
    model_use_is_of_its_tenant,
];

fn unread(text: &str) -> PreparedMessage {
    PreparedMessage { unread: true, ..message(text) }
}

async fn waiting(store: &Port, user: &str, limit: usize) -> Vec<String> {
    let waiting = store.unread_messages(&scope(user), limit).await.unwrap();
    waiting.into_iter().map(|message| message.content).collect()
}

async fn mark(store: &Port, user: &str, ids: &[MessageId]) -> throughline_core::Result<()> {
    let marked = store.apply(batch(&scope(user)).with(Write::MarkRead(ids.to_vec()))).await;
    marked.map(|_| ())
}

fn inferred(fact: NewFact, message: MessageId) -> NewFact {
    NewFact {
        actor: Actor::Extractor,
        extracted_by: Some("model:test:m/1".to_owned()),
        stated_in: Some(message),
        ..fact
    }
}

async fn infer(store: &Port, user: &str, fact: NewFact) {
    store.apply(batch(&scope(user)).with(Write::StateFact(Box::new(fact)))).await.unwrap();
}

async fn active(store: &Port, user: &str) -> Vec<String> {
    let held = facts(store, &scope(user)).await;
    held.into_iter().filter(Fact::holds).map(|fact| fact.text).collect()
}

async fn unread_messages_come_in_order_of_commit(store: Port) {
    assert!(waiting(&store, "a", 9).await.is_empty());
    put_one(&store, &scope("a"), "s1", unread("one")).await;
    put(&store, &scope("a"), "s2", vec![unread("two"), message("read")]).await;
    put_one(&store, &scope("a"), "s1", unread("three")).await;
    put_one(&store, &scope("b"), "s1", unread("of another")).await;
    assert_eq!(waiting(&store, "a", 9).await, ["one", "two", "three"]);
    assert_eq!(waiting(&store, "a", 2).await, ["one", "two"]);
    let first = store.unread_messages(&scope("a"), 1).await.unwrap().remove(0);
    assert_eq!((first.session.as_str(), first.seq), ("s1", 1));
}

async fn a_message_is_read_once(store: Port) {
    let one = put_one(&store, &scope("a"), "s1", unread("one")).await.id;
    let two = put_one(&store, &scope("a"), "s1", unread("two")).await.id;
    mark(&store, "a", &[one]).await.unwrap();
    assert_eq!(waiting(&store, "a", 9).await, ["two"]);
    // Whoever comes second writes nothing of its batch.
    assert!(mark(&store, "a", &[two, one]).await.unwrap_err().is_lost_race());
    assert_eq!(waiting(&store, "a", 9).await, ["two"]);
    assert!(mark(&store, "b", &[two]).await.is_ok(), "it is not there for others");
    assert_eq!(waiting(&store, "a", 9).await, ["two"]);
    // One that is not there is no error.
    mark(&store, "a", &[two, MessageId::from_uuid(uuid::Uuid::from_u128(9))]).await.unwrap();
    assert!(waiting(&store, "a", 9).await.is_empty());
}

async fn an_erased_message_is_not_read_any_more(store: Port) {
    let one = put_one(&store, &scope("a"), "s1", unread("one")).await.id;
    put_one(&store, &scope("a"), "s1", unread("two")).await;
    erase(&store, &scope("a"), Erasure::Messages(vec![one])).await;
    assert_eq!(waiting(&store, "a", 9).await, ["two"]);
    mark(&store, "a", &[one]).await.unwrap();
}

async fn a_fact_of_an_earlier_message_comes_as_if_with_it(store: Port) {
    let said = put_one(&store, &scope("a"), "s1", unread("the drums arrived")).await;
    put_one(&store, &scope("a"), "s2", message("something else")).await;
    let new = inferred(fact("the drums arrived", at(1)), said.id);
    infer(&store, "a", new.clone()).await;
    let held = facts(&store, &scope("a")).await.remove(0);
    assert_eq!((held.id, held.text.as_str()), (new.id, "the drums arrived"));
    assert_eq!((held.sources, held.session.unwrap().as_str()), (vec![said.id], "s1"));
    assert_eq!((held.actor, held.extracted_by), (Actor::Extractor, new.extracted_by));
    let found = postings(&store, &scope("a"), Namespace::Fact, &["drum"]).await;
    assert_eq!(found.lists[0].len(), 1, "it is found by its words");
    // Said again by another message, it is one fact with two sources.
    let again = put_one(&store, &scope("a"), "s2", message("the drums arrived")).await;
    infer(&store, "a", inferred(fact("the drums arrived", at(2)), again.id)).await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!((held.len(), held[0].weight), (1, 2.0));
    assert_eq!(held[0].sources, [said.id, again.id]);
}

async fn a_fact_of_a_message_that_is_gone_is_not_added(store: Port) {
    let said = put_one(&store, &scope("a"), "s1", unread("one")).await;
    put_one(&store, &scope("b"), "s1", message("of another")).await;
    infer(&store, "b", inferred(fact("not theirs", at(1)), said.id)).await;
    infer(&store, "b", NewFact { stated_in: None, ..fact("of none", at(1)) }).await;
    erase(&store, &scope("a"), Erasure::Messages(vec![said.id])).await;
    infer(&store, "a", inferred(fact("one", at(1)), said.id)).await;
    assert!(facts(&store, &scope("a")).await.is_empty());
    assert!(facts(&store, &scope("b")).await.is_empty());
}

async fn a_rejected_fact_of_an_earlier_message_is_not_added(store: Port) {
    let key = RejectionKey::from_bytes([7; 16]);
    let said = put_one(&store, &scope("a"), "s1", unread("one")).await;
    store.apply(batch(&scope("a")).with(Write::Reject(vec![key]))).await.unwrap();
    let rejected = NewFact { rejection: vec![key], ..inferred(fact("one", at(1)), said.id) };
    infer(&store, "a", rejected).await;
    assert!(facts(&store, &scope("a")).await.is_empty());
}

async fn an_inferred_fact_goes_with_its_message(store: Port) {
    let one = put_one(&store, &scope("a"), "s1", unread("the port became 80")).await;
    let two = put_one(&store, &scope("a"), "s1", unread("the port became 81")).await;
    let port = |value, seconds, message| {
        inferred(slot_fact("project", "port", value, at(seconds)), message)
    };
    infer(&store, "a", port("80", 1, one.id)).await;
    infer(&store, "a", port("81", 2, two.id)).await;
    assert_eq!(active(&store, "a").await, ["port of project is 81"]);
    erase(&store, &scope("a"), Erasure::Messages(vec![two.id])).await;
    assert_eq!(active(&store, "a").await, ["port of project is 80"]);
    erase(&store, &scope("a"), Erasure::Messages(vec![one.id])).await;
    assert!(facts(&store, &scope("a")).await.is_empty());
}

async fn an_inferred_fact_ends_nothing_that_the_user_said(store: Port) {
    let town = |value, seconds| slot_fact("user", "town", value, at(seconds));
    let said = say("I live in Oslo").fact(town("Oslo", 1)).build();
    put_one(&store, &scope("a"), "s1", said).await;
    let later = put_one(&store, &scope("a"), "s1", unread("Bergen it is")).await;
    infer(&store, "a", inferred(town("Bergen", 2), later.id)).await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!((held.len(), held[0].status), (1, FactStatus::Active));
    // What is inferred gives way to the user, also where that is said of an earlier time.
    let early = put_one(&store, &scope("b"), "s1", unread("Bergen it is")).await;
    infer(&store, "b", inferred(town("Bergen", 9), early.id)).await;
    put_one(&store, &scope("b"), "s1", say("I live in Oslo").fact(town("Oslo", 1)).build()).await;
    assert_eq!(active(&store, "b").await, ["town of user is Oslo"]);
}

async fn erasing_beside_an_inferred_fact_keeps_what_the_user_said(store: Port) {
    let town = |value, seconds| slot_fact("user", "town", value, at(seconds));
    let guess = put_one(&store, &scope("a"), "s1", unread("Bergen it is")).await;
    infer(&store, "a", inferred(town("Bergen", 1), guess.id)).await;
    let said = say("I live in Oslo").fact(town("Oslo", 2)).build();
    let said = put_one(&store, &scope("a"), "s1", said).await;
    let again = say("Oslo, as ever").fact(town("Oslo", 3)).build();
    let again = put_one(&store, &scope("a"), "s1", again).await;
    erase(&store, &scope("a"), Erasure::Messages(vec![again.id])).await;
    assert_eq!(active(&store, "a").await, ["town of user is Oslo"]);
    erase(&store, &scope("a"), Erasure::Messages(vec![said.id])).await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!(active(&store, "a").await, ["town of user is Bergen"]);
    assert_eq!(held[0].actor, Actor::Extractor);
}

fn used(day: i64, model: &str, n: u64) -> ModelUse {
    ModelUse {
        day: UsageDay::from_days(day),
        work: ModelWork::Extraction,
        model: model.to_owned(),
        calls: n,
        input: n * 10,
        cached_input: n * 2,
        output: n * 3,
        micro_usd: n * 7,
    }
}

async fn spend(store: &Port, of: &str, used: ModelUse) {
    let batch = TenantBatch::new(TenantId::new(of).unwrap()).with(TenantWrite::AddModelUse(used));
    store.apply_tenant(batch).await.unwrap();
}

async fn spent(store: &Port, of: &str, from: i64, to: i64) -> Vec<ModelUse> {
    let (from, to) = (UsageDay::from_days(from), UsageDay::from_days(to));
    store.model_use(&TenantId::new(of).unwrap(), from, to).await.unwrap()
}

async fn model_use_adds_up_by_day_and_model(store: Port) {
    for one in [used(2, "b", 1), used(2, "a", 1), used(2, "b", 2), used(1, "a", 1), used(3, "a", 1)]
    {
        spend(&store, "acme", one).await;
    }
    let expected = [used(1, "a", 1), used(2, "a", 1), used(2, "b", 3)];
    assert_eq!(spent(&store, "acme", 1, 2).await, expected);
    assert_eq!(spent(&store, "acme", 3, 9).await, [used(3, "a", 1)]);
}

async fn model_use_is_of_its_tenant(store: Port) {
    spend(&store, "acme", used(1, "a", 1)).await;
    assert!(spent(&store, "other", 0, 9).await.is_empty());
}
