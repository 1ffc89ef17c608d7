//! The conversations of contexts.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use throughline_core::ids::MessageId;
use throughline_core::services::personas::{Conversation, ConversationFilter, Hit};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};
use throughline_engine::app::{PersonaThread, WhichConversations, personas};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Params};
use crate::http::routes::contexts::checked_tag;
use crate::http::routes::contexts::ratings::RatingJson;
use crate::http::routes::{List, Paging};
use crate::http::service::Service;
use crate::wire::RoleJson;
use crate::wire::problem::Failure;

/// Messages of a search that names no limit.
const DEFAULT_FOUND: usize = 10;

pub(super) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(list, delete))
        .routes(routes!(search))
        .routes(routes!(search_all))
        .routes(routes!(tag))
}

/// A message of a context's conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationJson {
    id: String,
    role: RoleJson,
    /// Who spoke, where it is not the owner: a user with whom the context is shared.
    name: Option<String>,
    content: String,
    /// Tokens of its content.
    token_count: u32,
    #[schema(format = DateTime)]
    created_at: String,
    tags: Vec<String>,
    /// The ratings of an answer; a user with whom the context is shared sees only their own.
    ratings: Vec<RatingJson>,
}

impl From<Conversation> for ConversationJson {
    fn from(of: Conversation) -> Self {
        let Conversation { message, tags, ratings } = of;
        Self {
            id: message.id.to_string(),
            role: message.role.into(),
            name: message.name,
            content: message.content,
            token_count: message.tokens,
            created_at: message.created_at.to_rfc3339(),
            tags,
            ratings: ratings.into_iter().map(RatingJson::from).collect(),
        }
    }
}

/// Which messages.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Maximum number of items, 1 to 500; default 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    #[param(min_length = 1, max_length = 16, pattern = "^[0-9a-fA-F]+$")]
    cursor: Option<String>,
    /// Whether the oldest messages come first.
    #[serde(default)]
    oldest_first: bool,
    /// Only messages with this tag; refused for a context that somebody shares.
    #[param(min_length = 1, max_length = 64)]
    tag: Option<String>,
}

/// Which messages are deleted: one of the three.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RemovedMessages {
    /// Ids, separated by commas.
    #[param(min_length = 36)]
    ids: Option<String>,
    /// Delete the messages before this time.
    #[param(min_length = 1)]
    older_than: Option<String>,
    /// Delete all messages.
    #[serde(default)]
    all: bool,
}

/// The result of a deletion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"deleted": 2}))]
pub(crate) struct DeletedMessagesJson {
    /// Messages.
    deleted: u64,
}

/// A search.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"query": "cutover", "limit": 5}))]
pub(crate) struct SearchConversationJson {
    /// Keywords to search for.
    #[schema(min_length = 1)]
    query: String,
    /// Maximum number of messages, 1 to 500; default 10.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 500)]
    limit: Option<usize>,
}

/// A message found by a search.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationHitJson {
    /// The context.
    context_id: String,
    context_name: String,
    conversation: ConversationJson,
    /// Its best passage.
    passage: String,
    /// Relevance; comparable only within one response.
    score: f32,
}

impl From<Hit> for ConversationHitJson {
    fn from(hit: Hit) -> Self {
        let Hit { persona, persona_name, conversation, passage, score } = hit;
        Self {
            context_id: persona.to_string(),
            context_name: persona_name,
            conversation: conversation.into(),
            passage,
            score,
        }
    }
}

/// Tags of a message.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"tags": ["important"]}))]
pub(crate) struct TagsJson {
    /// They replace the current tags.
    #[schema(max_items = 16)]
    tags: Vec<String>,
}

/// List the conversation of a context
///
/// The newest message first by default. A page of large messages ends before `limit`: go on with `next_cursor` for as long as
/// there is one.
#[utoipa::path(
    get,
    path = "/v1/contexts/{id}/conversations",
    operation_id = "list_conversations",
    tag = "contexts",
    params(("id" = String, Path, description = "The context, or the id under which it is shared"), Which),
    responses((status = 200, body = List<ConversationJson>, description = "Messages"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    Params(which): Params<Which>,
) -> Result<Json<List<ConversationJson>>, Failure> {
    let engine = &service.app.engine;
    let thread = PersonaThread::to_read(engine, &caller, &id).await?;
    let slice = Paging { limit: which.limit, cursor: which.cursor }.slice()?;
    let filter =
        ConversationFilter { newest_first: !which.oldest_first, tag: checked_tag(which.tag)? };
    thread.check_filter(&filter)?;
    let found = engine.personas.conversation(&thread.scope, thread.id, &filter, slice).await;
    Ok(Json(List::of_slice(thread.for_caller(found)?, |one| thread.shown(one).into())))
}

/// Delete messages of a context
///
/// Select them by `ids`, `older_than` a time, or `all`. Everything derived from them and the backups that contain them
/// are deleted too. It cannot be undone. Unknown ids are ignored.
#[utoipa::path(
    delete,
    path = "/v1/contexts/{id}/conversations",
    operation_id = "delete_conversations",
    tag = "contexts",
    params(("id" = String, Path, format = "uuid", description = "The context"), RemovedMessages),
    responses((status = 200, body = DeletedMessagesJson, description = "What was removed"))
)]
async fn delete(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    Params(gone): Params<RemovedMessages>,
) -> Result<Json<DeletedMessagesJson>, Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    let which = match (gone.ids, gone.older_than, gone.all) {
        (Some(ids), None, false) => {
            let ids = ids.split(',').map(|id| id.trim().parse());
            WhichConversations::Ids(ids.collect::<Result<_>>()?)
        }
        (None, Some(before), false) => WhichConversations::Before(Timestamp::parse(&before)?),
        (None, None, true) => WhichConversations::All,
        _ => {
            return Err(Error::invalid("give exactly one of `ids`, `older_than` and `all`").into());
        }
    };
    let deleted = service.app.erase_conversations(&caller, id, which).await?;
    Ok(Json(DeletedMessagesJson { deleted }))
}

/// Search the conversation of a context
///
/// Keyword search, ordered by relevance.
#[utoipa::path(
    post,
    path = "/v1/contexts/{id}/conversations/search",
    operation_id = "search_conversations",
    tag = "contexts",
    params(("id" = String, Path, description = "The context, or the id under which it is shared")),
    request_body = SearchConversationJson,
    responses((status = 200, body = List<ConversationHitJson>, description = "Messages, ordered by relevance"))
)]
async fn search(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    body: Body<SearchConversationJson>,
) -> Result<Json<List<ConversationHitJson>>, Failure> {
    let engine = &service.app.engine;
    let thread = PersonaThread::to_read(engine, &caller, &id).await?;
    let limit = body.value.limit.unwrap_or(DEFAULT_FOUND);
    let found = engine.personas.search(&thread.scope, thread.id, &body.value.query, limit).await;
    Ok(Json(List::whole(thread.for_caller(found)?, |hit| {
        Hit { conversation: thread.shown(hit.conversation), ..hit }.into()
    })))
}

/// Search the conversations of all contexts
///
/// Keyword search, ordered by relevance, over all contexts of the user that are not deleted.
#[utoipa::path(
    post,
    path = "/v1/contexts/search",
    operation_id = "search_contexts",
    tag = "contexts",
    request_body = SearchConversationJson,
    responses((status = 200, body = List<ConversationHitJson>, description = "Messages, ordered by relevance"))
)]
async fn search_all(
    State(service): State<Service>,
    caller: Caller<Read>,
    body: Body<SearchConversationJson>,
) -> Result<Json<List<ConversationHitJson>>, Failure> {
    let limit = body.value.limit.unwrap_or(DEFAULT_FOUND);
    let personas = &service.app.engine.personas;
    let found = personas.search_all(&caller.scope()?, &body.value.query, limit).await?;
    Ok(Json(List::whole(found, ConversationHitJson::from)))
}

/// Tag a message of a context
#[utoipa::path(
    put,
    path = "/v1/contexts/{id}/conversations/{message}/tags",
    operation_id = "tag_conversation",
    tag = "contexts",
    params(
        ("id" = String, Path, format = "uuid", description = "The context"),
        ("message" = String, Path, format = "uuid", description = "The message")
    ),
    request_body = TagsJson,
    responses((status = 200, body = TagsJson, description = "Its tags"))
)]
async fn tag(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named((id, message)): Named<(String, String)>,
    body: Body<TagsJson>,
) -> Result<Json<TagsJson>, Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    let message: MessageId = message.parse()?;
    let tags = personas.tag_message(&scope, id, message, &body.value.tags).await?;
    Ok(Json(TagsJson { tags }))
}
