//! The form for people; it is not read back. Texts stand between fences that are longer than any within them, so
//! that it shows as Markdown whatever they say.

use std::fmt::Write;

use super::{Export, FORMAT, FORMAT_VERSION};
use crate::persona::Settings;

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
        for rating in &message.ratings {
            let by = rating.user.as_ref().map_or(String::new(), |user| format!(" by {user}"));
            let said = if rating.helpful { "helpful" } else { "not helpful" };
            line(&mut text, "rating", &format!("{said}{by}"));
        }
        fenced(&mut text, &message.content);
        for note in message.ratings.iter().filter_map(|rating| rating.note.as_deref()) {
            fenced(&mut text, note);
        }
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
