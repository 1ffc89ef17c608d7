//! The format for programs. Names are in snake case, as in the HTTP interface; camel case, as in MCP, is
//! read as well.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{Export, ExportMessage, ExportRating, FORMAT, FORMAT_VERSION};
use crate::access::Actor;
use crate::error::{Error, Result};
use crate::ids::{MessageId, PresetId, SessionId, UserId};
use crate::persona::{Overrides, Settings};
use crate::session::Role;
use crate::text::clip;
use crate::time::Timestamp;

/// Longest description of what is wrong with a field, in characters: it may quote the field.
const MAX_WRONG: usize = 200;

#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object")]
struct Form {
    format: Option<String>,
    version: Option<u64>,
    exported_at: Option<AsText<Timestamp>>,
    context: ContextForm,
    #[serde(alias = "messages")]
    conversations: Option<Vec<MessageForm>>,
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object")]
struct ContextForm {
    name: String,
    #[serde(alias = "systemPrompt")]
    system_prompt: String,
    personality: Option<String>,
    temperature: Option<f64>,
    #[serde(alias = "maxTokens")]
    max_tokens: Option<u32>,
    #[serde(alias = "maxHistoryTokens")]
    max_history_tokens: Option<u32>,
    #[serde(alias = "expiryDays")]
    expiry_days: Option<u32>,
    memory: Option<bool>,
    tags: Option<Vec<String>>,
    #[serde(alias = "presetId", skip_serializing_if = "Option::is_none")]
    preset_id: Option<AsText<PresetId>>,
    #[serde(alias = "presetVersion", skip_serializing_if = "Option::is_none")]
    preset_version: Option<u64>,
    #[serde(alias = "createdAt")]
    created_at: Option<AsText<Timestamp>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object")]
struct MessageForm {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<AsText<MessageId>>,
    role: AsText<Role>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<AsText<Actor>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    content: String,
    #[serde(alias = "createdAt")]
    created_at: Option<AsText<Timestamp>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratings: Option<Vec<RatingForm>>,
}

#[derive(Serialize, Deserialize)]
#[serde(expecting = "an object")]
struct RatingForm {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    helpful: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(alias = "ratedAt")]
    rated_at: Option<AsText<Timestamp>>,
}

/// A value of the domain that stands in the form as its text.
struct AsText<T>(T);

impl<T: fmt::Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de, T: FromStr<Err = Error>> Deserialize<'de> for AsText<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map(Self).map_err(D::Error::custom)
    }
}

pub(super) fn write(export: &Export) -> Result<String> {
    let Settings { temperature, max_tokens, max_history_tokens, expiry_days } = export.settings;
    let form = Form {
        format: Some(FORMAT.to_owned()),
        version: Some(FORMAT_VERSION),
        exported_at: Some(AsText(export.exported_at)),
        context: ContextForm {
            name: export.name.clone(),
            system_prompt: export.system_prompt.clone(),
            personality: Some(export.personality.clone()),
            temperature: Some(temperature),
            max_tokens: Some(max_tokens),
            max_history_tokens: Some(max_history_tokens),
            expiry_days: Some(expiry_days),
            memory: Some(export.memory),
            tags: Some(export.tags.clone()),
            preset_id: export.preset.clone().map(AsText),
            preset_version: export.preset_version,
            created_at: Some(AsText(export.created_at)),
            session: export.session.as_ref().map(SessionId::to_string),
        },
        conversations: Some(export.messages.iter().cloned().map(MessageForm::from).collect()),
    };
    serde_json::to_string_pretty(&form)
        .map_err(|error| Error::internal("the export cannot be written").with_source(error))
}

/// Any JSON, and nothing after it.
pub(super) fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| Error::invalid(format!("not valid JSON: {error}")))
}

pub(super) fn read(json: Value) -> Result<Export> {
    refuse_others(&json)?;
    let form: Form = serde_path_to_error::deserialize(json).map_err(wrong)?;
    let context = form.context;
    let said = Overrides {
        temperature: context.temperature,
        max_tokens: context.max_tokens,
        max_history_tokens: context.max_history_tokens,
        expiry_days: context.expiry_days,
    };
    let settings = Settings::default()
        .with(&said)
        .map_err(|error| Error::invalid(format!("context.{}", error.message())))?;
    let exported_at = form.exported_at.map_or_else(Timestamp::default, |at| at.0);
    let created_at = context.created_at.map_or(exported_at, |at| at.0);
    let messages = form.conversations.unwrap_or_default();
    Ok(Export {
        exported_at,
        name: context.name,
        system_prompt: context.system_prompt,
        personality: context.personality.unwrap_or_default(),
        settings,
        memory: context.memory.unwrap_or(false),
        tags: context.tags.unwrap_or_default(),
        preset: context.preset_id.map(|preset| preset.0),
        preset_version: context.preset_version,
        created_at,
        session: context.session.map(SessionId::new).transpose()?,
        messages: messages
            .into_iter()
            .map(|message| message.into_message(created_at))
            .collect::<Result<_>>()?,
    })
}

/// Refuses what is no export, or one of a later version, before its fields are looked at: there, they may
/// be others.
fn refuse_others(json: &Value) -> Result<()> {
    let format = json.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| format != FORMAT) {
        return Err(Error::invalid(
            "format: not a Throughline export: expected `throughline.context`",
        ));
    }
    let version = json.get("version").and_then(Value::as_u64);
    if version.is_some_and(|version| version > FORMAT_VERSION) {
        return Err(Error::invalid(format!(
            "version: is newer than {FORMAT_VERSION}: import it with a newer version of Throughline"
        )));
    }
    if json.get("context").is_none_or(Value::is_null) {
        return Err(Error::invalid("context: is missing, so this is not an export of a context"));
    }
    Ok(())
}

/// What is wrong, with its place. Of a field that is missing, and of one that is there under both of its
/// names, serde tells the object only.
fn wrong(error: serde_path_to_error::Error<serde_json::Error>) -> Error {
    let (path, what) = (error.path().to_string(), error.inner().to_string());
    let of = if path == "." { String::new() } else { format!("{path}.") };
    for (kind, said) in [("missing", "is missing"), ("duplicate", "is given twice")] {
        let field = what.strip_prefix(kind).and_then(|rest| rest.strip_prefix(" field `"));
        if let Some(field) = field.and_then(|rest| rest.strip_suffix('`')) {
            return Error::invalid(format!("{of}{field}: {said}"));
        }
    }
    Error::invalid(format!("{path}: {}", clip(&what, MAX_WRONG)))
}

impl From<ExportMessage> for MessageForm {
    fn from(message: ExportMessage) -> Self {
        let ExportMessage { id, role, actor, name, content, created_at, tags, ratings } = message;
        let actor = actor.map(AsText);
        let (role, created_at) = (AsText(role), Some(AsText(created_at)));
        let (id, tags) = (id.map(AsText), (!tags.is_empty()).then_some(tags));
        let ratings: Vec<_> = ratings.into_iter().map(RatingForm::from).collect();
        let ratings = (!ratings.is_empty()).then_some(ratings);
        Self { id, role, actor, name, content, created_at, tags, ratings }
    }
}

impl From<ExportRating> for RatingForm {
    fn from(rating: ExportRating) -> Self {
        let ExportRating { user, helpful, note, rated_at } = rating;
        let (user, rated_at) = (user.map(|user| user.to_string()), Some(AsText(rated_at)));
        Self { user, helpful, note, rated_at }
    }
}

impl MessageForm {
    /// The message; `unsaid` is when it was said, where it does not say that.
    fn into_message(self, unsaid: Timestamp) -> Result<ExportMessage> {
        let Self { id, role, actor, name, content, created_at, tags, ratings } = self;
        let actor = actor.and_then(|actor| actor.0.of_export());
        let created_at = created_at.map_or(unsaid, |at| at.0);
        let (id, role, tags) = (id.map(|id| id.0), role.0, tags.unwrap_or_default());
        let ratings = ratings.unwrap_or_default().into_iter().map(|form| {
            let rated_at = form.rated_at.map_or(created_at, |at| at.0);
            let user = form.user.map(UserId::new).transpose()?;
            Ok(ExportRating { user, helpful: form.helpful, note: form.note, rated_at })
        });
        let ratings = ratings.collect::<Result<_>>()?;
        Ok(ExportMessage { id, role, actor, name, content, created_at, tags, ratings })
    }
}
