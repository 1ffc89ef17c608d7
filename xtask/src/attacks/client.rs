//! HTTP/1.1 as an attacker speaks it: a connection for each request, which may stop in the middle.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;

/// Who waits longer is not served.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the service listens.
#[derive(Debug, Clone)]
pub(super) struct Client(SocketAddr);

impl Client {
    pub(super) fn of(base: &str) -> Result<Self> {
        Ok(Self(base.strip_prefix("http://").ok_or("the service has no address")?.parse()?))
    }

    /// A connection on which this was sent.
    pub(super) fn begin(&self, sent: &[u8]) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&self.0, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        stream.write_all(sent)?;
        Ok(stream)
    }

    /// Whether the service is alive.
    pub(super) fn healthz(&self) -> io::Result<u16> {
        status(self.begin(head("GET", "/healthz", "", None).as_bytes())?)
    }

    /// The status of the answer to a request with a JSON body.
    pub(super) fn send(
        &self,
        (method, path): (&str, &str),
        key: &str,
        body: &[u8],
    ) -> io::Result<u16> {
        status(self.begin(&[head(method, path, key, Some(body.len())).as_bytes(), body].concat())?)
    }

    /// The JSON that such a request is answered with.
    pub(super) fn ask(
        &self,
        (method, path): (&str, &str),
        key: &str,
        body: &[u8],
    ) -> Result<Value> {
        let head = head(method, path, key, Some(body.len()));
        let mut answer = String::new();
        self.begin(&[head.as_bytes(), body].concat())?.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("there is no answer")?;
        Ok(serde_json::from_str(body)?)
    }
}

/// The header of a request that closes its connection.
pub(super) fn head(method: &str, path: &str, key: &str, length: Option<usize>) -> String {
    let key = match key {
        "" => String::new(),
        key => format!("Authorization: Bearer {key}\r\n"),
    };
    let body = length.map_or(String::new(), |length| {
        format!(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {length}\r\n"
        )
    });
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{key}{body}\r\n")
}

/// The status that a connection is answered with.
pub(super) fn status(mut stream: TcpStream) -> io::Result<u16> {
    let mut answer = Vec::new();
    let mut piece = [0; 4_096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            // It may close the connection before it has read everything.
            Err(error) if error.kind() == ErrorKind::ConnectionReset && !answer.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    status.ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))
}

/// How long requests took, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    taken: Vec<f64>,
    /// Those that were not answered with 200.
    pub(super) unserved: usize,
}

impl Latencies {
    /// Asks once.
    pub(super) fn add(&mut self, ask: impl FnOnce() -> io::Result<u16>) {
        let began = Instant::now();
        let answered = ask();
        self.taken.push(began.elapsed().as_secs_f64() * 1e3);
        self.unserved += usize::from(!matches!(answered, Ok(200)));
    }

    pub(super) fn p50(&self) -> f64 {
        let mut taken = self.taken.clone();
        taken.sort_by(f64::total_cmp);
        taken.get(taken.len() / 2).copied().unwrap_or_default()
    }

    pub(super) fn max(&self) -> f64 {
        self.taken.iter().copied().fold(0.0, f64::max)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "requests": self.taken.len(), "unserved": self.unserved,
            "p50_ms": self.p50(), "max_ms": self.max(),
        })
    }
}
