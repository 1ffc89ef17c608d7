//! Messages of a session.

use axum::Json;
use axum::extract::State;
use serde::de::{self, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use throughline_core::ids::ExternalId;
use throughline_core::secret::SecretPolicy;
use throughline_core::session::{Message, NewMessage};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};
use throughline_engine::app::{Thread, WhichMessages};
use throughline_engine::parts::{text_of_calls, text_of_parts};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::sessions::ErasedJson;
use super::{List, ListQuery, Paging, cooked, raw};
use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Params, Repeat, objects};
use crate::http::service::Service;
use crate::wire::problem::Failure;
use crate::wire::{ActorJson, RoleJson, indexed};

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(append, list, erase))
}

/// Messages to append.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"messages": [
    {"role": "user", "content": "The Alfred cutover moved to 21 May.", "external_id": "m-1"},
    {"role": "assistant", "content": "Noted: 21 May."}
]}))]
pub(crate) struct Append {
    /// 1 to 1,000 messages, in order; either all of them are stored or none.
    #[serde(deserialize_with = "objects")]
    #[schema(min_items = 1, max_items = 1000)]
    messages: Vec<NewMessageJson>,
}

/// A message to append, in the format of this API or as an unchanged message object of OpenAI's client library.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessageJson {
    /// `developer` is stored as `system`, and `function` as `tool`.
    role: RoleJson,
    /// The text, up to 1 MiB, or parts in the format of OpenAI or Anthropic, of which the texts are stored. May be
    /// null if there are `tool_calls`.
    #[serde(default, deserialize_with = "content")]
    content: Option<ContentJson>,
    /// The speaker's name.
    #[serde(default)]
    #[schema(max_length = 200)]
    name: Option<String>,
    /// The caller's id; appending the same id with equal content again adds nothing.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    external_id: Option<String>,
    /// When it was written; default now.
    #[serde(default)]
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// Tool calls in OpenAI's format; stored in `parts`, and as text if there is no content.
    #[serde(default)]
    tool_calls: Option<Vec<Value>>,
    /// The call that a message of the role `tool` answers; stored in `parts`.
    #[serde(default)]
    tool_call_id: Option<String>,
    /// The tool call of a message in OpenAI's older format; stored like `tool_calls`.
    #[serde(default)]
    function_call: Option<Value>,
    /// Why a model refused to answer, in OpenAI's format; used as the text if there is no content.
    #[serde(default)]
    refusal: Option<String>,
    /// JSON; stored, not interpreted. It replaces the parts that `content` and `tool_calls` would give.
    #[serde(default)]
    parts: Option<Value>,
    /// JSON; stored, not interpreted.
    #[serde(default)]
    attachments: Option<Value>,
    /// Ignored; part of the messages of OpenAI's client library.
    #[serde(default, rename = "annotations")]
    #[schema(value_type = Option<Value>)]
    _annotations: IgnoredAny,
    /// Ignored; part of the messages of OpenAI's client library.
    #[serde(default, rename = "audio")]
    #[schema(value_type = Option<Value>)]
    _audio: IgnoredAny,
    /// Ignored; added by servers that follow OpenAI's API.
    #[serde(default, rename = "reasoning_content")]
    #[schema(value_type = Option<Value>)]
    _reasoning_content: IgnoredAny,
}

/// The content of a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ContentJson {
    Text(String),
    Parts(Vec<Value>),
}

/// Reads a content by hand, so that an error says what is expected.
fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ContentJson>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(ContentJson::Text(text))),
        Value::Array(parts) => Ok(Some(ContentJson::Parts(parts))),
        _ => Err(de::Error::custom("expected text, an array of parts, or null")),
    }
}

impl NewMessageJson {
    fn message(self) -> Result<NewMessage> {
        let (text, as_parts) = match self.content {
            Some(ContentJson::Text(text)) => (text, None),
            Some(ContentJson::Parts(parts)) => (text_of_parts(&parts), Some(Value::Array(parts))),
            None => (String::new(), None),
        };
        let mut calls = self.tool_calls.unwrap_or_default();
        calls.extend(self.function_call.map(|call| json!({"type": "function", "function": call})));
        let content = if text.trim().is_empty() { text_of_calls(&calls) } else { text };
        let content = match self.refusal {
            Some(refusal) if content.trim().is_empty() => refusal,
            _ => content,
        };
        let of_tool = match (calls.is_empty(), self.tool_call_id) {
            (false, _) => Some(("tool_calls", Value::Array(calls))),
            (true, Some(id)) => Some(("tool_call_id", Value::String(id))),
            (true, None) => None,
        };
        let from_openai = match (of_tool, as_parts) {
            (Some((name, value)), Some(content)) => Some(json!({name: value, "content": content})),
            (Some((name, value)), None) => Some(json!({name: value})),
            (None, as_parts) => as_parts,
        };
        let parts = self.parts.or(from_openai);
        Ok(NewMessage {
            role: self.role.into(),
            name: self.name,
            content,
            external_id: self.external_id.map(ExternalId::new).transpose()?,
            created_at: self.created_at.as_deref().map(Timestamp::parse).transpose()?,
            parts: parts.as_ref().map(raw).transpose()?,
            attachments: self.attachments.as_ref().map(raw).transpose()?,
            origin: None,
            actor: None,
        })
    }
}

/// The appended messages, in order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"messages": [{
    "id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11", "seq": 1, "external_id": "m-1",
    "token_count": 9, "replayed": false
}]}))]
pub(crate) struct AppendedJson {
    messages: Vec<AppendedMessageJson>,
}

/// The ids of an appended message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AppendedMessageJson {
    /// The server's id.
    id: String,
    /// Its position among all messages of the user, in commit order.
    seq: u64,
    /// The caller's id.
    external_id: Option<String>,
    /// Tokens of its content.
    token_count: u32,
    /// Whether it already existed.
    replayed: bool,
}

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11", "seq": 1, "role": "user",
    "actor": "user", "name": null, "content": "The Alfred cutover moved to 21 May.", "external_id": "m-1",
    "created_at": "2026-03-02T09:14:00Z", "token_count": 9
}))]
pub(crate) struct MessageJson {
    /// The server's id.
    id: String,
    /// Its position among all messages of the user, in commit order.
    seq: u64,
    role: RoleJson,
    actor: ActorJson,
    /// The speaker's name.
    name: Option<String>,
    content: String,
    /// The caller's id.
    external_id: Option<String>,
    /// When the message was written.
    #[schema(format = DateTime)]
    created_at: String,
    /// Tokens of its content.
    token_count: u32,
    /// As sent by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Value>,
    /// As sent by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    attachments: Option<Value>,
}

impl MessageJson {
    /// A message as its owner stored it, with the secrets that are masked for models.
    fn stored(mut message: Message) -> Self {
        message.content = message.original.take().unwrap_or(message.content);
        Self::of(message)
    }

    /// A message as a model may read it.
    pub(super) fn shown(mut message: Message, secrets: SecretPolicy) -> Self {
        for json in [&mut message.parts, &mut message.attachments].into_iter().flatten() {
            *json = secrets.shown_json(json).into_owned();
        }
        Self::of(message)
    }

    fn of(message: Message) -> Self {
        Self {
            id: message.id.to_string(),
            seq: message.seq,
            role: message.role.into(),
            actor: message.actor.into(),
            name: message.name,
            content: message.content,
            external_id: message.external_id.map(|id| id.to_string()),
            created_at: message.created_at.to_rfc3339(),
            token_count: message.tokens,
            parts: message.parts.as_deref().map(cooked),
            attachments: message.attachments.as_deref().map(cooked),
        }
    }
}

/// Which messages to erase: by id, or by time.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Ids of messages, up to 100, separated by commas.
    ids: Option<String>,
    /// Erase every message before this time.
    #[param(format = DateTime)]
    before: Option<String>,
}

/// Append messages
///
/// When this call returns, the messages and everything derived from them are durable, and the next call can recall
/// them. A session that does not exist is created. In a session that somebody else shares, they are messages of a `user`
/// under the caller's name, whatever their role.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/messages",
    operation_id = "append_messages",
    tag = "messages",
    params(("id" = String, Path, description = "The session")),
    request_body = Append,
    responses((status = 200, body = AppendedJson, description = "Their ids, in order"))
)]
async fn append(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    repeat: Repeat,
    body: Body<Append>,
) -> Result<Json<AppendedJson>, Failure> {
    let idempotency = repeat.of(&body);
    let messages = indexed("messages", body.value.messages, NewMessageJson::message)?;
    let external: Vec<Option<String>> = messages
        .iter()
        .map(|message| message.external_id.as_ref().map(ToString::to_string))
        .collect();
    let appended = service.app.append(&caller, &id, messages, idempotency).await?;
    let messages =
        appended.into_iter().zip(external).map(|(message, external_id)| AppendedMessageJson {
            id: message.id.to_string(),
            seq: message.seq,
            external_id,
            token_count: message.tokens,
            replayed: message.replayed,
        });
    Ok(Json(AppendedJson { messages: messages.collect() }))
}

/// List the messages of a session
///
/// The oldest first. A page of large messages ends before `limit`: go on with `next_cursor` for as long as there is one.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/messages",
    operation_id = "list_messages",
    tag = "messages",
    params(("id" = String, Path, description = "The session"), Paging),
    responses((status = 200, body = List<MessageJson>, description = "Messages"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    asked: ListQuery,
) -> Result<Json<List<MessageJson>>, Failure> {
    let thread = Thread::to_read(&service.app.engine, &caller, &id).await?;
    let page =
        service.app.engine.sessions.messages(&thread.scope, &thread.session, &asked.page).await?;
    let (secrets, is_own) = (service.app.engine.masking, thread.share.is_none());
    let form = |message| match is_own {
        true => MessageJson::stored(message),
        false => MessageJson::shown(message, secrets),
    };
    Ok(Json(asked.list(page, form)))
}

/// Erase messages
///
/// Select them by `ids` or `before` a time. Everything derived from them is erased too. It cannot be undone. Unknown
/// ids are ignored and not counted.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}/messages",
    operation_id = "erase_messages",
    tag = "messages",
    params(("id" = String, Path, description = "The session"), Which),
    responses((status = 200, body = ErasedJson, description = "What was removed"))
)]
async fn erase(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    Params(which): Params<Which>,
) -> Result<Json<ErasedJson>, Failure> {
    let which = match (which.ids, which.before) {
        (Some(ids), None) => {
            let ids = ids.split(',').map(|id| id.trim().parse());
            WhichMessages::Ids(ids.collect::<Result<_>>()?)
        }
        (None, Some(before)) => WhichMessages::Before(Timestamp::parse(&before)?),
        _ => return Err(Error::invalid("give exactly one of `ids` and `before`").into()),
    };
    let erased = service.app.erase_messages(&caller, &id, which).await?;
    Ok(Json(ErasedJson::from(&erased)))
}
