//! How sessions end, and what becomes of them while the cache that replicas share is away.

use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{ClientCapabilities, Implementation};
use serde_json::json;
use throughline_core::ports::Health;
use throughline_engine::admission::AdmissionControl;
use throughline_engine::app::App;
use throughline_engine::compose::Engine;
use throughline_engine::config::{Config, EmbedderKind, McpConfig};
use throughline_testkit::FakeClock;
use throughline_testkit::memory::MemoryCache;

use super::*;
use crate::mcp::{Around, Options, Server, ToolSet, routes};

/// A cache that can be away.
struct Remote {
    cache: MemoryCache,
    is_away: AtomicBool,
}

impl Remote {
    fn new(clock: &Arc<FakeClock>) -> Arc<Self> {
        let cache = MemoryCache::new(Arc::clone(clock) as _);
        Arc::new(Self { cache, is_away: AtomicBool::new(false) })
    }

    fn is_away(&self, away: bool) {
        self.is_away.store(away, Ordering::Relaxed);
    }

    fn reached(&self) -> throughline_core::Result<&MemoryCache> {
        match self.is_away.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Unavailable, "the cache is away")),
            false => Ok(&self.cache),
        }
    }
}

#[async_trait::async_trait]
impl Cache for Remote {
    async fn get(&self, scope: &Scope, key: &str) -> throughline_core::Result<Option<Vec<u8>>> {
        let found = self.reached()?.get(scope, key).await;
        tokio::task::yield_now().await;
        found
    }

    async fn put(
        &self,
        scope: &Scope,
        key: &str,
        value: &[u8],
        ttl: Duration,
        tags: &[&str],
    ) -> throughline_core::Result<()> {
        self.reached()?.put(scope, key, value, ttl, tags).await
    }

    async fn invalidate(&self, scope: &Scope, tag: &str) -> throughline_core::Result<()> {
        self.reached()?.invalidate(scope, tag).await
    }

    async fn cache_health(&self) -> throughline_core::Result<Health> {
        self.reached()?.cache_health().await
    }
}

struct Replica {
    records: Records,
    closed: Arc<Mutex<Vec<String>>>,
    owner: Owner,
}

impl Replica {
    fn new(clock: &Arc<FakeClock>, shared: Option<&Arc<Remote>>) -> Self {
        let shared = shared.map(|shared| Arc::clone(shared) as _);
        let records = Records::new(shared, Arc::clone(clock) as _, Duration::ZERO);
        let closed = Arc::<Mutex<Vec<String>>>::default();
        let closes = Arc::clone(&closed);
        records.serve(
            move |id| {
                closes.lock().unwrap().push(id.to_owned());
                Box::pin(std::future::ready(()))
            },
            CancellationToken::new(),
        );
        let owner = Owner { scope: Scope::new("acme", "ana", None).unwrap(), key: None };
        Self { records, closed, owner }
    }

    async fn begin(&self, id: &str) -> CancellationToken {
        let client = Implementation::new("test", "1");
        let state =
            SessionState::new(InitializeRequestParams::new(ClientCapabilities::default(), client));
        CALLER.scope(self.owner.clone(), self.records.store(id, &state)).await.unwrap();
        self.life(id)
    }

    async fn end(&self, id: &str) {
        CALLER.scope(self.owner.clone(), self.records.delete(id)).await.unwrap();
    }

    async fn uses(&self, id: &str) -> Option<Arc<()>> {
        self.records.used(&self.owner, id).await
    }

    fn life(&self, id: &str) -> CancellationToken {
        self.session(id).life
    }

    fn session(&self, id: &str) -> Session {
        let headers = HeaderMap::from_iter([(SESSION_ID.parse().unwrap(), id.parse().unwrap())]);
        self.records.session(&headers).unwrap()
    }

    fn closed(&self) -> Vec<String> {
        std::mem::take(&mut self.closed.lock().unwrap())
    }
}

fn hour(many: u32) -> Duration {
    many * Duration::from_secs(3_600)
}

#[tokio::test]
async fn evicts_idle_session_over_limit() {
    let clock = Arc::new(FakeClock::default());
    let here = Replica::new(&clock, None);
    let heard = here.begin("0").await;
    let _stream = here.uses("0").await.unwrap();
    let left = here.begin("1").await;
    for nth in 2..MOST_OF_AN_OWNER {
        clock.advance(Duration::from_secs(1));
        here.begin(&nth.to_string()).await;
    }
    assert!(here.closed().is_empty());
    here.begin("more").await;
    assert!(left.is_cancelled() && !heard.is_cancelled());
    assert_eq!(here.closed(), ["1"]);
    assert!(here.uses("1").await.is_none());
}

#[tokio::test]
async fn sessions_of_invented_users_count_for_their_key() {
    let clock = Arc::new(FakeClock::default());
    let mut here = Replica::new(&clock, None);
    for nth in 0..=MOST_OF_A_KEY {
        here.owner.scope = Scope::new("acme", &format!("user{nth}"), None).unwrap();
        clock.advance(Duration::from_millis(1));
        here.begin(&nth.to_string()).await;
    }
    assert_eq!(here.closed(), ["0"]);
}

#[tokio::test]
async fn idle_session_is_unloaded_resumed_and_expires() {
    let clock = Arc::new(FakeClock::default());
    let here = Replica::new(&clock, None);
    let (left, heard) = (here.begin("left").await, here.begin("heard").await);
    let stream = here.uses("heard").await.unwrap();
    let uri = "throughline://contexts".to_owned();
    here.session("left").watched.add(uri, None).unwrap();
    clock.advance(hour(2));
    here.records.tend().await;
    assert!(left.is_cancelled() && !heard.is_cancelled());
    assert_eq!(here.closed(), ["left"]);

    // Its next request finds what it watched.
    assert!(here.uses("left").await.is_some());
    assert!(!here.life("left").is_cancelled());
    assert_eq!(here.session("left").watched.paths(), ["contexts"]);

    drop(stream);
    clock.advance(hour(2));
    here.records.tend().await;
    here.records.tend().await;
    let mut closed = here.closed();
    closed.sort();
    assert_eq!(closed, ["heard", "left"]);
    clock.advance(hour(24));
    assert!(here.uses("heard").await.is_none());
    assert!(here.closed().is_empty());
}

#[tokio::test]
async fn a_session_that_another_replica_ended_ends_here_too() {
    let clock = Arc::new(FakeClock::default());
    let remote = Remote::new(&clock);
    let (here, other) = (Replica::new(&clock, Some(&remote)), Replica::new(&clock, Some(&remote)));
    let life = here.begin("a").await;
    let _stream = here.uses("a").await.unwrap();
    assert!(other.uses("a").await.is_some());
    other.end("a").await;
    assert_eq!(other.closed(), ["a"]);
    assert!(!life.is_cancelled());
    here.records.tend().await;
    assert!(life.is_cancelled());
    assert_eq!(here.closed(), ["a"]);
}

#[tokio::test]
async fn a_session_lives_as_long_as_any_replica_uses_it() {
    let clock = Arc::new(FakeClock::default());
    let remote = Remote::new(&clock);
    let (here, other) = (Replica::new(&clock, Some(&remote)), Replica::new(&clock, Some(&remote)));
    here.begin("a").await;
    for _ in 0..6 {
        clock.advance(hour(11));
        assert!(other.uses("a").await.is_some());
    }
    assert!(here.uses("a").await.is_some());
}

#[tokio::test]
async fn request_after_idle_time_keeps_session_until_it_expires() {
    let clock = Arc::new(FakeClock::default());
    let here = Replica::new(&clock, None);
    let life = here.begin("a").await;
    clock.advance(hour(1) + Duration::from_secs(30));
    // Nobody has looked yet.
    assert!(here.uses("a").await.is_some());
    assert!(!life.is_cancelled() && here.closed().is_empty());
    clock.advance(hour(25));
    assert!(here.uses("a").await.is_none());
}

#[tokio::test]
async fn sessions_start_without_the_cache_and_are_shared_later() {
    let clock = Arc::new(FakeClock::default());
    let remote = Remote::new(&clock);
    let (here, other) = (Replica::new(&clock, Some(&remote)), Replica::new(&clock, Some(&remote)));
    remote.is_away(true);
    here.begin("a").await;
    assert!(here.uses("a").await.is_some());
    assert!(other.uses("a").await.is_none());
    remote.is_away(false);
    assert!(here.uses("a").await.is_some());
    assert!(other.uses("a").await.is_some());
}

#[tokio::test]
async fn session_end_without_the_cache_is_saved_later() {
    let clock = Arc::new(FakeClock::default());
    let remote = Remote::new(&clock);
    let (here, other) = (Replica::new(&clock, Some(&remote)), Replica::new(&clock, Some(&remote)));
    let life = here.begin("a").await;
    remote.is_away(true);
    here.end("a").await;
    assert!(life.is_cancelled());
    assert_eq!(here.closed(), ["a"]);
    assert!(here.uses("a").await.is_none());
    remote.is_away(false);
    assert!(here.uses("a").await.is_none());
    here.records.tend().await;
    assert!(here.uses("a").await.is_none());
    assert!(other.uses("a").await.is_none());
    assert!(here.closed().is_empty());
}

#[tokio::test]
async fn concurrent_requests_restore_a_session_once() {
    let clock = Arc::new(FakeClock::default());
    let remote = Remote::new(&clock);
    let (here, other) = (Replica::new(&clock, Some(&remote)), Replica::new(&clock, Some(&remote)));
    here.begin("a").await;
    let (first, second) = tokio::join!(
        async {
            other.uses("a").await.unwrap();
            other.session("a")
        },
        other.uses("a"),
    );
    let uri = "throughline://contexts".to_owned();
    first.watched.add(uri, None).unwrap();
    assert!(second.is_some());
    assert_eq!(other.session("a").watched.paths(), ["contexts"]);
}

/// A server of its own clock, and a client of it.
struct Served {
    url: String,
    client: reqwest::Client,
}

impl Served {
    async fn by(clock: &Arc<FakeClock>, folder: &tempfile::TempDir) -> Self {
        let config = Config {
            data_dir: folder.path().to_owned(),
            embedder: EmbedderKind::None,
            mcp: McpConfig { tool_sets: vec![ToolSet::Persona], ..McpConfig::default() },
            ..Config::default()
        };
        let engine = Engine::open_by(&config, Arc::clone(clock) as _).await.unwrap();
        let leaving = CancellationToken::new();
        let local = Some(Scope::new("acme", "ana", None).unwrap());
        let around =
            Around { local, files: None, admission: AdmissionControl::boundless(), leaving };
        let server = Server::new(App::new(engine).await.unwrap(), &config.mcp, around).unwrap();
        let identity = server.local.clone().unwrap();
        let options = Options {
            max_body_bytes: 1 << 20,
            allowed_origins: Vec::new(),
            #[cfg(feature = "mcp-fixtures")]
            fixtures: false,
        };
        let router = routes(server, options).layer(axum::Extension(identity));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        // Whoever was first is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { url, client: reqwest::Client::new() }
    }

    fn request(&self, method: Method, session: &str) -> reqwest::RequestBuilder {
        let accept = match method {
            Method::GET => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        let request = self.client.request(method, &self.url).header("accept", accept);
        match session {
            "" => request,
            id => request.header(SESSION_ID, id),
        }
    }

    async fn post(&self, session: &str, message: serde_json::Value) -> reqwest::Response {
        let request = self.request(Method::POST, session);
        request.json(&message).send().await.unwrap().error_for_status().unwrap()
    }

    async fn begin(&self) -> String {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let begun = self.post("", begin).await;
        let id = begun.headers()[SESSION_ID].to_str().unwrap().to_owned();
        self.post(&id, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        id
    }

    async fn asks(&self, session: &str, method: &str, params: serde_json::Value) {
        let asked = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params});
        let said = self.post(session, asked).await.text().await.unwrap();
        assert!(said.contains("\"result\""), "{said}");
    }
}

#[tokio::test]
async fn idle_session_is_unloaded_despite_notifications() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(FakeClock::default());
    let served = Served::by(&clock, &folder).await;
    let writer = served.begin().await;
    let changes = async || {
        let arguments =
            json!({"action": "create_from_preset", "presetId": "preset-calm-counselor"});
        let create = json!({"name": "context-manage", "arguments": arguments});
        served.asks(&writer, "tools/call", create).await;
    };
    let heard = served.begin().await;
    let mut stream = served.request(Method::GET, &heard).send().await.unwrap();
    let hears = async |stream: &mut reqwest::Response| {
        while let Some(chunk) = stream.chunk().await.unwrap() {
            if String::from_utf8_lossy(&chunk).contains("list_changed") {
                return;
            }
        }
        panic!("the stream ended");
    };
    changes().await;
    hears(&mut stream).await;

    let at_work = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = at_work();
    for _ in 0..20 {
        let left = served.begin().await;
        served.asks(&left, "resources/subscribe", json!({"uri": "throughline://contexts"})).await;
    }
    // Each has rmcp's worker and service, and what tells it of changes.
    assert!(at_work() >= before + 60);
    for _ in 0..3 {
        clock.advance(hour(1) / 2);
        changes().await;
    }
    let gone = async {
        while at_work() > before + 10 {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), gone).await.is_ok());
    // One whose client listens goes on.
    changes().await;
    hears(&mut stream).await;
}
