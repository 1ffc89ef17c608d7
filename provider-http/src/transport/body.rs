//! The body of an answer: each piece in time, the whole within the deadline and a size.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use throughline_core::{Error, Result};
use tokio::time::{Instant, timeout_at};

use super::breaker::Permit;
use crate::errors::Origin;

/// No answer of the API comes near.
const MAX_BYTES: usize = 256 << 20;

/// Pieces of a body. Dropping it ends the request; an error is its last item.
pub type Body = BoxStream<'static, Result<Bytes>>;

/// How long a body may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) deadline: Instant,
    /// Of the whole call, for the error.
    pub(crate) whole: Duration,
    pub(crate) idle: Duration,
}

struct Reading {
    pieces: BoxStream<'static, reqwest::Result<Bytes>>,
    limits: Limits,
    left: usize,
    permit: Permit,
    origin: Origin,
}

/// The body of `response`, within limits.
pub(crate) fn limited(
    response: reqwest::Response,
    limits: Limits,
    permit: Permit,
    origin: Origin,
) -> Body {
    let pieces = response.bytes_stream().boxed();
    let reading = Reading { pieces, limits, left: MAX_BYTES, permit, origin };
    stream::unfold(Some(reading), async |reading| {
        let mut reading = reading?;
        match reading.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(reading))),
            Ok(None) => None,
            Err(error) => {
                reading.permit.failed();
                Some((Err(error), None))
            }
        }
    })
    .boxed()
}

impl Reading {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let idle_at = Instant::now() + self.limits.idle;
        let until = idle_at.min(self.limits.deadline);
        match timeout_at(until, self.pieces.next()).await {
            Err(_) if until == idle_at => Err(self.origin.idle(self.limits.idle)),
            Err(_) => Err(self.origin.timed_out(self.limits.whole)),
            Ok(None) => Ok(None),
            Ok(Some(Err(error))) => Err(self.origin.cut_off().with_source(error.without_url())),
            Ok(Some(Ok(piece))) => {
                self.left =
                    self.left.checked_sub(piece.len()).ok_or_else(|| self.origin.unreadable())?;
                Ok(Some(piece))
            }
        }
    }
}

/// The whole body.
///
/// # Errors
/// Those of the stream.
pub async fn collect(mut body: Body) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(piece) = body.next().await {
        all.extend_from_slice(&piece?);
    }
    Ok(all)
}
