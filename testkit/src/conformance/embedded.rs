//! The table of a store that keeps vectors itself: they go in with the batch, or not at all.

use std::sync::Arc;

use throughline_core::ErrorKind;
use throughline_core::ids::MessageId;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{
    Erasure, Precondition, RecordKey, VectorIndex, VectorItem, VectorSpace, Write, WriteBatch,
};
use throughline_core::session::PreparedMessage;

use super::EmbeddedIndex;
use super::runner::{Scenario, scenarios};
use crate::build::{append, at, batch, document, fact, id, memory, say, scope, session, vault};

pub(super) const TABLE: &[Scenario<dyn EmbeddedIndex>] = scenarios!["embedded":
    vectors_go_in_with_their_batch,
    facts_have_vectors_of_their_own,
    a_batch_that_fails_leaves_no_vector,
    a_replay_brings_no_vector,
    what_was_complete_stays_complete,
    what_has_a_gap_stays_behind,
    other_dimensions_are_refused_with_the_batch,
    fact_vector_of_other_dimensions_is_refused_with_the_batch,
    what_is_erased_leaves_every_space,
    a_scope_erased_whole_leaves_no_vector_and_no_gap,
    vectors_of_documents_are_those_of_the_latest,
    an_erased_document_leaves_every_space,
];

type Port = Arc<dyn EmbeddedIndex>;

fn flat() -> VectorSpace {
    VectorSpace { id: "flat".to_owned(), dimensions: 2 }
}

fn embedded(text: &str, vector: [f32; 2]) -> PreparedMessage {
    let mut message = say(text).external(text).build();
    message.units[0].vector = Some(vector.into());
    message
}

fn with_vectors(of: &str, messages: Vec<PreparedMessage>) -> WriteBatch {
    let appends = messages.into_iter().map(|message| append(of, message));
    let batch = appends.fold(batch(&scope("a")), WriteBatch::with);
    WriteBatch { space: Some(flat()), ..batch }
}

async fn found(port: &Port, namespace: Namespace) -> Vec<UnitKey> {
    let hits = port.search(&scope("a"), namespace, &flat(), &[1.0, 0.0], 99, &[]).await.unwrap();
    hits.into_iter().map(|hit| hit.key).collect()
}

async fn watermark(port: &Port, namespace: Namespace) -> u64 {
    port.watermark(&scope("a"), namespace, &flat()).await.unwrap()
}

async fn vectors_go_in_with_their_batch(port: Port) {
    let messages = vec![embedded("far", [-1.0, 0.1]), embedded("near", [1.0, 0.1])];
    port.apply(with_vectors("s1", messages)).await.unwrap();
    port.apply(with_vectors("s2", vec![embedded("between", [0.1, 1.0])])).await.unwrap();
    let keys = [(1, 1), (2, 0), (1, 0)].map(|(session, at)| UnitKey::message(session, at));
    assert_eq!(found(&port, Namespace::Message).await, keys);
    assert_eq!(watermark(&port, Namespace::Message).await, 3);
}

async fn facts_have_vectors_of_their_own(port: Port) {
    let mut stated = fact("the port is 80", at(1));
    stated.unit.vector = Some(vec![1.0, 0.0]);
    let message = say("said").fact(stated.clone()).fact(fact("no vector", at(1))).build();
    port.apply(with_vectors("s1", vec![message])).await.unwrap();
    assert_eq!(found(&port, Namespace::Fact).await, [UnitKey::fact(1)]);
    assert_eq!(found(&port, Namespace::Message).await, []);
    assert_eq!(watermark(&port, Namespace::Fact).await, 2);
    // A restatement is the fact that is there: it has its vector already.
    let again = say("said again").fact(stated).build();
    port.apply(with_vectors("s1", vec![again])).await.unwrap();
    assert_eq!(found(&port, Namespace::Fact).await, [UnitKey::fact(1)]);
    assert_eq!(watermark(&port, Namespace::Fact).await, 2);
}

async fn a_batch_that_fails_leaves_no_vector(port: Port) {
    let lost = Precondition::IfVersion(RecordKey::Session(session("s1")), 9);
    let doomed = with_vectors("s1", vec![embedded("x", [1.0, 0.0])]).with_precondition(lost);
    assert!(port.apply(doomed).await.unwrap_err().is_lost_race());
    assert_eq!(found(&port, Namespace::Message).await, []);
    assert_eq!(watermark(&port, Namespace::Message).await, 0);
}

async fn a_replay_brings_no_vector(port: Port) {
    for _ in 0..2 {
        port.apply(with_vectors("s1", vec![embedded("x", [1.0, 0.0])])).await.unwrap();
    }
    assert_eq!(found(&port, Namespace::Message).await, [UnitKey::message(1, 0)]);
    assert_eq!(watermark(&port, Namespace::Message).await, 1);
}

async fn what_was_complete_stays_complete(port: Port) {
    let plain = WriteBatch { space: None, ..with_vectors("s1", vec![say("plain").build()]) };
    port.apply(plain).await.unwrap();
    assert_eq!(watermark(&port, Namespace::Message).await, 0);
    port.upsert(&scope("a"), Namespace::Message, &flat(), &[], 1).await.unwrap();
    // A message that means nothing has no vector, and leaves no gap.
    let messages = vec![embedded("x", [1.0, 0.0]), say("nothing").build()];
    port.apply(with_vectors("s1", messages)).await.unwrap();
    assert_eq!(watermark(&port, Namespace::Message).await, 3);
}

async fn what_has_a_gap_stays_behind(port: Port) {
    port.apply(with_vectors("s1", vec![embedded("x", [1.0, 0.0])])).await.unwrap();
    let plain = WriteBatch { space: None, ..with_vectors("s1", vec![say("plain").build()]) };
    port.apply(plain).await.unwrap();
    port.apply(with_vectors("s1", vec![embedded("y", [1.0, 0.1])])).await.unwrap();
    assert_eq!(watermark(&port, Namespace::Message).await, 1);
    assert_eq!(found(&port, Namespace::Message).await.len(), 2, "what is there is found");
}

async fn other_dimensions_are_refused_with_the_batch(port: Port) {
    let mut wrong = embedded("x", [1.0, 0.0]);
    wrong.units[0].vector = Some(vec![1.0]);
    let refused = port.apply(with_vectors("s1", vec![wrong])).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(port.session(&scope("a"), &session("s1")).await.unwrap().is_none());
}

async fn fact_vector_of_other_dimensions_is_refused_with_the_batch(port: Port) {
    let mut wrong = fact("the port is 80", at(1));
    wrong.unit.vector = Some(vec![1.0]);
    let stated = with_vectors("s1", vec![say("said").fact(wrong.clone()).build()]);
    let told = with_vectors("s1", Vec::new()).with(Write::PutFact(Box::new(wrong)));
    for batch in [stated, told] {
        let refused = port.apply(batch).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(port.session(&scope("a"), &session("s1")).await.unwrap().is_none());
        assert!(port.active_facts(&scope("a"), &[1]).await.unwrap().is_empty());
    }
}

async fn erase(port: &Port, erasure: Erasure) {
    let write = Write::Erase { erasure, seed: id() };
    port.apply(batch(&scope("a")).with(write)).await.unwrap();
}

async fn held(port: &Port, space: &VectorSpace) -> Vec<UnitKey> {
    VectorIndex::keys(&**port, &scope("a"), Namespace::Message, space, None, 10_000).await.unwrap()
}

/// Of blocks and of what is in none yet, in the space of the batch and in others.
async fn what_is_erased_leaves_every_space(port: Port) {
    let mut ids: Vec<MessageId> = Vec::new();
    for hundred in 0..7 {
        let said = (0..100).map(|n| embedded(&format!("{hundred} {n}"), [1.0, n as f32]));
        let said: Vec<PreparedMessage> = said.collect();
        ids.extend(said.iter().map(|message| message.id));
        port.apply(with_vectors("s1", said)).await.unwrap();
    }
    let other = VectorSpace { id: "other".to_owned(), dimensions: 1 };
    let keys = held(&port, &flat()).await;
    let items = keys.iter().map(|key| VectorItem { key: *key, vector: vec![1.0] });
    let items: Vec<VectorItem> = items.collect();
    port.upsert(&scope("a"), Namespace::Message, &other, &items, 700).await.unwrap();
    let gone: Vec<usize> = vec![0, 7, 8, 300, 511, 512, 690];
    erase(&port, Erasure::Messages(gone.iter().map(|at| ids[*at]).collect())).await;
    let mut left = keys;
    for at in gone.iter().rev() {
        left.remove(*at);
    }
    for space in [flat(), other] {
        assert_eq!(held(&port, &space).await, left, "{}", space.id);
    }
    assert_eq!(watermark(&port, Namespace::Message).await, 700);
    port.apply(with_vectors("s1", vec![embedded("next", [1.0, 0.0])])).await.unwrap();
    assert_eq!(watermark(&port, Namespace::Message).await, 701);
}

async fn a_scope_erased_whole_leaves_no_vector_and_no_gap(port: Port) {
    port.apply(with_vectors("s1", vec![embedded("x", [1.0, 0.0])])).await.unwrap();
    erase(&port, Erasure::Scope { through: 1, documents: 1 }).await;
    assert!(held(&port, &flat()).await.is_empty());
    port.apply(with_vectors("s1", vec![embedded("y", [1.0, 0.0])])).await.unwrap();
    assert_eq!(watermark(&port, Namespace::Message).await, 2);
    assert_eq!(found(&port, Namespace::Message).await, [UnitKey::message(2, 0)]);
}

/// Puts a document whose passages all have this vector.
async fn put_document(port: &Port, of: &str, id: &str, text: &str, vector: Option<[f32; 2]>) {
    let mut new = document("v1", of, id, text);
    for unit in &mut new.units {
        unit.vector = vector.map(Vec::from);
    }
    let space = vector.map(|_| flat());
    let put = batch(&scope("a")).with(Write::PutDocument(Box::new(new)));
    port.apply(WriteBatch { space, ..put }).await.unwrap();
}

async fn vectors_of_documents_are_those_of_the_latest(port: Port) {
    put_document(&port, "m1", "c1", "# One\nkettle\n# Two\nferry", Some([1.0, 0.0])).await;
    put_document(&port, "m2", "c1", "harbor", Some([0.1, 1.0])).await;
    let both = [(1, 0), (1, 1), (2, 0)].map(|(number, at)| UnitKey::document(number, at));
    assert_eq!(found(&port, Namespace::Document).await, both);
    assert_eq!(watermark(&port, Namespace::Document).await, 2);
    put_document(&port, "m1", "c2", "# One\nkettle", Some([1.0, 0.0])).await;
    let both = [(3, 0), (2, 0)].map(|(number, at)| UnitKey::document(number, at));
    assert_eq!(found(&port, Namespace::Document).await, both);
    assert_eq!(watermark(&port, Namespace::Document).await, 3);
    assert_eq!(found(&port, Namespace::Message).await, []);
    // Without vectors: what was there goes, and what is there waits.
    put_document(&port, "m2", "c2", "ferry", None).await;
    assert_eq!(found(&port, Namespace::Document).await, [UnitKey::document(3, 0)]);
    assert_eq!(watermark(&port, Namespace::Document).await, 3);
}

/// So many that some are in blocks; of documents and of a scope.
async fn an_erased_document_leaves_every_space(port: Port) {
    let long: String = (0..300).map(|n| format!("# Part {n}\nkettle\n")).collect();
    for (of, id) in [("m1", "c1"), ("m2", "c1"), ("m1", "c2")] {
        put_document(&port, of, id, &long, Some([1.0, 0.0])).await;
    }
    let other = VectorSpace { id: "other".to_owned(), dimensions: 1 };
    let keys = |number| (0..300).map(move |at| UnitKey::document(number, at));
    let items: Vec<VectorItem> =
        keys(2).chain(keys(3)).map(|key| VectorItem { key, vector: vec![1.0] }).collect();
    port.upsert(&scope("a"), Namespace::Document, &other, &items, 3).await.unwrap();
    let (vault, memory) = (vault("v1"), memory("m1"));
    erase(&port, Erasure::Document { vault, memory, through: 3 }).await;
    let expected: Vec<UnitKey> = keys(2).collect();
    for space in [flat(), other.clone()] {
        let of = (&scope("a"), Namespace::Document);
        let left = VectorIndex::keys(&*port, of.0, of.1, &space, None, 10_000).await.unwrap();
        assert_eq!(left, expected, "{}", space.id);
    }
    assert_eq!(watermark(&port, Namespace::Document).await, 3);
    erase(&port, Erasure::Scope { through: 0, documents: 3 }).await;
    for space in [flat(), other] {
        let of = (&scope("a"), Namespace::Document);
        let left = VectorIndex::keys(&*port, of.0, of.1, &space, None, 10_000).await.unwrap();
        assert!(left.is_empty(), "{}", space.id);
    }
    put_document(&port, "m1", "c1", "ferry", Some([1.0, 0.0])).await;
    assert_eq!(found(&port, Namespace::Document).await, [UnitKey::document(4, 0)]);
    assert_eq!(watermark(&port, Namespace::Document).await, 4);
}
