//! Streams of server-sent events, read into pieces of an answer.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use eventsource_stream::{EventStream, EventStreamError, Eventsource as _};
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;
use throughline_core::chat::{ChatAnswer, ChatEvent};
use throughline_core::ports::ChatStream;
use throughline_core::{Error, Result};
use tokio::time::timeout;

use crate::answer::Draft;
use crate::errors::Origin;
use crate::transport::{Body, Call, JSON, Transport, collect, has_type, parse};

/// How long the end of a body is waited for behind the end of an answer, so that its connection is used again.
const DRAIN: Duration = Duration::from_millis(100);

/// What an event was.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// A piece of text, which may be empty.
    Text(String),
    /// The end of the answer.
    End,
}

/// Reads the events of one API; it does no I/O.
pub trait StreamReader: Send {
    /// Takes an event.
    ///
    /// # Errors
    /// What the event reports, and `Unavailable` for one that is not of the API.
    fn event(&mut self, name: &str, data: &str) -> Result<Step>;

    /// Whether the answer is whole, where the stream ends without the mark of its end.
    fn is_complete(&self) -> bool;

    /// The answer.
    ///
    /// # Errors
    /// `Unavailable` where what was read is no answer.
    fn finish(&mut self) -> Result<Draft>;
}

/// Sends a call and reads the answer as a whole.
///
/// # Errors
/// Those of [`Transport::json`] and of `read`; `Declined` for an answer that says nothing.
pub async fn whole_answer(
    transport: &Transport,
    call: &Call,
    read: impl FnOnce(&Value) -> Result<Draft>,
) -> Result<ChatAnswer> {
    let value = transport.json(call).await?;
    read(&value)?.finish(&call.origin)
}

/// Sends a call and reads the answer while it is written. A server that does not stream answers with JSON, as a whole.
///
/// # Errors
/// As [`whole_answer`], up to the first event.
pub async fn stream_answer(
    transport: &Transport,
    call: &Call,
    read: impl FnOnce(&Value) -> Result<Draft>,
    reader: Box<dyn StreamReader>,
) -> Result<ChatStream> {
    let answer = transport.send(call).await?;
    let origin = &call.origin;
    if has_type(&answer.headers, JSON) {
        let value = parse(&collect(answer.body).await?, origin)?;
        let answer = read(&value)?.finish(origin)?;
        return Ok(stream::iter(whole(answer).into_iter().map(Ok)).boxed());
    }
    let mut events = read_events(answer.body, reader, origin.clone());
    match events.next().await {
        Some(first) => {
            let first = first?;
            Ok(stream::once(async move { Ok(first) }).chain(events).boxed())
        }
        None => Err(origin.cut_off()),
    }
}

struct Reading {
    events: Pin<Box<EventStream<Body>>>,
    reader: Box<dyn StreamReader>,
    origin: Origin,
    /// Whether a piece of text was given out.
    has_text: bool,
    /// The last events, which are still to be given out, once the answer is whole.
    last: Option<VecDeque<ChatEvent>>,
}

/// The events of an answer that comes as a whole.
fn whole(answer: ChatAnswer) -> VecDeque<ChatEvent> {
    let text = Some(answer.text.clone()).filter(|text| !text.is_empty());
    text.map(ChatEvent::Text).into_iter().chain([ChatEvent::Done(answer)]).collect()
}

/// Reads a body. The stream ends with the answer or with an error; dropping it ends the request.
fn read_events(body: Body, reader: Box<dyn StreamReader>, origin: Origin) -> ChatStream {
    let events = Box::pin(without_byte_order_mark(body).eventsource());
    let reading = Reading { events, reader, origin, has_text: false, last: None };
    stream::unfold(Some(reading), async |reading| {
        let mut reading = reading?;
        match reading.next().await {
            Ok(Some(event)) => Some((Ok(event), Some(reading))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// The parser panics at a byte order mark, which the standard allows at the beginning.
fn without_byte_order_mark(body: Body) -> Body {
    let mut filter = MarkFilter { matched: Some(0) };
    body.map(move |piece| piece.map(|piece| filter.rest(piece))).boxed()
}

/// How much of a mark has come, which may be in several pieces; none once something else has.
struct MarkFilter {
    matched: Option<usize>,
}

impl MarkFilter {
    const MARK: &[u8] = "\u{feff}".as_bytes();

    /// What of a piece is behind the marks.
    fn rest(&mut self, piece: Bytes) -> Bytes {
        let Some(mut matched) = self.matched else { return piece };
        for (at, byte) in piece.iter().enumerate() {
            if *byte != Self::MARK[matched] {
                self.matched = None;
                return [&Self::MARK[..matched], &piece[at..]].concat().into();
            }
            matched = (matched + 1) % Self::MARK.len();
        }
        self.matched = Some(matched);
        Bytes::new()
    }
}

impl Reading {
    async fn next(&mut self) -> Result<Option<ChatEvent>> {
        loop {
            if let Some(last) = &mut self.last {
                let event = last.pop_front();
                if event.is_none() {
                    let rest = async { while self.events.next().await.is_some() {} };
                    let _ = timeout(DRAIN, rest).await;
                }
                return Ok(event);
            }
            let step = match self.events.next().await {
                Some(Ok(event)) if event.data.trim().is_empty() => continue,
                Some(Ok(event)) => self.reader.event(&event.event, &event.data)?,
                Some(Err(error)) => return Err(self.error(error)),
                None if self.reader.is_complete() => Step::End,
                None => return Err(self.origin.cut_off()),
            };
            match step {
                Step::Text(text) if text.is_empty() => {}
                Step::Text(text) => {
                    self.has_text = true;
                    return Ok(Some(ChatEvent::Text(text)));
                }
                Step::End => {
                    let answer = self.reader.finish()?.finish(&self.origin)?;
                    let done = if self.has_text {
                        VecDeque::from([ChatEvent::Done(answer)])
                    } else {
                        whole(answer)
                    };
                    self.last = Some(done);
                }
            }
        }
    }

    fn error(&self, error: EventStreamError<Error>) -> Error {
        match error {
            EventStreamError::Transport(error) => error,
            // They repeat what was sent.
            EventStreamError::Utf8(_) => self.origin.unreadable().with_source("it is not UTF-8"),
            EventStreamError::Parser(_) => {
                self.origin.unreadable().with_source("it is no stream of events")
            }
        }
    }
}

#[cfg(test)]
mod tests;
