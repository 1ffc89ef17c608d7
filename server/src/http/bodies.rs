//! Bodies of requests. A body arrives before its request takes a place, so that one that does not come keeps no place, and
//! within limits: of its time, of its size, and of the memory that all bodies take together.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use throughline_core::{Error, ErrorKind};
use throughline_engine::admission::{BodyMemory, ClientId};
use throughline_engine::json_limits::JsonLimits;
use tower_http::timeout::TimeoutError;

use super::service::Service;
use crate::wire::problem::Failure;

/// How much memory a request costs at work, times the size of its body: its bytes, the values that are read from it, and what
/// is made of these.
const COST: usize = 4;
/// The same where the content is cut into passages, each with its terms and its vector.
const INDEXED_COST: usize = 10;
/// Largest body where the content is one text or less: 1 MiB of text, three times that where its JSON is ASCII.
const MAX_TEXT_BYTES: usize = 4 << 20;
/// Paths whose content is more than one text: their bodies may be as large as the configuration says.
const LARGE: [&str; 7] = [
    MCP,
    DOCUMENT,
    "/v1/sessions/{id}/messages",
    "/v1/sessions/{id}/chat",
    "/v1/contexts/import",
    "/openai/v1/chat/completions",
    "/openai/v1/embeddings",
];
/// Paths whose content is indexed as a whole.
const INDEXED: [&str; 4] = [MCP, DOCUMENT, "/v1/sessions/{id}/messages", "/v1/contexts/import"];
/// The answer is a whole context, which is as large as a body may be: few are made at once.
const EXPORT: &str = "/v1/contexts/{id}/export";
/// The one operation whose content may be plain text.
const DOCUMENT: &str = "/v1/vaults/{vault}/memories/{memory}/context";
const MCP: &str = "/mcp";
/// How often the values of a message of MCP are in memory at once: rmcp reads them more than once.
const MCP_COPIES: usize = 3;
/// How long the rest of a body that is refused is read, so that its sender gets to read the answer.
const READ_ON: Duration = Duration::from_secs(10);

/// What a layer hands to the handler behind it, which takes it once.
pub(super) struct Handed<T>(Arc<Mutex<Option<T>>>);

impl<T> Handed<T> {
    pub(super) fn new(thing: T) -> Self {
        Self(Arc::new(Mutex::new(Some(thing))))
    }

    pub(super) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Clone for Handed<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// A body that arrived.
pub(super) struct ReceivedBody {
    pub(super) bytes: Bytes,
    pub(super) memory: BodyMemory,
    /// The memory that the request costs at work.
    pub(super) cost: usize,
}

/// The bytes of a body, or why it did not arrive.
type Arrived = Handed<Result<Bytes, Failure>>;

/// Receives the body of a request for its handler; returns its memory, and what the request costs at work. Of a body that
/// did not arrive, the handler is told why.
pub(super) async fn receive(
    request: &mut Request,
    client: ClientId,
    service: &Service,
) -> Option<(BodyMemory, usize)> {
    let (arrived, memory) = match arrive(request, client, service).await {
        Ok(ReceivedBody { bytes, memory, cost }) => (Ok(bytes), Some((memory, cost))),
        Err(failure) => (Err(failure), None),
    };
    request.extensions_mut().insert(Arrived::new(arrived));
    memory
}

/// Takes the body out of a request.
pub(super) async fn arrive(
    request: &mut Request,
    client: ClientId,
    service: &Service,
) -> Result<ReceivedBody, Failure> {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    let most = match service.config.max_body_bytes() {
        most if LARGE.contains(&path) => most,
        most => most.min(MAX_TEXT_BYTES),
    };
    let values = match path {
        MCP => Some(MCP_COPIES),
        DOCUMENT if is_plain_text(request.headers()) => None,
        _ => Some(1),
    };
    // A client that waits for the word to send has sent nothing that would have to be read.
    let waits = request.headers().contains_key(header::EXPECT);
    let mut body = std::mem::take(request.body_mut());
    if waits && body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut arriving = Arriving {
        bytes: Vec::with_capacity(announced.min(most)),
        most,
        values: values.map(|copies| (JsonLimits::default(), copies)),
        memory: service.memory.body(client),
    };
    let collected = arriving.collect(&mut body);
    let collected = tokio::time::timeout(service.config.body_timeout(), collected).await;
    let collected = collected.unwrap_or_else(|_| {
        let error = Error::invalid("the body took too long to arrive: send the request again");
        Err(Failure::of_status(StatusCode::REQUEST_TIMEOUT, error))
    });
    let values = collected?;
    let factor = if INDEXED.contains(&path) { INDEXED_COST } else { COST };
    let size = arriving.bytes.len();
    let cost = match path {
        EXPORT => cost_of_export(service),
        _ => (factor * size).max((factor - 1) * size + values),
    };
    Ok(ReceivedBody { bytes: arriving.bytes.into(), memory: arriving.memory, cost })
}

/// How much memory an export of a context costs.
pub(super) fn cost_of_export(service: &Service) -> usize {
    COST * service.config.max_body_bytes()
}

/// A body that arrives.
struct Arriving {
    bytes: Vec<u8>,
    most: usize,
    /// The values of a JSON body, and how many copies of them are made.
    values: Option<(JsonLimits, usize)>,
    memory: BodyMemory,
}

impl Arriving {
    /// Takes everything in; returns the memory that the values take beside their text.
    async fn collect(&mut self, body: &mut Body) -> Result<usize, Failure> {
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(broken_off)?.into_data() else { continue };
            if let Err(refused) = self.add(&data) {
                (self.bytes, self.values) = (Vec::new(), None);
                self.memory.give_back();
                // A connection that is closed with something unread takes the answer with it.
                let rest = async { while let Some(Ok(_)) = body.frame().await {} };
                let _ = tokio::time::timeout(READ_ON, rest).await;
                return Err(refused);
            }
        }
        Ok(self.memory_of_values(self.bytes.len())?)
    }

    fn add(&mut self, data: &[u8]) -> Result<(), Failure> {
        let size = self.bytes.len() + data.len();
        if size > self.most {
            return Err(too_large(self.most));
        }
        self.memory.grow_to(size)?;
        if let Some((values, _)) = &mut self.values {
            values.read(data)?;
        }
        // Text that is still to come may make up for many values.
        self.memory_of_values(self.most)?;
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// The memory of the values so far, if the body has this size in the end.
    fn memory_of_values(&self, size: usize) -> throughline_core::Result<usize> {
        match &self.values {
            Some((values, copies)) => values.memory(*copies, size),
            None => Ok(0),
        }
    }
}

fn is_plain_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("text/plain")
}

/// The body of a request, which a layer received.
pub(super) fn received(request: &Request) -> Result<Bytes, Failure> {
    let arrived = request.extensions().get::<Arrived>().and_then(Arrived::take);
    arrived.unwrap_or_else(|| {
        Err(Error::new(ErrorKind::Internal, "no body was received for this operation").into())
    })
}

fn too_large(most: usize) -> Failure {
    Failure::of_status(
        StatusCode::PAYLOAD_TOO_LARGE,
        Error::invalid(format!("the body is larger than the limit of {most} bytes")),
    )
}

fn broken_off(error: axum::Error) -> Failure {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(cause) = source {
        if cause.is::<TimeoutError>() {
            return Failure::of_status(
                StatusCode::REQUEST_TIMEOUT,
                Error::invalid("the body stopped arriving: send the request again"),
            );
        }
        source = cause.source();
    }
    Error::invalid("the body is incomplete: send it again").into()
}
