//! Every valid combination of store, vector index and cache, on real servers: the same answers, nothing
//! crosses tenants, and what is away is told.

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Throughline, payload};

/// The role of the service, which row-level security binds.
const ROLE: &str = "throughline_e2e";

/// Less than the patience of a worker: what is done in this time was heard, not found.
const HEARD: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(60);

/// One of two tenants' memories. Each is the best match of what the other one asks.
const OURS: &str = r#"{"role": "user", "session": "a", "external_id": "m1", "content": "The safe in the cellar opens with 7731."}
{"role": "assistant", "session": "a", "external_id": "m2", "content": "The kitten you adopted last spring sleeps on the sofa all day."}
{"role": "user", "session": "a", "external_id": "m3", "content": "From now on, answer me in French."}
{"role": "user", "session": "b", "external_id": "m4", "content": "Our standup is at 9:40 every morning."}
"#;
const THEIRS: &str = r#"{"role": "user", "session": "a", "external_id": "m1", "content": "The safe in the cellar opens with 9942."}
{"role": "assistant", "session": "a", "external_id": "m2", "content": "The puppy you adopted last spring sleeps on the carpet all day."}
"#;

/// A combination as settings of the command line.
pub(crate) struct Combination {
    pub(crate) name: String,
    settings: Vec<String>,
}

/// Where a server of the tests is.
pub(crate) fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set: run `cargo xtask services up` and set what it prints, or run \
             `cargo xtask test --all`"
        )
    })
}

/// A database for this run of the tests, with its tables, as the service reaches it.
pub(crate) fn database() -> &'static [String; 2] {
    static DATABASE: OnceLock<[String; 2]> = OnceLock::new();
    DATABASE.get_or_init(|| make_database("e2e"))
}

pub(crate) fn make_database(name: &str) -> [String; 2] {
    use sqlx::{AssertSqlSafe, ConnectOptions, Executor};
    let admin: sqlx::postgres::PgConnectOptions =
        server("THROUGHLINE_TEST_POSTGRES").parse().unwrap();
    let name = format!("tl_{name}_{}", std::process::id());
    let made = async {
        let mut connection = admin.connect().await?;
        for statement in [
            format!(
                "DO $$ BEGIN CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}';
                 EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
            ),
            format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
            format!("CREATE DATABASE {name}"),
        ] {
            connection.execute(AssertSqlSafe(statement)).await?;
        }
        Ok::<(), sqlx::Error>(())
    };
    tokio::runtime::Runtime::new().unwrap().block_on(made).unwrap();
    let (host, port) = (admin.get_host(), admin.get_port());
    let url = format!("postgres://{ROLE}:{ROLE}@{host}:{port}/{name}");
    [url, admin.database(&name).to_url_lossy().to_string()]
}

impl Combination {
    /// All of them; `run` tells the tests of a process apart where they share a server.
    pub(crate) fn all(run: &str) -> Vec<Self> {
        let mut all = Vec::new();
        for store in ["sqlite", "postgres"] {
            for index in ["store", "qdrant"] {
                for cache in ["none", "redis"] {
                    all.push(Self::of(store, index, cache, run));
                }
            }
        }
        all.push(Self::of("postgres", "store", "none", &format!("{run}-replica")).with_replica());
        all
    }

    /// With the standby for what may be read there.
    fn with_replica(mut self) -> Self {
        let standby = server("THROUGHLINE_TEST_POSTGRES_REPLICA");
        let [url, direct] = database();
        let host = |url: &str| url.split(['@', '/']).nth(3).unwrap_or_default().to_owned();
        let url = url.replace(&host(direct), &host(&standby));
        self.settings.push(format!("postgres.replica_url={url}"));
        self
    }

    pub(crate) fn of(store: &str, index: &str, cache: &str, run: &str) -> Self {
        let name = format!("{store}-{index}-{cache}");
        let prefix = format!("e2e-{run}-{name}-{}", std::process::id());
        let mut settings = vec![
            format!("store={store}"),
            format!("vector_index={index}"),
            format!("cache={cache}"),
            format!("qdrant.prefix={prefix}"),
            format!("redis.prefix={prefix}"),
        ];
        if store == "postgres" {
            let [url, direct] = database();
            settings.push(format!("postgres.url={url}"));
            settings.push(format!("postgres.direct_url={direct}"));
        }
        if index == "qdrant" {
            settings.push(format!("qdrant.url={}", server("THROUGHLINE_TEST_QDRANT")));
        }
        if cache == "redis" {
            settings.push(format!("redis.url={}", server("THROUGHLINE_TEST_REDIS")));
        }
        Self { name: format!("{run}-{name}"), settings }
    }

    /// Runs a command for one of two tenants, whose names belong to this combination alone.
    pub(crate) fn json(&self, throughline: &Throughline, tenant: &str, args: &[&str]) -> Value {
        let tenant = format!("identity.tenant={}-{tenant}", self.name);
        let settings = self.settings.iter().map(String::as_str).chain([tenant.as_str()]);
        let settings: Vec<&str> = settings.flat_map(|setting| ["--set", setting]).collect();
        throughline.json(&[args, &settings].concat())
    }

    /// As a configuration file of a data directory, which every command there reads.
    pub(crate) fn configure(&self, throughline: &Throughline) {
        let line = |setting: &String| {
            let (key, value) = setting.split_once('=').unwrap();
            format!("{key} = {value:?}\n")
        };
        throughline.file("throughline.toml", self.settings.iter().map(line).collect::<String>());
    }

    fn shown(&self, throughline: &Throughline, tenant: &str, turn: &str) -> String {
        payload(&self.json(throughline, tenant, &["assemble", turn]))
    }
}

fn filled(combination: &Combination) -> Throughline {
    let throughline = Throughline::new();
    for (tenant, said) in [("ours", OURS), ("theirs", THEIRS)] {
        throughline.file(&format!("{tenant}.jsonl"), said);
        combination.json(&throughline, tenant, &["import", &format!("{tenant}.jsonl")]);
    }
    throughline
}

#[test]
fn every_combination_recalls_and_keeps_tenants_apart() {
    for combination in Combination::all("recall") {
        let throughline = filled(&combination);
        let name = &combination.name;
        let shown = |tenant: &str, turn: &str| combination.shown(&throughline, tenant, turn);
        // Before a worker has run: what is written is recalled by the next call.
        for _ in 0..2 {
            let (ours, theirs) = (
                shown("ours", "How do I open the safe?"),
                shown("theirs", "How do I open the safe?"),
            );
            assert!(ours.contains("7731") && !ours.contains("9942"), "{name}: {ours}");
            assert!(theirs.contains("9942") && !theirs.contains("7731"), "{name}: {theirs}");
            let pets = shown("ours", "Do they own any pets?");
            assert!(pets.contains("kitten") && !pets.contains("puppy"), "{name}: {pets}");
            assert!(pets.contains("in French"), "{name}: what stands is in every context");
            let others = shown("nobody", "How do I open the safe?");
            assert!(!others.contains("7731") && !others.contains("9942"), "{name}: {others}");
            combination.json(&throughline, "ours", &["worker", "--once"]);
        }
        // A repeated import is the same messages; a correction is recalled at once.
        combination.json(&throughline, "ours", &["import", "ours.jsonl"]);
        let usage = combination.json(&throughline, "ours", &["usage"]);
        assert!(usage.to_string().contains("\"messages\":4"), "{name}: {usage}");
        throughline.file(
            "more.jsonl",
            r#"{"role": "user", "session": "b", "content": "Actually, our standup is at 10:15 now."}"#,
        );
        combination.json(&throughline, "ours", &["import", "more.jsonl"]);
        let standup = shown("ours", "When is our standup?");
        assert!(standup.contains("10:15"), "{name}: {standup}");
        let health = combination.json(&throughline, "ours", &["migrate", "--check"]);
        assert_eq!(health["problems"], Value::Array(Vec::new()), "{name}: {health}");
    }
}

#[test]
fn every_combination_gives_the_same_context() {
    let turns = ["How do I open the safe?", "Do they own any pets?", "When is our standup?"];
    let mut first: Option<(String, Vec<String>)> = None;
    for combination in Combination::all("same") {
        let throughline = filled(&combination);
        combination.json(&throughline, "ours", &["worker", "--once"]);
        let shown: Vec<String> =
            turns.iter().map(|turn| combination.shown(&throughline, "ours", turn)).collect();
        match &first {
            None => first = Some((combination.name.clone(), shown)),
            Some((name, expected)) => {
                assert_eq!(&shown, expected, "{} and {name}", combination.name);
            }
        }
    }
}

#[test]
fn unavailable_index_or_cache_degrades_and_is_reported() {
    let mut combination = Combination::of("sqlite", "qdrant", "redis", "away");
    for (key, url) in [("qdrant.url", "http://127.0.0.1:9"), ("redis.url", "redis://127.0.0.1:9")] {
        combination.settings.push(format!("{key}={url}"));
        combination.settings.push("redis.timeout_ms=300".to_owned());
        combination.settings.push("qdrant.timeout_ms=300".to_owned());
    }
    let throughline = filled(&combination);
    let context = combination.json(&throughline, "ours", &["assemble", "How do I open the safe?"]);
    assert!(payload(&context).contains("7731"), "words are enough: {context}");
    assert!(context["budget"]["warnings"].to_string().contains("keyword search only"), "{context}");
    let settings = combination.settings.iter().flat_map(|setting| ["--set", setting]);
    let said = throughline.fails(&["migrate"].into_iter().chain(settings).collect::<Vec<_>>(), 7);
    assert!(said.contains("vector index or the cache"), "{said}");
    // The same store with the servers there: what waited is found.
    let back = Combination::of("sqlite", "qdrant", "redis", "away");
    let worked = back.json(&throughline, "ours", &["worker", "--once", "--reconcile"]);
    assert!(worked["texts"].as_u64() > Some(0), "{worked}");
    assert!(back.shown(&throughline, "ours", "Do they own any pets?").contains("kitten"));
}

#[test]
fn repairs_index_with_missing_or_extra_vectors() {
    let combination = Combination::of("postgres", "qdrant", "none", "mended");
    let throughline = filled(&combination);
    combination.json(&throughline, "ours", &["worker", "--once"]);
    // Another prefix is an index that lost everything: its watermarks say so.
    let mut emptied = Combination::of("postgres", "qdrant", "none", "mended");
    emptied.settings.push(format!("qdrant.prefix=e2e-emptied-{}", std::process::id()));
    let worked = emptied.json(&throughline, "ours", &["worker", "--once"]);
    assert!(worked["texts"].as_u64() > Some(0), "{worked}");
    assert!(emptied.shown(&throughline, "ours", "Do they own any pets?").contains("kitten"));
    // A store that began anew, of the same names: the index knows more than it.
    let mut anew = Combination::of("sqlite", "qdrant", "none", "mended");
    anew.name.clone_from(&combination.name);
    anew.settings.retain(|setting| !setting.starts_with("qdrant.prefix"));
    let prefix = combination.settings.iter().find(|setting| setting.starts_with("qdrant.prefix"));
    anew.settings.push(prefix.unwrap().clone());
    let other = Throughline::new();
    other.file(
        "one.jsonl",
        r#"{"role": "assistant", "session": "a", "content": "The kitten that you adopted sleeps in the garden."}"#,
    );
    anew.json(&other, "ours", &["import", "one.jsonl"]);
    let worked = anew.json(&other, "ours", &["worker", "--once", "--reconcile"]);
    assert_eq!(worked["reconciled"]["read_anew"], 1, "{worked}");
    assert!(anew.shown(&other, "ours", "Do they own any pets?").contains("garden"));
}

/// How many jobs of all scopes ended so.
async fn jobs(connection: &mut sqlx::PgConnection, tenant: &str, state: &str) -> i64 {
    let count = "SELECT count(*) FROM job JOIN scope ON scope.key = job.scope
        WHERE scope.tenant = $1 AND job.state = $2";
    sqlx::query_scalar(count).bind(tenant).bind(state).fetch_one(connection).await.unwrap()
}

#[test]
fn worker_runs_jobs_of_other_processes_and_stops_on_signal() {
    use sqlx::ConnectOptions;
    let mut combination = Combination::of("postgres", "qdrant", "none", "hears");
    // It takes every job that it hears of: those of other tests are not its business.
    let [url, direct] = make_database("hears");
    combination.settings.push(format!("postgres.url={url}"));
    combination.settings.push(format!("postgres.direct_url={direct}"));
    let throughline = Throughline::new();
    let settings = combination.settings.iter().flat_map(|setting| ["--set", setting.as_str()]);
    let mut command = throughline.command(&["worker", "--json"]);
    let mut worker =
        command.args(settings).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let admin: sqlx::postgres::PgConnectOptions = direct.parse().unwrap();
    let tenant = format!("{}-ours", combination.name);
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut connection = admin.connect().await.unwrap();
        // Until it listens.
        let listens = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND query LIKE 'LISTEN%'";
        let begun = Instant::now();
        while sqlx::query_scalar::<_, i64>(listens).fetch_one(&mut connection).await.unwrap() == 0 {
            assert!(begun.elapsed() < SOON, "the worker listens");
        }
        let mut quickest = SOON;
        for round in 0..4 {
            let name = format!("{round}.jsonl");
            let said = format!(r#"{{"role": "user", "session": "{round}", "content": "Hello."}}"#);
            throughline.file(&name, said);
            combination.json(&throughline, "ours", &["import", &name]);
            let begun = Instant::now();
            while jobs(&mut connection, &tenant, "done").await <= round {
                assert!(begun.elapsed() < SOON, "round {round}");
            }
            quickest = quickest.min(begun.elapsed());
        }
        assert!(quickest < HEARD, "{quickest:?}");
        assert_eq!(jobs(&mut connection, &tenant, "queued").await, 0);
    });
    let begun = Instant::now();
    let told = Command::new("sh").args(["-c", &format!("kill -s INT {}", worker.id())]).status();
    assert!(told.unwrap().success());
    assert!(worker.wait().unwrap().success());
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}
