//! The service in this process, for targets that send it whatever comes.

use std::sync::LazyLock;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Url, header};
use tempfile::TempDir;
use throughline_engine::compose::Engine;
use throughline_engine::config::Layers;
use throughline_server::http;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// An answer that has not come after this time does not come.
const SOON: Duration = Duration::from_secs(20);

/// A service with a store of its own, and a client of it.
pub struct Service {
    base: Url,
    runtime: Runtime,
    client: Client,
    _data: TempDir,
}

/// What came of a request.
#[derive(Debug)]
pub struct Answer {
    /// The status of HTTP.
    pub status: u16,
    /// The body; empty where it is a stream of events, which need not end.
    pub text: String,
}

impl Service {
    /// The service of this process.
    pub fn here() -> &'static Self {
        static SERVICE: LazyLock<Service> = LazyLock::new(Service::start);
        &SERVICE
    }

    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let flags = [
            ("data_dir", data.path().to_str().unwrap()),
            ("listen", "127.0.0.1:0"),
            ("embedder", "none"),
            ("log.level", "off"),
            (
                "mcp.tool_sets",
                r#"["memory", "sessions", "documents", "persona", "files", "admin"]"#,
            ),
        ];
        let flags = flags.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let config = Layers { file: None, flags }.load().unwrap();
        let runtime = Runtime::new().unwrap();
        let served = runtime.block_on(async {
            // libFuzzer has its own `main`, which does not ignore the signal as that of Rust does: a connection that the
            // service closes while the client still sends would end the program.
            signal(SignalKind::pipe()).unwrap();
            let engine = Engine::open(&config).await.unwrap();
            http::serve(engine, &config).await.unwrap()
        });
        let base = Url::parse(&format!("http://{}", served.address().unwrap())).unwrap();
        runtime.spawn(served.run(std::future::pending()));
        let client = Client::builder().timeout(SOON).no_proxy().build().unwrap();
        Self { base, runtime, client, _data: data }
    }

    /// A request with a body of JSON, or what should be; `None` where that is none.
    pub fn request(&self, method: &str, path: &str, body: &[u8]) -> Option<RequestBuilder> {
        let method = Method::from_bytes(method.as_bytes()).ok()?;
        let url = self.base.join(path).ok().filter(|url| url.origin() == self.base.origin())?;
        let request = self.client.request(method, url);
        Some(request.header(header::CONTENT_TYPE, "application/json").body(body.to_vec()))
    }

    /// Sends a request, which must be answered, whatever it is.
    pub fn answer(&self, request: RequestBuilder) -> Answer {
        self.runtime.block_on(async {
            let answer = request.send().await.expect("the service answers");
            let status = answer.status().as_u16();
            let content = answer.headers().get(header::CONTENT_TYPE).cloned();
            let is_stream = content.is_some_and(|form| form.as_bytes().starts_with(b"text/event"));
            let text = match is_stream {
                true => String::new(),
                false => answer.text().await.expect("the answer ends"),
            };
            Answer { status, text }
        })
    }
}
