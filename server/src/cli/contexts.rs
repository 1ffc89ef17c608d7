//! `throughline contexts`.

use serde::Serialize;
use throughline_core::Result;
use throughline_core::page::MAX_PAGE;
use throughline_core::persona::{Persona, Slice};
use throughline_core::services::personas::{Hit, PersonaFilter};
use throughline_core::time::Timestamp;
use throughline_engine::config::Config;
use throughline_engine::terminal::{Output, table};

use super::open::open_existing;
use crate::wire::EffectivenessJson;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List the contexts
    List {
        /// Also list expired ones
        #[arg(long)]
        expired: bool,
    },
    /// Search the conversations of all contexts
    Search {
        /// Keywords
        query: String,
        /// Maximum number of messages
        #[arg(long, default_value_t = 10)]
        limit: usize,
    },
    /// Show how helpful the answers of each preset and version were rated
    Effectiveness {
        /// Only ratings of this time or later
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only ratings before this time
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
    },
}

#[derive(Serialize)]
struct Items<T> {
    items: Vec<T>,
}

#[derive(Serialize)]
struct ContextLine {
    id: String,
    name: String,
    status: &'static str,
    turns: u64,
    expires_at: String,
}

#[derive(Serialize)]
struct HitLine {
    context_id: String,
    context_name: String,
    id: String,
    role: &'static str,
    at: String,
    text: String,
    score: f32,
}

impl ContextLine {
    fn of(persona: &Persona, now: Timestamp) -> Self {
        Self {
            id: persona.id.to_string(),
            name: persona.name.clone(),
            status: persona.status(now).as_str(),
            turns: persona.turns,
            expires_at: persona.expires_at.to_rfc3339(),
        }
    }
}

impl From<Hit> for HitLine {
    fn from(hit: Hit) -> Self {
        let message = hit.conversation.message;
        Self {
            context_id: hit.persona.to_string(),
            context_name: hit.persona_name,
            id: message.id.to_string(),
            role: message.role.as_str(),
            at: message.created_at.to_rfc3339(),
            text: hit.passage,
            score: hit.score,
        }
    }
}

pub(super) async fn run(command: &Command, config: &Config, output: &Output) -> Result<()> {
    let scope = config.scope()?;
    let app = open_existing(config).await?;
    let personas = &app.engine.personas;
    match command {
        Command::List { expired } => {
            let filter = PersonaFilter { include_expired: *expired, ..PersonaFilter::default() };
            let found = personas.list(&scope, &filter, Slice::new(0, MAX_PAGE)?).await?;
            let now = personas.now();
            let items: Vec<_> = found.items.iter().map(|one| ContextLine::of(one, now)).collect();
            let listed = Items { items };
            output.result(&listed, || match listed.items.as_slice() {
                [] => "No contexts.".to_owned(),
                items => {
                    let lines = items.iter().map(|item| {
                        let turns = item.turns.to_string();
                        vec![item.id.clone(), item.name.clone(), item.status.to_owned(), turns]
                    });
                    table(&["id", "name", "status", "turns"], lines)
                }
            })
        }
        Command::Search { query, limit } => {
            let found = personas.search_all(&scope, query, *limit).await?;
            let found = Items { items: found.into_iter().map(HitLine::from).collect() };
            output.result(&found, || match found.items.as_slice() {
                [] => "No message matches.".to_owned(),
                items => {
                    let lines = items.iter().map(|hit| {
                        let text = hit.text.replace('\n', "\n            ");
                        let day = hit.at.split('T').next().unwrap_or_default();
                        format!("{day}  {}: {text}  ({})", hit.role, hit.context_name)
                    });
                    lines.collect::<Vec<_>>().join("\n")
                }
            })
        }
        Command::Effectiveness { since, until } => {
            let time = |at: &Option<String>| at.as_deref().map(Timestamp::parse).transpose();
            let found = personas.effectiveness(&scope, None, time(since)?, time(until)?).await?;
            let told = Items { items: found.into_iter().map(EffectivenessJson::from).collect() };
            output.result(&told, || match told.items.as_slice() {
                [] => "No contexts and no ratings.".to_owned(),
                items => table(
                    &["preset", "version", "contexts", "turns", "rated", "helpful"],
                    items.iter().map(|of: &EffectivenessJson| {
                        let dash = || "-".to_owned();
                        let share = of.helpful_share.map(|share| format!("{:.0} %", share * 100.0));
                        vec![
                            of.preset_id.clone().unwrap_or_else(dash),
                            of.preset_version.map_or_else(dash, |version| version.to_string()),
                            of.contexts.to_string(),
                            of.turns.to_string(),
                            of.rated.to_string(),
                            share.unwrap_or_else(dash),
                        ]
                    }),
                ),
            })
        }
    }
}
