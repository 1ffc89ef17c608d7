//! No read and no write crosses a scope.

use throughline_core::Scope;
use throughline_core::entity::EntityKind;
use throughline_core::ids::JobId;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::page::PageRequest;
use throughline_core::ports::{
    Ledger, LedgerLimits, Precondition, RecordKey, Store, Write, WriteBatch,
};
use throughline_core::scope::Profile;
use throughline_core::usage::{UsageCounters, UsageDay};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, Snapshot, postings, put_one};
use crate::build::{
    append, at, batch, context, document, external, fact, job, memory, message, say, scope,
    session, slot_fact, summary, vault,
};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["isolation":
    scopes_hold_equal_ids_side_by_side,
    a_write_changes_its_own_scope_alone,
    ids_of_another_scope_find_nothing,
    scopes_are_told_apart_part_by_part,
    a_precondition_is_about_its_own_scope,
];

/// Two tenants, two users, two workspaces and none.
fn scopes() -> Vec<Scope> {
    let mut scopes = Vec::new();
    for tenant in ["acme", "globex"] {
        for user in ["ana", "bob"] {
            for workspace in [None, Some("alfred"), Some("batman")] {
                scopes.push(Scope::new(tenant, user, workspace).unwrap());
            }
        }
    }
    scopes
}

/// Everything a scope can hold, under ids that all scopes share; only values tell them apart.
fn filled(scope: &Scope) -> (WriteBatch, JobId) {
    let own = scope.to_string();
    let said = say(&format!("The kettle of {own} whistles"))
        .external("x1")
        .fact(slot_fact("user", "kettle", &own, at(1)))
        .fact(fact("Kettles whistle", at(1)))
        .entity(EntityKind::Id, "K-8443")
        .entity(EntityKind::Name, &own)
        .build();
    let source = said.id;
    let new = job("embed", "s1");
    let id = new.id;
    let profile = Profile {
        rules: format!("rules of {own}"),
        card: String::new(),
        version: 1,
        updated_at: at(0),
    };
    let contexts = UsageCounters { contexts: 1, ..UsageCounters::default() };
    let batch = batch(scope)
        .with(append("s1", said))
        .with(append("s2", message("another thread")))
        .with(Write::PutSummary(Box::new(summary("s1", 1, 1, &[source]))))
        .with(Write::PutProfile(profile))
        .with(Write::AddUsage(UsageDay::of(at(0)), contexts))
        .with(Write::PutDocument(Box::new(document("v1", "m1", "c1", &format!("# Facts\n{own}")))))
        .with(Write::EnqueueJob(new));
    (batch, id)
}

async fn scopes_hold_equal_ids_side_by_side(store: Port) {
    let scopes = scopes();
    for scope in &scopes {
        let applied = store.apply(filled(scope).0).await.unwrap().messages;
        let seqs: Vec<u64> = applied.iter().map(|message| message.seq).collect();
        assert_eq!(seqs, [1, 2], "{scope}");
        assert!(applied.iter().all(|message| !message.replayed), "{scope}");
    }
    for scope in &scopes {
        let own = scope.to_string();
        let held = Snapshot::of(&store, scope).await;
        let numbers: Vec<u32> = held.sessions.iter().map(|session| session.number).collect();
        assert_eq!(numbers, [1, 2], "{own}");
        assert_eq!(held.messages.len(), 2, "{own}");
        assert!(held.messages[0].content.contains(&format!(" {own} ")), "{own}");
        let values: Vec<_> =
            held.facts.iter().map(|f| (f.number, f.value.as_deref(), f.weight)).collect();
        assert_eq!(values, [(1, Some(own.as_str()), 1.0), (2, None, 1.0)]);
        let entities: Vec<_> = held.entities.iter().map(|e| e.value.as_str()).collect();
        assert_eq!(entities, ["K-8443", own.as_str()]);
        assert!(held.entities.iter().all(|entity| entity.sources.len() == 1), "{own}");
        assert_eq!(held.summaries.len(), 1, "{own}");
        assert_eq!(held.profile.unwrap().rules, format!("rules of {own}"));
        assert_eq!((held.jobs.len(), &held.jobs[0].scope), (1, scope));
        assert_eq!((held.usage.len(), held.usage[0].1.contexts), (1, 1), "{own}");
        assert_eq!((held.documents.len(), held.totals.documents), (1, 1), "{own}");
        assert_eq!(held.documents[0].1.text, format!("# Facts\n{own}"));
        assert_eq!(held.index[2].stats.units, 1, "{own}");
        assert_eq!((held.totals.messages, held.totals.last_seq), (2, 2), "{own}");
        assert_eq!((held.index[0].stats.units, held.index[1].stats.units), (2, 2), "{own}");
        let found = postings(&store, scope, Namespace::Message, &["kettl"]).await;
        assert_eq!(found.lists[0].len(), 1, "{own}");
    }
}

async fn a_write_changes_its_own_scope_alone(store: Port) {
    let scopes = scopes();
    for scope in &scopes {
        store.apply(filled(scope).0).await.unwrap();
    }
    let before = all(&store, &scopes).await;
    for (n, scope) in scopes.iter().enumerate() {
        let said = say("The kettle is green")
            .external("x2")
            .fact(slot_fact("user", "kettle", "green", at(9)))
            .fact(fact("Kettles whistle", at(9)))
            .entity(EntityKind::Id, "K-8443")
            .build();
        let change = batch(scope)
            .with(append("s1", said))
            .with(Write::PutDocument(Box::new(document("v1", "m1", "c2", "# Facts\nanother"))))
            .with(Write::PutSummary(Box::new(summary("s1", 2, 2, &[]))));
        store.apply(change).await.unwrap();
        let after = all(&store, &scopes).await;
        for (other, (before, after)) in before.iter().zip(&after).enumerate().skip(n + 1) {
            assert_eq!(after, before, "{} changed {}", scope, scopes[other]);
        }
        assert_ne!(after[n], before[n]);
    }
}

async fn all(store: &Port, scopes: &[Scope]) -> Vec<Snapshot> {
    let mut all = Vec::new();
    for scope in scopes {
        all.push(Snapshot::of(store, scope).await);
    }
    all
}

async fn ids_of_another_scope_find_nothing(store: Port) {
    let scopes = scopes();
    let (owner, others) = scopes.split_first().unwrap();
    let (batch_of_owner, job) = filled(owner);
    store.apply(batch_of_owner).await.unwrap();
    let of = session("s1");
    let page = PageRequest::first(10).unwrap();
    let before = Snapshot::of(&store, owner).await;
    for other in others {
        // Known to the store, with nothing in it.
        store.apply(batch(other)).await.unwrap();
        assert_eq!(store.session(other, &of).await.unwrap(), None);
        assert_eq!(store.recent_messages(other, &of, 9).await.unwrap(), []);
        assert_eq!(store.messages(other, &of, &page).await.unwrap().items, []);
        let keys = [UnitKey::message(1, 0), UnitKey::message(2, 0)];
        assert_eq!(store.messages_at(other, &keys).await.unwrap(), []);
        let ids = [external("x1")];
        assert_eq!(store.messages_by_external_id(other, &of, &ids).await.unwrap(), []);
        assert_eq!(store.active_facts(other, &[1, 2]).await.unwrap(), []);
        assert_eq!(store.facts(other, &page).await.unwrap().items, []);
        let limits = LedgerLimits { standing: 9, newest: 9, superseded: 9, rejected: 9 };
        assert_eq!(store.ledger(other, limits).await.unwrap(), Ledger::default());
        assert_eq!(store.entities(other, &of, 9).await.unwrap(), []);
        let (vault, memory) = (vault("v1"), memory("m1"));
        assert_eq!(store.document(other, &vault, &memory).await.unwrap(), None);
        assert_eq!(store.snapshot(other, &vault, &memory, &context("c1")).await.unwrap(), None);
        assert_eq!(store.snapshots(other, &vault, &memory, &page).await.unwrap().items, []);
        assert_eq!(store.latest_documents(other, &[1], 99).await.unwrap(), []);
        assert_eq!(store.latest_numbers(other, None).await.unwrap(), Vec::<u32>::new());
        assert_eq!(store.vaults(other, &page).await.unwrap().items, []);
        assert_eq!(store.memories(other, Some(&vault), &page).await.unwrap().items, []);
        assert_eq!(store.memories(other, None, &page).await.unwrap().items, []);
        assert_eq!(store.latest_summary(other, &of).await.unwrap(), None);
        assert_eq!(store.summaries(other, &of).await.unwrap(), []);
        assert_eq!(store.profile(other).await.unwrap(), None);
        let finish = Write::FinishJob(job, throughline_core::job::Outcome::Done);
        store.apply(batch(other).with(finish)).await.unwrap_err();
        assert!(Snapshot::of(&store, other).await.is_empty(), "{other}");
    }
    assert_eq!(Snapshot::of(&store, owner).await, before);
}

/// Parts that read alike when they are joined, or differ in case or accents alone.
async fn scopes_are_told_apart_part_by_part(store: Port) {
    let alike = [
        Scope::new("a/b", "c", None),
        Scope::new("a", "b/c", None),
        Scope::new("a", "b", Some("c")),
        Scope::new("ab", "c", None),
        Scope::new("a", "bc", None),
        Scope::new("A", "bc", None),
        Scope::new("a", "bC", None),
        Scope::new("a", "bc", Some("-")),
        Scope::new("a", "bc", Some("%")),
        Scope::new("é", "c", None),
        Scope::new("e\u{301}", "c", None),
        Scope::new("e", "c", None),
    ];
    let alike = alike.map(Result::unwrap);
    for (n, scope) in alike.iter().enumerate() {
        put_one(&store, scope, "s1", message(&format!("message {n}"))).await;
    }
    for (n, scope) in alike.iter().enumerate() {
        let held = store.recent_messages(scope, &session("s1"), 9).await.unwrap();
        assert_eq!(held.len(), 1, "{scope:?}");
        assert_eq!(held[0].content, format!("message {n}"));
    }
}

async fn a_precondition_is_about_its_own_scope(store: Port) {
    store.apply(filled(&scope("a")).0).await.unwrap();
    let document = RecordKey::Document(vault("v1"), memory("m1"));
    for key in [RecordKey::Session(session("s1")), RecordKey::Profile, document] {
        let absent = Precondition::IfAbsent(key.clone());
        let held = batch(&scope("b")).with_precondition(absent);
        store.apply(held).await.unwrap();
        let version = batch(&scope("b")).with_precondition(Precondition::IfVersion(key, 1));
        assert!(store.apply(version).await.unwrap_err().is_lost_race());
    }
}
