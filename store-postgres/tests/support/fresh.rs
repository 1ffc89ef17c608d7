//! An empty store for each scenario.

#![expect(
    clippy::expect_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use throughline_store_postgres::{PostgresOptions, PostgresStore};

use super::support::{Server, execute};

/// Every table that a scenario may have written to, children of others first.
const TABLES: &str = "scope, session, message, fact, fact_source, entity, entity_source, summary, \
    summary_line, profile, job, usage_day, lex_stats, lex_tail, lex_block, vector_state, embedding, \
    vector_space";

/// A store on the database, emptied: making another takes a second, with all its partitions.
pub(crate) async fn fresh(server: &Server, options: PostgresOptions) -> PostgresStore {
    let deletes = TABLES.split(", ").map(|table| format!("DELETE FROM {};", table.trim()));
    execute(&server.admin, deletes.collect::<String>()).await;
    PostgresStore::open(options).await.expect("the store opens")
}
