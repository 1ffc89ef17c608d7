//! The context document of a memory.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::document::Expected;
use throughline_core::ids::{ActorId, ContextId, MemoryId, VaultId};
use throughline_core::services::documents::{PutDocument, PutOutcome};
use throughline_core::text::guarded;
use throughline_core::{Error, Result};
use throughline_engine::config::ToolSet;

use crate::mcp::tool::{Call, Effect, Outcome, Tool};

/// Default number of passages of a search.
const FOUND: usize = 5;
/// Most passages of a search.
const MOST_FOUND: usize = 50;

pub(super) fn tools() -> Vec<Tool> {
    let set = ToolSet::Documents;
    vec![
        Tool::new::<PutArgs, PutDone, _>(
            set,
            "put_context",
            "Replace the context document of a memory with its whole new text. Read it first, and pass its \
             etag so that no update is lost.",
            Effect::Removes,
            put,
        ),
        Tool::new::<LatestArgs, Latest, _>(
            set,
            "get_latest_context",
            "The context document of a memory, or one section of it.",
            Effect::Reads,
            latest,
        ),
        Tool::new::<SearchArgs, Found, _>(
            set,
            "search_documents",
            "Find passages of context documents.",
            Effect::Reads,
            search,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PutArgs {
    vault: String,
    memory: String,
    #[schemars(length(min = 1))]
    text: String,
    context_id: Option<String>,
    actor_id: Option<String>,
    /// etag of the text to replace; `*` for any text, empty if there is none yet.
    if_match: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PutDone {
    context_id: String,
    etag: String,
    changed: bool,
    /// What it states although the user rejected it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

async fn put(call: Call, asked: PutArgs) -> Result<Outcome> {
    let scope = call.scope()?;
    let actor = asked.actor_id.unwrap_or_else(|| scope.user.to_string());
    let put = PutDocument {
        vault: VaultId::new(asked.vault)?,
        memory: MemoryId::new(asked.memory)?,
        context: asked.context_id.map(ContextId::new).transpose()?,
        actor: ActorId::new(actor)?,
        text: asked.text,
        expected: match asked.if_match.as_deref().map(str::trim) {
            None => Expected::Anything,
            Some("") => Expected::Absent,
            Some("*") => Expected::Present,
            // A tag that is not an etag of a document matches nothing.
            Some(etag) => {
                let etag = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
                Expected::OneOf(etag.parse().into_iter().collect())
            }
        },
    };
    let (done, warnings) = call.server.app.put_document(&call.who, put).await?;
    let changed = matches!(done.outcome, PutOutcome::Created | PutOutcome::Added);
    let text = if changed {
        "Stored."
    } else {
        "The document already has this text: nothing was \
         written."
    };
    let info = done.snapshot.info;
    let (context_id, etag) = (info.context.to_string(), info.etag.to_string());
    let text = warnings.iter().fold(text.to_owned(), |text, warning| format!("{text} {warning}."));
    Outcome::done(text, &PutDone { context_id, etag, changed, warnings })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LatestArgs {
    vault: String,
    memory: String,
    /// Heading of one section.
    section: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Latest {
    text: String,
    context_id: String,
    etag: String,
    created_at: String,
}

async fn latest(call: Call, asked: LatestArgs) -> Result<Outcome> {
    let scope = call.scope()?;
    let (vault, memory) = (VaultId::new(asked.vault)?, MemoryId::new(asked.memory)?);
    let documents = &call.server.app.engine.documents;
    let (info, text) = match asked.section {
        Some(section) => {
            let found = documents.section(&scope, &vault, &memory, &section).await?;
            (found.info, found.text)
        }
        None => {
            let found = documents.latest(&scope, &vault, &memory).await?;
            (found.info, found.text)
        }
    };
    let (context_id, etag) = (info.context.to_string(), info.etag.to_string());
    let latest =
        Latest { text: text.clone(), context_id, etag, created_at: info.created_at.to_rfc3339() };
    Outcome::done(text, &latest)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArgs {
    /// A question or keywords.
    query: String,
    vault: Option<String>,
    /// Default 5.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Found {
    items: Vec<FoundPassage>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FoundPassage {
    vault: String,
    memory: String,
    section: String,
    text: String,
    score: f32,
}

async fn search(call: Call, asked: SearchArgs) -> Result<Outcome> {
    let vault = asked.vault.map(VaultId::new).transpose()?;
    let limit = asked.limit.unwrap_or(FOUND);
    if !(1..=MOST_FOUND).contains(&limit) {
        return Err(Error::invalid(format!("limit: 1 to {MOST_FOUND}")));
    }
    let documents = &call.server.app.engine.documents;
    let found = documents.search(&call.scope()?, vault.as_ref(), &asked.query, limit).await?;
    let items: Vec<FoundPassage> = found
        .iter()
        .map(|found| FoundPassage {
            vault: found.snapshot.info.vault.to_string(),
            memory: found.snapshot.info.memory.to_string(),
            section: found.passage.title.to_string(),
            text: found.text().into_owned(),
            score: found.score,
        })
        .collect();
    let text = match items.is_empty() {
        true => "No document mentions this.".to_owned(),
        false => items.iter().fold(String::new(), |mut text, item| {
            // Writing to a `String` does not fail.
            let (section, said) = (guarded(&item.section), guarded(&item.text));
            let _ = writeln!(text, "[{}/{}#{section}] {said}", item.vault, item.memory);
            text
        }),
    };
    Outcome::done(text, &Found { items })
}
