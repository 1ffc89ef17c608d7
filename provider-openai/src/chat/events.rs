//! Streams of server-sent events, read into pieces of an answer.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use eventsource_stream::{EventStream, EventStreamError, Eventsource as _};
use futures_util::StreamExt as _;
use futures_util::stream;
use throughline_core::chat::{ChatAnswer, ChatEvent};
use throughline_core::ports::ChatStream;
use throughline_core::{Error, Result};
use tokio::time::timeout;

use crate::errors::Origin;
use crate::transport::Body;

/// How long the end of a body is waited for behind the end of an answer, so that its connection is used again.
const DRAIN: Duration = Duration::from_millis(100);

/// What an event was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A piece of text, which may be empty.
    Text(String),
    /// The end of the answer.
    End,
}

/// Reads the events of one API; it does no I/O.
pub(super) trait StreamReader: Send {
    /// Takes an event.
    fn event(&mut self, name: &str, data: &str) -> Result<Step>;

    /// Whether the answer is whole, where the stream ends without the mark of its end.
    fn is_complete(&self) -> bool;

    /// The answer.
    fn finish(&mut self) -> Result<ChatAnswer>;
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
pub(super) fn whole(answer: ChatAnswer) -> VecDeque<ChatEvent> {
    let text = Some(answer.text.clone()).filter(|text| !text.is_empty());
    text.map(ChatEvent::Text).into_iter().chain([ChatEvent::Done(answer)]).collect()
}

/// Reads a body. The stream ends with the answer or with an error; dropping it ends the request.
pub(super) fn read(body: Body, reader: Box<dyn StreamReader>, origin: Origin) -> ChatStream {
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
                    let answer = self.reader.finish()?;
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
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::chat::completions::CompletionReader;
    use crate::chat::responses::ResponseReader;
    use crate::transport::ApiKey;

    fn origin() -> Origin {
        let key = ApiKey::new(None).unwrap();
        Origin { server: Arc::from("there"), operation: "chat", model: None, key }
    }

    /// Parts of streams, whole and broken.
    fn part() -> impl Strategy<Value = Vec<u8>> {
        let known = prop::sample::select(vec![
            "data: ",
            "data:",
            "event: error",
            "\n",
            "\n\n",
            "\r\n",
            "[DONE]",
            "\u{feff}",
            ": ",
            "{\"choices\": [{\"delta\": {\"content\": \"é\"}}]}",
            "{\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 9}]}, \"finish_reason\": \"stop\"}]}",
            "{\"choices\": {\"a\": 1}, \"usage\": []}",
            "{\"type\": \"response.output_text.delta\", \"delta\": \"é\"}",
            "{\"type\": \"response.completed\", \"response\": {\"output\": [{}]}}",
            "{\"error\": 7}",
            "[[",
        ]);
        prop_oneof![
            8 => known.prop_map(|text| text.as_bytes().to_vec()),
            1 => prop::collection::vec(any::<u8>(), 0..4),
        ]
    }

    proptest! {
        #[test]
        fn any_stream_ends_with_an_answer_or_an_error(
            parts in prop::collection::vec(part(), 0..24),
            size in 1_usize..64,
            responses in any::<bool>(),
        ) {
            let bytes = parts.concat();
            let pieces: Vec<_> = bytes.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
            let reader: Box<dyn StreamReader> = if responses {
                Box::new(ResponseReader::new(origin(), true))
            } else {
                Box::new(CompletionReader::new(origin()))
            };
            let events = read(stream::iter(pieces).boxed(), reader, origin());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let mut events: Vec<_> = runtime.block_on(events.collect());
            let last = events.pop().unwrap();
            prop_assert!(events.iter().all(|event| matches!(event, Ok(ChatEvent::Text(text)) if !text.is_empty())));
            match last {
                Ok(ChatEvent::Done(answer)) => {
                    let texts = events.into_iter().map(|event| match event {
                        Ok(ChatEvent::Text(text)) => text,
                        _ => String::new(),
                    });
                    prop_assert_eq!(texts.collect::<String>(), answer.text);
                }
                Ok(ChatEvent::Text(_)) => prop_assert!(false, "it ends with a piece"),
                Err(_) => {}
            }
        }
    }

    #[test]
    fn drops_byte_order_marks_at_the_beginning() {
        for (text, rest) in [
            ("", ""),
            ("data", "data"),
            ("\u{feff}data", "data"),
            ("\u{feff}\u{feff}data\u{feff}", "data\u{feff}"),
            // It begins with the same bytes.
            ("\u{fefe}data", "\u{fefe}data"),
        ] {
            for size in 1..=8 {
                let mut filter = MarkFilter { matched: Some(0) };
                let pieces = text.as_bytes().chunks(size);
                let read: Vec<_> =
                    pieces.flat_map(|piece| filter.rest(Bytes::copy_from_slice(piece))).collect();
                assert_eq!(read, rest.as_bytes(), "{text:?} in pieces of {size}");
            }
        }
    }
}
