//! The tools that a memory needs: remember, recall, list, update, forget.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::access::Actor;
use throughline_core::context::{Item, Source};
use throughline_core::document::Expected;
use throughline_core::fact::{Fact, FactKind};
use throughline_core::ids::{MemoryId, VaultId};
use throughline_core::services::facts::{Correction, Remember};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};
use throughline_engine::app::{FactFilter, Place, Recalling, Thread, WhichMessages, short_id};
use throughline_engine::config::ToolSet;

use crate::mcp::tool::{Call, Effect, Outcome, Tool};
use crate::wire::FactKindJson;

/// Tokens of a recall without a limit.
const RECALL_TOKENS: u32 = 1_500;
/// Facts of a list without a limit.
const LISTED: usize = 20;
/// Most facts of a list.
const MOST_LISTED: usize = 200;

pub(super) fn tools() -> Vec<Tool> {
    let set = ToolSet::Memory;
    vec![
        Tool::new::<RememberArgs, Remembered, _>(
            set,
            "remember",
            "Store one durable fact, decision or preference. `replaces` names an outdated or \
             duplicate fact to replace.",
            Effect::Adds,
            remember,
        ),
        Tool::new::<RecallArgs, Recalled, _>(
            set,
            "recall",
            "Find what earlier sessions said or decided: the passages and facts that answer a question, \
             with ids and dates.",
            Effect::Reads,
            recall,
        ),
        Tool::new::<ListArgs, Listed, _>(
            set,
            "list",
            "List remembered facts, the newest first.",
            Effect::Reads,
            list,
        ),
        Tool::new::<UpdateArgs, Updated, _>(
            set,
            "update",
            "Correct a fact. Its old content stays rejected.",
            Effect::Adds,
            update,
        ),
        Tool::new::<ForgetArgs, Forgotten, _>(
            set,
            "forget",
            "Retract a fact, or erase messages or a session with everything derived from them. It \
             cannot be undone.",
            Effect::Removes,
            forget,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RememberArgs {
    /// One self-contained sentence.
    #[schemars(length(min = 1, max = 500))]
    text: String,
    kind: Option<FactKindJson>,
    /// With attribute: a later value replaces this one.
    subject: Option<String>,
    attribute: Option<String>,
    value: Option<String>,
    /// Such as project:alfred.
    #[serde(default)]
    tags: Vec<String>,
    /// Id of the fact to replace.
    replaces: Option<String>,
    /// Whether it holds in all projects of the user, not only in this one.
    #[serde(default)]
    everywhere: bool,
}

impl RememberArgs {
    /// Whether it says more than a fact that replaces another one can.
    fn says_more(&self) -> bool {
        self.kind.is_some()
            || self.subject.is_some()
            || self.attribute.is_some()
            || !self.tags.is_empty()
            || self.everywhere
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Remembered {
    id: String,
    /// Facts that say nearly the same; empty without the permission `read`.
    similar: Vec<FactLine>,
}

/// A fact.
#[derive(Debug, Serialize, JsonSchema)]
struct FactLine {
    id: String,
    text: String,
    kind: FactKindJson,
    /// When it was last stated.
    at: String,
    /// Whether a model stated it, not the user.
    by_model: bool,
}

impl FactLine {
    fn of(fact: &Fact) -> Self {
        Self {
            id: short_id(fact.id),
            text: fact.text.clone(),
            kind: fact.kind.into(),
            at: fact.observed_at.to_rfc3339(),
            by_model: fact.actor == Actor::Model,
        }
    }
}

fn fact_source(fact: &Fact) -> String {
    format!("fact:{}", short_id(fact.id))
}

fn fact_lines(facts: &[FactLine]) -> String {
    facts.iter().fold(String::new(), |mut text, fact| {
        let day = fact.at.split('T').next().unwrap_or_default();
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "[fact:{}, {day}] {}", fact.id, fact.text);
        text
    })
}

async fn remember(call: Call, asked: RememberArgs) -> Result<Outcome> {
    let app = &call.server.app;
    let mut similar = match call.who.may_read() {
        true => app.similar_facts(&call.who, &asked.text).await?,
        false => Vec::new(),
    };
    let (fact, done) = match &asked.replaces {
        Some(_) if asked.says_more() => {
            return Err(Error::invalid(
                "replaces: the new fact inherits kind, subject, attribute, tags and workspace of \
                 the old one: leave out `kind`, `subject`, `attribute`, `tags` and `everywhere`, \
                 or remember it without `replaces` and `forget` the old one",
            ));
        }
        Some(old) => {
            let (_, old) = app.fact_by_id(&call.who, old).await?;
            let correction = Correction { text: asked.text, value: asked.value };
            let fact = app.correct(&call.who, old.id, correction).await?;
            similar.retain(|similar| similar.id != old.id);
            (fact, format!("instead of {}", fact_source(&old)))
        }
        None => {
            let new = Remember {
                kind: asked.kind.map_or(FactKind::Fact, FactKind::from),
                text: asked.text,
                subject: asked.subject,
                attribute: asked.attribute,
                value: asked.value,
                tags: asked.tags,
            };
            let place = if asked.everywhere { Place::AllWorkspaces } else { Place::Workspace };
            (app.remember(&call.who, new, place, None).await?, String::new())
        }
    };
    // A fact in the same slot is replaced already; one that was there is this one.
    similar.retain(|similar| {
        similar.id != fact.id && (similar.slot().is_none() || similar.slot() != fact.slot())
    });
    let similar: Vec<FactLine> = similar.iter().map(FactLine::of).collect();
    let mut text = format!("Remembered as {} {done}", fact_source(&fact)).trim_end().to_owned();
    text.push('.');
    if !similar.is_empty() {
        text.push_str("\nSimilar facts exist already; if they say the same, forget one:\n");
        text.push_str(&fact_lines(&similar));
    }
    Outcome::done(text, &Remembered { id: short_id(fact.id), similar })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecallArgs {
    /// A question or keywords.
    #[schemars(length(min = 1, max = 10_000))]
    query: String,
    /// The session to prefer.
    session: Option<String>,
    /// Default 1500.
    max_tokens: Option<u32>,
    /// Maximum number of items.
    #[schemars(range(min = 1))]
    k: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Recalled {
    items: Vec<RecalledItem>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RecalledItem {
    source: String,
    /// Of a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    text: String,
    /// When it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
}

async fn recall(call: Call, asked: RecallArgs) -> Result<Outcome> {
    if asked.query.trim().is_empty() {
        return Err(Error::invalid(
            "query: give a question or words to look for; `list` shows all facts",
        ));
    }
    let asked = Recalling {
        session: asked.session,
        query: asked.query,
        max_tokens: asked.max_tokens.unwrap_or(RECALL_TOKENS),
        max_items: asked.k,
    };
    let context = call.server.app.recall(&call.who, asked).await?;
    let items: Vec<_> = context.recalled().into_iter().map(recalled).collect();
    let text = match items.is_empty() {
        true => "No message or fact matches.".to_owned(),
        false => items.iter().fold(String::new(), |mut text, item| {
            let day = item.at.as_deref().and_then(|at| at.split('T').next());
            let day = day.map_or(String::new(), |day| format!(", {day}"));
            let session = item.session.as_ref();
            let session = session.map_or(String::new(), |id| format!(", session {id}"));
            // Writing to a `String` does not fail.
            let _ = writeln!(text, "[{}{day}{session}] {}", item.source, item.text);
            text
        }),
    };
    Outcome::done(text, &Recalled { items })
}

fn recalled((item, text): (&Item, &str)) -> RecalledItem {
    RecalledItem {
        source: match &item.source {
            Source::Message(id) => format!("msg:{}", short_id(id)),
            Source::Fact(id) => format!("fact:{}", short_id(id)),
            other => other.to_string(),
        },
        session: match &item.source {
            Source::Message(_) => item.session.as_ref().map(ToString::to_string),
            _ => None,
        },
        text: text.trim().to_owned(),
        at: item.at.map(Timestamp::to_rfc3339),
        score: item.score,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArgs {
    kind: Option<FactKindJson>,
    tag: Option<String>,
    /// Whether to include replaced and retracted facts.
    #[serde(default)]
    include_superseded: bool,
    /// 1 to 200, default 20.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    facts: Vec<FactLine>,
    total: usize,
}

async fn list(call: Call, asked: ListArgs) -> Result<Outcome> {
    let limit = asked.limit.unwrap_or(LISTED);
    if !(1..=MOST_LISTED).contains(&limit) {
        return Err(Error::invalid(format!("limit must be 1 to {MOST_LISTED}")));
    }
    let filter = FactFilter {
        kind: asked.kind.map(FactKind::from),
        tag: asked.tag,
        include_superseded: asked.include_superseded,
    };
    let (facts, total) = call.server.app.newest_facts(&call.who, &filter, limit).await?;
    let facts: Vec<FactLine> = facts.iter().map(FactLine::of).collect();
    let text = match (facts.len(), total) {
        (0, _) => "No remembered fact matches.".to_owned(),
        (shown, total) if shown < total => {
            format!("{}{shown} of {total} facts; raise `limit` for more.", fact_lines(&facts))
        }
        _ => fact_lines(&facts),
    };
    Outcome::done(text, &Listed { facts, total })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateArgs {
    /// Id of the fact.
    id: String,
    /// The correct fact.
    #[schemars(length(min = 1, max = 500))]
    text: String,
    /// If the fact has subject and attribute.
    value: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Updated {
    /// Id of the fact that is valid now.
    id: String,
}

async fn update(call: Call, asked: UpdateArgs) -> Result<Outcome> {
    let app = &call.server.app;
    let (_, old) = app.fact_by_id(&call.who, &asked.id).await?;
    let correction = Correction { text: asked.text, value: asked.value };
    let fact = app.correct(&call.who, old.id, correction).await?;
    let text = format!("Corrected: {} is valid now.", fact_source(&fact));
    Outcome::done(text, &Updated { id: short_id(fact.id) })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForgetArgs {
    /// Id of a fact to retract.
    fact: Option<String>,
    /// The session to erase, or to erase messages from.
    session: Option<String>,
    /// Ids of messages: erase only these.
    message_ids: Option<Vec<String>>,
    /// With memory: the context document to erase.
    vault: Option<String>,
    memory: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Forgotten {
    sessions: u64,
    messages: u64,
    facts: u64,
    documents: u64,
}

async fn forget(call: Call, asked: ForgetArgs) -> Result<Outcome> {
    let app = &call.server.app;
    let ForgetArgs { fact, session, message_ids, vault, memory } = asked;
    // All are looked at: one that is named beside may be what is meant.
    match (fact, session, message_ids, vault, memory) {
        (Some(fact), None, None, None, None) => {
            let (_, fact) = app.fact_by_id(&call.who, &fact).await?;
            app.retract(&call.who, fact.id).await?;
            let forgotten = Forgotten { facts: 1, ..Forgotten::default() };
            Outcome::done("The fact is retracted; its value stays rejected.", &forgotten)
        }
        (None, Some(session), ids, None, None) => {
            call.progress(0, 1, "erasing").await;
            let (scope, id) = Thread::own(&call.who, &session)?;
            let erased = match ids {
                Some(asked) => {
                    let mut ids = Vec::with_capacity(asked.len());
                    for text in &asked {
                        ids.push(app.message_id(&scope, &id, text).await?);
                    }
                    app.erase_messages(&call.who, &session, WhichMessages::Ids(ids)).await?
                }
                None => {
                    app.engine.sessions.get(&scope, &id).await?;
                    app.erase_session(&call.who, &session).await?
                }
            };
            call.progress(1, 1, "erased").await;
            let forgotten = Forgotten {
                sessions: erased.sessions,
                messages: erased.messages,
                facts: erased.facts,
                documents: 0,
            };
            let text = format!(
                "Erased {} messages, and {} facts that only they stated.",
                erased.messages, erased.facts
            );
            Outcome::done(text, &forgotten)
        }
        (None, None, None, Some(vault), Some(memory)) => {
            let (vault, memory) = (VaultId::new(vault)?, MemoryId::new(memory)?);
            app.erase_document(&call.who, &vault, &memory, &Expected::Anything).await?;
            let forgotten = Forgotten { documents: 1, ..Forgotten::default() };
            Outcome::done("Erased the document, with its history.", &forgotten)
        }
        _ => Err(Error::invalid(
            "name a `fact`, or a `session` with or without `message_ids`, or `vault` and `memory`",
        )),
    }
}
