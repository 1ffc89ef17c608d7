//! A server with a provider's API that answers as a test says, else with "Yes." as OpenAI does, and tells what it was
//! asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

/// What comes of a request.
pub(crate) enum Next {
    /// A status and a body.
    Json(u16, Value),
    /// A status and a body that need not be JSON.
    Text(u16, &'static str),
    /// A whole answer of a chat, once the test lets it go.
    Waits(tokio::sync::oneshot::Receiver<()>, Value),
    /// Too many requests, with so many seconds to wait.
    Busy(u32),
    /// A stream of these pieces, as they are.
    Stream(Vec<String>),
    /// A stream that breaks off after these pieces.
    CutOff(Vec<String>),
    /// A stream that never ends after these pieces.
    Hangs(Vec<String>),
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) key: String,
    pub(crate) body: Value,
}

#[derive(Default)]
struct State {
    next: VecDeque<Next>,
    asked: Vec<Asked>,
    open: usize,
}

/// The server. It ends with the runtime of its test.
#[derive(Clone)]
pub(crate) struct Upstream {
    state: Arc<Mutex<State>>,
    pub(crate) url: String,
}

/// Counts a stream for as long as somebody reads it.
struct Open(Arc<Mutex<State>>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().unwrap().open -= 1;
    }
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let shared = Arc::clone(&state);
        let app = axum::Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let shared = Arc::clone(&shared);
            async move { respond(&shared, &uri, &headers, &body) }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { state, url }
    }

    pub(crate) fn then(&self, next: Next) {
        self.state.lock().unwrap().next.push_back(next);
    }

    /// A whole answer of a chat.
    pub(crate) fn says(&self, text: &str) {
        let message = json!({"role": "assistant", "content": text, "refusal": null});
        self.then(Next::Json(200, completion(&message, "stop")));
    }

    /// The same, once the sender is used.
    pub(crate) fn says_later(&self, text: &str) -> tokio::sync::oneshot::Sender<()> {
        let (release, waits) = tokio::sync::oneshot::channel();
        let message = json!({"role": "assistant", "content": text, "refusal": null});
        self.then(Next::Waits(waits, completion(&message, "stop")));
        release
    }

    /// Waits until it was asked so often.
    pub(crate) async fn is_asked(&self, times: usize) {
        while self.asked().len() < times {
            tokio::time::sleep(Duration::from_millis(5)).await; // tidy: sleep: between two looks
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    pub(crate) fn last(&self) -> Asked {
        self.asked().pop().unwrap()
    }

    /// Streams that somebody reads.
    pub(crate) fn open(&self) -> usize {
        self.state.lock().unwrap().open
    }
}

/// An answer as OpenAI documents it.
pub(crate) fn completion(message: &Value, finish: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_741_569_952, "model": "gpt-4.1-2025-04-14",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 40, "audio_tokens": 0}
        },
        "service_tier": "default", "system_fingerprint": "fp_1"
    })
}

/// Pieces of a streamed answer.
pub(crate) fn pieces(texts: &[&str]) -> Vec<String> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let mut pieces = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
    pieces.extend(texts.iter().map(|text| chunk(json!({"content": text}), None)));
    pieces.push(chunk(json!({}), Some("stop")));
    pieces
}

/// The same, whole.
pub(crate) fn whole(texts: &[&str]) -> Vec<String> {
    let mut all = pieces(texts);
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    let last = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage});
    all.push(format!("data: {last}\n\n"));
    all.push("data: [DONE]\n\n".to_owned());
    all
}

fn respond(shared: &Arc<Mutex<State>>, uri: &Uri, headers: &HeaderMap, body: &Bytes) -> Response {
    let key = headers.get("authorization").or_else(|| headers.get("x-goog-api-key"));
    let key = key.and_then(|key| key.to_str().ok()).unwrap_or_default();
    let mut state = shared.lock().unwrap();
    state.asked.push(Asked {
        path: uri.path().to_owned(),
        key: key.to_owned(),
        body: serde_json::from_slice(body).unwrap_or_default(),
    });
    let next = state.next.pop_front();
    let stream_of = |pieces: Vec<String>| {
        stream::iter(pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece))))
    };
    let event_stream = |body: Body| ([("content-type", "text/event-stream")], body).into_response();
    match next {
        None => axum::Json(completion(&json!({"role": "assistant", "content": "Yes."}), "stop"))
            .into_response(),
        Some(Next::Json(status, body)) => {
            (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
        }
        Some(Next::Text(status, body)) => {
            let json = [("content-type", "application/json")];
            (StatusCode::from_u16(status).unwrap(), json, body).into_response()
        }
        Some(Next::Waits(released, body)) => {
            let whole = async move {
                released.await.map_err(std::io::Error::other)?;
                Ok::<_, std::io::Error>(Bytes::from(body.to_string()))
            };
            let json = [("content-type", "application/json")];
            (json, Body::from_stream(stream::once(whole))).into_response()
        }
        Some(Next::Busy(seconds)) => {
            let body = json!({"error": {"message": "slow down", "type": "rate_limit_error", "code": null}});
            let wait = [("retry-after", seconds.to_string())];
            (StatusCode::TOO_MANY_REQUESTS, wait, axum::Json(body)).into_response()
        }
        Some(Next::Stream(pieces)) => event_stream(Body::from_stream(stream_of(pieces))),
        Some(Next::CutOff(pieces)) => {
            let broken = stream::iter([Err(std::io::Error::other("cut off"))]);
            event_stream(Body::from_stream(stream_of(pieces).chain(broken)))
        }
        Some(Next::Hangs(pieces)) => {
            state.open += 1;
            let open = Open(Arc::clone(shared));
            let never = stream::pending().map(move |piece| {
                let _open = &open;
                piece
            });
            event_stream(Body::from_stream(stream_of(pieces).chain(never)))
        }
    }
}
