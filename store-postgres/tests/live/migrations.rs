//! Migrations that are interrupted, run at once, or meet a schema that they do not know.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{ConnectOptions, SqlSafeStr};
use throughline_core::ErrorKind;
use throughline_core::ports::Store;
use throughline_store_postgres::{PostgresOptions, PostgresStore, migrate};
use throughline_testkit::proxy::Fault;

use crate::support::wire::{put, read, stored, unavailable, warm};
use crate::support::{Server, execute};

/// Everything of a schema that a migration makes, as one text.
const SHAPE: &str = "SELECT string_agg(what, ',' ORDER BY what) FROM (
    SELECT relname || relkind::text AS what FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT tablename || policyname FROM pg_policies
    UNION ALL SELECT version::text || success::text FROM _sqlx_migrations
    UNION ALL SELECT table_name || privilege_type FROM information_schema.role_table_grants
      WHERE grantee = 'throughline_test') all_of_it";

async fn shape(server: &Server) -> String {
    let mut connection = server.admin.connect().await.unwrap();
    sqlx::query_scalar(SHAPE).fetch_one(&mut connection).await.unwrap()
}

#[tokio::test]
async fn a_migration_that_is_interrupted_anywhere_is_completed_by_the_next() {
    let server = Server::empty("whole").await;
    let proxy = server.proxy();
    let through = |server: &Server| PostgresOptions {
        // Time to make every partition.
        statement_timeout: std::time::Duration::from_secs(60),
        ..server.through(&proxy)
    };
    migrate(&through(&server)).await.unwrap();
    let (bytes, whole) = (proxy.sent(), shape(&server).await);
    let most = |percent: u64| Fault::CutAfter(bytes * percent / 100);
    let faults = [most(1), most(4), most(50), most(90), most(96), most(99)];
    let lost =
        ["pg_advisory_lock", "CREATE EXTENSION", "COMMIT\0", "GRANT USAGE"].map(Fault::DropAnswer);
    for (n, fault) in faults.into_iter().chain(lost).enumerate() {
        let server = Server::empty(&format!("interrupted{n}")).await;
        proxy.set(fault);
        unavailable(migrate(&through(&server))).await;
        assert_eq!(proxy.fault(), Fault::Pass, "{fault:?} struck");
        let store = PostgresStore::open(through(&server)).await.unwrap();
        put(&store, "first").await.unwrap();
        assert_eq!(shape(&server).await, whole, "{fault:?}");
        server.end().await;
    }
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_programs_that_migrate_at_once_all_succeed() {
    let alone = Server::start("alone").await;
    for round in 0..3 {
        let server = Server::empty(&format!("atonce{round}")).await;
        let opened = (0..8).map(|_| tokio::spawn(PostgresStore::open(server.options())));
        for (n, store) in opened.collect::<Vec<_>>().into_iter().enumerate() {
            put(&store.await.unwrap().unwrap(), &n.to_string()).await.unwrap();
        }
        assert_eq!(shape(&server).await, shape(&alone).await);
        server.end().await;
    }
    alone.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_programs_that_build_indexes_at_once_all_succeed_and_others_open_meanwhile() {
    let server = Server::start("builds").await;
    // Of ten scopes four are large enough.
    let held = "INSERT INTO vector_space (name, dimensions) VALUES ('model', 8);
        INSERT INTO vector_state (scope, space_id, namespace, through, vectors)
          SELECT md5(n::text)::uuid, 1, 0, 1, n FROM generate_series(1, 10) n";
    execute(&server.admin, held.to_owned()).await;
    let options = PostgresOptions { exact_vectors: 6, ..server.options() };
    let wanted = PostgresStore::open(options.clone()).await.unwrap();
    let told = wanted.health(false).await.unwrap().problems;
    assert!(told.len() == 1 && told[0].contains("not built yet"), "{told:?}");
    let built = (0..4).map(|_| {
        let options = options.clone();
        tokio::spawn(async move { options.build_deferred(|_, _| {}).await })
    });
    let built: Vec<_> = built.collect();
    for n in 0..4 {
        let store = PostgresStore::open(options.clone()).await.unwrap();
        put(&store, &n.to_string()).await.unwrap();
    }
    let mut indexes = Vec::new();
    for built in built {
        indexes.push(built.await.unwrap().unwrap());
    }
    let built: usize = indexes.iter().sum();
    assert!((1..=4).contains(&built), "one for each partition of a large scope: {indexes:?}");
    assert_eq!(indexes.iter().filter(|built| **built > 0).count(), 1, "{indexes:?}");
    assert_eq!(wanted.health(false).await.unwrap().problems, Vec::<String>::new());
    server.end().await;
}

#[tokio::test]
async fn what_was_taken_back_directly_before_actors_counts_as_rejected() {
    let server = Server::empty("rejected").await;
    let before = [
        ("initial", include_str!("../../migrations/0001_initial.sql")),
        ("extracted by", include_str!("../../migrations/0002_extracted_by.sql")),
    ];
    let before = (1..).zip(before).map(|(version, (name, sql))| {
        let sql = sql.into_sql_str();
        Migration::new(version, name.into(), MigrationType::Simple, sql, false)
    });
    let mut connection = server.admin.connect().await.unwrap();
    let mut migrator = Migrator::with_migrations(before.collect());
    migrator.set_locking(false).run_direct(None, &mut connection, false).await.unwrap();
    // Number, session, kind, statement, what superseded it, whether it was stated after its value was rejected.
    let held = "INSERT INTO fact (scope, number, id, session_number, kind, text, tags, statement,
          weight, superseded_by, observed_at, rejected)
        SELECT md5('scope')::uuid, number, md5(number::text)::uuid, session, kind, 'x', '',
          statement, 1, md5(by::text)::uuid, 1, rejected
        FROM (VALUES
          (1, 1, 'fact', 10, 2, 0), (2, 0, 'retraction', 10, NULL, 0),
          (3, 1, 'fact', 20, 4, 0), (4, 0, 'retraction', 20, 5, 0), (5, 0, 'fact', 20, NULL, 0),
          (6, 1, 'fact', 30, 7, 0), (7, 1, 'retraction', 30, NULL, 0),
          (8, 1, 'fact', 40, 9, 0), (9, 0, 'retraction', 40, 10, 0), (10, 1, 'fact', 40, NULL, 0),
          (11, 1, 'fact', 50, 2, 1), (12, 1, 'fact', 60, 2, 1), (13, 0, 'fact', 60, NULL, 0)
        ) AS held (number, session, kind, statement, by, rejected)";
    execute(&server.admin, held.to_owned()).await;
    migrate(&server.options()).await.unwrap();
    // Taken back directly, and what was rejected before: not what was told directly again since.
    let rejected: Vec<i64> =
        sqlx::query_scalar("SELECT number FROM fact WHERE rejected = 1 ORDER BY number")
            .fetch_all(&mut connection)
            .await
            .unwrap();
    assert_eq!(rejected, [1, 8, 11]);
    drop(connection);
    server.end().await;
}

#[tokio::test]
async fn a_schema_of_a_newer_program_is_left_alone() {
    let server = Server::start("newer").await;
    let old = PostgresStore::open(server.options()).await.unwrap();
    put(&old, "before").await.unwrap();
    let newer =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (99, 'newer', true, '', 0)";
    execute(&server.admin, newer.to_owned()).await;
    let before = shape(&server).await;
    // As its owner, and as the service alone.
    for direct_url in [server.options().direct_url, None] {
        let options = PostgresOptions { direct_url, ..server.options() };
        let error = PostgresStore::open(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaTooNew, "{error:?}");
        assert!(error.message().contains("schema version 99"), "{error}");
        assert!(error.message().contains("nothing was changed"), "{error}");
    }
    assert_eq!((shape(&server).await, stored(&old).await), (before, vec!["before".to_owned()]));
    server.end().await;
}

#[tokio::test]
async fn a_role_that_row_level_security_does_not_bind_is_refused() {
    let server = Server::start("bypass").await;
    let owner = server.options().direct_url.unwrap();
    let role = format!("tl_bypass_{}", std::process::id());
    let bypass = format!("CREATE ROLE {role} LOGIN PASSWORD 'bypass' BYPASSRLS");
    execute(&server.server, bypass).await;
    let (host, port) = (server.admin.get_host(), server.admin.get_port());
    let bypass = format!("postgres://{role}:bypass@{host}:{port}/{}", server.database);
    for url in [&owner, &bypass] {
        let options =
            PostgresOptions { direct_url: Some(owner.clone()), ..PostgresOptions::new(url) };
        let error = PostgresStore::open(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error:?}");
        assert!(error.message().contains("row-level security"), "{error}");
        assert!(!error.message().contains("postgres://"), "{error}");
    }
    let store = PostgresStore::open(server.options()).await.unwrap();
    warm(&store).await;
    read(&store).await.unwrap();
    let admin = server.server.clone();
    server.end().await;
    execute(&admin, format!("DROP ROLE {role}")).await;
}
