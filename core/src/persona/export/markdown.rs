//! The form for people. Texts stand between fences that are longer than any within them, so that whatever is
//! said is read back as it was.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{Export, FORMAT, FORMAT_VERSION};
use crate::error::{Error, Result};
use crate::persona::Settings;

/// Settings that are numbers or truth values; all others are texts.
const BARE: &[&str] =
    &["version", "temperature", "max_tokens", "max_history_tokens", "expiry_days", "memory"];
/// Settings of the whole, and not of the context.
const OF_WHOLE: &[&str] = &["format", "version", "exported_at"];

pub(super) fn write(export: &Export) -> String {
    let Settings { temperature, max_tokens, max_history_tokens, expiry_days } = export.settings;
    let mut text = format!("# {}\n\n", export.name);
    let preset = export.preset.as_ref().map(ToString::to_string);
    for (name, value) in [
        ("format", FORMAT.to_owned()),
        ("version", FORMAT_VERSION.to_string()),
        ("exported_at", export.exported_at.to_rfc3339()),
        ("created_at", export.created_at.to_rfc3339()),
        ("temperature", temperature.to_string()),
        ("max_tokens", max_tokens.to_string()),
        ("max_history_tokens", max_history_tokens.to_string()),
        ("expiry_days", expiry_days.to_string()),
        ("memory", export.memory.to_string()),
        ("preset_id", preset.unwrap_or_default()),
        ("tags", export.tags.join(", ")),
    ] {
        line(&mut text, name, &value);
    }
    section(&mut text, "System prompt", &export.system_prompt);
    section(&mut text, "Personality", &export.personality);
    text.push_str("\n## Conversation\n");
    for message in &export.messages {
        // Writing to a `String` does not fail.
        let _ = write!(text, "\n### {}\n\n", message.role);
        line(&mut text, "created_at", &message.created_at.to_rfc3339());
        line(&mut text, "name", message.name.as_deref().unwrap_or_default());
        line(&mut text, "tags", &message.tags.join(", "));
        fenced(&mut text, &message.content);
    }
    text
}

fn line(text: &mut String, name: &str, value: &str) {
    if !value.is_empty() {
        let _ = writeln!(text, "- {name}: {value}");
    }
}

fn section(text: &mut String, title: &str, content: &str) {
    if !content.is_empty() {
        let _ = writeln!(text, "\n## {title}");
        fenced(text, content);
    }
}

fn fenced(text: &mut String, content: &str) {
    let (mut longest, mut run) = (2, 0);
    for c in content.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let _ = write!(text, "\n{fence}text\n{content}\n{fence}\n");
}

type Fields = Map<String, Value>;

/// The parts read so far.
#[derive(Default)]
struct Reading {
    whole: Fields,
    context: Fields,
    messages: Vec<Value>,
    /// Fields of the message at hand.
    message: Option<Fields>,
    /// The kind of the next text.
    next: Option<&'static str>,
}

/// The fields of an export, as its JSON has them.
pub(super) fn read(text: &str) -> Result<Value> {
    let mut reading = Reading::default();
    let mut lines = text.split('\n').enumerate();
    while let Some((number, raw)) = lines.next() {
        let at = number + 1;
        let line = raw.trim_end();
        let ticks = line.len() - line.trim_start_matches('`').len();
        if ticks >= 3 {
            let fence = "`".repeat(ticks);
            let mut content = Vec::new();
            loop {
                match lines.next() {
                    Some((_, end)) if end.trim_end() == fence => break,
                    Some((_, inner)) => content.push(inner),
                    None => {
                        return Err(Error::invalid(format!(
                            "line {at}: the text that begins here does not end with {fence}"
                        )));
                    }
                }
            }
            reading.text(content.join("\n"), at)?;
        } else if let Some(role) = line.strip_prefix("### ") {
            reading.end_message();
            say(reading.message.insert(Fields::new()), "role", role.trim());
            reading.next = Some("content");
        } else if let Some(title) = line.strip_prefix("## ") {
            reading.end_message();
            reading.next = match title.trim() {
                "System prompt" => Some("system_prompt"),
                "Personality" => Some("personality"),
                _ => None,
            };
        } else if let Some(name) = line.strip_prefix("# ") {
            say(&mut reading.context, "name", name.trim());
        } else if let Some((name, value)) =
            line.strip_prefix("- ").and_then(|line| line.split_once(": "))
        {
            reading.field(name.trim(), value.trim(), at)?;
        }
    }
    reading.end_message();
    let Reading { mut whole, context, messages, .. } = reading;
    if context.is_empty() {
        return Err(Error::invalid(
            "not an export of a context: expected JSON that begins with `{`, or Markdown that \
             begins with `# ` and a name",
        ));
    }
    say(&mut whole, "context", context);
    say(&mut whole, "conversations", messages);
    Ok(Value::Object(whole))
}

/// Adds a field. What is said twice is what was said first: of two lines with `# `, the first is the name.
fn say(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    fields.entry(name).or_insert_with(|| value.into());
}

impl Reading {
    fn end_message(&mut self) {
        self.messages.extend(self.message.take().map(Value::Object));
        self.next = None;
    }

    fn text(&mut self, content: String, at: usize) -> Result<()> {
        let Some(name) = self.next.take() else {
            return Err(Error::invalid(format!("line {at}: this text belongs to no section")));
        };
        say(self.message.as_mut().unwrap_or(&mut self.context), name, content);
        Ok(())
    }

    fn field(&mut self, name: &str, value: &str, at: usize) -> Result<()> {
        let read = match name {
            "tags" => {
                let tags = value.split(',').map(str::trim).filter(|tag| !tag.is_empty());
                tags.collect()
            }
            name if BARE.contains(&name) => serde_json::from_str(value)
                .map_err(|_| Error::invalid(format!("line {at}: {name} has an invalid value")))?,
            _ => Value::from(value),
        };
        let fields = match &mut self.message {
            Some(message) => message,
            None if OF_WHOLE.contains(&name) => &mut self.whole,
            None => &mut self.context,
        };
        say(fields, name, read);
        Ok(())
    }
}
