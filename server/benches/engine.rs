//! The engine's benchmark: embedding, recall of facts, assembly over growing scopes, with and without
//! other tenants beside them, durable appends, the lag from write to recall, size on disk and memory; and
//! where they are asked for, the combinations of stores and the service under load.
//! `cargo xtask bench` runs it; JSON goes to
//! `--json FILE`, a table to standard output.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark has no caller to hand an error to"
)]

mod corpus;
mod http;
#[cfg(feature = "live-tests")]
mod stores;
mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use corpus::Corpus;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use throughline_core::Scope;
use throughline_core::access::Actor;
use throughline_core::context::Source;
use throughline_core::ids::SessionId;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::session::NewMessage;
use throughline_engine::compose::Engine;
use throughline_engine::config::{Config, Layers};

use support::{BATCH, Quantiles, SESSION, append, ask, fill_scope, write};

/// Tenants beside the scope that is measured.
const TENANTS: usize = 100;

struct Options {
    json: Option<String>,
    quick: bool,
    only: Option<String>,
    keep: Option<PathBuf>,
    messages: Option<usize>,
    load: http::Load,
}

fn main() {
    let load = http::Load { mode: None, seconds: 30, clients: 64 };
    let mut options =
        Options { json: None, quick: false, only: None, keep: None, messages: None, load };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => options.json = args.next(),
            "--quick" => options.quick = true,
            "--only" => options.only = args.next(),
            "--messages" => options.messages = args.next().and_then(|count| count.parse().ok()),
            "--keep" => options.keep = args.next().map(PathBuf::from),
            "--mode" => options.load.mode = args.next(),
            "--seconds" => options.load.seconds = number(args.next()),
            "--clients" => options.load.clients = number(args.next()),
            // One of several processes of a measurement.
            #[cfg(feature = "live-tests")]
            "--child" => {
                let args: Vec<String> = args.collect();
                return runtime().block_on(stores::child(&Corpus::new(), &args));
            }
            // What cargo adds of its own.
            "--bench" => {}
            other => panic!(
                "unknown argument {other}: --json FILE, --quick, --only PART, of the large scope \
                 and of stores --keep DIR, of them and of appends --messages N, and of http --mode \
                 MODE, --seconds N and --clients N are known"
            ),
        }
    }
    let report = runtime().block_on(run(&options));
    let text = serde_json::to_string_pretty(&report).unwrap();
    if let Some(path) = &options.json {
        if let Some(parent) = Path::new(path).parent() {
            std::fs::create_dir_all(parent).unwrap();
        }
        std::fs::write(path, text).unwrap();
    }
    if report.pointer("/http/sound") == Some(&false.into()) {
        std::process::exit(1);
    }
}

fn number<T: std::str::FromStr>(given: Option<String>) -> T {
    let given = given.unwrap_or_default();
    given.parse().unwrap_or_else(|_| panic!("`{given}` is no number"))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap()
}

async fn run(options: &Options) -> Value {
    let corpus = Corpus::new();
    let quick = options.quick;
    let mut report = json!({"quick": quick});
    let wanted = |part: &str| options.only.as_deref().is_none_or(|only| only == part);
    if wanted("embedding") {
        report["embedding"] = embedding(&corpus).await;
    }
    if wanted("facts") {
        report["facts"] = facts(if quick { 6_000 } else { 20_000 }, quick).await;
    }
    if wanted("assembly") {
        report["assembly"] = assembly(&corpus, quick).await;
    }
    if wanted("large") {
        report["large"] = large(&corpus, options).await;
    }
    if wanted("appends") {
        report["appends"] =
            appends(&corpus, options.messages.unwrap_or(if quick { 2_000 } else { 20_000 })).await;
    }
    if wanted("lag") {
        report["lag"] = lag(&corpus, if quick { 500 } else { 10_000 }).await;
    }
    // Only where it is asked for: it needs servers.
    #[cfg(feature = "live-tests")]
    if options.only.as_deref() == Some("stores") {
        let folder = tempfile::tempdir().unwrap();
        let folder = options.keep.as_deref().unwrap_or(folder.path());
        let messages = options.messages.unwrap_or(if quick { 5_000 } else { 100_000 });
        report["stores"] = stores::run(&corpus, messages, folder).await;
    }
    // It measures other processes.
    if options.only.as_deref() == Some("http") {
        report["http"] = http::run(&corpus, &options.load).await;
        return report;
    }
    let memory = peak_memory();
    println!("\npeak memory of the whole run: {:.0} MiB", memory as f64 / 1024.0);
    report["peak_memory_kib"] = memory.into();
    report
}

/// Texts of a dozen words through the default embedder, on one core.
async fn embedding(corpus: &Corpus) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let Some(embeddings) = &engine.embeddings else {
        panic!("the default configuration has an embedder");
    };
    let mut rng = fastrand::Rng::with_seed(3);
    let texts: Vec<String> = (0..20_000)
        .map(|at| {
            let words = corpus.message(&mut rng, at).content;
            words.split(' ').take(12).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let started = Instant::now();
    for text in &texts {
        std::hint::black_box(embeddings.question(text).await.unwrap());
    }
    let per_second = texts.len() as f64 / started.elapsed().as_secs_f64();
    println!("embedding: {per_second:.0} texts of 12 words a second on one core");
    json!({"texts_per_second": per_second, "space": embeddings.space().id})
}

/// Recall among the facts of one scope.
async fn facts(count: usize, quick: bool) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let scope = Scope::new("bench", "facts", None).unwrap();
    let mut rng = fastrand::Rng::with_seed(4);
    let by = (Actor::Api, &scope);
    let tell = async |fact| engine.facts.remember(&scope, fact, by, None).await.map(drop);
    let told = stream::iter(corpus::statements(&mut rng, count)).map(Ok);
    told.try_for_each_concurrent(64, tell).await.unwrap();
    let held = engine.store.totals(&scope).await.unwrap().facts;
    let mut milliseconds = Vec::new();
    for round in 0..if quick { 3 } else { 20 } {
        for question in corpus::questions_of_statements() {
            let started = Instant::now();
            let found = engine.contexts.recall_facts(&scope, &question, 10).await.unwrap();
            if round > 0 {
                milliseconds.push(started.elapsed().as_secs_f64() * 1e3);
            }
            assert!(!found.is_empty(), "{question}");
        }
    }
    let found = Quantiles::of(milliseconds);
    println!(
        "recall among {held} facts, ms: p50 {:.2}, p90 {:.2}, p99 {:.2}\n",
        found.p50, found.p90, found.p99
    );
    json!({"facts": held, "ms": found.json()})
}

/// Assembly over growing scopes, alone and beside a million messages of others.
async fn assembly(corpus: &Corpus, quick: bool) -> Value {
    let sizes: &[usize] =
        if quick { &[100, 1_000, 10_000] } else { &[100, 1_000, 10_000, 100_000] };
    let others = if quick { 50_000 } else { 1_000_000 };
    let alone = tempfile::tempdir().unwrap();
    let beside = tempfile::tempdir().unwrap();
    let crowded = open(beside.path()).await;
    let started = Instant::now();
    fill_others(&crowded, corpus, others).await;
    let fill = started.elapsed();
    println!(
        "filled a store with {others} messages of other tenants in {:.1} s ({:.0} a second, in \
         batches of {BATCH})\n",
        fill.as_secs_f64(),
        others as f64 / fill.as_secs_f64()
    );
    println!("assembly, 3,000 tokens, ms            alone                     beside others");
    println!(
        "messages in scope          p50     p90     p99        p50     p90     p99   p99 ratio"
    );
    let mut rows = Vec::new();
    for size in sizes {
        let single = open(&alone.path().join(size.to_string())).await;
        let scope = measured(*size);
        fill_scope(&single, &scope, corpus, *size, 1).await;
        fill_interleaved(&crowded, &scope, corpus, *size).await;
        let (a, b) = measure_pair(&single, &crowded, &scope, corpus, quick).await;
        println!(
            "{size:>17}      {:>8.2}{:>8.2}{:>8.2}   {:>8.2}{:>8.2}{:>8.2}   {:>9.2}",
            a.p50,
            a.p90,
            a.p99,
            b.p50,
            b.p90,
            b.p99,
            b.p99 / a.p99
        );
        rows.push(json!({
            "messages": size, "alone_ms": a.json(), "beside_ms": b.json(),
            "ratio": {"p50": b.p50 / a.p50, "p90": b.p90 / a.p90, "p99": b.p99 / a.p99},
        }));
    }
    let cold = measure_cold(beside.path(), sizes, corpus).await;
    println!(
        "first turns after opening the crowded store, of every scope: p50 {:.2}, p99 {:.2}",
        cold.p50, cold.p99
    );
    let total = crowded_messages(&crowded, sizes).await;
    let bytes = size_on_disk(beside.path());
    let bytes_per_message = bytes as f64 / total as f64;
    println!(
        "on disk: {bytes_per_message:.0} bytes a message ({total} messages of about 40 words)\n"
    );
    json!({
        "others": others,
        "bulk_import_per_second": others as f64 / fill.as_secs_f64(),
        "rows": rows,
        "cold_ms": cold.json(),
        "bytes_per_message": bytes_per_message,
    })
}

/// Assembly over one scope of a million messages.
async fn large(corpus: &Corpus, options: &Options) -> Value {
    let messages = options.messages.unwrap_or(if options.quick { 50_000 } else { 1_000_000 });
    let folder = tempfile::tempdir().unwrap();
    let engine = open(options.keep.as_deref().unwrap_or(folder.path())).await;
    let scope = measured(messages);
    let started = Instant::now();
    if engine.store.totals(&scope).await.unwrap().messages == 0 {
        fill_scope(&engine, &scope, corpus, messages, 1).await;
    }
    println!(
        "one scope of {messages} messages was filled in {:.0} s",
        started.elapsed().as_secs_f64()
    );
    let before = resident_memory();
    let mut milliseconds = Vec::new();
    let mut first = Vec::new();
    for round in 0..=if options.quick { 3 } else { 25 } {
        for (at, question) in corpus.questions().iter().enumerate() {
            let elapsed = ask(&engine, &scope, at, question).await.as_secs_f64() * 1e3;
            if round == 0 { &mut first } else { &mut milliseconds }.push(elapsed);
        }
    }
    let (found, first) = (Quantiles::of(milliseconds), Quantiles::of(first));
    let grown = resident_memory().saturating_sub(before);
    println!(
        "assembly in one scope of {messages} messages, ms: p50 {:.2}, p90 {:.2}, p99 {:.2}; first \
         round p50 {:.2}, p99 {:.2}; memory grew by {} MiB\n",
        found.p50,
        found.p90,
        found.p99,
        first.p50,
        first.p99,
        grown / 1_024
    );
    json!({
        "messages": messages, "ms": found.json(), "first_ms": first.json(),
        "grown_kib": grown,
    })
}

async fn appends(corpus: &Corpus, total: usize) -> Value {
    println!("durable appends of one 40-word message (synchronous=FULL)");
    let mut rows = Vec::new();
    for writers in [1, 8] {
        let result = measure_appends(corpus, writers, total).await;
        println!(
            "{writers} writers: {:>7.0} a second, p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms; {} \
             messages, {} facts",
            result.per_second,
            result.latency.p50,
            result.latency.p90,
            result.latency.p99,
            result.count,
            result.facts,
        );
        rows.push(json!({
            "writers": writers, "per_second": result.per_second, "ms": result.latency.json(),
            "messages": result.count, "facts": result.facts,
        }));
    }
    Value::Array(rows)
}

/// Every message is asked for in the call after its append: by a word of its own, and by its vector.
async fn lag(corpus: &Corpus, total: usize) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    let scope = Scope::new("bench", "lag", None).unwrap();
    let Some(embeddings) = &engine.embeddings else {
        panic!("the default configuration has an embedder");
    };
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut by_word, mut by_meaning) = (0, 0);
    let mut missed = Vec::new();
    for at in 0..total {
        let marker = format!("marker{at}");
        let mut message = corpus.message(&mut rng, at);
        message.content = format!("{} {marker}", message.content);
        let content = message.content.clone();
        let session = SessionId::new(format!("session-{}", at / SESSION)).unwrap();
        let applied = engine.sessions.append(&scope, &session, vec![message]).await.unwrap();
        let number = u32::try_from(at / SESSION + 1).unwrap();
        let question = format!("what about {marker}?");
        let request = AssembleRequest::new(SessionId::new("asking").unwrap(), question);
        let context = engine.contexts.assemble(&scope, &request).await.unwrap();
        let (_, rest) = context.working_set.split_last().unwrap();
        if rest.iter().any(|message| message.content.contains(&marker)) {
            by_word += 1;
        } else {
            let source = Source::Message(applied[0].id);
            let fates = context.items.iter().filter(|item| item.source == source);
            let fates = fates.map(|item| format!("{:?} {:?}", item.outcome, item.reason));
            missed.push(json!({"said": content, "fates": fates.collect::<Vec<_>>()}));
        }
        let vector = embeddings.question(&content).await.unwrap().unwrap_or_default();
        let near = embeddings.nearest(&scope, Namespace::Message, &vector, 1, &[]).await.unwrap();
        let key = UnitKey::message(number, applied[0].position);
        by_meaning += usize::from(near.first().is_some_and(|hit| hit.key == key));
    }
    println!(
        "\nof {total} messages, recalled by the call after their append: {by_word} by a word, \
         {by_meaning} as the nearest in meaning"
    );
    for missed in missed.iter().take(5) {
        println!("not recalled by a word: {missed}");
    }
    json!({"messages": total, "by_word": by_word, "by_meaning": by_meaning, "missed": missed})
}

/// The engine of the environment's settings (`THROUGHLINE_STORE` and so on), with its files at `path`.
async fn open(path: &Path) -> Engine {
    let config = Layers::default().load().unwrap();
    Engine::open(&Config { data_dir: path.to_owned(), ..config }).await.unwrap()
}

async fn fill_others(engine: &Engine, corpus: &Corpus, messages: usize) {
    for tenant in 0..TENANTS {
        let scope = other(tenant);
        fill_scope(engine, &scope, corpus, messages / TENANTS, 1_000 + tenant as u64).await;
    }
}

fn other(tenant: usize) -> Scope {
    Scope::new(&format!("other-{tenant}"), "user", None).unwrap()
}

/// As in life, others write between the scope's own appends, so that its rows do not lie together.
async fn fill_interleaved(engine: &Engine, scope: &Scope, corpus: &Corpus, messages: usize) {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut noise = fastrand::Rng::with_seed(2);
    for start in (0..messages).step_by(BATCH) {
        append(engine, scope, corpus, &mut rng, start..messages.min(start + BATCH)).await;
        let held = engine.store.totals(&other(start / BATCH % TENANTS)).await.unwrap().messages;
        let from = usize::try_from(held).unwrap();
        let tenant = other(start / BATCH % TENANTS);
        append(engine, &tenant, corpus, &mut noise, from..from + BATCH).await;
    }
}

async fn crowded_messages(engine: &Engine, sizes: &[usize]) -> u64 {
    let mut total = 0;
    let own = sizes.iter().map(|size| measured(*size));
    for scope in (0..TENANTS).map(other).chain(own) {
        total += engine.store.totals(&scope).await.unwrap().messages;
    }
    total
}

/// The scope of a size.
fn measured(size: usize) -> Scope {
    Scope::new("bench", &format!("user-{size}"), None).unwrap()
}

/// Every question once, of a store that was just opened: its own caches are empty.
async fn measure_cold(path: &Path, sizes: &[usize], corpus: &Corpus) -> Quantiles {
    let mut milliseconds = Vec::new();
    for size in sizes {
        let engine = open(path).await;
        for (at, question) in corpus.questions().iter().enumerate() {
            let elapsed = ask(&engine, &measured(*size), at, question).await;
            milliseconds.push(elapsed.as_secs_f64() * 1e3);
        }
    }
    Quantiles::of(milliseconds)
}

/// Asks every question of both stores in turn, so that both see the same machine.
async fn measure_pair(
    single: &Engine,
    crowded: &Engine,
    scope: &Scope,
    corpus: &Corpus,
    quick: bool,
) -> (Quantiles, Quantiles) {
    let rounds = if quick { 5 } else { 25 };
    let mut alone = Vec::new();
    let mut beside = Vec::new();
    for round in 0..=rounds {
        for (at, question) in corpus.questions().iter().enumerate() {
            let a = ask(single, scope, at, question).await;
            let b = ask(crowded, scope, at, question).await;
            // The first round fills caches.
            if round > 0 {
                alone.push(a.as_secs_f64() * 1e3);
                beside.push(b.as_secs_f64() * 1e3);
            }
        }
    }
    (Quantiles::of(alone), Quantiles::of(beside))
}

struct Appends {
    per_second: f64,
    latency: Quantiles,
    count: usize,
    facts: u64,
}

/// `writers` tasks append one message at a time to a session each, all in one scope.
async fn measure_appends(corpus: &Corpus, writers: usize, total: usize) -> Appends {
    let folder = tempfile::tempdir().unwrap();
    let engine = open(folder.path()).await;
    // A store on a server holds what an earlier run wrote.
    let run = folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
    let scope = Scope::new("bench", &format!("writer-{run}"), None).unwrap();
    let each = total / writers;
    let ready = Arc::new(tokio::sync::Barrier::new(writers + 1));
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (engine, scope, ready) = (engine.clone(), scope.clone(), Arc::clone(&ready));
            let mut rng = fastrand::Rng::with_seed(writer as u64);
            let messages: Vec<NewMessage> =
                (0..each).map(|at| corpus.message(&mut rng, at)).collect();
            tokio::spawn(async move {
                ready.wait().await;
                write(&engine, &scope, writer, messages).await
            })
        })
        .collect();
    ready.wait().await;
    let started = Instant::now();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.unwrap());
    }
    let elapsed = started.elapsed();
    let held = engine.store.totals(&scope).await.unwrap();
    assert_eq!(held.messages, (each * writers) as u64);
    Appends {
        per_second: latencies.len() as f64 / elapsed.as_secs_f64(),
        count: latencies.len(),
        latency: Quantiles::of(latencies),
        facts: held.facts,
    }
}

fn size_on_disk(folder: &Path) -> u64 {
    std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .map(|metadata| metadata.len())
        .sum()
}

/// Peak resident memory of this process in KiB, where the system tells.
fn peak_memory() -> u64 {
    memory("VmHWM:")
}

/// Resident memory of this process in KiB, where the system tells.
fn resident_memory() -> u64 {
    memory("VmRSS:")
}

fn memory(line: &str) -> u64 {
    memory_of("self", line)
}

/// A number of the status of a process.
pub(crate) fn memory_of(process: &str, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|found| found.strip_prefix(line)?.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}
