//! Providers that fail, wires that break and clients that leave, at both interfaces: what callers are told, that a
//! session never holds a question without its answer, and that the key is nowhere.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use reqwest::Method;
use serde_json::{Value, json};
use throughline_testkit::proxy::{Fault, Proxy};

use super::upstream::{Next, Upstream, completion, pieces, whole};
use super::{KEY, complete, held};
use crate::http::service::{Answer, Service};
use crate::support::{Throughline, stderr};

/// A service with a proxy between it and its provider.
struct Wired {
    _data: Throughline,
    upstream: Upstream,
    proxy: Proxy,
    service: Service,
}

impl Wired {
    async fn start(settings: &[&str]) -> Self {
        let (data, upstream) = (Throughline::new(), Upstream::start().await);
        let target = upstream.url.trim_start_matches("http://").trim_end_matches("/v1");
        let proxy = Proxy::start(target.parse::<SocketAddr>().unwrap());
        let url = format!("providers.openai.base_url=http://{}/v1", proxy.address());
        let key = format!("providers.openai.api_key={KEY}");
        let all = [&[url.as_str(), &key, "chat.model=openai:gpt-4.1"], settings].concat();
        let flags: Vec<&str> = all.iter().flat_map(|setting| ["--set", setting]).collect();
        let service = Service::start_with(&data, &flags);
        Self { _data: data, upstream, proxy, service }
    }

    /// A turn of our own API and one of an OpenAI client, each of a session of its own, which have to fail: what both
    /// were told, after nothing was kept.
    async fn fails(&self, next: impl Fn() -> Next) -> [Answer; 2] {
        self.upstream.then(next());
        let own = self.service.post("/v1/sessions/own/chat", &own_turn(false)).await;
        self.upstream.then(next());
        let client = complete(&self.service, &turn(false), Some("client")).await;
        for (answer, session) in [(&own, "own"), (&client, "client")] {
            assert!(!answer.status.is_success(), "{answer:?}");
            assert!(!answer.text.contains(KEY), "{answer:?}");
            assert_eq!(held(&self.service, session).await, [], "{answer:?}");
        }
        [own, client]
    }

    /// The stream that answers a request.
    async fn stream(&self, path: &str, body: &Value) -> Reading {
        let request = self.service.request(Method::POST, path).json(body);
        let request = request.header("Throughline-Session", "client");
        let pieces = request.send().await.unwrap().bytes_stream().boxed();
        Reading { pieces, text: String::new() }
    }

    /// All that a stream gave, and whether it ended well.
    async fn read(&self, path: &str, body: &Value) -> (String, bool) {
        self.stream(path, body).await.rest().await
    }

    /// After a fault the same sessions go on, and hold whole turns only.
    async fn goes_on(&self) {
        self.proxy.set(Fault::Pass);
        self.upstream.says("Back.");
        self.service.post("/v1/sessions/own/chat", &own_turn(false)).await.ok();
        self.upstream.says("Back.");
        complete(&self.service, &turn(false), Some("client")).await.ok();
        for session in ["own", "client"] {
            let texts: Vec<_> = held(&self.service, session).await;
            let texts: Vec<_> = texts.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(texts, ["When?", "Back."], "{session}");
        }
        assert!(!self.service.log().contains(KEY), "the log has the key");
        let usage = self.service.get("/v1/usage").await;
        assert!(!usage.text.contains(KEY), "{usage:?}");
    }
}

/// A stream that is read.
struct Reading {
    pieces: BoxStream<'static, reqwest::Result<Bytes>>,
    text: String,
}

impl Reading {
    /// Reads until it has said this.
    async fn until(&mut self, said: &str) {
        while !self.text.contains(said) {
            let piece = self.pieces.next().await.unwrap().unwrap();
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    /// All of it, and whether it ended well.
    async fn rest(mut self) -> (String, bool) {
        while let Some(piece) = self.pieces.next().await {
            let Ok(piece) = piece else { return (self.text, false) };
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
        (self.text, true)
    }
}

const OWN: &str = "/v1/sessions/own/chat";
const CLIENT: &str = "/openai/v1/chat/completions";

fn own_turn(stream: bool) -> Value {
    json!({"user_turn": "When?", "stream": stream})
}

fn turn(stream: bool) -> Value {
    json!({"model": "gpt-4.1", "stream": stream, "messages": [{"role": "user", "content": "When?"}]})
}

#[tokio::test]
async fn broken_wires_leave_no_turn_behind() {
    let wired = Wired::start(&[
        "providers.openai.timeout_ms=500",
        "providers.openai.idle_timeout_ms=500",
        "providers.openai.max_retries=0",
    ])
    .await;
    for (fault, said) in [
        (Fault::Gone, "cannot be reached"),
        (Fault::Refuse, "cannot be reached"),
        (Fault::Stall, "`providers.openai.timeout_ms`"),
        (Fault::CutAfter(20), "cannot be reached"),
    ] {
        // Open connections are as dead as new ones.
        wired.proxy.cut();
        wired.proxy.set(fault);
        let own = wired.service.post(OWN, &own_turn(false)).await;
        assert!(own.problem(503, "unavailable").contains(said), "{fault:?}: {own:?}");
        wired.proxy.set(fault);
        let client = complete(&wired.service, &turn(false), Some("client")).await;
        assert_eq!(client.status, 503, "{fault:?}: {client:?}");
        let error = client.json()["error"].clone();
        assert!(error["message"].as_str().unwrap().contains(said), "{fault:?}: {error}");
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("server_error"), &json!("unavailable"))
        );
        assert!(client.headers.contains_key("retry-after"), "{client:?}");
        assert!(!own.text.contains(KEY) && !client.text.contains(KEY));
        // Five failures in a row would open the circuit.
        wired.proxy.set(Fault::Pass);
        wired.service.post("/v1/sessions/other/chat", &own_turn(false)).await.ok();
    }
    for session in ["own", "client"] {
        assert_eq!(held(&wired.service, session).await, [], "{session}");
    }
    wired.goes_on().await;
}

#[tokio::test]
async fn answers_that_break_off_are_not_kept() {
    let wired = Wired::start(&[
        "providers.openai.idle_timeout_ms=500",
        // What is forwarded to a client may pause for as long as its call.
        "providers.openai.timeout_ms=3000",
        "providers.openai.max_retries=0",
    ])
    .await;
    // The wire is cut, or nothing comes any more.
    for fault in [None, Some(Fault::Stall)] {
        for (path, body, seen) in
            [(OWN, own_turn(true), "event: delta"), (CLIENT, turn(true), "At ")]
        {
            wired.proxy.set(Fault::Pass);
            wired.upstream.then(Next::Hangs(vec![pieces(&["At "])[..2].concat()]));
            let mut reading = wired.stream(path, &body).await;
            reading.until(seen).await;
            match fault {
                None => wired.proxy.cut(),
                Some(fault) => wired.proxy.set(fault),
            }
            let (text, ended_well) = reading.rest().await;
            if path == OWN {
                assert!(text.contains("event: error") && text.contains("unavailable"), "{text}");
            } else {
                assert!(!ended_well, "the client has to see that it is no whole answer: {text}");
            }
            wired.proxy.cut();
            while wired.upstream.open() > 0 {
                tokio::task::yield_now().await;
            }
        }
    }
    wired.goes_on().await;
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_and_kept_once() {
    let wired = Wired::start(&["providers.openai.max_retries=1"]).await;
    wired.proxy.set(Fault::DropAnswer("/chat/completions"));
    wired.upstream.says("Lost.");
    wired.upstream.says("At 7:40.");
    let answer = wired.service.post(OWN, &own_turn(false)).await.ok();
    assert_eq!(answer["text"], "At 7:40.");
    assert_eq!(wired.upstream.asked().len(), 2);
    assert_eq!(held(&wired.service, "own").await.len(), 2);

    // A slow wire is no fault.
    wired.proxy.set(Fault::Slow(Duration::from_millis(20)));
    wired.upstream.then(Next::Stream(whole(&["At ", "7:40."])));
    let (text, ended_well) = wired.read(CLIENT, &turn(true)).await;
    assert!(ended_well && text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(held(&wired.service, "client").await.len(), 2);
}

#[tokio::test]
async fn refusals_of_providers_are_passed_on() {
    let wired = Wired::start(&["providers.openai.max_retries=0"]).await;
    let error = |text: &str, code: &str, param: &str| json!({"error": {"message": text, "type": "invalid_request_error", "param": param, "code": code}});

    let [own, client] = wired.fails(|| Next::Busy(7)).await;
    own.problem(429, "rate_limited");
    assert_eq!(
        (client.status.as_u16(), &client.json()["error"]["message"]),
        (429, &json!("slow down"))
    );
    for answer in [&own, &client] {
        assert_eq!(answer.headers["retry-after"], "7", "{answer:?}");
    }

    // A wrong key, which the provider repeats a part of.
    let said = format!("Incorrect API key provided: {KEY}");
    let wrong = error(&said, "invalid_api_key", "");
    for answer in wired.fails(|| Next::Json(401, wrong.clone())).await {
        assert_eq!(answer.status, 503, "the caller's own key is good");
        assert!(answer.text.contains("OPENAI_API_KEY"), "{answer:?}");
    }

    // A tool that the provider does not take.
    let tool = error(
        "Invalid schema for function",
        "invalid_function_parameters",
        "tools[0].function.parameters",
    );
    let [own, client] = wired.fails(|| Next::Json(400, tool.clone())).await;
    let detail = own.problem(400, "invalid_input");
    assert!(detail.contains("tools[0].function.parameters"), "{detail}");
    assert_eq!(client.json(), tool, "the provider's own words, which a client of it knows");

    let [own, client] = wired.fails(|| Next::Text(500, "<html>oops")).await;
    own.problem(503, "unavailable");
    assert_eq!((client.status.as_u16(), client.text.as_str()), (500, "<html>oops"));

    wired.goes_on().await;
}

#[tokio::test]
async fn malformed_answers_are_passed_on_and_not_stored() {
    let wired = Wired::start(&["providers.openai.max_retries=0"]).await;
    let empty = completion(&json!({"role": "assistant", "content": ""}), "stop");
    for next in
        [|| Next::Text(200, "{\"choices\": [{"), || Next::Text(200, ""), || Next::Text(200, "[]")]
    {
        wired.upstream.then(next());
        let own = wired.service.post(OWN, &own_turn(false)).await;
        own.problem(503, "unavailable");
        wired.upstream.then(next());
        complete(&wired.service, &turn(false), Some("client")).await;
    }
    wired.upstream.then(Next::Json(200, empty.clone()));
    let own = wired.service.post(OWN, &own_turn(false)).await;
    own.problem(422, "declined");
    wired.upstream.then(Next::Json(200, empty.clone()));
    assert_eq!(complete(&wired.service, &turn(false), Some("client")).await.ok(), empty);
    for stream in
        [vec!["data: {\"choices\": [\n\n".to_owned()], vec!["data: [DONE]\n\n".to_owned()], vec![]]
    {
        wired.upstream.then(Next::Stream(stream.clone()));
        let (text, _) = wired.read(OWN, &own_turn(true)).await;
        assert!(text.contains("event: error"), "{text}");
        wired.upstream.then(Next::Stream(stream.clone()));
        let (text, _) = wired.read(CLIENT, &turn(true)).await;
        assert_eq!(text, stream.concat());
    }
    for session in ["own", "client"] {
        assert_eq!(held(&wired.service, session).await, [], "{session}");
    }
    wired.goes_on().await;
}

#[tokio::test]
async fn a_client_that_leaves_early_leaves_nothing_and_one_that_read_all_leaves_its_turn() {
    let wired = Wired::start(&["providers.openai.max_retries=0"]).await;
    wired.upstream.then(Next::Hangs(vec![pieces(&["At "])[..2].concat()]));
    let mut reading = wired.stream(CLIENT, &turn(true)).await;
    reading.until("At ").await;
    drop(reading);
    while wired.upstream.open() > 0 {
        wired.service.get("/healthz").await;
    }
    assert_eq!(held(&wired.service, "client").await, []);

    // OpenAI's clients close the connection at the mark of the end.
    wired.upstream.then(Next::Hangs(whole(&["Back."])));
    let mut reading = wired.stream(CLIENT, &turn(true)).await;
    reading.until("[DONE]").await;
    drop(reading);
    let kept = held(&wired.service, "client").await;
    assert_eq!(kept.len(), 2, "{kept:?}");
}

#[tokio::test]
async fn clients_that_take_compressed_answers_get_whole_ones() {
    let wired = Wired::start(&[]).await;
    let long = "It leaves at 7:40. ".repeat(100);
    wired.upstream.says(&long);
    let request = wired.service.request(Method::POST, CLIENT).json(&turn(false));
    let request = request.header("Throughline-Session", "client").header("accept-encoding", "gzip");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    let body = answer.bytes().await.unwrap();
    assert!(body.starts_with(&[0x1f, 0x8b]) && body.len() < long.len());
    let length = u32::from_le_bytes(body[body.len() - 4..].try_into().unwrap());
    assert!(length as usize > long.len(), "the end of what was compressed is there");
    assert_eq!(held(&wired.service, "client").await[1].1, long.trim());
    assert!(!wired.service.log().contains("panicked"), "{}", wired.service.log());
}

#[tokio::test]
async fn errors_have_the_form_of_openai() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let refused = complete(&service, &turn(false), None).await;
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(refused.status, 400);
    assert!(message.contains("OPENAI_API_KEY"), "{message}");
    for (method, path) in [
        (Method::POST, CLIENT),
        (Method::POST, "/openai/v1/embeddings"),
        (Method::GET, "/openai/v1/models"),
    ] {
        let request = service.request(method, path).bearer_auth("tl_wrong").json(&turn(false));
        let refused = Answer::of(request).await;
        assert_eq!(refused.status, 401, "{refused:?}");
        assert_eq!(refused.headers["www-authenticate"], "Bearer");
        assert_eq!(refused.json()["error"]["type"], "authentication_error");
    }
}

#[tokio::test]
async fn the_command_line_says_what_to_set() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let wrong = json!({"error": {"message": format!("Incorrect API key: {KEY}"), "code": "invalid_api_key"}});
    let ask = async |arguments: &[&str], keyed: bool| {
        let mut command = data.command(arguments);
        if keyed {
            command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", &upstream.url);
        }
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
    };
    let chat = |model| ["chat", "When?", "--session", "s", "--model", model];
    upstream.then(Next::Json(401, wrong));
    for (arguments, keyed, said) in [
        (chat("openai:gpt-4.1"), false, "OPENAI_API_KEY"),
        (chat("openai:gpt-4.1"), true, "OPENAI_API_KEY"),
        (chat("openai:gpt-nonsense"), true, "openai:gpt-4.1"),
    ] {
        let output = ask(&arguments, keyed).await;
        assert!(!output.status.success());
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
        assert!(!stderr(&output).contains(KEY), "{}", stderr(&output));
    }
    upstream.then(Next::CutOff(pieces(&["At "])[..2].to_vec()));
    let once = ["--set", "providers.openai.max_retries=0"];
    let output = ask(&[chat("openai:gpt-4.1").as_slice(), &once].concat(), true).await;
    assert!(!output.status.success());
    let said = ["was cut off", "cannot be reached"];
    assert!(said.iter().any(|said| stderr(&output).contains(said)), "{}", stderr(&output));
    let shown = data.json(&["recall", "When?"]);
    assert_eq!(shown["items"], json!([]), "{shown}");
}
