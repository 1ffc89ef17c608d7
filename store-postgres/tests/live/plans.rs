//! How the server answers the hot questions: from one partition of sixteen, by the index that was made for
//! it, and never by looking through a table.
//!
//! The server tells the plan of each statement that the store really sends, as the service's role, with
//! what row-level security adds to it (`auto_explain`, as notices). The first plans of a prepared statement
//! are made for its values, later ones for any: both are looked at.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use throughline_core::Scope;
use throughline_core::entity::EntityKind;
use throughline_core::fact::FactKind;
use throughline_core::index::{Namespace, TermId, UnitKey};
use throughline_core::page::PageRequest;
use throughline_core::ports::{
    FactRepo, HeadLimits, JobRepo, LedgerLimits, LexicalIndex, OutboxRepo, SessionRepo, Store,
    VectorIndex, VectorItem, VectorSpace, Write,
};
use throughline_store_postgres::{PostgresOptions, PostgresStore};
use throughline_testkit::build::{
    append, at, batch, external, fact, job, say, scope, session, slot_fact,
};
use tracing::field::{Field, Visit};
use tracing::span;

use crate::support::{Server, execute};

/// Scopes, and messages and vectors of each.
const SCOPES: usize = 6;
const MESSAGES: usize = 1_500;
/// Before this many executions the server plans for the values, after it for any.
const EXECUTIONS: usize = 8;
/// What is put in order without an index: keys of a question, sources of a row. Every limit is lower.
const MOST_SORTED: f64 = 30.0;

/// Keeps what the server notices.
#[derive(Clone, Default)]
struct Notices(Arc<Mutex<Vec<String>>>);

impl Visit for Notices {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl tracing::Subscriber for Notices {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "sqlx::postgres::notice"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// What one statement did.
#[derive(Debug, Default)]
struct Plan {
    text: String,
    /// Tables that were read, partitions by their own names, each with how.
    read: BTreeSet<(String, String)>,
    indexes: BTreeSet<String>,
    /// Whether more was sorted than was asked for.
    sorts: bool,
}

impl Plan {
    fn of(notice: &str) -> Option<Self> {
        let plan: Value = serde_json::from_str(&notice[notice.find('{')?..]).ok()?;
        let mut found = Self { text: plan["Query Text"].as_str()?.to_owned(), ..Self::default() };
        found.walk(&plan["Plan"]);
        Some(found)
    }

    fn walk(&mut self, node: &Value) {
        // What was planned and not run belongs to another partition than the value's.
        if node["Actual Loops"] == 0 {
            return;
        }
        let kind = node["Node Type"].as_str().unwrap().to_owned();
        let sorted = || node["Plans"][0]["Actual Rows"].as_f64().unwrap();
        self.sorts |= kind == "Sort" && sorted() > MOST_SORTED;
        if let Some(index) = node["Index Name"].as_str() {
            self.indexes.insert(index.to_owned());
        }
        if let Some(table) = node["Relation Name"].as_str()
            && kind != "ModifyTable"
        {
            self.read.insert((table.to_owned(), kind));
        }
        for child in node["Plans"].as_array().into_iter().flatten() {
            self.walk(child);
        }
    }

    /// The partitions of `parent` that were read, and how.
    fn partitions(&self, parent: &str) -> Vec<&(String, String)> {
        let of = |table: &str| table.rsplit_once('_').map(|(name, _)| name.to_owned());
        self.read.iter().filter(|(table, _)| of(table).as_deref() == Some(parent)).collect()
    }
}

/// A question, the part of its statement that tells it, the large table that it reads, and the end of the
/// name of the index that answers.
struct Expected {
    statement: &'static str,
    table: &'static str,
    index: &'static str,
    sorts: bool,
}

impl Expected {
    fn check(&self, plans: &[Plan]) {
        let Self { statement, table, index, sorts } = self;
        let found: Vec<&Plan> = plans.iter().filter(|plan| plan.text.contains(statement)).collect();
        assert!(found.len() >= EXECUTIONS, "{statement}: {} plans of {plans:#?}", found.len());
        for (n, plan) in found.iter().enumerate() {
            let read = plan.partitions(table);
            assert_eq!(read.len(), 1, "{n}: one partition of {table}: {plan:#?}");
            assert!(read[0].1.starts_with("Index") || read[0].1.starts_with("Bitmap"), "{plan:#?}");
            let wanted = |found: &String| found.starts_with(table) && found.contains(index);
            assert!(plan.indexes.iter().any(wanted), "{n}: an index {index}: {plan:#?}");
            assert!(*sorts || !plan.sorts, "{n}: the index gives the order: {plan:#?}");
            // Scopes, sessions and spaces are few here; what is large is never looked through.
            let whole = plan.read.iter().find(|(_, how)| how == "Seq Scan");
            let small =
                |table: &str| ["scope", "session", "vector_space", "vector_state"].contains(&table);
            assert!(whole.is_none_or(|(table, _)| small(table)), "{n}: {plan:#?}");
        }
    }
}

fn space() -> VectorSpace {
    VectorSpace { id: "plane".to_owned(), dimensions: 4 }
}

fn vector(n: usize) -> Vec<f32> {
    let angle = n as f32;
    vec![angle.sin(), angle.cos(), (2.0 * angle).sin(), 1.0]
}

/// Some thousands of rows in several scopes, so that no table is so small that it is read as a whole.
async fn fill(store: &PostgresStore, scope: &Scope) {
    for slice in (0..MESSAGES).collect::<Vec<_>>().chunks(250) {
        let mut batch = batch(scope);
        for n in slice {
            let mut stated = fact(&format!("fact number {n}"), at(0));
            if n % 10 == 0 {
                stated.kind = FactKind::Preference;
            }
            let said = say(&format!("word{} and common words of {n}", n % 300));
            let said = said.entity(EntityKind::Id, &format!("T-{n}"));
            let held =
                slot_fact("ana", &format!("attribute {}", n % 700), &n.to_string(), at(*n as i64));
            batch.writes.push(append(&format!("s{}", n % 3), said.fact(stated).fact(held).build()));
            batch.writes.push(Write::EnqueueJob(job(&format!("kind{}", n % 40), &n.to_string())));
        }
        store.apply(batch).await.unwrap();
        let item =
            |n: &usize| VectorItem { key: UnitKey::message(1, *n as u32), vector: vector(*n) };
        let items: Vec<VectorItem> = slice.iter().filter(|n| *n % 5 == 0).map(item).collect();
        store.upsert(scope, Namespace::Message, &space(), &items, 1).await.unwrap();
    }
}

/// The hot questions, each once.
async fn ask(store: &PostgresStore, scope: &Scope, n: usize) {
    let n = n as u32;
    let keys = [UnitKey::message(1, 40 + n), UnitKey::message(2, 300)];
    assert_eq!(store.messages_at(scope, &keys).await.unwrap().len(), 2);
    let limits = HeadLimits { messages: 20, entities: 5 };
    assert!(store.head(scope, &session("s1"), limits).await.unwrap().is_some());
    let terms = ["word7", "common", "nowhere"].map(TermId::of);
    store.postings(scope, Namespace::Message, &terms, 1_000).await.unwrap();
    let limits = LedgerLimits { standing: 20, newest: 20, superseded: 20, rejected: 20 };
    assert_eq!(store.ledger(scope, limits).await.unwrap().standing.len(), 20);
    assert_eq!(store.active_facts(scope, &[11 + 2 * n, 501]).await.unwrap().len(), 2);
    assert!(!store.texts_after(scope, Namespace::Message, 900, 20).await.unwrap().is_empty());
    assert!(!store.texts_after(scope, Namespace::Fact, 900, 20).await.unwrap().is_empty());
    let ids = [external("0"), external("1")];
    store.messages_by_external_id(scope, &session("s0"), &ids).await.unwrap();
    let of_text = PageRequest::first(20).unwrap();
    assert_eq!(store.messages(scope, &session("s2"), &of_text).await.unwrap().items.len(), 20);
    let stated = store.facts(scope, &of_text).await.unwrap().items;
    assert_eq!(stated.len(), 20);
    assert!(store.fact(scope, stated[7].id).await.unwrap().is_some());
    let claimed = store.claim_jobs(&["kind3"], at(5), Duration::from_secs(60), 2).await.unwrap();
    assert_eq!(claimed.len(), 2);
    // A turn that meets a slot that is taken and an external id that is not.
    let mut turn = batch(scope);
    let stated = slot_fact("ana", "attribute 5", &format!("now {n}"), at(9_000 + i64::from(n)));
    let said = say(&format!("one more {n}")).external(&n.to_string()).fact(stated);
    turn.writes.push(append("s0", said.build()));
    store.apply(turn).await.unwrap();
    let near = store.search(scope, Namespace::Message, &space(), &vector(70), 10, &keys).await;
    assert!(near.unwrap().len() >= 10);
}

fn expected(statement: &'static str, table: &'static str, index: &'static str) -> Expected {
    Expected { statement, table, index, sorts: false }
}

#[tokio::test]
async fn hot_questions_are_answered_by_their_index_from_one_partition() {
    let server = Server::start("plans").await;
    let options = PostgresOptions { connections: 1, ..server.options() };
    let store = PostgresStore::open(options.clone()).await.unwrap();
    let scopes: Vec<Scope> = (0..SCOPES).map(|n| scope(&format!("user{n}"))).collect();
    for scope in &scopes {
        fill(&store, scope).await;
    }
    // Where a scope has a partition for itself, reading all of it is right: so it gets neighbours.
    let neighbours = "INSERT INTO embedding
        SELECT other.scope, e.space_id, e.namespace, e.key, e.value FROM embedding e,
          (SELECT md5(n::text)::uuid AS scope FROM generate_series(1, 800) n) other
        WHERE e.scope = (SELECT key FROM scope WHERE user_id = 'user2') AND satisfies_hash_partition(
          'embedding'::regclass, 16, right(e.tableoid::regclass::text, 2)::integer, other.scope)";
    execute(&server.admin, neighbours.to_owned()).await;
    let indexed = PostgresOptions { exact_vectors: 100, ..options.clone() };
    indexed.build_deferred(|_, _| {}).await.unwrap();
    execute(&server.admin, "ANALYZE".to_owned()).await;
    for setting in [
        "session_preload_libraries = 'auto_explain'",
        "auto_explain.log_min_duration = 0",
        "auto_explain.log_analyze = on",
        "auto_explain.log_timing = off",
        "auto_explain.log_format = json",
        "auto_explain.log_level = notice",
    ] {
        let database = &server.database;
        execute(&server.server, format!("ALTER DATABASE {database} SET {setting}")).await;
    }
    let notices = Notices::default();
    let listening = tracing::subscriber::set_default(notices.clone());
    // Once comparing all vectors, once asking the index of the space.
    for exact_vectors in [20_000, 100] {
        let options = PostgresOptions { exact_vectors, ..options.clone() };
        let store = PostgresStore::connect_lazy(options).unwrap();
        for n in 0..EXECUTIONS {
            ask(&store, &scopes[2], n + if exact_vectors == 100 { 50 } else { 0 }).await;
        }
    }
    drop(listening);
    let notices = std::mem::take(&mut *notices.0.lock().unwrap());
    let plans: Vec<Plan> = notices.iter().filter_map(|notice| Plan::of(notice)).collect();
    assert!(plans.len() > EXECUTIONS * 30, "{} plans: {:?}", plans.len(), notices.first());
    let sorted = |expected: Expected| Expected { sorts: true, ..expected };
    for expected in [
        // messages_at; what orders it is the few keys.
        sorted(expected("position <= k.position", "message", "_pkey")),
        expected("WINDOW newest AS", "message", "_pkey"),
        expected("lag(read, 2", "message", "_pkey"),
        expected("external_id = ANY($3)", "message", "_external_id_"),
        expected("ORDER BY e.last_at DESC", "entity", "_last_at_"),
        expected("SELECT term, data FROM lex_block", "lex_block", "_pkey"),
        expected("SELECT before + postings AS found", "lex_block", "_pkey"),
        expected("terms && $3 ORDER BY key", "lex_tail", "_pkey"),
        // Facts by slot and by statement, which a batch meets.
        expected("slot = ANY($2)", "fact", "_scope_slot_"),
        expected("f.kind IN ('instruction', 'preference')", "fact", "_scope_observed_at_"),
        expected("f.kind <> 'retraction' ORDER BY f.number DESC", "fact", "_pkey"),
        // Put in order by the few numbers that are asked for.
        sorted(expected("f.number = ANY($2)", "fact", "_pkey")),
        expected("f.number > $2", "fact", "_pkey"),
        expected("f.id = $2", "fact", "_scope_id_"),
        expected(
            "SELECT seq, session_number, position, content, cuts FROM message",
            "message",
            "_scope_seq_",
        ),
        expected("SELECT number, text FROM fact", "fact", "_pkey"),
        expected("AS wanted (session_number, external_id)", "message", "_external_id_"),
        // Vectors, compared all, by the index of their space, and some by their keys.
        sorted(expected("ORDER BY distance, key LIMIT", "embedding", "_pkey")),
        expected("ORDER BY value::halfvec(4)", "embedding", "_hnsw_"),
        expected("AND key = ANY($5)", "embedding", "_pkey"),
    ] {
        expected.check(&plans);
    }
    // Jobs are of all scopes, in one table.
    let claims: Vec<&Plan> =
        plans.iter().filter(|plan| plan.text.contains("WITH due AS")).collect();
    assert_eq!(claims.len(), 2 * EXECUTIONS);
    for plan in claims {
        assert!(plan.indexes.contains("job_due"), "{plan:#?}");
        assert!(!plan.read.contains(&("job".to_owned(), "Seq Scan".to_owned())), "{plan:#?}");
    }
    server.end().await;
}
