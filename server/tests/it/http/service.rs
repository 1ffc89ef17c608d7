//! The real binary as a service, and a client of it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, Once};

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;

use crate::support::Throughline;

/// A running service. It ends with this value.
pub(crate) struct Service {
    /// `None` of one that is served within this process.
    child: Option<Child>,
    base: String,
    log: Arc<Mutex<String>>,
    client: Client,
}

impl Service {
    /// Serves the data of `data` on a free port of the loopback address.
    pub(crate) fn start(data: &Throughline) -> Self {
        Self::start_with(data, &[])
    }

    /// The same, with more flags.
    pub(crate) fn start_with(data: &Throughline, flags: &[&str]) -> Self {
        let mut command = data.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        command.args(["--set", "log.level=debug"]).args(flags);
        Self::spawn(command)
    }

    pub(crate) fn spawn(mut command: std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let mut stderr = child.stderr.take().unwrap();
        let kept = Arc::clone(&log);
        std::thread::spawn(move || {
            let mut chunk = [0; 4_096];
            while let Ok(read @ 1..) = stderr.read(&mut chunk) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..read]));
            }
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let _ = child.wait();
            panic!("it does not serve: {}", log.lock().unwrap())
        });
        let base = told["listening"].as_str().unwrap().to_owned();
        Self { child: Some(child), base, log, client: client() }
    }

    /// Serves an engine within this process, such as one with a clock of its own; once a process.
    pub(crate) async fn within(engine: Engine, config: &Config) -> Self {
        let served = throughline_server::http::serve(engine, config).await.unwrap();
        let base = format!("http://{}", served.address().unwrap());
        tokio::spawn(served.run(std::future::pending()));
        Self { child: None, base, log: Arc::default(), client: client() }
    }

    /// Where it listens.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Everything that it logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// The line of the log that has this; it may come after the answer.
    pub(crate) async fn logged(&self, what: &str) -> String {
        for _ in 0..1_000 {
            if let Some(line) = self.log().lines().find(|line| line.contains(what)) {
                return line.to_owned();
            }
            self.get("/healthz").await;
        }
        panic!("no {what} in the log: {}", self.log());
    }

    /// A request without a credential.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, path)).await
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Tells it to end, as a supervisor does.
    #[cfg(unix)]
    pub(crate) fn terminate(&self) {
        let pid = self.id().to_string();
        assert!(
            std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success()
        );
    }

    /// Waits for its end; whether it was a good one.
    pub(crate) fn wait(&mut self) -> bool {
        self.child.as_mut().unwrap().wait().unwrap().success()
    }

    pub(crate) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A client, of which each wants to know who does its cryptography.
fn client() -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        rustls::crypto::ring::default_provider().install_default().unwrap();
    });
    Client::new()
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What the service answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        Self::read(request.send().await.unwrap()).await
    }

    async fn read(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, text: response.text().await.unwrap() }
    }

    /// The body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The body of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{self:?}");
        self.json()
    }

    /// The detail of a problem, which must have this status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{self:?}");
        assert_eq!(problem["status"], status, "{self:?}");
        assert_eq!(problem["request_id"], self.headers["x-request-id"].to_str().unwrap());
        let detail = problem["detail"].as_str().unwrap().to_owned();
        assert!(!detail.is_empty(), "{self:?}");
        detail
    }
}

/// A key made by the command line.
pub(crate) fn key(data: &Throughline, tenant: &str, who: &[&str], permissions: &str) -> String {
    let mut args = vec!["keys", "create", "--tenant", tenant, "--permissions", permissions];
    args.extend(who);
    data.json(&args)["key"].as_str().unwrap().to_owned()
}
