//! `conversation-manage`: what was said with a persona.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::access::Permission;
use throughline_core::ids::{MessageId, PersonaId};
use throughline_core::persona::{Listed, NewRating, Slice};
use throughline_core::services::personas::ConversationFilter;
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};
use throughline_engine::app::{PersonaThread, WhichConversations};
use throughline_engine::config::ToolSet;

use super::forms::ConversationForm;
use super::{in_camel_case, needed, page};
use crate::mcp::tool::{Call, Effect, Outcome, Tool};

/// Default number of messages per page.
const PAGE_SIZE: usize = 20;

pub(super) fn tool() -> Tool {
    Tool::new::<Args, Answer, _>(
        ToolSet::Persona,
        "conversation-manage",
        "List, search, tag, delete or clear the conversation of a context, or rate an answer for the user. \
         Deleted messages are erased.",
        Effect::Removes,
        manage,
    )
    .needs(Permission::Read)
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Search,
    Tag,
    Rate,
    Delete,
    Clear,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    action: Action,
    /// Required; search goes over all contexts without it.
    context_id: Option<String>,
    /// Default 1.
    page: Option<usize>,
    /// Default 20; with search, most results.
    page_size: Option<usize>,
    /// Newest first; default true.
    reverse: Option<bool>,
    /// With list: only those with this tag.
    tag: Option<String>,
    /// With search.
    query: Option<String>,
    /// With delete, tag and rate.
    conversation_ids: Option<Vec<String>>,
    /// With delete: ISO time; deletes older ones.
    older_than: Option<String>,
    /// With tag: replaces the current tags.
    tags: Option<Vec<String>>,
    /// With rate: whether the answer helped the user.
    helpful: Option<bool>,
    /// With rate.
    note: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Answer {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversations: Option<Vec<ConversationForm>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_count: Option<u64>,
    message: String,
}

async fn manage(call: Call, asked: Args) -> Result<Outcome> {
    if !matches!(asked.action, Action::List | Action::Search) {
        call.may_write().await?;
    }
    Outcome::data(&act(&call, asked).await.map_err(in_camel_case)?)
}

async fn act(call: &Call, asked: Args) -> Result<Answer> {
    let (scope, engine) = (call.scope()?, &call.server.app.engine);
    let personas = &engine.personas;
    let form = |one, id: &str| ConversationForm::of(one, id, (&scope.user, engine.masking));
    let Some(context) = asked.context_id.as_deref() else {
        let Action::Search = asked.action else {
            return Err(Error::invalid("contextId: required for this action"));
        };
        let query = needed(asked.query.as_deref(), "query", "search")?;
        let most = asked.page_size.unwrap_or(PAGE_SIZE);
        let found = personas.search_all(&scope, query, most).await?;
        let found = found.into_iter().map(|hit| form(hit.conversation, &hit.persona.to_string()));
        return Ok(searched(found.collect()));
    };
    let reads = matches!(asked.action, Action::List | Action::Search);
    let thread = match (reads, asked.action) {
        (true, _) => PersonaThread::to_read(engine, &call.who, context).await?,
        (_, Action::Rate) => PersonaThread::to_chat(engine, &call.who, context).await?,
        _ => PersonaThread::own(engine, &call.who, context).await?,
    };
    let id = thread.id;
    let ids = |action| {
        let ids = needed(asked.conversation_ids.as_ref(), "conversationIds", action)?;
        ids.iter().map(|id| id.parse()).collect::<Result<Vec<MessageId>>>()
    };
    Ok(match asked.action {
        Action::List => {
            let filter = ConversationFilter {
                newest_first: asked.reverse.unwrap_or(true),
                tag: asked.tag.clone(),
            };
            thread.check_filter(&filter)?;
            let slice = page(asked.page, asked.page_size, PAGE_SIZE)?;
            let found = personas.conversation(&thread.scope, id, &filter, slice).await;
            let found = thread.for_caller(found)?;
            is_complete(&found, slice)?;
            let message = format!("{} of {} messages", found.items.len(), found.total);
            let form = |one| form(thread.shown(one), context);
            Answer {
                success: true,
                total_count: Some(found.total),
                conversations: Some(found.items.into_iter().map(form).collect()),
                message,
                ..Answer::default()
            }
        }
        Action::Search => {
            let query = needed(asked.query.as_deref(), "query", "search")?;
            let most = asked.page_size.unwrap_or(PAGE_SIZE);
            let found = thread.for_caller(personas.search(&thread.scope, id, query, most).await)?;
            let found = found.into_iter().map(|hit| form(thread.shown(hit.conversation), context));
            searched(found.collect())
        }
        Action::Rate => {
            let helpful = needed(asked.helpful, "helpful", "rate")?;
            let [message] = ids("rate")?[..] else {
                return Err(Error::invalid("conversationIds: rate one answer at a time"));
            };
            let new = NewRating { helpful, note: asked.note.clone() };
            call.server.app.rate(&call.who, context, message, new).await?;
            Answer { success: true, message: format!("Rated {message}"), ..Answer::default() }
        }
        Action::Tag => {
            let tags = needed(asked.tags.as_ref(), "tags", "tag")?;
            let ids = ids("tag")?;
            personas.tag_messages(&scope, id, &ids, tags).await?;
            let message = format!("Tagged {} messages", ids.len());
            Answer { success: true, message, ..Answer::default() }
        }
        Action::Delete => {
            let which = match (&asked.older_than, &asked.conversation_ids) {
                (Some(_), Some(_)) => {
                    let one = "give either conversationIds or olderThan, not both";
                    return Err(Error::invalid(one));
                }
                (Some(before), None) => WhichConversations::Before(Timestamp::parse(before)?),
                _ => WhichConversations::Ids(ids("delete")?),
            };
            erased(call, id, which).await?
        }
        Action::Clear => erased(call, id, WhichConversations::All).await?,
    })
}

/// Pages are counted by their size here: what one leaves out would be in none.
fn is_complete<T>(found: &Listed<T>, slice: Slice) -> Result<()> {
    let fit = found.items.len();
    match fit < slice.limit && found.next.is_some() {
        true => Err(Error::invalid(format!(
            "pageSize: the messages of this page are too large together: ask for {fit} at a time"
        ))),
        false => Ok(()),
    }
}

fn searched(found: Vec<ConversationForm>) -> Answer {
    Answer {
        success: true,
        message: format!("{} messages, the best first", found.len()),
        conversations: Some(found),
        ..Answer::default()
    }
}

async fn erased(call: &Call, id: PersonaId, which: WhichConversations) -> Result<Answer> {
    let deleted = call.server.app.erase_conversations(&call.who, id, which).await?;
    Ok(Answer {
        success: true,
        deleted_count: Some(deleted),
        message: format!("Erased {deleted} messages and everything derived from them"),
        ..Answer::default()
    })
}
