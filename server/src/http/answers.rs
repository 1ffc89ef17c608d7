//! Answers: compressed where requests are worked on, and in the memory of their client until they are read.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use throughline_core::{Error, Result};
use throughline_engine::admission::{AnswerMemory, ClientId, MemoryBudget};
use tower::{ServiceExt, service_fn};
use tower_http::compression::Compression;

/// How much of a large answer is handed to its connection at a time.
const PIECE: usize = 16 << 10;

/// What an answer is made for.
pub(super) struct Asked {
    client: ClientId,
    /// Whether it can be asked for again without doing anything twice.
    is_read: bool,
    accepts: Option<HeaderValue>,
}

impl Asked {
    pub(super) fn of(request: &Request, client: ClientId) -> Self {
        let accepts = request.headers().get(header::ACCEPT_ENCODING).cloned();
        Self { client, is_read: request.method() == Method::GET, accepts }
    }

    /// The answer as it is sent. What is made while it is sent is compressed then, and takes no memory.
    ///
    /// # Errors
    /// `RateLimited` where the client has too much to read, `Unavailable` where all together have. Whoever wrote
    /// something waits instead.
    pub(super) async fn answer(
        self,
        response: Response,
        memory: &MemoryBudget,
    ) -> Result<Response> {
        let Some(size) = response.body().size_hint().exact() else {
            return Ok(compressed(response, self.accepts).await);
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let memory = match self.is_read {
            true => memory.answer(self.client, size)?,
            false => memory.answer_waits(self.client, size).await?,
        };
        let (parts, body) = compressed(response, self.accepts).await.into_parts();
        let rest = collected(body).await?;
        let body = match memory {
            None => rest.into(),
            Some(mut memory) => {
                memory.shrink_to(rest.len());
                Body::new(Pieces { rest, _memory: memory })
            }
        };
        Ok(Response::from_parts(parts, body))
    }
}

/// The answer as a client that accepts this encoding gets it.
async fn compressed(response: Response, accepts: Option<HeaderValue>) -> Response {
    let Some(accepts) = accepts else { return response };
    let mut request = axum::http::Request::new(response);
    request.headers_mut().insert(header::ACCEPT_ENCODING, accepts);
    type Answers = axum::http::Request<Response>;
    let answers = service_fn(async |request: Answers| Ok::<_, Infallible>(request.into_body()));
    let Ok(response) = Compression::new(answers).oneshot(request).await;
    response.map(Body::new)
}

async fn collected(mut body: Body) -> Result<Bytes> {
    let broken = |error| Error::internal("an answer cannot be compressed").with_source(error);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if body.is_end_stream() && bytes.is_empty() {
            return Ok(data);
        }
        bytes.extend_from_slice(&data);
        // Compressing takes time, and others compute as well.
        tokio::task::yield_now().await;
    }
    Ok(bytes.into())
}

/// A large answer, whose connection gets copies of its pieces: one that is part of the whole would keep the whole.
struct Pieces {
    rest: Bytes,
    _memory: AnswerMemory,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let end = PIECE.min(self.rest.len());
        let piece = self.rest.split_to(end);
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(&piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
