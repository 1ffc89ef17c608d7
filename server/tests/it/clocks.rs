//! Replicas on machines whose clocks differ by minutes, on one Postgres: they go by its clock.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Scope;
use throughline_core::fact::FactStatus;
use throughline_core::ids::{JobId, SessionId};
use throughline_core::job::NewJob;
use throughline_core::page::PageRequest;
use throughline_core::ports::{Clock, IdGen, Write, WriteBatch};
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;
use throughline_engine::adapters::{SystemClock, UuidV7};
use throughline_engine::compose::Engine;
use throughline_engine::config::{Config, EmbedderKind, Secret, StoreKind};

use crate::combinations::database;

const MINUTE: i64 = 60_000_000;

/// The clock of a machine that is wrong by so many microseconds.
struct Wrong(i64);

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(SystemClock.now().as_micros() + self.0)
    }
}

async fn engine(folder: &tempfile::TempDir, wrong: i64) -> Engine {
    // It has a runtime of its own.
    let [url, direct] = tokio::task::spawn_blocking(database).await.unwrap();
    let mut config = Config {
        data_dir: folder.path().to_owned(),
        store: StoreKind::Postgres,
        embedder: EmbedderKind::None,
        ..Config::default()
    };
    config.postgres.url = Secret::new(url.as_str());
    config.postgres.direct_url = Secret::new(direct.as_str());
    Engine::open_by(&config, Arc::new(Wrong(wrong))).await.unwrap()
}

fn scope(of: &str) -> Scope {
    Scope::new(&format!("clocks-{}", std::process::id()), of, None).unwrap()
}

async fn say(engine: &Engine, scope: &Scope, text: &str) {
    let session = SessionId::new("s").unwrap();
    let said = NewMessage::new(Role::User, text);
    engine.sessions.append(scope, &session, vec![said]).await.unwrap();
}

#[tokio::test]
async fn later_statement_wins_despite_clock_skew() {
    let folder = tempfile::tempdir().unwrap();
    let (fast, slow) = (engine(&folder, 5 * MINUTE).await, engine(&folder, -5 * MINUTE).await);
    let right = SystemClock.now();
    for engine in [&fast, &slow] {
        let off = engine.clock.now().as_micros() - right.as_micros();
        assert!((-MINUTE..MINUTE).contains(&off), "{off}");
    }
    let scope = scope("ana");
    say(&fast, &scope, "I live in Porto.").await;
    say(&slow, &scope, "I moved to Lisbon.").await;
    say(&fast, &scope, "I moved to Berlin.").await;
    say(&slow, &scope, "I moved to Oslo.").await;
    let facts = fast.facts.list(&scope, &PageRequest::first(50).unwrap()).await.unwrap().items;
    let lives = facts.iter().filter(|fact| fact.attribute.as_deref() == Some("home"));
    let (holds, gone): (Vec<_>, Vec<_>) = lives.partition(|fact| fact.status == FactStatus::Active);
    let values = |facts: &[&throughline_core::fact::Fact]| {
        facts.iter().map(|fact| fact.value.clone().unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(values(&holds), ["Oslo"]);
    assert_eq!(values(&gone), ["Porto", "Lisbon", "Berlin"]);
    let ids: Vec<_> = facts.iter().map(|fact| fact.id).collect();
    assert!(ids.is_sorted(), "ids go by the same clock: {ids:?}");
}

#[tokio::test]
async fn a_lease_holds_for_machines_whose_clocks_are_ahead() {
    const KIND: &str = "clocks";
    const LEASE: Duration = Duration::from_secs(60);
    let folder = tempfile::tempdir().unwrap();
    let (fast, slow) = (engine(&folder, 5 * MINUTE).await, engine(&folder, -5 * MINUTE).await);
    let job = NewJob {
        id: JobId::from_uuid(UuidV7::default().next()),
        kind: KIND.to_owned(),
        subject: "s".to_owned(),
        priority: 0,
        due_at: slow.clock.now(),
    };
    let batch = WriteBatch::new(scope("bo"), slow.clock.now()).with(Write::EnqueueJob(job));
    slow.store.apply(batch).await.unwrap();
    let claim = async |engine: &Engine, after: Duration| {
        let now = engine.clock.now().plus(after);
        engine.store.claim_jobs(&[KIND], now, LEASE, 9).await.unwrap().len()
    };
    assert_eq!(claim(&slow, Duration::ZERO).await, 1);
    for after in [Duration::ZERO, LEASE / 2] {
        assert_eq!(claim(&fast, after).await, 0, "{after:?}: the lease is held");
    }
    // Its time has passed for both.
    assert_eq!(claim(&fast, LEASE * 2).await, 1);
    assert_eq!(claim(&slow, LEASE * 2).await, 0);
}

#[tokio::test]
async fn reports_clock_skew_without_a_problem_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    for (wrong, told) in
        [(5 * MINUTE, " s ahead of the database server's"), (-5 * MINUTE, " s behind")]
    {
        let health = engine(&folder, wrong).await.health(false).await.unwrap().remove(0);
        assert_eq!(health.problems, Vec::<String>::new());
        assert!(health.backend.contains(told), "{}", health.backend);
    }
    let right = engine(&folder, 0).await.health(false).await.unwrap().remove(0);
    assert!(!right.backend.contains("clock"), "{}", right.backend);
}
