//! Deadlines, retries, the circuit breaker and the key, against a server that does what each test says.

#![expect(
    clippy::unwrap_used,
    reason = "helpers outside of test functions: a failure is the answer"
)]

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use throughline_core::chat::{ChatAnswer, ChatEvent};
use throughline_core::{Error, ErrorKind, Result};
use throughline_provider_http::{
    ApiProfile, BreakerSettings, Call, ConnectionSettings, Draft, Problem, STREAM, ServerError,
    Step, StreamReader, TimeLimit, Transport, collect, stream_answer,
};
use throughline_testkit::http::{Reply, Server};

const KEY: &str = "sk-test-s3cr3t0123456789";

static EXAMPLE: ApiProfile = ApiProfile {
    service: "Example",
    host: "api.example.com",
    base_url: "https://api.example.com/v1",
    usual_end: "/v1",
    settings: "providers.example",
    key_variable: "EXAMPLE_API_KEY",
    key_header: "x-example-key",
    key_prefix: "Key ",
    read_error: read,
};

fn read(status: Option<u16>, body: &Value) -> ServerError {
    let problem = match status.unwrap_or(500) {
        401 => Problem::Key,
        429 => Problem::Busy,
        300..=399 | 404 | 405 => Problem::WrongAddress,
        500.. => Problem::Failed,
        _ => Problem::Refused,
    };
    ServerError {
        problem,
        message: body.to_string(),
        code: String::new(),
        kind: String::new(),
        param: String::new(),
        retry_after: body["wait"].as_u64().map(Duration::from_secs),
    }
}

/// Every event is a piece of text.
#[derive(Default)]
struct Texts(String);

impl StreamReader for Texts {
    fn event(&mut self, _: &str, event: &Value) -> Result<Step> {
        let text = event.as_str().unwrap_or_default();
        self.0.push_str(text);
        Ok(Step::Text(text.to_owned()))
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn finish(&mut self) -> Result<Draft> {
        Ok(Draft { text: std::mem::take(&mut self.0), ..Draft::default() })
    }
}

/// A server's settings: a key, and no waiting before retries.
fn connection(server: &Server) -> ConnectionSettings {
    ConnectionSettings {
        api_key: Some(KEY.into()),
        first_retry_delay: Duration::from_millis(1),
        ..ConnectionSettings::new(format!("{}/v1", server.url()))
    }
}

fn transport(settings: &ConnectionSettings) -> Transport {
    Transport::new(settings, &EXAMPLE).unwrap()
}

async fn ask(transport: &Transport) -> Result<Value> {
    let origin = transport.origin("chat", None);
    transport.json(&Call::post("/answers", &json!({"question": "Hello?"}), origin)?).await
}

/// How a stream of answers ends.
async fn stream(transport: &Transport) -> Result<ChatAnswer> {
    let call = Call::post("/answers", &json!({}), transport.origin("chat", None))?;
    let call = Call { accept: STREAM, ..call };
    let whole = |_: &Value| Ok(Draft::default());
    let mut events = stream_answer(transport, &call, whole, Box::<Texts>::default()).await?;
    let mut end = Err(Error::internal("a stream ends with an answer or an error"));
    while let Some(event) = events.next().await {
        if let ChatEvent::Done(answer) = event? {
            end = Ok(answer);
        }
    }
    end
}

/// A stream of texts; `[DONE]` is its end.
fn texts(texts: &[&str]) -> Reply {
    let event = |text: &&str| match *text {
        "[DONE]" => (*text).to_owned(),
        text => json!(text).to_string(),
    };
    Reply::events(&texts.iter().map(event).collect::<Vec<_>>())
}

fn good() -> Reply {
    Reply::json(200, &json!({"answer": "Good."}))
}

fn check(error: &Error, kind: ErrorKind, part: &str) {
    assert_eq!(error.kind(), kind, "{error} {error:?}");
    assert!(error.message().contains(part), "`{part}` is not in: {error}");
}

#[tokio::test]
async fn sends_the_key_in_its_header_alone() {
    let server = Server::replying([good()]).await;
    ask(&transport(&connection(&server))).await.unwrap();
    let received = &server.received()[0];
    assert_eq!(received.headers["x-example-key"], format!("Key {KEY}"));
    assert_eq!(received.headers.get("authorization"), None);
    assert_eq!((received.method.as_str(), received.path.as_str()), ("POST", "/v1/answers"));
    assert_eq!(received.headers["content-type"], "application/json");
    assert_eq!(received.body, json!({"question": "Hello?"}));
}

#[tokio::test]
async fn retries_transient_failures() {
    let busy = || Reply::text(429, "text/plain", "slow down");
    for failure in [
        Reply::text(500, "text/html", "<html>Internal Server Error</html>"),
        busy(),
        busy().header("retry-after", "0"),
        busy().header("retry-after-ms", "1"),
        Reply::json(429, &json!({"wait": 0})),
        Reply::json(503, &json!({}))
            .header("date", "Wed, 21 Oct 2026 07:28:00 GMT")
            .header("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
        Reply::closed(),
    ] {
        let server = Server::replying([failure.clone(), failure.clone(), good()]).await;
        let answer = ask(&transport(&connection(&server))).await;
        assert_eq!(answer.unwrap()["answer"], "Good.", "{failure:?}");
        assert_eq!(server.received().len(), 3);

        let server = Server::replying([failure.clone(), failure.clone(), failure, good()]).await;
        ask(&transport(&connection(&server))).await.unwrap_err();
        assert_eq!(server.received().len(), 3, "not more often than allowed");
    }
}

#[tokio::test]
async fn does_not_retry_permanent_failures() {
    for (reply, kind) in [
        (Reply::text(401, "text/plain", KEY), ErrorKind::Unauthenticated),
        (Reply::json(400, &json!({})), ErrorKind::InvalidInput),
        (Reply::text(302, "text/html", "").header("location", "/x"), ErrorKind::Unavailable),
        (Reply::text(200, "application/json", "{\"answer\""), ErrorKind::Unavailable),
        (Reply::text(200, "application/json", "[]"), ErrorKind::Unavailable),
    ] {
        let server = Server::replying([reply.clone(), good()]).await;
        let error = ask(&transport(&connection(&server))).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{reply:?}");
        assert_eq!(server.received().len(), 1, "{reply:?}");
    }
}

#[tokio::test]
async fn does_not_wait_longer_than_max_retry_after() {
    for reply in [
        Reply::json(429, &json!({})).header("retry-after", "90"),
        Reply::json(429, &json!({}))
            .header("date", "Wed, 21 Oct 2026 07:28:00 GMT")
            .header("retry-after", "Wed, 21 Oct 2026 07:29:30 GMT"),
        Reply::text(429, "text/html", "<html>").header("retry-after", "90"),
        // In the body; a header goes before it.
        Reply::json(429, &json!({"wait": 90})),
        Reply::json(429, &json!({"wait": 5})).header("retry-after", "90"),
    ] {
        let server = Server::replying([reply, good()]).await;
        let error = ask(&transport(&connection(&server))).await.unwrap_err();
        check(&error, ErrorKind::RateLimited, "try again later");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(90)));
        assert_eq!(server.received().len(), 1);
    }
}

#[tokio::test]
async fn does_not_retry_past_the_deadline() {
    let busy = Reply::json(429, &json!({})).header("retry-after", "15");
    let server = Server::replying([busy]).await;
    let request_timeout = Duration::from_secs(10);
    let settings = ConnectionSettings { request_timeout, ..connection(&server) };
    let began = Instant::now();
    let error = ask(&transport(&settings)).await.unwrap_err();
    check(&error, ErrorKind::RateLimited, "try again later");
    assert!(began.elapsed() < request_timeout, "it does not wait for what comes too late");
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn gives_up_at_request_timeout() {
    for reply in
        [Reply::no_answer(), Reply::text(200, "application/json", "{\"answer\"").then_silence()]
    {
        let server = Server::replying([reply]).await;
        let request_timeout = Duration::from_millis(100);
        let settings = ConnectionSettings { request_timeout, ..connection(&server) };
        let error = ask(&transport(&settings)).await.unwrap_err();
        check(&error, ErrorKind::Unavailable, "within 0.1 s (`providers.example.timeout_ms`)");
    }
}

#[tokio::test]
async fn accepts_times_without_end() {
    let server = Server::replying([Reply::json(500, &json!({})), good()]).await;
    let forever = Duration::MAX;
    let settings = ConnectionSettings {
        request_timeout: forever,
        idle_timeout: forever,
        max_retry_after: forever,
        breaker: BreakerSettings { failures: 2, open_for: forever },
        ..connection(&server)
    };
    assert_eq!(ask(&transport(&settings)).await.unwrap()["answer"], "Good.");
}

#[tokio::test]
async fn reports_unreachable_server() {
    // A port that was free a moment ago.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", free.local_addr().unwrap());
    drop(free);
    let settings = ConnectionSettings {
        first_retry_delay: Duration::from_millis(1),
        ..ConnectionSettings::new(url)
    };
    let part = "cannot be reached: check the network and `providers.example.base_url`";
    let transport = transport(&settings);
    check(&ask(&transport).await.unwrap_err(), ErrorKind::Unavailable, part);
    let checked = transport.check("/models", None).await;
    check(&checked.unwrap_err(), ErrorKind::Unavailable, part);
}

#[tokio::test]
async fn own_service_needs_a_key() {
    let transport = transport(&ConnectionSettings::new(EXAMPLE.base_url));
    let part = "set EXAMPLE_API_KEY or `providers.example.api_key`";
    check(&ask(&transport).await.unwrap_err(), ErrorKind::Unauthenticated, part);
    let checked = transport.check("/models", None).await;
    check(&checked.unwrap_err(), ErrorKind::Unauthenticated, part);
}

#[tokio::test]
async fn checks_server_by_a_list() {
    for (status, kind) in [
        (200, None),
        (404, Some(ErrorKind::Unavailable)),
        (501, Some(ErrorKind::Unavailable)),
        (401, Some(ErrorKind::Unauthenticated)),
        (429, Some(ErrorKind::RateLimited)),
        (503, Some(ErrorKind::Unavailable)),
        (400, Some(ErrorKind::Unavailable)),
    ] {
        let server = Server::replying([Reply::json(status, &json!({}))]).await;
        let checked = transport(&connection(&server)).check("/models", None).await;
        assert_eq!(checked.err().map(|error| error.kind()), kind, "{status}");
        let received = server.received();
        assert_eq!((received[0].method.as_str(), received[0].path.as_str()), ("GET", "/v1/models"));
    }
}

#[tokio::test]
async fn checks_server_without_a_list_by_an_empty_request() {
    for (list, status, kind) in [
        (404, 400, None),
        (405, 422, None),
        (501, 200, None),
        (404, 404, Some(ErrorKind::Unavailable)),
        (404, 401, Some(ErrorKind::Unauthenticated)),
        (404, 503, Some(ErrorKind::Unavailable)),
    ] {
        let replies = [list, status].map(|status| Reply::json(status, &json!({})));
        let server = Server::replying(replies).await;
        let checked = transport(&connection(&server)).check("/models", Some("/answers")).await;
        let error = checked.err();
        assert_eq!(error.as_ref().map(Error::kind), kind, "{list} {status}");
        if (list, status) == (404, 404) {
            check(&error.unwrap(), ErrorKind::Unavailable, "providers.example.base_url");
        }
        let received = &server.received()[1];
        assert_eq!((received.path.as_str(), &received.body), ("/v1/answers", &json!({})));
    }
}

#[tokio::test]
async fn passes_on_failures_that_are_not_about_the_key() {
    let any_status = |transport: &Transport| Call {
        any_status: true,
        ..Call::get("/answers", transport.origin("chat", None))
    };
    let long = format!("\"{}\"", "x".repeat(200_000));
    let server = Server::replying([
        Reply::text(403, "application/json", &long).in_pieces(1_000),
        Reply::text(400, "text/plain", "half").then_cut(),
        Reply::json(401, &json!({"key": KEY})),
    ])
    .await;
    let transport = transport(&connection(&server));
    let call = any_status(&transport);
    let answer = transport.send(&call).await.unwrap();
    assert_eq!(answer.status, 403);
    assert_eq!(collect(answer.body).await.unwrap(), long.as_bytes(), "all of it is passed on");
    let answer = transport.send(&call).await.unwrap();
    check(&collect(answer.body).await.unwrap_err(), ErrorKind::Unavailable, "cut off");
    let error = transport.send(&call).await.err().unwrap();
    check(&error, ErrorKind::Unauthenticated, "EXAMPLE_API_KEY");
}

#[tokio::test]
async fn opens_circuit_after_repeated_failures() {
    let server = Server::answering(|_| Reply::json(500, &json!({}))).await;
    let breaker = BreakerSettings { failures: 3, open_for: Duration::from_secs(60) };
    let settings = ConnectionSettings { breaker, max_retries: 0, ..connection(&server) };
    let transport = transport(&settings);
    for _ in 0..3 {
        check(&ask(&transport).await.unwrap_err(), ErrorKind::Unavailable, "HTTP 500");
    }
    let error = ask(&transport).await.unwrap_err();
    check(&error, ErrorKind::Unavailable, "requests are sent again in 60 s");
    assert!(error.retry_after().is_some_and(|wait| wait <= Duration::from_secs(60)));
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn keeps_the_error_that_opened_the_circuit() {
    let server = Server::answering(|_| Reply::json(500, &json!({}))).await;
    let breaker = BreakerSettings { failures: 2, open_for: Duration::from_secs(60) };
    let settings = ConnectionSettings { breaker, max_retries: 5, ..connection(&server) };
    let error = ask(&transport(&settings)).await.unwrap_err();
    check(&error, ErrorKind::Unavailable, "HTTP 500");
    assert_eq!(server.received().len(), 2, "an open circuit ends the retries");
}

#[tokio::test]
async fn closes_circuit_after_success() {
    let server = Server::replying([Reply::json(500, &json!({})), good()]).await;
    let breaker = BreakerSettings { failures: 1, open_for: Duration::ZERO };
    let settings = ConnectionSettings { breaker, max_retries: 0, ..connection(&server) };
    let transport = transport(&settings);
    ask(&transport).await.unwrap_err();
    assert_eq!(ask(&transport).await.unwrap()["answer"], "Good.");
}

#[tokio::test]
async fn gives_up_at_idle_timeout() {
    let server = Server::replying([texts(&["Ye"]).then_silence()]).await;
    let idle_timeout = Duration::from_millis(100);
    let settings = ConnectionSettings { idle_timeout, ..connection(&server) };
    let error = stream(&transport(&settings)).await.unwrap_err();
    let part =
        "sent nothing for 0.1 s in the middle of an answer (`providers.example.idle_timeout_ms`)";
    check(&error, ErrorKind::Unavailable, part);
    server.hung_up(1).await;
}

#[tokio::test]
async fn ends_stream_at_request_timeout() {
    let server = Server::replying([texts(&["Ye"]).then_silence()]).await;
    let request_timeout = Duration::from_millis(200);
    let settings = ConnectionSettings { request_timeout, ..connection(&server) };
    let error = stream(&transport(&settings)).await.unwrap_err();
    check(&error, ErrorKind::Unavailable, "providers.example.timeout_ms");
}

#[tokio::test]
async fn reports_streams_that_are_cut_off() {
    for reply in [texts(&["Ye", "s."]), texts(&["Ye"]).then_cut()] {
        let server = Server::replying([reply, good()]).await;
        let error = stream(&transport(&connection(&server))).await.unwrap_err();
        check(&error, ErrorKind::Unavailable, "cut off");
        assert_eq!(server.received().len(), 1, "an answer that began is not asked for again");
    }
}

#[tokio::test]
async fn reuses_connections_after_streams() {
    let reply = || texts(&["Ye", "s.", "[DONE]"]).in_pieces(4).kept_alive();
    let server = Server::replying([reply(), reply(), reply()]).await;
    let transport = transport(&connection(&server));
    for _ in 0..3 {
        assert_eq!(stream(&transport).await.unwrap().text, "Yes.");
    }
    assert_eq!((server.received().len(), server.connections()), (3, 1));
}

#[tokio::test]
async fn a_call_that_is_too_late_by_its_own_timeout_counts_as_failure() {
    let server = Server::answering(|_| Reply::no_answer()).await;
    let breaker = BreakerSettings { failures: 2, open_for: Duration::from_secs(60) };
    let transport = transport(&ConnectionSettings { breaker, ..connection(&server) });
    let call = Call::get("/answers", transport.origin("embed", None));
    let timeout = Some(TimeLimit { after: Duration::from_millis(50), setting: Some("patience") });
    let call = Call { timeout, ..call };
    for _ in 0..2 {
        let error = transport.json(&call).await.unwrap_err();
        check(&error, ErrorKind::Unavailable, "within 0.05 s (`providers.example.patience`)");
    }
    let error = transport.json(&call).await.unwrap_err();
    check(&error, ErrorKind::Unavailable, "failed several times in a row");
    assert_eq!(server.received().len(), 2);
}

#[tokio::test]
async fn a_cut_after_the_end_of_an_answer_is_no_failure() {
    let server =
        Server::answering(|_| texts(&["Ye", "s.", "[DONE]"]).kept_alive().then_cut()).await;
    let breaker = BreakerSettings { failures: 1, open_for: Duration::from_secs(60) };
    let transport = transport(&ConnectionSettings { breaker, ..connection(&server) });
    for _ in 0..3 {
        assert_eq!(stream(&transport).await.unwrap().text, "Yes.");
    }
}
