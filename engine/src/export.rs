//! Messages as lines that an import reads back.

use serde::Serialize;
use serde_json::value::RawValue;
use throughline_core::session::Message;
use throughline_core::{Error, Result};

/// A message as one line of JSON.
#[derive(Debug, Serialize)]
pub struct MessageLine<'m> {
    role: &'static str,
    content: &'m str,
    session: &'m str,
    /// The caller's id, or ours.
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'m str>,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attachments: Option<Box<RawValue>>,
}

impl<'m> MessageLine<'m> {
    /// The line of a message.
    ///
    /// # Errors
    /// None that a message of ours causes.
    pub fn of(message: &'m Message) -> Result<Self> {
        let id = match &message.external_id {
            Some(id) => id.as_str().to_owned(),
            None => message.id.to_string(),
        };
        Ok(Self {
            role: message.role.as_str(),
            content: &message.content,
            session: message.session.as_str(),
            id,
            name: message.name.as_deref(),
            created_at: message.created_at.to_rfc3339(),
            parts: message.parts.as_deref().map(raw).transpose()?,
            attachments: message.attachments.as_deref().map(raw).transpose()?,
        })
    }
}

/// JSON as it was sent, on one line. What was sent as JSON and is none becomes a text.
fn raw(json: &str) -> Result<Box<RawValue>> {
    // Between values a line break is a blank; within a text it is written as two letters.
    let line = json.replace(['\n', '\r'], " ");
    match RawValue::from_string(line) {
        Ok(raw) => Ok(raw),
        Err(_) => serde_json::value::to_raw_value(json)
            .map_err(|error| Error::internal("a text has no JSON form").with_source(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_as_it_was_sent_on_one_line() {
        let table = [
            ("[{\"a\":  1.0}]", "[{\"a\":  1.0}]"),
            ("{\n\t\"a\": \"b\\n\"\r\n}", "{ \t\"a\": \"b\\n\"  }"),
            ("no json\n", "\"no json\\n\""),
        ];
        for (sent, line) in table {
            assert_eq!(raw(sent).unwrap().get(), line, "{sent}");
        }
    }
}
