//! An HTTP/1.1 server that does what a test says, cut-off answers and silence included.

mod cassette;
mod model;
mod secrets;
mod shown;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use cassette::check_cassettes;
pub use model::{ModelOnServer, request, streamed};
pub use secrets::check_that_no_key_is_shown;
pub use shown::{Log, everything_shown};

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct Received {
    /// Its method.
    pub method: String,
    /// Its path, with the query.
    pub path: String,
    /// Its headers, by their names in lower case.
    pub headers: HashMap<String, String>,
    /// Its body; null where that is no JSON.
    pub body: Value,
    /// The same, as it came.
    pub raw: Vec<u8>,
}

/// What is sent back.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    end: End,
    /// Bytes of each piece of the body.
    piece: usize,
    /// Whether the connection may be used again.
    keep_alive: bool,
}

/// What comes behind the body that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The body is whole.
    Whole,
    /// The connection is cut.
    Cut,
    /// Nothing, until the client hangs up.
    Silence,
    /// Not even a status, until the client hangs up.
    NoAnswer,
    /// The connection is closed instead of an answer.
    Closed,
}

impl Reply {
    /// JSON.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", &body.to_string())
    }

    /// Any text.
    pub fn text(status: u16, content_type: &str, body: &str) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.as_bytes().to_vec(),
            end: End::Whole,
            piece: usize::MAX,
            keep_alive: false,
        }
        .header("content-type", content_type)
    }

    /// Server-sent events, each a text as it stands behind `data: `.
    pub fn events<T: ToString>(events: &[T]) -> Self {
        let events = events.iter().map(|event| format!("data: {}\n\n", event.to_string()));
        Self::text(200, "text/event-stream", &events.collect::<String>())
    }

    /// Nothing at all, until the client hangs up.
    pub fn no_answer() -> Self {
        Self { end: End::NoAnswer, ..Self::text(200, "", "") }
    }

    /// A connection that is closed instead of an answer.
    pub fn closed() -> Self {
        Self { end: End::Closed, ..Self::text(200, "", "") }
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends the body in pieces of so many bytes, which end anywhere.
    #[must_use]
    pub fn in_pieces(self, piece: usize) -> Self {
        Self { piece, ..self }
    }

    /// On a connection that may be used again.
    #[must_use]
    pub fn kept_alive(self) -> Self {
        Self { keep_alive: true, ..self }
    }

    /// Cut off behind the body.
    #[must_use]
    pub fn then_cut(self) -> Self {
        Self { end: End::Cut, ..self }
    }

    /// Silent behind the body, until the client hangs up.
    #[must_use]
    pub fn then_silence(self) -> Self {
        Self { end: End::Silence, ..self }
    }
}

type Answering = Box<dyn Fn(&Received) -> Reply + Send + Sync>;

struct State {
    received: Mutex<Vec<Received>>,
    replies: Mutex<VecDeque<Reply>>,
    answering: Answering,
    hung_up: watch::Sender<usize>,
    connections: AtomicUsize,
}

/// The server. It ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Server {
    /// Gives these replies in order, and a status 500 past their end.
    ///
    /// # Panics
    /// As [`Self::answering`].
    pub async fn replying(replies: impl IntoIterator<Item = Reply>) -> Self {
        let server = Self::answering(|_| Reply::text(500, "text/plain", "no reply is left")).await;
        lock(&server.state.replies).extend(replies);
        server
    }

    /// Answers each request by itself. It runs on the runtime that it is started in.
    ///
    /// # Panics
    /// Where the system gives it no port.
    pub async fn answering(answering: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            received: Mutex::default(),
            replies: Mutex::default(),
            answering: Box::new(answering),
            hung_up: watch::Sender::new(0),
            connections: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { address, state, task }
    }

    /// Where it is, such as `http://127.0.0.1:4711`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that arrived, in order.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        lock(&self.state.received).clone()
    }

    /// How many connections were made.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Waits until so many clients have hung up in the middle of an answer.
    ///
    /// # Panics
    /// Where they have not after a long time.
    pub async fn hung_up(&self, count: usize) {
        let mut hung_up = self.state.hung_up.subscribe();
        let wait = hung_up.wait_for(|seen| *seen >= count);
        tokio::time::timeout(Duration::from_secs(30), wait)
            .await
            .expect("a client hangs up")
            .unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    while serve_one(&mut stream, &state).await.is_some_and(|keep_alive| keep_alive) {}
}

/// Serves a request, and says whether there may be another.
async fn serve_one(stream: &mut TcpStream, state: &State) -> Option<bool> {
    let received = read(stream).await?;
    lock(&state.received).push(received.clone());
    let next = lock(&state.replies).pop_front();
    let reply = next.unwrap_or_else(|| (state.answering)(&received));
    if reply.end == End::Closed {
        return None;
    }
    if reply.end != End::NoAnswer {
        let mut head = format!("HTTP/1.1 {} Reply\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let connection = if reply.keep_alive { "keep-alive" } else { "close" };
        head.push_str(&format!("transfer-encoding: chunked\r\nconnection: {connection}\r\n\r\n"));
        let mut bytes = head.into_bytes();
        for piece in reply.body.chunks(reply.piece) {
            bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            bytes.extend(piece);
            bytes.extend(b"\r\n");
        }
        if reply.end == End::Whole {
            bytes.extend(b"0\r\n\r\n");
        }
        stream.write_all(&bytes).await.ok()?;
    }
    if matches!(reply.end, End::Silence | End::NoAnswer) {
        let mut nothing = [0; 64];
        while matches!(stream.read(&mut nothing).await, Ok(1..)) {}
        state.hung_up.send_modify(|count| *count += 1);
    }
    Some(reply.keep_alive && reply.end == End::Whole)
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let (raw, body) = (body.clone(), serde_json::from_slice(&body).unwrap_or(Value::Null));
    Some(Received { method, path, headers, body, raw })
}
