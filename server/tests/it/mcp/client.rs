//! A client of MCP that says exactly what a test says, and every tool with good and bad arguments.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::http::service::{Answer, Service};

pub(super) const EVERYTHING: &str = "read,write,chat,admin";
/// Flags of a service of every tool.
pub(super) const ALL_TOOLS: [&str; 2] =
    ["--set", r#"mcp.tool_sets=["memory","sessions","documents","persona","files","admin"]"#];

/// A stream that has not ended after this time does not end.
const SOON: Duration = Duration::from_secs(20);

/// A call of a tool, as the clients of `e2e/mcp` make it.
#[derive(Debug, Deserialize)]
pub(super) struct Case {
    pub(super) tool: String,
    pub(super) needs: String,
    /// The only transport that has the tool, where not both have it.
    only: Option<String>,
    arguments: Value,
    #[serde(default)]
    shows: String,
    #[serde(default)]
    keep: BTreeMap<String, String>,
    #[expect(dead_code, reason = "the clients of e2e/mcp call it")]
    bad: Value,
}

/// What is put in the place of `{name}` in arguments.
pub(super) type Names = BTreeMap<String, String>;

impl Case {
    /// The calls that a service answers over HTTP.
    pub(super) fn all() -> Vec<Self> {
        let all = include_str!("../../../../e2e/mcp/calls.json");
        let mut all: Vec<Self> = serde_json::from_str(all).unwrap();
        all.retain(|case| case.only.is_none());
        all
    }

    pub(super) fn arguments(&self, names: &Names) -> Value {
        filled(&self.arguments, names)
    }

    /// Whether a result is what it should be.
    #[track_caller]
    pub(super) fn is_answered_by(&self, result: &Value, names: &Names) {
        is_done(result);
        let shows = filled(&json!(self.shows), names);
        assert!(text(result).contains(shows.as_str().unwrap()), "{}: {result}", self.tool);
    }

    /// Keeps what later calls need of a result.
    pub(super) fn keep(&self, result: &Value, names: &mut Names) {
        for (name, pointer) in &self.keep {
            let value = result["structuredContent"].pointer(pointer).unwrap();
            names.insert(name.clone(), value.as_str().unwrap().to_owned());
        }
    }
}

/// A value with what earlier calls gave.
fn filled(value: &Value, names: &Names) -> Value {
    let filled = names.iter().fold(value.to_string(), |text, (name, known)| {
        let known = json!(known).to_string();
        text.replace(&format!("{{{name}}}"), &known[1..known.len() - 1])
    });
    serde_json::from_str(&filled).unwrap()
}

/// A caller of a service.
#[derive(Clone)]
pub(crate) struct Caller<'s> {
    pub(super) service: &'s Service,
    pub(super) key: Option<String>,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl<'s> Caller<'s> {
    /// The local user, without a key.
    pub(crate) fn local(service: &'s Service) -> Self {
        Self { service, key: None, headers: Vec::new() }
    }

    pub(crate) fn keyed(service: &'s Service, key: &str) -> Self {
        Self { service, key: Some(key.to_owned()), headers: Vec::new() }
    }

    pub(super) fn with(mut self, header: &'static str, value: &str) -> Self {
        self.headers.push((header, value.to_owned()));
        self
    }

    pub(super) fn request(&self, method: Method) -> RequestBuilder {
        let mut request = self
            .service
            .request(method, "/mcp")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        self.headers.iter().fold(request, |request, (name, value)| request.header(*name, value))
    }

    pub(super) fn post(&self, message: &Value) -> RequestBuilder {
        self.request(Method::POST).body(message.to_string())
    }

    /// A request of 2026-07-28, which stands alone.
    pub(crate) fn alone(&self, method: &str, params: Value) -> RequestBuilder {
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let request = self
            .post(&message(method, alone(params)))
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    /// Calls a tool, which must give a result. Where it asks the client's model, that repeats what it is told.
    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> Value {
        let open = self.ask(tool, arguments).await;
        match open["inputRequests"].is_object() {
            true => self.answer(tool, arguments, &open).await,
            false => open,
        }
    }

    /// Calls a tool; what comes of it, or the question of it.
    pub(crate) async fn ask(&self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        result(&Answer::of(self.alone("tools/call", params)).await)
    }

    /// Answers the question of a call that is `open`.
    pub(super) async fn answer(&self, tool: &str, arguments: &Value, open: &Value) -> Value {
        let asked = open["inputRequests"]["answer"]["params"]["messages"].as_array().unwrap();
        let heard = asked.last().unwrap()["content"]["text"].as_str().unwrap();
        let params = json!({
            "name": tool, "arguments": arguments, "requestState": open["requestState"],
            "inputResponses": {"answer": says(&format!("You said {heard}"))},
        });
        result(&Answer::of(self.alone("tools/call", params)).await)
    }

    /// Begins a session of 2025-11-25.
    pub(super) async fn begin(&self) -> String {
        self.begin_with(&json!({})).await
    }

    /// The same, as a client that can do more.
    pub(super) async fn begin_with(&self, capabilities: &Value) -> String {
        let mut begin = initialize();
        begin["params"]["capabilities"] = capabilities.clone();
        let answer = Answer::of(self.post(&begin)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.headers["mcp-session-id"].to_str().unwrap().to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = Answer::of(self.post(&initialized).header("mcp-session-id", &id)).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        id
    }

    /// The stream of a session.
    pub(super) async fn stream(&self, session: &str) -> Response {
        let open = self.request(Method::GET).header("mcp-session-id", session);
        open.header("accept", "text/event-stream").send().await.unwrap()
    }

    /// Within a session of 2025-11-25.
    pub(super) fn within(&self, session: &str, method: &str, params: Value) -> RequestBuilder {
        self.post(&message(method, params)).header("mcp-session-id", session)
    }
}

/// What a model says.
pub(super) fn says(text: &str) -> Value {
    json!({
        "role": "assistant", "model": "scripted", "stopReason": "endTurn",
        "content": {"type": "text", "text": text},
    })
}

pub(super) fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

pub(super) fn initialize() -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    message("initialize", params)
}

/// With what a request that stands alone brings along.
pub(super) fn alone(params: Value) -> Value {
    let mut params = if params.is_object() { params } else { Value::Object(Map::new()) };
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
    });
    params
}

/// Reads a stream of events until it has told all of this.
pub(super) async fn hears(stream: &mut Response, all: &[&str]) -> String {
    let mut heard = String::new();
    while !all.iter().all(|one| heard.contains(one)) {
        let chunk = stream.chunk().await.unwrap();
        heard.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
    }
    heard
}

/// Reads a stream of events until the service ends it.
pub(super) async fn ended(mut stream: Response) -> String {
    let mut heard = String::new();
    let read = async {
        while let Some(chunk) = stream.chunk().await.unwrap() {
            heard.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    };
    let read = tokio::time::timeout(SOON, read).await;
    assert!(read.is_ok(), "the stream goes on: {heard}");
    heard
}

/// The message that an answer ends with, alone or as an event.
#[track_caller]
pub(super) fn told(answer: &Answer) -> Value {
    let last = answer.text.lines().rev().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(last.unwrap_or(&answer.text)).unwrap_or_else(|_| panic!("{answer:?}"))
}

#[track_caller]
pub(crate) fn result(answer: &Answer) -> Value {
    let told = told(answer);
    assert!(told["result"].is_object(), "{answer:?}");
    told["result"].clone()
}

/// The code of a failure.
#[track_caller]
pub(super) fn code(answer: &Answer) -> i64 {
    told(answer)["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer:?}"))
}

/// What a result says to a model.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

#[track_caller]
pub(super) fn is_done(result: &Value) {
    assert_ne!(result["isError"], true, "{result}");
}
