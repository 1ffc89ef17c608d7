//! The attacks.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Target;
use super::client::{head, status};
use crate::Result;

/// Statuses of answers, or why there was none, with how many there were.
type Answers = Vec<(String, usize)>;

/// An attack.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// Flags of the service.
    pub(super) flags: &'static [&'static str],
    /// How many files the service may open.
    pub(super) files: u32,
    pub(super) run: fn(&Target) -> Result<Answers>,
}

const PLAIN: Scenario = Scenario { name: "", flags: &[], files: 1_024, run: |_| Ok(Vec::new()) };

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "parts of a message", run: |target| parts(target, 1), ..PLAIN },
    Scenario { name: "parts, three at once", run: |target| parts(target, 3), ..PLAIN },
    Scenario { name: "arguments of an MCP call", run: arguments, ..PLAIN },
    Scenario { name: "facets of a document", run: facets, ..PLAIN },
    Scenario { name: "client_config", run: client_config, ..PLAIN },
    Scenario { name: "metadata of a file", run: metadata, ..PLAIN },
    Scenario { name: "export of a context", run: export, ..PLAIN },
    Scenario { name: "chat completion", run: completion, ..PLAIN },
    Scenario { name: "many small bodies", run: small_bodies, ..PLAIN },
    Scenario { name: "16 MiB of messages", run: large_append, ..PLAIN },
    Scenario {
        name: "mixed scripts",
        run: mixed_scripts,
        flags: &["--set", "http.timeout_ms=3000"],
        ..PLAIN
    },
    Scenario { name: "mixed scripts, 32 at once", run: more_mixed_scripts, ..PLAIN },
    Scenario { name: "half-sent headers", run: half_headers, ..PLAIN },
    Scenario { name: "half-sent bodies", run: half_bodies, ..PLAIN },
    Scenario { name: "exports that are read slowly", run: slow_exports, ..PLAIN },
    Scenario {
        name: "exports over MCP, read slowly",
        run: slow_mcp_exports,
        flags: &["--set", "mcp.tool_sets=[\"persona\"]"],
        ..PLAIN
    },
    Scenario { name: "turns over large messages", run: large_turns, ..PLAIN },
    Scenario { name: "pages of large messages", run: large_pages, ..PLAIN },
    Scenario { name: "exports with gzip", run: compressed_exports, ..PLAIN },
    Scenario { name: "streams of one key", run: streams, ..PLAIN },
];

/// As many small values as fit into so many bytes, as a list without its brackets.
fn values(value: &str, bytes: usize) -> String {
    let count = bytes / (value.len() + 1);
    [value].repeat(count).join(",")
}

/// Sends the same body so many times at once.
fn send(target: &Target, to: (&str, &str), body: &str, times: usize) -> Answers {
    let answers: Vec<String> = thread::scope(|scope| {
        let send = || told(target.client.send(to, &target.key, body.as_bytes()));
        let sent: Vec<_> = (0..times).map(|_| scope.spawn(send)).collect();
        sent.into_iter().filter_map(|sent| sent.join().ok()).collect()
    });
    counted(answers)
}

/// The status of an answer, or why there was none.
fn told(answered: std::io::Result<u16>) -> String {
    answered.map_or_else(|error| error.kind().to_string(), |status| status.to_string())
}

fn counted(answers: impl IntoIterator<Item = String>) -> Answers {
    let mut counts = BTreeMap::new();
    answers.into_iter().for_each(|answer| *counts.entry(answer).or_default() += 1);
    counts.into_iter().collect()
}

const LARGE: usize = 19 << 20;
const OBJECT: &str = r#"{"a":0}"#;

fn parts(target: &Target, times: usize) -> Result<Answers> {
    let message = r#"{"role":"user","content":"x","parts":["#;
    let body = format!(r#"{{"messages":[{message}{}]}}]}}"#, values(OBJECT, LARGE));
    Ok(send(target, ("POST", "/v1/sessions/s/messages"), &body, times))
}

fn arguments(target: &Target) -> Result<Answers> {
    let list = values(r#"{"":0}"#, 6 << 20);
    let params = format!(r#"{{"name":"whoami","arguments":{{"x":[{list}]}}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    Ok(send(target, ("POST", "/mcp"), &body, 1))
}

fn facets(target: &Target) -> Result<Answers> {
    let body = format!(r#"{{"x":[{}]}}"#, values(OBJECT, LARGE));
    Ok(send(target, ("PUT", "/v1/vaults/v/memories/m/context"), &body, 1))
}

fn client_config(target: &Target) -> Result<Answers> {
    let body = format!(r#"{{"client_config":{{"x":[{}]}}}}"#, values(OBJECT, LARGE));
    Ok(send(target, ("PUT", "/v1/settings"), &body, 1))
}

fn metadata(target: &Target) -> Result<Answers> {
    let list = values(OBJECT, LARGE);
    let body = format!(r#"{{"type":"uploaded","title":"x","metadata":{{"x":[{list}]}}}}"#);
    Ok(send(target, ("POST", "/v1/sessions/s/files"), &body, 1))
}

fn export(target: &Target) -> Result<Answers> {
    let body = format!(r#"{{"export":{{"x":[{}]}}}}"#, values(OBJECT, LARGE));
    Ok(send(target, ("POST", "/v1/contexts/import"), &body, 1))
}

fn completion(target: &Target) -> Result<Answers> {
    let list = values(r#"{"role":"user","content":"x"}"#, LARGE);
    let body = format!(r#"{{"model":"x","messages":[{list}]}}"#);
    Ok(send(target, ("POST", "/openai/v1/chat/completions"), &body, 1))
}

/// As many values as are allowed, in bodies that are small.
fn small_bodies(target: &Target) -> Result<Answers> {
    let message = r#"{"role":"user","content":"x","parts":["#;
    let list = values(OBJECT, 40_000 * (OBJECT.len() + 1));
    let body = format!(r#"{{"messages":[{message}{list}]}}]}}"#);
    Ok(send(target, ("POST", "/v1/sessions/s/messages"), &body, 64))
}

/// Words of several scripts and letters that no language has, each of which is new.
fn mixed(bytes: usize) -> String {
    let scripts =
        [0x61, 0x0430, 0x03b1, 0x05d0, 0x0627, 0x0905, 0x0e01, 0x10d0, 0x3042, 0x4e00, 0xac00];
    let mut text = String::with_capacity(bytes + 64);
    let mut at = 0_u32;
    while text.len() < bytes {
        let script = scripts[at as usize % scripts.len()];
        let letter = |of: u32| char::from_u32(script + (at.wrapping_mul(2_654_435_761) >> of) % 24);
        text.extend((0..6).filter_map(|of| letter(4 * of)));
        text.push(if at % 9 == 8 { '.' } else { ' ' });
        at += 1;
    }
    text
}

fn append_of(contents: &[String]) -> String {
    let message = |content: &String| json!({"role": "user", "content": content});
    json!({"messages": contents.iter().map(message).collect::<Vec<_>>()}).to_string()
}

fn mixed_scripts(target: &Target) -> Result<Answers> {
    let body = append_of(&vec![mixed(250_000); 4]);
    Ok(send(target, ("POST", "/v1/sessions/s/messages"), &body, 4))
}

fn more_mixed_scripts(target: &Target) -> Result<Answers> {
    let body = append_of(&vec![mixed(250_000); 4]);
    Ok(send(target, ("POST", "/v1/sessions/s/messages"), &body, 32))
}

/// Texts as an agent stores them.
fn large_append(target: &Target) -> Result<Answers> {
    let text = "The ferry from Porto leaves at 9:15 on 12 March, and the crew is paid EUR 1,250. ";
    let body = append_of(&vec![text.repeat(1_000_000 / text.len()); 16]);
    Ok(send(target, ("POST", "/v1/sessions/s/messages"), &body, 1))
}

fn half_headers(target: &Target) -> Result<Answers> {
    half_sent(target, b"GET / HTTP/1.1\r\nX:", 1_100)
}

fn half_bodies(target: &Target) -> Result<Answers> {
    let head = head("POST", "/v1/sessions/s/messages", &target.key, Some(99));
    half_sent(target, format!("{head}{{").as_bytes(), 520)
}

/// Makes a context of 14 MiB; its id.
fn large_context(target: &Target) -> Result<String> {
    let text = "The ferry from Porto leaves at 9:15 on 12 March, and the crew is paid EUR 1,250. ";
    let content = text.repeat(1_000_000 / text.len());
    let said = json!({"role": "user", "content": content, "created_at": "2026-03-02T09:14:00Z"});
    let context = json!({"name": "Guide", "system_prompt": "You are a guide."});
    let export = json!({
        "format": "throughline.context", "version": 1,
        "context": context, "conversations": vec![said; 15],
    });
    let body = json!({"export": export}).to_string();
    let made = target.client.ask(("POST", "/v1/contexts/import"), &target.key, body.as_bytes())?;
    Ok(made["id"].as_str().ok_or("no context was made")?.to_owned())
}

/// The request of the export of a large context, with one header more.
fn export_of(target: &Target, header: &str) -> Result<String> {
    let id = large_context(target)?;
    Ok(with(&head("GET", &format!("/v1/contexts/{id}/export"), &target.key, None), header))
}

/// A request with one header more.
fn with(request: &str, line: &str) -> String {
    request.replacen("\r\n", &format!("\r\n{line}\r\n"), 1)
}

fn slow_exports(target: &Target) -> Result<Answers> {
    let export = export_of(target, "Accept: application/json")?;
    read_slowly(target, &export, |answer| {
        let status = answer.get(9..12).and_then(|status| std::str::from_utf8(status).ok());
        status.unwrap_or("no answer yet").to_owned()
    })
}

fn slow_mcp_exports(target: &Target) -> Result<Answers> {
    let arguments = json!({"action": "export", "contextId": large_context(target)?});
    let params = json!({"name": "context-manage", "arguments": arguments});
    let export = with(&mcp_of(target, "tools/call", params), "Mcp-Name: context-manage");
    read_slowly(target, &export, |answer| {
        let answer = String::from_utf8_lossy(answer);
        let told = match answer.contains("rate_limited") || answer.contains("unavailable") {
            true => "refused",
            false if answer.contains("ferry") => "answered",
            false => "no answer yet",
        };
        told.to_owned()
    })
}

/// Asks a hundred times, and reads 2 KiB in 4 seconds, so that no client is silent; what this says of what came by then.
fn read_slowly(target: &Target, request: &str, told: impl Fn(&[u8]) -> String) -> Result<Answers> {
    let mut held: Vec<_> = (0..100)
        .map(|_| target.client.begin(request.as_bytes()).map(|stream| (stream, Vec::new())))
        .collect();
    for _ in 0..8 {
        thread::sleep(Duration::from_secs(4));
        for (stream, answer) in held.iter_mut().flatten() {
            let mut piece = [0; 2 << 10];
            stream.set_read_timeout(Some(Duration::from_millis(1)))?;
            let read = stream.read(&mut piece).unwrap_or_default();
            answer.extend_from_slice(&piece[..read]);
        }
    }
    Ok(counted(held.into_iter().map(|one| match one {
        Ok((_, answer)) => told(&answer),
        Err(error) => error.kind().to_string(),
    })))
}

fn compressed_exports(target: &Target) -> Result<Answers> {
    let export = export_of(target, "Accept-Encoding: gzip")?;
    let ask = || told(target.client.begin(export.as_bytes()).and_then(status));
    let asks = || (0..5).map(|_| ask()).collect();
    let answers: Vec<Vec<String>> = thread::scope(|scope| {
        let asking: Vec<_> = (0..32).map(|_| scope.spawn(asks)).collect();
        asking.into_iter().filter_map(|asking| asking.join().ok()).collect()
    });
    Ok(counted(answers.into_iter().flatten()))
}

/// Stores 40 messages with 2 MB each beside their words, which cost little to store.
fn large_session(target: &Target, id: &str) -> Answers {
    let large = json!(["x".repeat(1_000_000)]);
    let said = "The ferry from Porto leaves at 9:15 on 12 March.";
    let message = json!({"role": "user", "content": said, "parts": large, "attachments": large});
    let body = json!({"messages": vec![message; 8]}).to_string();
    let path = format!("/v1/sessions/{id}/messages");
    (0..5).flat_map(|_| send(target, ("POST", &path), &body, 1)).collect()
}

fn large_turns(target: &Target) -> Result<Answers> {
    large_session(target, "s");
    let body = json!({"user_turn": "When does the ferry from Porto leave?", "tier": "full"});
    Ok(send(target, ("POST", "/v1/sessions/s/assemble"), &body.to_string(), 32))
}

fn large_pages(target: &Target) -> Result<Answers> {
    let context = json!({"name": "Guide", "system_prompt": "You are a guide."}).to_string();
    let made = target.client.ask(("POST", "/v1/contexts"), &target.key, context.as_bytes())?;
    let field = |name: &str| made[name].as_str().ok_or("no context was made").map(str::to_owned);
    let (id, session) = (field("id")?, field("session")?);
    large_session(target, &session);
    let page = format!("/v1/contexts/{id}/conversations?limit=500");
    Ok(send(target, ("GET", &page), "", 32))
}

/// Streams of workspaces that the key invents.
fn streams(target: &Target) -> Result<Answers> {
    let listen = mcp_of(target, "subscriptions/listen", json!({"notifications": {}}));
    let stream = |n: usize| {
        let listen = with(&listen, &format!("Throughline-Workspace: w{n}"));
        target.client.begin(listen.as_bytes())
    };
    Ok(held(stream, 770))
}

/// A request of MCP, of the revision without sessions.
fn mcp_of(target: &Target, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "mallory", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let head = head("POST", "/mcp", &target.key, Some(body.len()));
    let head = with(&head, &format!("Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}"));
    head + &body
}

/// Sends this on so many connections, and waits for the others to be served or not.
fn half_sent(target: &Target, sent: &[u8], count: usize) -> Result<Answers> {
    Ok(held(|_| target.client.begin(sent), count))
}

/// Holds so many connections for five seconds; what they are answered with by then.
fn held(begin: impl Fn(usize) -> std::io::Result<TcpStream>, count: usize) -> Answers {
    let held: Vec<_> = (0..count).map(begin).collect();
    thread::sleep(Duration::from_secs(5));
    let answered = held.into_iter().map(|stream| {
        told(stream.and_then(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(1)))?;
            status(stream)
        }))
    });
    counted(answered)
}
