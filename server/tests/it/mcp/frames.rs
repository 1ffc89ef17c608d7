//! What is no message, or too much of one, is refused over HTTP, and the next request works.

use std::io::Write;
use std::net::TcpStream;

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Caller, alone, code, initialize, is_done, message, result};
use crate::http::service::{Answer, Service};
use crate::support::Throughline;

const SMALL_BODIES: [&str; 4] = [
    "--set",
    "http.max_body_mb=1",
    "--set",
    r#"mcp.tool_sets=["memory","sessions","documents","admin"]"#,
];

/// Both eras still work.
async fn works(caller: &Caller<'_>, session: &str) {
    is_done(&caller.call("whoami", &json!({})).await);
    let whoami = json!({"name": "whoami", "arguments": {}});
    is_done(&result(&Answer::of(caller.within(session, "tools/call", whoami)).await));
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_the_next_one_works() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &SMALL_BODIES);
    let caller = Caller::local(&service);
    let session = caller.begin().await;
    let list = message("tools/list", alone(json!({})));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let large = "x".repeat(2 << 20);
    let table: [(&str, Vec<u8>, &[u16]); 11] = [
        ("nothing", Vec::new(), &[400, 415]),
        ("half of JSON", b"{\"jsonrpc\": \"2.0\",".to_vec(), &[400, 415]),
        ("no text", vec![0xff, 0xfe, 0x00], &[400, 415]),
        ("a number", b"7".to_vec(), &[400, 415]),
        ("no method", br#"{"jsonrpc": "2.0", "id": 1}"#.to_vec(), &[400, 415, 422]),
        (
            "another version",
            br#"{"jsonrpc": "1.0", "id": 1, "method": "ping"}"#.to_vec(),
            &[400, 415],
        ),
        ("a batch", json!([list, list]).to_string().into_bytes(), &[400, 415]),
        ("an empty batch", b"[]".to_vec(), &[400, 415]),
        ("a deep value", deep.into_bytes(), &[400, 415]),
        ("too much", large.clone().into_bytes(), &[413]),
        (
            "too much of a message",
            message("tools/list", json!({"cursor": large})).to_string().into(),
            &[413],
        ),
    ];
    for (what, body, expected) in table {
        for within in [None, Some(&session)] {
            // The service hangs up on who sends too much, and the next request would meet that.
            let request = caller.request(Method::POST).header("connection", "close");
            let mut request = request.body(body.clone());
            if let Some(session) = within {
                request = request.header("mcp-session-id", session);
            }
            let answer = Answer::of(request).await;
            assert!(expected.contains(&answer.status.as_u16()), "{what}: {answer:?}");
        }
        works(&caller, &session).await;
    }

    // Requests that are none of ours.
    let answer = Answer::of(caller.alone("no/such", json!({}))).await;
    assert_eq!((answer.status.as_u16(), code(&answer)), (404, -32601), "{answer:?}");
    let answer = Answer::of(caller.within(&session, "no/such", json!({}))).await;
    assert_eq!(code(&answer), -32601, "{answer:?}");
    let unknown = json!({"name": "no_such_tool", "arguments": {}});
    for request in [
        caller.alone("tools/call", unknown.clone()),
        caller.within(&session, "tools/call", unknown.clone()),
    ] {
        assert_eq!(code(&Answer::of(request).await), -32602);
    }
    for version in ["1999-01-01", "2099-01-01", "x"] {
        let mut params = alone(json!({}));
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
        let request = caller.post(&message("tools/list", params));
        let answer = Answer::of(request.header("mcp-protocol-version", version)).await;
        assert_eq!(answer.status, 400, "{version}: {answer:?}");
    }
    for method in [Method::PUT, Method::PATCH] {
        let answer = Answer::of(caller.request(method)).await;
        assert_eq!(answer.status, 405, "{answer:?}");
    }
    works(&caller, &session).await;
    assert!(!service.log().contains("panicked"), "{}", service.log());
}

#[tokio::test]
async fn pages_of_other_sites_are_refused() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let local = Caller::local(&service);
    for (header, value) in
        [("origin", "https://evil.example"), ("origin", "null"), ("host", "evil.example")]
    {
        let caller = local.clone().with(header, value);
        for request in [
            caller.post(&initialize()),
            caller.alone("tools/list", json!({})),
            caller.request(Method::GET),
            caller.request(Method::DELETE),
        ] {
            Answer::of(request).await.problem(403, "forbidden");
        }
    }
    let here = local.with("origin", "http://localhost:3000");
    result(&Answer::of(here.alone("tools/list", json!({}))).await);

    // A key is no reason to serve a page that its operator did not name.
    let data = Throughline::new();
    let key = crate::http::service::key(&data, "acme", &["--user", "ana"], "read,write");
    let allowed = ["--set", r#"mcp.allowed_origins=["https://app.example"]"#];
    let service = Service::start_with(&data, &allowed);
    let caller = Caller::keyed(&service, &key);
    for (origin, expected) in [
        ("https://evil.example", 403),
        ("https://app.example:8443", 403),
        ("null", 403),
        ("https://app.example", 200),
        ("http://localhost:6274", 200),
    ] {
        let shown = |answer: &Answer| {
            answer
                .headers
                .get("access-control-allow-origin")
                .map(|of| of.to_str().unwrap().to_owned())
        };
        let expected_shown = (expected == 200).then(|| origin.to_owned());
        let page = caller.clone().with("origin", origin);
        for request in [page.post(&initialize()), page.alone("tools/list", json!({}))] {
            let answer = Answer::of(request).await;
            assert_eq!(answer.status, expected, "{origin}");
            assert_eq!(shown(&answer), expected_shown, "{origin}");
        }
        // What a browser asks first, without the key.
        let asked = Caller::local(&service).with("origin", origin).request(Method::OPTIONS);
        let asked = asked
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type,mcp-method");
        let answer = Answer::of(asked).await;
        assert_eq!(shown(&answer), expected_shown, "{origin}");
        let headers = answer.headers["access-control-allow-headers"].to_str().unwrap();
        assert!(headers.contains("authorization") && headers.contains("mcp-method"), "{headers}");
    }
}

#[tokio::test]
async fn disconnected_client_does_not_affect_others() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &SMALL_BODIES);
    let caller = Caller::local(&service);
    let session = caller.begin().await;
    let turn = json!({"session": "s1", "user_turn": "word ".repeat(2_000)});
    let call = json!({"name": "assemble_context", "arguments": turn});
    let in_session = format!("mcp-session-id: {session}\r\n");
    let by_itself = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
                     mcp-name: assemble_context\r\n";
    for (headers, params) in [(in_session.as_str(), call.clone()), (by_itself, alone(call))] {
        for _ in 0..8 {
            gone_in_the_middle(&service, headers, &message("tools/call", params.clone()));
        }
        works(&caller, &session).await;
    }
    assert!(!service.log().contains("panicked"), "{}", service.log());
}

/// Sends a whole request, and half of another, and waits for no answer.
fn gone_in_the_middle(service: &Service, headers: &str, message: &Value) {
    let address = service.base().strip_prefix("http://").unwrap();
    let body = message.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    for sent in [body.len(), body.len() / 2] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body.as_bytes()[..sent]).unwrap();
    }
}
