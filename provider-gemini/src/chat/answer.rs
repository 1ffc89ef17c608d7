//! Answers, whole or in pieces, which have one form.

use serde_json::Value;
use throughline_core::Result;
use throughline_core::chat::{TokenUsage, ToolCall};
use throughline_provider_http::json::{count, items, text};
use throughline_provider_http::{
    CONTENT_FILTER, Draft, END_TURN, MALFORMED_CALL, MAX_TOKENS, Step, StreamReader,
};

use super::call_id;

/// Reads the responses of an answer.
#[derive(Default)]
pub(super) struct AnswerReader {
    draft: Draft,
    /// A reason to stop has come, or the prompt was blocked. The stream ends without a mark.
    has_stopped: bool,
}

impl AnswerReader {
    /// Takes a response, and gives the text that it adds.
    pub(super) fn take(&mut self, response: &Value) -> String {
        self.draft.usage = usage(&response["usageMetadata"]).or(self.draft.usage);
        if response["promptFeedback"]["blockReason"].is_string() {
            self.draft.stop = Some(CONTENT_FILTER.to_owned());
            self.has_stopped = true;
        }
        let candidate = &response["candidates"][0];
        let mut added = String::new();
        for part in items(&candidate["content"]["parts"]) {
            let called = &part["functionCall"];
            if called.is_object() {
                let call = self.call(called, part, text(&response["responseId"]));
                self.draft.calls.push(call);
            } else if part["thought"] != true {
                added.push_str(text(&part["text"]));
            }
        }
        if let Some(reason) = stop_reason(text(&candidate["finishReason"])) {
            self.draft.stop = Some(reason.to_owned());
            self.has_stopped = true;
        }
        self.draft.text.push_str(&added);
        added
    }

    fn call(&self, called: &Value, part: &Value, response_id: &str) -> ToolCall {
        // Models before Gemini 3 give calls no id.
        let at = self.draft.calls.len();
        let id = match (text(&called["id"]), response_id) {
            ("", "") => format!("call_{at}"),
            ("", response) => format!("{response}_{at}"),
            (id, _) => id.to_owned(),
        };
        let args = &called["args"];
        ToolCall {
            id: call_id::signed(&id, text(&part["thoughtSignature"])),
            name: text(&called["name"]).to_owned(),
            arguments: if args.is_null() { "{}".to_owned() } else { args.to_string() },
        }
    }
}

impl StreamReader for AnswerReader {
    fn event(&mut self, _: &str, response: &Value) -> Result<Step> {
        Ok(Step::Text(self.take(response)))
    }

    fn is_complete(&self) -> bool {
        self.has_stopped
    }

    fn finish(&mut self) -> Result<Draft> {
        Ok(std::mem::take(&mut self.draft))
    }
}

/// Unknown reasons are passed on as they are.
fn stop_reason(reason: &str) -> Option<&str> {
    Some(match reason {
        "" | "FINISH_REASON_UNSPECIFIED" => return None,
        "STOP" => END_TURN,
        "MAX_TOKENS" => MAX_TOKENS,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => CONTENT_FILTER,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => MALFORMED_CALL,
        other => other,
    })
}

/// What is thought is paid as what is written, and what tools of the provider put in as what is sent.
fn usage(usage: &Value) -> Option<TokenUsage> {
    usage.is_object().then(|| TokenUsage {
        input: count(&usage["promptTokenCount"]) + count(&usage["toolUsePromptTokenCount"]),
        cached_input: count(&usage["cachedContentTokenCount"]),
        output: count(&usage["candidatesTokenCount"]) + count(&usage["thoughtsTokenCount"]),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use throughline_provider_http::{ConnectionSettings, Transport, read_event};

    use super::*;
    use crate::settings::GEMINI;

    /// Events of a stream, whole and broken.
    const EVENTS: &[&str] = &[
        "[DONE]",
        r#"{"candidates": [{"content": {"parts": [{"text": "é"}], "role": "model"}}]}"#,
        r#"{"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": true}]}}]}"#,
        r#"{"candidates": [{"content": {"parts": [{"functionCall": {}}, 7]}}]}"#,
        r#"{"candidates": [{"finishReason": "STOP", "content": {}}], "usageMetadata": []}"#,
        r#"{"candidates": {"a": 1}, "usageMetadata": {"promptTokenCount": "7"}}"#,
        r#"{"promptFeedback": {"blockReason": "SAFETY"}}"#,
        r#"{"error": 7}"#,
        "[[",
        "7",
    ];

    proptest! {
        #[test]
        fn any_events_are_read_into_their_texts(
            events in prop::collection::vec(prop::sample::select(EVENTS), 0..12),
        ) {
            let settings = ConnectionSettings::new("http://127.0.0.1/v1beta");
            let transport = Transport::new(&settings, &GEMINI).unwrap();
            let origin = transport.origin("chat", None);
            let mut reader = AnswerReader::default();
            let mut texts = String::new();
            for event in events {
                match read_event(&mut reader, &origin, "message", event) {
                    Ok(Step::Text(text)) => texts.push_str(&text),
                    Ok(Step::End) | Err(_) => break,
                }
            }
            prop_assert_eq!(reader.finish().unwrap().text, texts);
        }
    }

    #[test]
    fn knows_why_answers_end() {
        for (reason, stop) in [
            ("", None),
            ("FINISH_REASON_UNSPECIFIED", None),
            ("STOP", Some("endTurn")),
            ("MAX_TOKENS", Some("maxTokens")),
            ("SAFETY", Some("contentFilter")),
            ("RECITATION", Some("contentFilter")),
            ("MALFORMED_FUNCTION_CALL", Some("malformedToolCall")),
            ("LANGUAGE", Some("LANGUAGE")),
        ] {
            assert_eq!(stop_reason(reason), stop, "{reason}");
        }
    }
}
