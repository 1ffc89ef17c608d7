//! What moves to this store arrives as it was, and nothing is left behind.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::collections::BTreeSet;

use futures_util::TryStreamExt;
use sqlx::ConnectOptions;
use throughline_core::ids::TenantId;
use throughline_core::ports::{
    Archive, ArchiveTarget, Holder, Row, ScopeCounters, TABLES, TENANT_TABLES, Table, TenantRepo,
    Value, ValueKind,
};
use throughline_store_postgres::PostgresStore;
use throughline_testkit::build::{id, scope};

use crate::support::Server;

/// Texts that a wire form could spoil.
const TEXTS: [&str; 6] = [
    "",
    "plain",
    "\\x00",
    "\"quoted\" and\nbroken\t'lines' \\",
    "{1,2}",
    "nai\u{308}f \u{1f600} \u{1f}",
];

/// Two of a kind of record: one with odd values, one with as little as can be.
fn records(table: &Table) -> Vec<Row> {
    let value = |nth: usize, at: usize, kind: ValueKind| match kind {
        ValueKind::Int => Value::Int(if at < table.key { nth as i64 } else { 1 - nth as i64 }),
        ValueKind::Real => Value::Real(0.1 + nth as f64),
        ValueKind::Text => Value::Text(TEXTS[(at + nth) % TEXTS.len()].to_owned()),
        ValueKind::Bytes => Value::Bytes(vec![0, 255, nth as u8]),
        ValueKind::Id => Value::Bytes(id().as_bytes().to_vec()),
        ValueKind::Ints => Value::Ints(vec![i64::from(i32::MIN), 7, nth as i64]),
    };
    let row = |nth: usize| {
        let columns = table.columns.iter().enumerate();
        columns.map(|(at, (_, kind))| value(nth, at, *kind)).collect()
    };
    (0..if table.key == 0 { 1 } else { 2 }).map(row).collect()
}

async fn held(store: &PostgresStore, of: &Holder, table: &'static Table) -> Vec<Row> {
    let pages: Vec<Vec<Row>> = store.rows(of, table).try_collect().await.unwrap();
    let mut rows: Vec<Row> = pages.into_iter().flatten().collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

#[tokio::test]
async fn records_arrive_as_they_were() {
    let server = Server::start("archive").await;
    let store = PostgresStore::open(server.options()).await.unwrap();
    let tenant = |name| Holder::Tenant(TenantId::new(name).unwrap());
    let counters =
        ScopeCounters { last_seq: 1, sessions: 2, facts: 3, documents: 6, messages: 4, tokens: 5 };
    for (ours, theirs, counters) in [
        (Holder::Scope(scope("ours")), Holder::Scope(scope("theirs")), counters),
        (tenant("ours"), tenant("theirs"), ScopeCounters::default()),
    ] {
        for table in ours.tables() {
            let mut rows = records(table);
            store.put(&ours, table, &rows).await.unwrap();
            rows.sort_by_key(|row| format!("{row:?}"));
            assert_eq!(held(&store, &ours, table).await, rows, "{}", table.name);
            assert_eq!(store.count(&ours, table).await.unwrap(), rows.len() as u64);
            assert_eq!(store.count(&theirs, table).await.unwrap(), 0, "{}", table.name);
            assert!(held(&store, &theirs, table).await.is_empty());
        }
        assert_eq!(store.counters(&ours).await.unwrap(), None, "not there before it is opened");
        store.open_holder(&ours, &counters).await.unwrap();
        assert_eq!(store.counters(&ours).await.unwrap(), Some(counters));
        store.clear(&theirs).await.unwrap();
        for table in ours.tables() {
            assert!(store.count(&ours, table).await.unwrap() > 0, "{}", table.name);
        }
        store.clear(&ours).await.unwrap();
        for table in ours.tables() {
            assert_eq!(store.count(&ours, table).await.unwrap(), 0, "{}", table.name);
        }
    }
    assert!(store.has_keys().await.unwrap(), "a tenant that was opened counts its keys");
    server.end().await;
}

/// Tables and columns that do not move: scopes and tenants have a call of their own, what is listed
/// in order is numbered anew, vectors are made again, limits begin anew, and refusals are counted by who served
/// the store; erasures are told by their ledger, which moves by itself.
const STAY: [&str; 10] = [
    "scope", "tenant", "vector_space", "vector_state", "embedding", "rate_bucket", "refusal",
    "erasure_ledger", "erasure_applied", "_sqlx_migrations",
];

#[tokio::test]
async fn every_column_moves() {
    let server = Server::start("columns").await;
    let mut connection = server.admin.connect().await.unwrap();
    let found: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname || '.' || a.attname FROM pg_class c
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
           AND NOT c.relispartition AND c.relname <> ALL($1) AND a.attname NOT IN ('scope', 'tenant')",
    )
    .bind(STAY)
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let column = |table: &Table, name: &str| format!("{}.{name}", table.name);
    let told: BTreeSet<String> = TABLES
        .iter()
        .chain(TENANT_TABLES)
        .flat_map(|table| table.columns.iter().map(|(name, _)| column(table, name)))
        .chain(["job", "api_key", "share", "audit"].map(|table| format!("{table}.number")))
        .collect();
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), told);
    server.end().await;
}
