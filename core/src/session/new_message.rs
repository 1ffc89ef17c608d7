//! A message to append, and the limits of one.

use crate::access::Actor;
use crate::ids::{ExternalId, MAX_NAME_BYTES, MessageId, is_forbidden};
use crate::session::Role;
use crate::time::Timestamp;

/// Largest content of a message, in bytes.
pub const MAX_CONTENT_BYTES: usize = 1 << 20;
/// Most messages of one append.
pub const MAX_BATCH: usize = 1_000;
/// Most bytes of contents of one append: it is one transaction, which others wait for.
pub const MAX_BATCH_BYTES: usize = 16 << 20;

/// Most levels of lists and objects in parts and attachments, whichever way they come.
pub const MAX_PARTS_DEPTH: usize = 60;

/// A message to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Who speaks.
    pub role: Role,
    /// The speaker's name.
    pub name: Option<String>,
    /// The text.
    pub content: String,
    /// The caller's id: appending it again with equal content is the same message.
    pub external_id: Option<ExternalId>,
    /// When it was said; `None` is now.
    pub created_at: Option<Timestamp>,
    /// Our id of the message that it is a copy of, where it comes from an export of ours.
    pub origin: Option<MessageId>,
    /// On whose word it is, where that is not who appends it: a guest of the session, or what an export of ours says of
    /// its messages.
    pub actor: Option<Actor>,
    /// JSON text, kept and not interpreted.
    pub parts: Option<String>,
    /// JSON text, kept and not interpreted.
    pub attachments: Option<String>,
}

impl NewMessage {
    /// A message of `role` that says `content`, now.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            name: None,
            content: content.into(),
            external_id: None,
            created_at: None,
            origin: None,
            actor: None,
            parts: None,
            attachments: None,
        }
    }
}

impl NewMessage {
    /// The problem of the message: the field and the allowed values.
    #[must_use]
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let content = &self.content;
        let what = if content.trim().is_empty() {
            "is empty: 1 byte to 1 MiB of text is allowed".to_owned()
        } else if content.len() > MAX_CONTENT_BYTES {
            format!(
                "has {} bytes: at most 1 MiB ({MAX_CONTENT_BYTES}) is allowed; store larger texts \
                 as files and append a description",
                content.len()
            )
        } else if content.contains('\0') {
            "has a NUL character: only text is allowed".to_owned()
        } else {
            return self.problem_beside_content();
        };
        Some(("content", what))
    }

    fn problem_beside_content(&self) -> Option<(&'static str, String)> {
        if let Some(name) = &self.name
            && (name.len() > MAX_NAME_BYTES || name.chars().any(is_forbidden))
        {
            let what = format!(
                "is too long or has a control character: at most {MAX_NAME_BYTES} bytes of text are \
                 allowed"
            );
            return Some(("name", what));
        }
        let json = [("parts", &self.parts), ("attachments", &self.attachments)];
        json.into_iter().find_map(|(field, json)| {
            let json = json.as_ref()?;
            if json.len() > MAX_CONTENT_BYTES {
                return Some((field, "is over 1 MiB, the largest size allowed".to_owned()));
            }
            let depth = depth(json);
            (depth > MAX_PARTS_DEPTH).then(|| {
                (
                    field,
                    format!("is nested {depth} levels deep: at most {MAX_PARTS_DEPTH} are allowed"),
                )
            })
        })
    }
}

/// How deeply lists and objects of a JSON text are nested.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_may_be_so_deep() {
        for (json, expected) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a":[{"b":[]}],"c":{}}"#, 4),
            (r#"["[[[","\"[["]"#, 1),
            (r#"["\\",[]]"#, 2),
        ] {
            assert_eq!(depth(json), expected, "{json}");
        }
        let nested = |levels| {
            let parts = Some(format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
            NewMessage { parts, ..NewMessage::new(Role::User, "a") }.problem()
        };
        assert_eq!(nested(MAX_PARTS_DEPTH), None);
        assert!(nested(MAX_PARTS_DEPTH + 1).is_some_and(|(field, what)| {
            field == "parts" && what.contains("nested 61 levels deep")
        }));
    }
}
