//! Streams of any bytes, in pieces of any size.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use proptest::prelude::*;

use super::*;
use crate::errors::origin;

/// Takes every string as a piece of text, and `0` as a reason to stop.
#[derive(Default)]
struct Texts {
    draft: Draft,
    has_stopped: bool,
}

impl StreamReader for Texts {
    fn event(&mut self, _: &str, event: &Value) -> Result<Step> {
        let text = event.as_str().unwrap_or_default();
        self.has_stopped |= *event == 0;
        self.draft.text.push_str(text);
        Ok(Step::Text(text.to_owned()))
    }

    fn is_complete(&self) -> bool {
        self.has_stopped
    }

    fn finish(&mut self) -> Result<Draft> {
        Ok(std::mem::take(&mut self.draft))
    }
}

fn read(bytes: &[u8], size: usize) -> Vec<Result<ChatEvent>> {
    let pieces: Vec<_> =
        bytes.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let body = stream::iter(pieces).boxed();
    let answer = Answer {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        body,
        permit: SharedPermit::unlimited(),
    };
    let events = read_events(answer, Box::<Texts>::default(), origin(None));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(events.collect())
}

/// Parts of streams, whole and broken.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "data: \"é\"\n\n",
        "data: \"a\"\r\n\r\n",
        "data: 0\n\n",
        "data: [DONE]\n\n",
        "data: {\"error\": 1}\n\n",
        "event: error\n",
        "data: ",
        "data:",
        "\"",
        "\n",
        "\n\n",
        "\u{feff}",
        ": ",
        "é",
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
        let mut events = read(&parts.concat(), size);
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
fn a_byte_that_is_not_utf8_does_not_end_a_stream() {
    let bytes = b"data: \"Y\xffe\"\n\ndata: \"s.\"\n\ndata: [DONE]\n\n";
    for size in [1, 2, 1_000] {
        let events = read(bytes, size);
        let Ok(ChatEvent::Done(answer)) = events.last().unwrap() else {
            panic!("no answer: {events:?}")
        };
        assert_eq!(answer.text, "Y\u{fffd}es.");
    }
}
