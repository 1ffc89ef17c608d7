//! An empty store for each scenario.

#![expect(
    clippy::expect_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use throughline_store_postgres::{PostgresOptions, PostgresStore};

use super::{Server, execute};

/// Every table that a scenario may have written to, children of others first.
const TABLES: &str = "scope, session, message, fact, fact_source, rejection, entity, entity_source, \
    summary, summary_line, profile, file_ref, file_list, document, document_snapshot, persona, preset, preset_use, persona_backup, \
    message_tag, answer_rating, idempotency, job, usage_day, lex_stats, lex_tail, \
    lex_block, vector_state, embedding, vector_space, tenant, api_key, tenant_settings, share, \
    share_member, audit, model_use, rate_bucket, refusal, erasure_ledger, erasure_applied";

/// A store on the database, emptied: making another takes a second, with all its partitions.
pub(crate) async fn fresh(server: &Server, options: PostgresOptions) -> PostgresStore {
    // Most are empty, and asking is much quicker than a delete from every partition.
    let empty = format!(
        "DO $$ DECLARE held text; found bool; BEGIN
           FOREACH held IN ARRAY string_to_array('{TABLES}', ', ') LOOP
             EXECUTE format('SELECT EXISTS (SELECT FROM %I)', trim(held)) INTO found;
             IF found THEN EXECUTE format('DELETE FROM %I', trim(held)); END IF;
           END LOOP; END $$"
    );
    execute(&server.admin, empty).await;
    PostgresStore::open(options).await.expect("the store opens")
}
