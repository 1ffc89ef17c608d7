//! Streams of server-sent events, read into pieces of an answer.

mod text;

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use eventsource_stream::{EventStream, EventStreamError, Eventsource as _};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;
use throughline_core::chat::{ChatAnswer, ChatEvent};
use throughline_core::ports::ChatStream;
use throughline_core::{Error, Result};
use tokio::time::timeout;

use crate::answer::Draft;
use crate::errors::Origin;
use crate::transport::{Answer, Call, JSON, SharedPermit, Transport, collect, has_type, parse};

use text::TextDecoder;

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
    /// Takes an event that is JSON, and neither the mark of the end nor an error in the form of [`read_event`].
    ///
    /// # Errors
    /// What the event reports in another form.
    fn event(&mut self, name: &str, event: &Value) -> Result<Step>;

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
    let mut events = read_events(answer, reader, origin.clone());
    match events.next().await {
        Some(first) => {
            let first = first?;
            Ok(stream::once(async move { Ok(first) }).chain(events).boxed())
        }
        None => Err(origin.cut_off()),
    }
}

/// Reads one event. Every API ends its streams with `[DONE]` or nothing, and reports errors as `error` of an event, or in
/// an event of that name.
///
/// # Errors
/// What the event reports, and `Unavailable` for one that is not JSON.
pub fn read_event(
    reader: &mut dyn StreamReader,
    origin: &Origin,
    name: &str,
    data: &str,
) -> Result<Step> {
    if data.trim() == "[DONE]" {
        return Ok(Step::End);
    }
    let event: Value =
        serde_json::from_str(data).map_err(|error| origin.unreadable().with_source(error))?;
    if name == "error" || !event["error"].is_null() {
        return Err(origin.reported(None, &event));
    }
    reader.event(name, &event)
}

struct Reading {
    events: Pin<Box<EventStream<BoxStream<'static, Result<String>>>>>,
    reader: Box<dyn StreamReader>,
    origin: Origin,
    permit: SharedPermit,
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

/// Reads an answer. The stream ends with the answer or with an error; dropping it ends the request.
fn read_events(answer: Answer, reader: Box<dyn StreamReader>, origin: Origin) -> ChatStream {
    let Answer { body, permit, .. } = answer;
    let mut decoder = TextDecoder::default();
    let texts = body.map(move |piece| piece.map(|piece| decoder.decode(&piece))).boxed();
    let events = Box::pin(texts.eventsource());
    let reading = Reading { events, reader, origin, permit, has_text: false, last: None };
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

impl Reading {
    async fn next(&mut self) -> Result<Option<ChatEvent>> {
        loop {
            if let Some(last) = &mut self.last {
                let event = last.pop_front();
                if event.is_none() {
                    let rest = async { while let Some(Ok(_)) = self.events.next().await {} };
                    let _ = timeout(DRAIN, rest).await;
                }
                return Ok(event);
            }
            let step = match self.events.next().await {
                Some(Ok(event)) if event.data.trim().is_empty() => continue,
                Some(Ok(event)) => {
                    read_event(&mut *self.reader, &self.origin, &event.event, &event.data)?
                }
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
                    // The answer is whole, whatever becomes of the connection.
                    self.permit.settle();
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
            // The parser's own error repeats what was sent.
            EventStreamError::Utf8(_) | EventStreamError::Parser(_) => {
                self.origin.unreadable().with_source("it is not a stream of events")
            }
        }
    }
}

#[cfg(test)]
mod tests;
