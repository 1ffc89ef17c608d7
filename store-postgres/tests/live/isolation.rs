//! Row-level security keeps tenants apart even where a statement forgets to ask for its scope: raw SQL of
//! the service's role, on every table of the catalog.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor, Row};
use throughline_core::Scope;
use throughline_core::access::{Actor, ApiKey, AuditEntry, By, KeyUser, Permissions};
use throughline_core::entity::EntityKind;
use throughline_core::fact::RejectionKey;
use throughline_core::ids::{
    BackupId, FileRefId, KeyId, MessageId, PersonaId, PresetId, ShareId, UserId,
};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::persona::{
    Backup, BackupHead, BackupReason, NewPersona, Persona, PersonaLimits, Preset, PresetUse,
    Rating, Settings, built_in,
};
use throughline_core::ports::{
    FileList, Idempotency, Store, TenantBatch, TenantRepo, TenantWrite, VectorIndex, VectorItem,
    VectorSpace, Write,
};
use throughline_core::scope::Profile;
use throughline_core::session::{FileKind, FileRef, Role, Share};
use throughline_core::usage::{ModelUse, ModelWork, UsageDay};
use throughline_store_postgres::PostgresStore;
use throughline_testkit::build::{
    append, at, batch, document, id, job, say, scope, session, slot_fact, summary,
};

use crate::support::Server;

/// Tables that hold nothing of a scope, each with the reason.
const OF_NO_SCOPE: [(&str, &str); 6] = [
    ("_sqlx_migrations", "which migrations were applied: the service may look and not write"),
    ("rate_bucket", "counts under hashes of keys, which no scope owns"),
    ("refusal", "how often commands were refused, by interface and code"),
    ("vector_space", "names and dimensions of embedding models, which all scopes share"),
    ("erasure_ledger", "the id of the ledger that the store goes by"),
    ("erasure_applied", "numbers of entries of the ledger"),
];
/// What a worker sees of every scope: whose rows, how many vectors and keys there are, and what is to be done, none
/// of the content.
const OF_WORKERS: [&str; 4] = ["scope", "job", "vector_state", "tenant"];

/// A table of ours: its name, whether it is a partition, whether its rows are of a tenant as a whole, and
/// the column that holds the scope or the tenant.
#[derive(Debug)]
struct Table {
    name: String,
    partition: bool,
    of_tenant: bool,
    column: &'static str,
}

/// Rows in every table for one scope.
async fn fill(store: &PostgresStore, scope: &Scope) {
    let said = say("Ana lives in Porto").external("m1").entity(EntityKind::Url, "https://porto.pt");
    let said = said.fact(slot_fact("ana", "home", "Porto", at(0))).build();
    let answer = say("In Porto.").role(Role::Assistant).build();
    let (first_said, answered) = (said.id, answer.id);
    let mut first = batch(scope);
    first.writes.push(append("s", said));
    first.writes.push(append("s", answer));
    first.writes.push(Write::EnqueueJob(job("summarize", "s")));
    let profile =
        Profile { rules: "be brief".into(), card: String::new(), version: 1, updated_at: at(0) };
    first.writes.push(Write::PutProfile(profile));
    first.writes.push(Write::PutDocument(Box::new(document("v", "m", "c", "# Facts\nporto"))));
    first.writes.push(Write::PutSummary(Box::new(summary("s", 1, 1, &[first_said]))));
    let list = FileList { revision: 1, bytes: vec![1], sent: "text".to_owned() };
    first.writes.push(Write::PutFileList { session: session("s"), list, at: at(0) });
    store.apply(first).await.unwrap();
    // Enough units that the tail is folded into blocks, and one that is not.
    for count in [511, 1] {
        let mut more = batch(scope);
        more.writes.extend((0..count).map(|n| append("s", say(&format!("word {n}")).build())));
        store.apply(more).await.unwrap();
    }
    let space = VectorSpace { id: "flat".to_owned(), dimensions: 2 };
    let asked = Idempotency { key: [1; 16], fingerprint: [2; 16] };
    let file = FileRef {
        id: FileRefId::from_uuid(id()),
        session: session("s"),
        message: None,
        kind: FileKind::Uploaded,
        title: "porto.pdf".to_owned(),
        reference: None,
        metadata: None,
        created_at: at(0),
    };
    let once = batch(scope).with(Write::PutFile(Box::new(file))).with_idempotency(Some(asked));
    let once = once.with(Write::Reject(vec![RejectionKey::from_bytes([3; 16])]));
    store.apply(once).await.unwrap();
    fill_personas(store, scope, first_said, answered).await;
    fill_tenant(store, scope).await;
    let item = VectorItem { key: UnitKey::message(1, 0), vector: vec![1.0, 0.0] };
    store.upsert(scope, Namespace::Message, &space, &[item], 1).await.unwrap();
}

/// Rows in every table of personas.
async fn fill_personas(store: &PostgresStore, scope: &Scope, said: MessageId, answered: MessageId) {
    let limits = PersonaLimits::default();
    let new = NewPersona::new("Guide", "You are a guide.");
    let persona_id = PersonaId::from_uuid(id());
    let persona =
        Persona::begin(persona_id, new, None, Settings::default(), &limits, at(0)).unwrap();
    let head = BackupHead {
        id: BackupId::from_uuid(id()),
        persona: persona.id,
        session: session("s"),
        through: 1,
        taken_at: at(0),
        reason: BackupReason::Daily,
        bytes: 2,
    };
    let backup = Backup { head, data: "{}".to_owned() };
    let preset = Preset { id: PresetId::new("preset-own").unwrap(), ..built_in().remove(0) };
    let used = PresetUse { contexts: 1, ..PresetUse::default() };
    let rating = Rating {
        message: answered,
        user: scope.user.clone(),
        helpful: true,
        note: None,
        rated_at: at(0),
        preset: None,
        preset_version: None,
    };
    let all = batch(scope)
        .with(Write::CountPreset(preset.id.clone(), used))
        .with(Write::PutPreset(Box::new(preset)))
        .with(Write::PutPersona(Box::new(persona)))
        .with(Write::PutBackup { backup: Box::new(backup), keep: 1 })
        .with(Write::TagMessage {
            session: session("s"),
            message: said,
            tags: vec!["porto".to_owned()],
        })
        .with(Write::RateAnswer { session: session("s"), rating: Box::new(rating) });
    store.apply(all).await.unwrap();
}

/// Rows in every table of the scope's tenant.
async fn fill_tenant(store: &PostgresStore, scope: &Scope) {
    let key = ApiKey {
        id: KeyId::from_bits(scope.tenant.as_str().len() as u64),
        tenant: scope.tenant.clone(),
        user: KeyUser::Any,
        workspace: None,
        permissions: Permissions::ALL,
        name: "a laptop".to_owned(),
        rate: None,
        created_at: at(0),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
        hash: [7; 32],
        previous: None,
        version: 1,
    };
    let share = Share {
        id: ShareId::from_uuid(id()),
        owner: scope.clone(),
        session: session("s"),
        members: [UserId::new("bo").unwrap()].into(),
        writable: false,
        created_at: at(0),
    };
    let by = By { key: Some(key.id), actor: Actor::Api };
    let entry = AuditEntry::done(at(0), by, "key.create", None);
    let used = ModelUse {
        day: UsageDay::of(at(0)),
        work: ModelWork::Chat,
        model: "openai:gpt-4.1".to_owned(),
        calls: 1,
        input: 10,
        cached_input: 0,
        output: 5,
        micro_usd: 60,
    };
    let all = TenantBatch::new(scope.tenant.clone())
        .with(TenantWrite::AddModelUse(used))
        .with(TenantWrite::PutKey(Box::new(key)))
        .with(TenantWrite::PutSettings(Box::default()))
        .with(TenantWrite::PutShare(Box::new(share)))
        .with(TenantWrite::Audit(entry));
    store.apply_tenant(all).await.unwrap();
}

/// Every table and partition, from the catalog: a new one is in the test from its first day.
async fn tables(owner: &mut PgConnection) -> Vec<Table> {
    let rows = sqlx::query(
        "SELECT c.relname::text, c.relispartition, c.relrowsecurity AND c.relforcerowsecurity,
           EXISTS (SELECT FROM pg_attribute a
             WHERE a.attrelid = c.oid AND a.attname = 'scope' AND NOT a.attisdropped),
           EXISTS (SELECT FROM pg_attribute a
             WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped)
         FROM pg_class c
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'm', 'f', 'v')
           AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
         ORDER BY c.relname",
    );
    let mut tables = Vec::new();
    for row in rows.fetch_all(owner).await.unwrap() {
        let (name, partition, secured, scoped, tenanted): (String, bool, bool, bool, bool) =
            (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4));
        if OF_NO_SCOPE.iter().any(|(free, _)| *free == name) {
            continue;
        }
        assert!(secured, "the table `{name}` has no forced row-level security");
        let itself = name == "scope" || name == "tenant";
        assert!(scoped || tenanted || itself, "the table `{name}` has no scope: declare why");
        let of_tenant = !scoped && name != "scope";
        let column = match (itself, of_tenant) {
            (true, _) => "key",
            (false, true) => "tenant",
            (false, false) => "scope",
        };
        tables.push(Table { name, partition, of_tenant, column });
    }
    assert!(tables.len() > 9 * 16 + 15, "{}", tables.len());
    tables
}

async fn count(connection: &mut PgConnection, sql: String) -> i64 {
    let counted = sqlx::query_scalar(AssertSqlSafe(sql.clone())).fetch_one(connection).await;
    counted.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// A transaction of the service's role with these settings.
async fn begin(service: &mut PgConnection, settings: &str) {
    service.execute(AssertSqlSafe(format!("ROLLBACK; BEGIN; {settings}"))).await.unwrap();
}

struct Set {
    server: Server,
    tables: Vec<Table>,
    owner: PgConnection,
    service: PgConnection,
    /// Keys of the two scopes and of the two tenants that have rows.
    keys: [[String; 2]; 2],
}

/// A database with two tenants' rows in every table.
async fn set(name: &str) -> Set {
    let server = Server::start(name).await;
    let store = PostgresStore::open(server.options()).await.unwrap();
    let others = Scope::new("globex", "ana", Some("w")).unwrap();
    fill(&store, &scope("ana")).await;
    fill(&store, &others).await;
    let mut owner = server.admin.connect().await.unwrap();
    let service: PgConnectOptions = server.options().url.parse().unwrap();
    let mut service = service.connect().await.unwrap();
    service.execute("BEGIN").await.unwrap();
    let mut keys = Vec::new();
    for of in [
        "SELECT key::text FROM scope ORDER BY tenant",
        "SELECT key::text FROM tenant ORDER BY name",
    ] {
        let both: Vec<String> = sqlx::query_scalar(of).fetch_all(&mut owner).await.unwrap();
        keys.push(both.try_into().unwrap());
    }
    let keys: [[String; 2]; 2] = keys.try_into().unwrap();
    let tables = tables(&mut owner).await;
    for table in tables.iter().filter(|table| !table.partition) {
        for key in &keys[usize::from(table.of_tenant)] {
            let rows =
                format!("SELECT count(*) FROM {} WHERE {} = '{key}'", table.name, table.column);
            assert!(count(&mut owner, rows).await > 0, "the test fills `{}`", table.name);
        }
    }
    Set { server, tables, owner, service, keys }
}

#[tokio::test]
async fn a_transaction_without_a_scope_sees_nothing_changes_nothing_and_adds_nothing() {
    let Set { server, tables, mut owner, mut service, keys } = set("noscope").await;
    // Not set, set to nothing, and a worker, who may see some tables and no row of the others.
    for settings in [
        "",
        "SET LOCAL throughline.scope = ''; SET LOCAL throughline.tenant = ''; SET LOCAL throughline.key = ''",
        "SET LOCAL throughline.worker = 'on'",
    ] {
        let worker = settings.contains("worker");
        for table in &tables {
            let Table { name, column, .. } = table;
            begin(&mut service, settings).await;
            let seen = format!("SELECT count(DISTINCT {column}) FROM {name}");
            let seen = count(&mut service, seen).await;
            let expected = if worker && OF_WORKERS.contains(&name.as_str()) { 2 } else { 0 };
            assert_eq!(seen, expected, "scopes of `{name}` with `{settings}`");
            let deleted =
                format!("WITH d AS (DELETE FROM {name} RETURNING 1) SELECT count(*) FROM d");
            assert_eq!(
                count(&mut service, deleted).await,
                0,
                "deleted from `{name}`, `{settings}`"
            );
            if !(worker && name == "job") {
                let changed = format!(
                    "WITH u AS (UPDATE {name} SET {column} = {column} RETURNING 1)
                    SELECT count(*) FROM u"
                );
                let changed = count(&mut service, changed).await;
                assert_eq!(changed, 0, "changed in `{name}`, `{settings}`");
            }
            for key in
                [&keys[usize::from(table.of_tenant)][0], "00000000-0000-0000-0000-000000000000"]
            {
                refused(&mut owner, &mut service, table, key).await;
            }
        }
    }
    server.end().await;
}

#[tokio::test]
async fn a_transaction_of_a_scope_sees_and_changes_its_own_rows_and_no_others() {
    let Set { server, tables, mut owner, mut service, keys } = set("twoscopes").await;
    for (own, foreign) in [(0, 1), (1, 0)] {
        let settings = format!(
            "SET LOCAL throughline.scope = '{}'; SET LOCAL throughline.tenant = '{}'",
            keys[0][own], keys[1][own]
        );
        for table in &tables {
            let Table { name, partition, of_tenant, column } = table;
            let of = &keys[usize::from(*of_tenant)];
            let (own, foreign) = (&of[own], &of[foreign]);
            begin(&mut service, &settings).await;
            let rows = format!("SELECT count(*) FROM {name}");
            let seen = count(&mut service, rows.clone()).await;
            let there = count(&mut owner, format!("{rows} WHERE {column} = '{own}'")).await;
            // Straight from a partition nobody sees anything: the policy is the parent's.
            assert_eq!(seen, if *partition { 0 } else { there }, "rows of `{name}`");
            let foreign_rows = format!("{rows} WHERE {column} = '{foreign}'");
            assert_eq!(count(&mut service, foreign_rows).await, 0, "others' rows of `{name}`");
            let deleted = format!(
                "WITH d AS (DELETE FROM {name} WHERE {column} = '{foreign}' RETURNING 1)
                SELECT count(*) FROM d"
            );
            assert_eq!(count(&mut service, deleted).await, 0, "others' rows of `{name}`");
            refused(&mut owner, &mut service, table, foreign).await;
            if !partition {
                begin(&mut service, &settings).await;
                // A row may not be given away either.
                let given = format!("UPDATE {name} SET {column} = '{foreign}'");
                let error = service.execute(AssertSqlSafe(given)).await.unwrap_err().to_string();
                assert!(error.contains("row-level security"), "`{name}`: {error}");
            }
        }
    }
    server.end().await;
}

#[tokio::test]
async fn a_presented_key_shows_itself_and_the_name_of_its_tenant_and_nothing_else() {
    let Set { server, tables, mut service, keys, .. } = set("presented").await;
    let id = "acme".len();
    let settings = format!("SET LOCAL throughline.key = '{id}'");
    for Table { name, column, .. } in &tables {
        begin(&mut service, &settings).await;
        let seen = count(&mut service, format!("SELECT count(*) FROM {name}")).await;
        let shown = name == "api_key" || name == "tenant";
        assert_eq!(seen, i64::from(shown), "rows of `{name}`");
        let own = format!("SELECT count(*) FROM {name} WHERE {column} = '{}'", keys[1][0]);
        assert_eq!(count(&mut service, own).await, i64::from(shown), "the tenant of `{name}`");
        for change in
            [format!("DELETE FROM {name}"), format!("UPDATE {name} SET {column} = {column}")]
        {
            let changed = service.execute(AssertSqlSafe(change)).await.unwrap();
            assert_eq!(changed.rows_affected(), 0, "changed in `{name}`");
        }
    }
    begin(&mut service, "SET LOCAL throughline.key = '77'").await;
    for name in ["api_key", "tenant"] {
        let seen = count(&mut service, format!("SELECT count(*) FROM {name}")).await;
        assert_eq!(seen, 0, "rows of `{name}` for an id that no key has");
    }
    server.end().await;
}

#[tokio::test]
async fn the_service_owns_nothing_and_passes_by_nothing() {
    let Set { server, mut owner, mut service, .. } = set("owns").await;
    let role: String =
        sqlx::query_scalar("SELECT current_user::text").fetch_one(&mut service).await.unwrap();
    let owned = format!(
        "SELECT count(*) FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
        WHERE r.rolname = '{role}'"
    );
    assert_eq!(count(&mut owner, owned).await, 0);
    begin(&mut service, "").await;
    for forbidden in [
        "ALTER TABLE message DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE message NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY own_scope ON message",
        "CREATE POLICY all_of_it ON message USING (true)",
        "TRUNCATE message",
        "DROP TABLE message",
        "UPDATE _sqlx_migrations SET version = 2",
        "SET SESSION AUTHORIZATION postgres",
        "CREATE OR REPLACE FUNCTION throughline_worker() RETURNS boolean LANGUAGE sql RETURN true",
    ] {
        begin(&mut service, "").await;
        let refused = service.execute(forbidden).await;
        assert!(refused.is_err(), "{forbidden}");
    }
    // A function or view of the owner's rights would pass by everything.
    let passing =
        "SELECT count(*) FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace";
    assert_eq!(count(&mut owner, passing.to_owned()).await, 0);
    server.end().await;
}

/// The service may not insert a row of the scope `key`: a copy of one that is there, so that nothing but
/// row-level security refuses it.
async fn refused(owner: &mut PgConnection, service: &mut PgConnection, table: &Table, key: &str) {
    let Table { name, partition, column, .. } = table;
    let parent = if *partition { name.rsplit_once('_').unwrap().0 } else { name };
    let row: String = sqlx::query_scalar(AssertSqlSafe(format!(
        "SELECT (to_jsonb(t) || jsonb_build_object('{column}', '{key}'))::text FROM {parent} t LIMIT 1"
    )))
    .fetch_one(owner)
    .await
    .unwrap();
    service.execute("SAVEPOINT before").await.unwrap();
    let insert = format!(
        "INSERT INTO {name} OVERRIDING SYSTEM VALUE
         SELECT * FROM jsonb_populate_record(NULL::{parent}, $1::jsonb)"
    );
    let refused = sqlx::query(AssertSqlSafe(insert)).bind(row).execute(&mut *service).await;
    let error = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("row-level security"), "`{name}` of {key}: {error}");
    service.execute("ROLLBACK TO before").await.unwrap();
}
