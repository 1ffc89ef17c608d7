//! Streams of any bytes, in pieces of any size.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::errors::EXAMPLE;
use crate::transport::ApiKey;

/// Takes every event as a piece of text, up to one that says `end` or `error`.
#[derive(Default)]
struct Texts {
    draft: Draft,
    has_stopped: bool,
}

impl StreamReader for Texts {
    fn event(&mut self, _: &str, data: &str) -> Result<Step> {
        match data {
            "end" => return Ok(Step::End),
            "stop" => self.has_stopped = true,
            "error" => return Err(Error::invalid("an error inside the answer")),
            text => {
                self.draft.text.push_str(text);
                return Ok(Step::Text(text.to_owned()));
            }
        }
        Ok(Step::Text(String::new()))
    }

    fn is_complete(&self) -> bool {
        self.has_stopped
    }

    fn finish(&mut self) -> Result<Draft> {
        Ok(std::mem::take(&mut self.draft))
    }
}

fn origin() -> Origin {
    Origin {
        profile: &EXAMPLE,
        server: Arc::from("there"),
        operation: "chat",
        model: None,
        key: ApiKey::new(None, &EXAMPLE).unwrap(),
    }
}

/// Parts of streams, whole and broken.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "data: ", "data:", "event: error", "\n", "\n\n", "\r\n", "end", "stop", "error",
        "\u{feff}", ": ", "é",
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
    ) {
        let bytes = parts.concat();
        let pieces: Vec<_> = bytes.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let events = read_events(stream::iter(pieces).boxed(), Box::<Texts>::default(), origin());
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
