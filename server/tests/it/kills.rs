//! Engines whose servers are killed, restored from old snapshots, full or read-only: what is acknowledged
//! stays, a turn is answered meanwhile, and all of it is there again afterwards.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use throughline_core::context::AssembledContext;
use throughline_core::ids::{ExternalId, SessionId};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::services::embeddings::Reconciled;
use throughline_core::session::{NewMessage, Role};
use throughline_core::{ErrorKind, Scope};
use throughline_engine::compose::Engine;
use throughline_engine::config::{CacheKind, Config, Secret, VectorIndexKind};

use crate::own::{Qdrant, Redis};

const MESSAGES: Namespace = Namespace::Message;
/// For something that happens in milliseconds on an idle machine.
const SOON: Duration = Duration::from_secs(30);

/// An engine with its data in `folder` and its vectors in Qdrant.
async fn engine(folder: &Path, qdrant: &Qdrant) -> Engine {
    let mut config = Config { data_dir: folder.to_owned(), ..Config::default() };
    config.vector_index = VectorIndexKind::Qdrant;
    config.qdrant.url = qdrant.url();
    config.qdrant.timeout_ms = 2_000;
    Engine::open(&config).await.unwrap()
}

fn scope(user: &str) -> Scope {
    Scope::new("acme", user, None).unwrap()
}

/// The n-th message: none of another's words beside those that all have.
fn said(n: usize) -> NewMessage {
    const WHO: [&str; 8] =
        ["kitten", "surgeon", "violin", "glacier", "tractor", "lawyer", "pepper", "satellite"];
    const WHERE: [&str; 9] = [
        "cellar", "harbour", "cathedral", "orchard", "airport", "library", "desert", "kitchen",
        "tunnel",
    ];
    let (who, place) = (WHO[n % WHO.len()], WHERE[n / WHO.len() % WHERE.len()]);
    let content = format!("Parcel PX-{n:05}: the {who} waits in the {place}.");
    let external_id = Some(ExternalId::new(format!("m{n}")).unwrap());
    NewMessage { external_id, ..NewMessage::new(Role::Assistant, content) }
}

async fn append(engine: &Engine, of: &Scope, numbers: std::ops::Range<usize>) {
    let session = SessionId::new("s").unwrap();
    for first in numbers.clone().step_by(50) {
        let batch = (first..numbers.end.min(first + 50)).map(said).collect();
        engine.sessions.append(of, &session, batch).await.unwrap();
    }
}

async fn asked(engine: &Engine, of: &Scope, turn: &str) -> AssembledContext {
    let request = AssembleRequest::new(SessionId::new("now").unwrap(), turn);
    engine.contexts.assemble(of, &request).await.unwrap()
}

fn shown(context: &AssembledContext) -> String {
    context.payload().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n")
}

async fn until(what: &str, is_true: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < SOON, "{what}");
        tokio::time::sleep(Duration::from_millis(2)).await; // tidy: sleep: between two looks
    }
}

/// What `throughline worker --once` does.
async fn work(engine: &Engine) {
    let embeddings = engine.embeddings.as_ref().unwrap();
    embeddings.enqueue_behind().await.unwrap();
    while embeddings.work(4).await.unwrap().jobs > 0 {}
}

/// The texts of a scope, by their keys.
async fn texts(engine: &Engine, of: &Scope, namespace: Namespace) -> BTreeMap<UnitKey, String> {
    let (mut all, mut after) = (BTreeMap::new(), 0);
    loop {
        let found = engine.store.texts_after(of, namespace, after, 500).await.unwrap();
        let Some(last) = found.last() else { return all };
        after = last.seq;
        all.extend(found.into_iter().map(|text| (text.key, text.text)));
    }
}

/// The index holds each text of the store once and nothing else, and finds each by its own vector.
async fn complete(engine: &Engine, of: &Scope) {
    let (index, embeddings) =
        (engine.beside.index.as_ref().unwrap(), engine.embeddings.as_ref().unwrap());
    assert_eq!(embeddings.waiting(of).await.unwrap(), 0, "nothing waits");
    for namespace in [MESSAGES, Namespace::Fact] {
        let texts = texts(engine, of, namespace).await;
        let held = index.keys(of, namespace, embeddings.space(), None, usize::MAX >> 1).await;
        assert!(held.unwrap().iter().eq(texts.keys()), "keys of {namespace:?}");
        for (key, text) in &texts {
            let question = embeddings.question(text).await.unwrap().unwrap();
            let space = embeddings.space();
            let found = index.search(of, namespace, space, &question, 1, &[*key]).await.unwrap();
            let own = found.iter().find(|hit| hit.key == *key);
            assert!(own.is_some_and(|hit| hit.score > 0.999), "{text}: {own:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appends_go_on_while_qdrant_is_killed_and_it_is_complete_again() {
    let (folder, mut qdrant) = (TempDir::new().unwrap(), Qdrant::start());
    let engine = engine(folder.path(), &qdrant).await;
    let ana = scope("ana");
    append(&engine, &ana, 0..200).await;
    let (acknowledged, ended) = (Arc::new(AtomicUsize::new(200)), Arc::new(AtomicBool::new(false)));
    let writer = tokio::spawn({
        let (engine, ana) = (engine.clone(), ana.clone());
        let (acknowledged, ended) = (Arc::clone(&acknowledged), Arc::clone(&ended));
        async move {
            while !ended.load(Ordering::Relaxed) {
                let first = acknowledged.load(Ordering::Relaxed);
                append(&engine, &ana, first..first + 5).await;
                acknowledged.store(first + 5, Ordering::Relaxed);
            }
        }
    });
    for kill in 0..3 {
        let embedded = Arc::new(AtomicUsize::new(0));
        let upserts = tokio::spawn({
            let (engine, ana, embedded) = (engine.clone(), ana.clone(), Arc::clone(&embedded));
            async move {
                let embeddings = engine.embeddings.unwrap();
                loop {
                    match embeddings.catch_up(&ana, 16).await {
                        Ok(texts) => embedded.fetch_add(texts, Ordering::Relaxed),
                        Err(error) => return error,
                    };
                }
            }
        });
        until("texts are embedded", || {
            upserts.is_finished() || embedded.load(Ordering::Relaxed) > 100
        })
        .await;
        assert!(!upserts.is_finished(), "before the kill: {:?}", upserts.await);
        qdrant.kill();
        let error = upserts.await.unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        // Whoever appends does not notice.
        let before = acknowledged.load(Ordering::Relaxed);
        until("appends go on", || acknowledged.load(Ordering::Relaxed) > before + 50).await;
        let context = asked(&engine, &ana, "Where is parcel PX-00007?").await;
        assert!(shown(&context).contains("PX-00007: the satellite waits in the cellar."), "{kill}");
        let warnings = context.budget.warnings.join(" ");
        assert!(warnings.contains("recall used keyword search only"), "{kill}: {warnings}");
        let health = engine.health(false).await.unwrap();
        let problems: Vec<&String> = health.iter().flat_map(|one| &one.problems).collect();
        assert!(problems.len() == 1 && problems[0].contains("start it"), "{problems:?}");
        qdrant.up();
    }
    ended.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    // The same engine goes on by itself.
    work(&engine).await;
    complete(&engine, &ana).await;
    let said = texts(&engine, &ana, MESSAGES).await.len();
    assert_eq!(said, acknowledged.load(Ordering::Relaxed), "what was acknowledged is there");
    let mended = engine.embeddings.as_ref().unwrap().reconcile(&ana).await.unwrap();
    assert_eq!(mended, Reconciled::default(), "there is nothing to mend");
    let context = asked(&engine, &ana, "Where is parcel PX-00007?").await;
    assert_eq!(context.budget.warnings, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn old_snapshot_is_completed_and_restores_nothing_erased() {
    let (folder, qdrant) = (TempDir::new().unwrap(), Qdrant::start());
    let engine_of_ana = engine(folder.path(), &qdrant).await;
    let (engine, ana, bea) = (engine_of_ana, scope("ana"), scope("bea"));
    append(&engine, &ana, 0..300).await;
    // Bea is in the index and not in the store, as one who was erased after the snapshot.
    let elsewhere = TempDir::new().unwrap();
    let before = self::engine(elsewhere.path(), &qdrant).await;
    append(&before, &bea, 0..40).await;
    work(&before).await;
    complete(&before, &bea).await;
    work(&engine).await;
    complete(&engine, &ana).await;
    let collections = qdrant.collections();
    let [collection] = collections.as_slice() else { panic!("{collections:?}") };
    let snapshot = qdrant.snapshot(collection);
    append(&engine, &ana, 300..420).await;
    work(&engine).await;
    complete(&engine, &ana).await;
    let (index, embeddings) =
        (engine.beside.index.clone().unwrap(), engine.embeddings.clone().unwrap());
    index.forget(&bea).await.unwrap();
    let space = embeddings.space();
    assert_eq!(index.watermark(&ana, MESSAGES, space).await.unwrap(), 420);

    qdrant.restore(collection, &snapshot);
    // The watermark came back with the vectors.
    assert_eq!(index.watermark(&ana, MESSAGES, space).await.unwrap(), 300);
    assert_eq!(embeddings.waiting(&ana).await.unwrap(), 120);
    // The next call finds by meaning what the snapshot does not know.
    let question = embeddings.question(&said(411).content).await.unwrap().unwrap();
    let near = embeddings.nearest(&ana, MESSAGES, &question, 1, &[]).await.unwrap();
    let texts = texts(&engine, &ana, MESSAGES).await;
    assert_eq!(texts[&near[0].key], said(411).content);
    work(&engine).await;
    complete(&engine, &ana).await;
    assert_eq!(embeddings.reconcile(&ana).await.unwrap(), Reconciled::default());

    // What the snapshot brought back of Bea is shown to nobody, and goes when she begins anew.
    assert_eq!(index.watermark(&bea, MESSAGES, space).await.unwrap(), 40);
    let context = asked(&engine, &bea, "Where is parcel PX-00007?").await;
    assert!(!shown(&context).contains("satellite"), "{}", shown(&context));
    append(&engine, &bea, 0..1).await;
    assert!(embeddings.reconcile(&bea).await.unwrap().read_anew);
    complete(&engine, &bea).await;
    let context = asked(&engine, &bea, "Where is parcel PX-00007?").await;
    assert!(!shown(&context).contains("satellite"), "{}", shown(&context));
}

/// Turns of sessions whose heads Redis keeps.
struct Sessions {
    ana: Scope,
    /// Without a cache, and with Redis, on one store.
    engines: [Engine; 2],
    appended: usize,
}

impl Sessions {
    const COUNT: usize = 8;

    fn id(n: usize) -> SessionId {
        SessionId::new(format!("s{n}")).unwrap()
    }

    async fn start(folder: &Path, redis: &Redis) -> Self {
        let plain = Config { data_dir: folder.to_owned(), ..Config::default() };
        let mut cached = plain.clone();
        cached.cache = CacheKind::Redis;
        cached.redis.url = Secret::new(redis.url());
        let engines = [Engine::open(&plain).await.unwrap(), Engine::open(&cached).await.unwrap()];
        let mut sessions = Self { ana: scope("ana"), engines, appended: 0 };
        for n in 0..Self::COUNT {
            sessions.append(n, 3).await;
        }
        sessions
    }

    /// Messages to one session, by the engine that has no cache to tell.
    async fn append(&mut self, n: usize, count: usize) {
        let first = self.appended;
        self.appended += count;
        let batch = (first..first + count).map(said).collect();
        self.engines[0].sessions.append(&self.ana, &Self::id(n), batch).await.unwrap();
    }

    /// A turn in each of some sessions has the same context from both engines.
    async fn agree(&self, sessions: impl IntoIterator<Item = usize>, when: &str) {
        for n in sessions {
            let request = AssembleRequest::new(Self::id(n), "Where is the parcel of the kitten?");
            let [plain, cached] = self.engines.each_ref().map(|engine| &engine.contexts);
            let expected = plain.assemble(&self.ana, &request).await.unwrap();
            // Once from the store, and once from what was kept.
            for _ in 0..2 {
                let found = cached.assemble(&self.ana, &request).await.unwrap();
                assert!(found == expected, "{when}: another context of session {n}");
            }
        }
    }

    /// What health says of Redis.
    async fn problems(&self) -> Vec<String> {
        let health = self.engines[1].health(false).await.unwrap();
        health.into_iter().flat_map(|one| one.problems).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn contexts_are_the_same_whatever_redis_evicts_refuses_or_lost() {
    let (folder, mut redis) = (TempDir::new().unwrap(), Redis::start());
    let mut sessions = Sessions::start(folder.path(), &redis).await;
    let used = |redis: &Redis| redis.counted("keyspace_hits");
    let before = used(&redis);
    sessions.agree(0..3, "in order").await;
    assert!(used(&redis) > before, "heads come from Redis");
    assert_eq!(sessions.problems().await, Vec::<String>::new());

    // It makes room for what others write: what it evicts is read from the store.
    redis.command("CONFIG SET maxmemory-policy allkeys-lru");
    redis.command("CONFIG SET maxmemory 2mb");
    for round in 0..3 {
        for n in 0..40 {
            redis.command(&format!("SET other{n} {}", "x".repeat(60_000)));
        }
        sessions.append(round, 1).await;
        sessions.agree(0..Sessions::COUNT, "evicting").await;
    }
    assert!(redis.counted("evicted_keys") > 100, "nothing was evicted");
    assert_eq!(sessions.problems().await, Vec::<String>::new());

    // It may not make room.
    redis.command("CONFIG SET maxmemory-policy noeviction");
    redis.command("CONFIG SET maxmemory 1mb");
    sessions.append(3, 1).await;
    sessions.agree([3, 4], "full").await;
    let problems = sessions.problems().await;
    assert!(problems.len() == 1 && problems[0].contains("memory"), "{problems:?}");
    redis.command("CONFIG SET maxmemory 0");

    // It is a replica of one that is away, which keeps what it had.
    redis.command("REPLICAOF 127.0.0.1 1");
    sessions.append(0, 1).await;
    sessions.agree(0..3, "read-only").await;
    let problems = sessions.problems().await;
    assert!(problems.len() == 1 && problems[0].contains("primary"), "{problems:?}");
    redis.command("REPLICAOF NO ONE");
    sessions.agree(0..3, "promoted").await;
    assert_eq!(sessions.problems().await, Vec::<String>::new());

    // It is away, and comes back empty.
    for _ in 0..2 {
        redis.kill();
        sessions.append(1, 1).await;
        sessions.agree(0..3, "away").await;
        let problems = sessions.problems().await;
        assert!(problems.len() == 1 && problems[0].contains("Redis"), "{problems:?}");
        redis.up();
        let begun = Instant::now();
        while used(&redis) == 0 {
            sessions.agree(0..3, "back").await;
            assert!(begun.elapsed() < SOON, "it is used again by itself");
        }
        assert_eq!(sessions.problems().await, Vec::<String>::new());
    }
}
