//! The form for programs. Names are those of our interfaces; the seed's, in camel case, are read as well.

use super::{Export, ExportMessage, FORMAT, FORMAT_VERSION};
use crate::error::{Error, Result};
use crate::ids::PresetId;
use crate::persona::{Overrides, Settings};
use crate::session::Role;
use crate::text::Json;
use crate::time::Timestamp;

fn object(fields: Vec<(&str, Json)>) -> Json {
    Json::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn texts(texts: &[String]) -> Json {
    Json::List(texts.iter().map(|text| Json::from(text.as_str())).collect())
}

pub(super) fn write(export: &Export) -> Json {
    let Settings { temperature, max_tokens, max_history_tokens, expiry_days } = export.settings;
    let mut context = vec![
        ("name", Json::from(export.name.as_str())),
        ("system_prompt", Json::from(export.system_prompt.as_str())),
        ("personality", Json::from(export.personality.as_str())),
        ("temperature", Json::Number(temperature.to_string())),
        ("max_tokens", Json::from(u64::from(max_tokens))),
        ("max_history_tokens", Json::from(u64::from(max_history_tokens))),
        ("expiry_days", Json::from(u64::from(expiry_days))),
        ("memory", Json::Bool(export.memory)),
        ("tags", texts(&export.tags)),
    ];
    if let Some(preset) = &export.preset {
        context.push(("preset_id", Json::from(preset.as_str())));
    }
    context.push(("created_at", Json::from(export.created_at.to_rfc3339().as_str())));
    object(vec![
        ("format", Json::from(FORMAT)),
        ("version", Json::from(FORMAT_VERSION)),
        ("exported_at", Json::from(export.exported_at.to_rfc3339().as_str())),
        ("complete", Json::Bool(export.is_complete)),
        ("context", object(context)),
        ("conversations", Json::List(export.messages.iter().map(write_message).collect())),
    ])
}

fn write_message(message: &ExportMessage) -> Json {
    let mut fields = vec![("role", Json::from(message.role.as_str()))];
    if let Some(name) = &message.name {
        fields.push(("name", Json::from(name.as_str())));
    }
    fields.push(("content", Json::from(message.content.as_str())));
    fields.push(("created_at", Json::from(message.created_at.to_rfc3339().as_str())));
    if !message.tags.is_empty() {
        fields.push(("tags", texts(&message.tags)));
    }
    object(fields)
}

/// An object with the place that errors name.
struct Fields<'j> {
    of: &'j Json,
    place: String,
}

impl<'j> Fields<'j> {
    fn wrong(&self, name: &str, expected: &str) -> Error {
        Error::invalid(format!("{}{name}: {expected}", self.place))
    }

    /// The value under the first of these names that there is.
    fn get(&self, names: &[&str]) -> Option<&'j Json> {
        names.iter().find_map(|name| self.of.get(name))
    }

    fn text(&self, names: &[&str]) -> Result<Option<&'j str>> {
        let read = |value: &'j Json| value.as_text().ok_or_else(|| self.wrong(names[0], "a text"));
        self.get(names).map(read).transpose()
    }

    fn needed(&self, names: &[&str]) -> Result<&'j str> {
        self.text(names)?.ok_or_else(|| self.wrong(names[0], "is missing"))
    }

    fn number<T: std::str::FromStr>(&self, names: &[&str]) -> Result<Option<T>> {
        let wrong = || self.wrong(names[0], "a number in its range");
        self.get(names).map(|value| value.as_number().ok_or_else(wrong)).transpose()
    }

    fn truth(&self, name: &str, unsaid: bool) -> Result<bool> {
        let Some(value) = self.get(&[name]) else { return Ok(unsaid) };
        value.as_bool().ok_or_else(|| self.wrong(name, "true or false"))
    }

    fn time(&self, names: &[&str]) -> Result<Option<Timestamp>> {
        let wrong = |error: Error| self.wrong(names[0], error.message());
        self.text(names)?.map(Timestamp::parse).transpose().map_err(wrong)
    }

    fn tags(&self) -> Result<Vec<String>> {
        let Some(value) = self.get(&["tags"]) else { return Ok(Vec::new()) };
        let tags = value.as_list().and_then(|tags| {
            tags.iter().map(|tag| tag.as_text().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        tags.ok_or_else(|| self.wrong("tags", "a list of texts"))
    }
}

pub(super) fn read(json: &Json) -> Result<Export> {
    let whole = Fields { of: json, place: String::new() };
    if whole.text(&["format"])?.is_some_and(|format| format != FORMAT) {
        return Err(
            whole.wrong("format", "is not `throughline.context`: this is no export of ours")
        );
    }
    if whole.number::<u64>(&["version"])?.is_some_and(|version| version > FORMAT_VERSION) {
        let what = format!("is newer than {FORMAT_VERSION}: import it with a newer program");
        return Err(whole.wrong("version", &what));
    }
    let Some(context) = whole.get(&["context"]) else {
        return Err(whole.wrong("context", "is missing: this is no export of a context"));
    };
    let context = Fields { of: context, place: "context.".to_owned() };
    let said = Overrides {
        temperature: context.number(&["temperature"])?,
        max_tokens: context.number(&["max_tokens", "maxTokens"])?,
        max_history_tokens: context.number(&["max_history_tokens", "maxHistoryTokens"])?,
        expiry_days: context.number(&["expiry_days", "expiryDays"])?,
    };
    let settings = Settings::default()
        .with(&said)
        .map_err(|error| Error::invalid(format!("context.{}", error.message())))?;
    let preset = context.text(&["preset_id", "presetId"])?;
    let messages = match whole.get(&["conversations", "messages"]) {
        Some(list) => list.as_list().ok_or_else(|| whole.wrong("conversations", "a list"))?,
        None => &[],
    };
    let exported_at = whole.time(&["exported_at"])?.unwrap_or_default();
    let created_at = context.time(&["created_at", "createdAt"])?.unwrap_or(exported_at);
    let read = |(nth, of): (usize, &Json)| {
        read_message(&Fields { of, place: format!("conversations[{nth}].") }, created_at)
    };
    Ok(Export {
        exported_at,
        is_complete: whole.truth("complete", true)?,
        name: context.needed(&["name"])?.to_owned(),
        system_prompt: context.needed(&["system_prompt", "systemPrompt"])?.to_owned(),
        personality: context.text(&["personality"])?.unwrap_or_default().to_owned(),
        settings,
        memory: context.truth("memory", true)?,
        tags: context.tags()?,
        preset: preset.map(PresetId::new).transpose()?,
        created_at,
        messages: messages.iter().enumerate().map(read).collect::<Result<_>>()?,
    })
}

fn read_message(fields: &Fields<'_>, unsaid: Timestamp) -> Result<ExportMessage> {
    let wrong = |error: Error| fields.wrong("role", error.message());
    Ok(ExportMessage {
        role: fields.needed(&["role"])?.parse::<Role>().map_err(wrong)?,
        name: fields.text(&["name"])?.map(str::to_owned),
        content: fields.needed(&["content"])?.to_owned(),
        created_at: fields.time(&["created_at", "createdAt"])?.unwrap_or(unsaid),
        tags: fields.tags()?,
    })
}
