//! The body of an answer: each piece in time, the whole within the deadline and a size.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use throughline_core::{Error, Result};
use tokio::time::{Instant, timeout_at};

use super::TimeLimit;
use super::breaker::Permit;
use crate::errors::Origin;

/// Larger answers are refused. Those of models have a few megabytes at most.
const MAX_BYTES: usize = 256 << 20;

/// Pieces of a body. Dropping it ends the request; an error is its last item.
pub type Body = BoxStream<'static, Result<Bytes>>;

/// How long a body may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) deadline: Instant,
    /// Of the whole call, for the error.
    pub(crate) whole: TimeLimit,
    pub(crate) idle: Duration,
}

/// The permit of a call, shared by its body and by whoever reads the body.
#[derive(Debug, Clone)]
pub(crate) struct SharedPermit(Arc<Mutex<Option<Permit>>>);

impl SharedPermit {
    pub(crate) fn new(permit: Permit) -> Self {
        Self(Arc::new(Mutex::new(Some(permit))))
    }

    /// A permit that counts nothing.
    #[cfg(test)]
    pub(crate) fn unlimited() -> Self {
        Self(Arc::default())
    }

    /// Counts the call as it is now: nothing that comes later changes the outcome.
    pub(crate) fn settle(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn failed(&self) {
        if let Some(permit) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            permit.failed();
        }
    }
}

/// What was read of a body before it is passed on.
#[derive(Default)]
pub(crate) struct Beginning {
    pub(crate) bytes: Vec<u8>,
    pub(crate) error: Option<reqwest::Error>,
}

struct Reading {
    pieces: BoxStream<'static, reqwest::Result<Bytes>>,
    limits: Limits,
    left: usize,
    permit: SharedPermit,
    origin: Origin,
}

/// The body of `response`, within limits.
pub(crate) fn limited(
    beginning: Beginning,
    response: reqwest::Response,
    limits: Limits,
    permit: SharedPermit,
    origin: Origin,
) -> Body {
    let read = Some(beginning.bytes).filter(|bytes| !bytes.is_empty());
    let read = read.map(|bytes| Ok(Bytes::from(bytes))).into_iter();
    let read = stream::iter(read.chain(beginning.error.map(Err)));
    let pieces = read.chain(response.bytes_stream()).boxed();
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
