//! The same messages in every combination of stores, asked and written to in turn, so that all see the
//! same machine: assembly, appends, and one process against two.
//!
//! The servers are those that `cargo xtask services up` names in the environment.

mod processes;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions, Executor};
use throughline_core::Scope;
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::session::NewMessage;
use throughline_engine::compose::{Engine, build_deferred, move_store};
use throughline_engine::config::{Config, Layers, StoreKind};

use crate::corpus::Corpus;
use crate::support::{Quantiles, ask, fill_scope, write};

pub(crate) use processes::child;

/// Tenants beside the scope that is measured.
const TENANTS: usize = 100;
/// Appends of one measurement.
const APPENDS: usize = 600;
/// The role of the service, which row-level security binds.
const ROLE: &str = "throughline_bench";

/// A combination as settings of the command line, as a child process takes them.
#[derive(Clone)]
struct Combination {
    name: &'static str,
    settings: Vec<(String, String)>,
}

impl Combination {
    fn config(&self) -> Config {
        Layers { file: None, flags: self.settings.clone() }.load().unwrap()
    }
}

/// Fills a store with `messages`, a tenth of them in one scope, moves it to the others, and measures all.
pub(crate) async fn run(corpus: &Corpus, messages: usize, folder: &Path) -> Value {
    let run = format!("bench{}", std::process::id());
    let [url, direct] = database(&run).await;
    let all = combinations(folder, &run, &url, &direct);
    let (sqlite, postgres) = (&all[0].config(), &all[2].config());
    let mut report = json!({"messages": messages});

    let file = Engine::open(sqlite).await.unwrap();
    let took = fill(&file, messages).await;
    println!("filled one SQLite file with {messages} messages in {took:.0} s");
    report["fill_seconds"] = took.into();
    drop(file);
    report["move"] = moved(sqlite, postgres, messages).await;
    let mut engines = Vec::new();
    for combination in &all {
        let engine = Engine::open(&combination.config()).await.unwrap();
        // The two with Qdrant share its collection: a move keeps what its keys are made of.
        let started = Instant::now();
        let texts = embed_all(&engine).await;
        if texts > 0 {
            let took = started.elapsed().as_secs_f64();
            println!("{}: {texts} texts were embedded in {took:.0} s", combination.name);
        }
        engines.push(engine);
    }
    report["assembly"] = assembly(corpus, messages, &all, &engines).await;
    report["appends"] = appends(corpus, &run, &all, &engines).await;
    drop(engines);
    report["processes"] = processes::measure(&[&all[0], &all[2], &all[4]], messages);
    report
}

fn combinations(folder: &Path, run: &str, url: &str, direct: &str) -> [Combination; 6] {
    let names = [
        ("SQLite", "sqlite", "store", "none"),
        ("SQLite + Qdrant", "sqlite", "qdrant", "none"),
        ("Postgres", "postgres", "store", "none"),
        ("Postgres + Qdrant", "postgres", "qdrant", "none"),
        ("Postgres + Redis", "postgres", "store", "redis"),
        ("Postgres + Qdrant + Redis", "postgres", "qdrant", "redis"),
    ];
    names.map(|(name, store, index, cache)| {
        let settings = [
            ("data_dir", folder.to_str().unwrap()),
            ("store", store),
            ("vector_index", index),
            ("cache", cache),
            ("postgres.url", url),
            ("postgres.direct_url", direct),
            ("qdrant.url", &server("THROUGHLINE_TEST_QDRANT")),
            ("qdrant.prefix", run),
            ("redis.url", &server("THROUGHLINE_TEST_REDIS")),
            ("redis.prefix", run),
        ];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Combination { name, settings: settings.to_vec() }
    })
}

pub(crate) fn server(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("{variable} is not set: run `cargo xtask services up` and set what it prints")
    })
}

/// A database of this run, as the service and as its owner reach it.
pub(crate) async fn database(name: &str) -> [String; 2] {
    let admin: sqlx::postgres::PgConnectOptions =
        server("THROUGHLINE_TEST_POSTGRES").parse().unwrap();
    let mut connection = admin.connect().await.unwrap();
    for statement in [
        format!(
            "DO $$ BEGIN CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}';
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        ),
        format!("CREATE DATABASE {name}"),
    ] {
        connection.execute(AssertSqlSafe(statement)).await.unwrap();
    }
    let (host, port) = (admin.get_host(), admin.get_port());
    let url = format!("postgres://{ROLE}:{ROLE}@{host}:{port}/{name}");
    [url, admin.database(name).to_url_lossy().to_string()]
}

/// The scope that has a tenth of the messages, and one of those that share the rest.
fn scopes(messages: usize) -> [(&'static str, Scope, usize); 2] {
    let big = Scope::new("bench", "big", None).unwrap();
    let small = (messages - messages / 10) / TENANTS;
    [("big", big, messages / 10), ("small", other(0), small)]
}

fn other(tenant: usize) -> Scope {
    Scope::new(&format!("other-{tenant}"), "user", None).unwrap()
}

/// Two scopes at once, as the machine has two cores; what is there already is left.
async fn fill(engine: &Engine, messages: usize) -> f64 {
    let started = Instant::now();
    let [(_, big, most), (_, _, few)] = scopes(messages);
    let mut scopes: Vec<(Scope, usize)> = (0..TENANTS).map(|at| (other(at), few)).collect();
    scopes.push((big, most));
    let waiting = Arc::new(Mutex::new(scopes));
    let fillers = [1, 2].map(|filler| {
        let (engine, waiting, corpus) = (engine.clone(), Arc::clone(&waiting), Corpus::new());
        tokio::spawn(async move {
            loop {
                let next = waiting.lock().unwrap().pop();
                let Some((scope, count)) = next else { return };
                if engine.store.totals(&scope).await.unwrap().messages == 0 {
                    let seed = 2 * waiting.lock().unwrap().len() as u64 + filler;
                    fill_scope(&engine, &scope, &corpus, count, seed).await;
                }
            }
        })
    });
    for filler in fillers {
        filler.await.unwrap();
    }
    started.elapsed().as_secs_f64()
}

async fn moved(sqlite: &Config, postgres: &Config, messages: usize) -> Value {
    let started = Instant::now();
    let stores = (StoreKind::Sqlite, StoreKind::Postgres);
    let with_target = Config { postgres: postgres.postgres.clone(), ..sqlite.clone() };
    let moved = move_store(&with_target, stores, &mut |_, _| {}).await.unwrap();
    let copied = started.elapsed().as_secs_f64();
    println!("moved {} records to Postgres and compared them in {copied:.0} s", moved.records);
    let started = Instant::now();
    let engine = Engine::open(postgres).await.unwrap();
    embed_all(&engine).await;
    let embedded = started.elapsed().as_secs_f64();
    let started = Instant::now();
    build_deferred(postgres, |_, _| {}).await.unwrap();
    let indexed = started.elapsed().as_secs_f64();
    println!("its vectors took {embedded:.0} s, their indexes {indexed:.0} s");
    json!({
        "messages": messages, "records": moved.records, "seconds": copied,
        "embedding_seconds": embedded, "index_seconds": indexed,
    })
}

async fn embed_all(engine: &Engine) -> u64 {
    let Some(embeddings) = &engine.embeddings else {
        panic!("the default configuration has an embedder");
    };
    let (mut texts, mut page) = (0, PageRequest::first(MAX_PAGE).unwrap());
    loop {
        let scopes = engine.store.scopes(&page).await.unwrap();
        for (scope, _) in &scopes.items {
            loop {
                let done = embeddings.catch_up(scope, 16_384).await.unwrap();
                texts += done as u64;
                if done < 16_384 {
                    break;
                }
            }
        }
        match scopes.next_cursor {
            Some(cursor) => page = PageRequest::first(MAX_PAGE).unwrap().after(&cursor).unwrap(),
            None => return texts,
        }
    }
}

async fn assembly(
    corpus: &Corpus,
    messages: usize,
    all: &[Combination],
    engines: &[Engine],
) -> Value {
    let mut report = Map::new();
    for (name, scope, count) in scopes(messages) {
        let mut milliseconds = vec![Vec::new(); engines.len()];
        for round in 0..=10 {
            for (at, question) in corpus.questions().iter().enumerate() {
                // In turn, for the first on a store reads what the next ones find in memory.
                for nth in 0..engines.len() {
                    let which = (nth + at + round) % engines.len();
                    let elapsed = ask(&engines[which], &scope, at, question).await;
                    // The first round fills caches.
                    if round > 0 {
                        milliseconds[which].push(elapsed.as_secs_f64() * 1e3);
                    }
                }
            }
        }
        println!("\nassembly, 3,000 tokens, a scope of {count} of {messages} messages, ms");
        report.insert(name.to_owned(), rows(all, milliseconds));
    }
    report.into()
}

async fn appends(corpus: &Corpus, run: &str, all: &[Combination], engines: &[Engine]) -> Value {
    let mut report = Map::new();
    for (name, writers, shared) in [
        ("one writer", 1, true),
        ("eight writers", 8, false),
        ("eight writers of one scope", 8, true),
    ] {
        println!("\ndurable appends of one message, {name}, ms");
        let mut results = Vec::new();
        let mut rates = Vec::new();
        for (at, engine) in engines.iter().enumerate() {
            let started = Instant::now();
            let tasks = (0..writers).map(|writer| {
                let scope = if shared { 0 } else { writer };
                let user = format!("{run}-{at}-{name}-{scope}").replace(' ', "-");
                let scope = Scope::new("writers", &user, None).unwrap();
                let mut rng = fastrand::Rng::with_seed(writer as u64);
                let count = APPENDS / writers;
                let messages: Vec<NewMessage> =
                    (0..count).map(|at| corpus.message(&mut rng, at)).collect();
                let engine = engine.clone();
                tokio::spawn(async move { write(&engine, &scope, writer, messages).await })
            });
            let mut milliseconds = Vec::new();
            for task in tasks.collect::<Vec<_>>() {
                milliseconds.extend(task.await.unwrap());
            }
            rates.push(milliseconds.len() as f64 / started.elapsed().as_secs_f64());
            results.push(milliseconds);
        }
        let mut told = rows(all, results);
        for (combination, rate) in all.iter().zip(rates) {
            println!("{:<26} {rate:>8.0} a second", combination.name);
            told[combination.name]["per_second"] = rate.into();
        }
        report.insert(name.to_owned(), told);
    }
    report.into()
}

/// Prints a line for each combination.
fn rows(all: &[Combination], milliseconds: Vec<Vec<f64>>) -> Value {
    let mut report = Map::new();
    for (combination, milliseconds) in all.iter().zip(milliseconds) {
        let found = Quantiles::of(milliseconds);
        println!("{:<26} {:>8.2}{:>8.2}{:>8.2}", combination.name, found.p50, found.p90, found.p99);
        report.insert(combination.name.to_owned(), found.json());
    }
    report.into()
}
