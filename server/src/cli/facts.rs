//! `throughline facts`.

use serde::Serialize;
use throughline_core::Result;
use throughline_core::fact::Fact;
use throughline_core::page::PageRequest;
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;
use throughline_engine::terminal::{Output, table};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Number of facts to show
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Continue after this cursor: the next_cursor of an earlier page
    #[arg(long)]
    after: Option<String>,
    /// Also show superseded facts
    #[arg(long)]
    all: bool,
}

#[derive(Serialize)]
struct FactsJson {
    items: Vec<FactJson>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
pub(super) struct FactJson {
    id: String,
    kind: &'static str,
    text: String,
    subject: Option<String>,
    attribute: Option<String>,
    value: Option<String>,
    tags: Vec<String>,
    weight: f32,
    active: bool,
    observed_at: String,
    extracted_by: Option<String>,
    sources: Vec<String>,
}

impl From<Fact> for FactJson {
    fn from(fact: Fact) -> Self {
        let active = fact.holds();
        Self {
            id: format!("fact:{}", fact.id),
            kind: fact.kind.as_str(),
            text: fact.text,
            subject: fact.subject,
            attribute: fact.attribute,
            value: fact.value,
            tags: fact.tags,
            weight: fact.weight,
            active,
            observed_at: fact.observed_at.to_rfc3339(),
            extracted_by: fact.extracted_by,
            sources: fact.sources.iter().map(|id| format!("msg:{id}")).collect(),
        }
    }
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let scope = config.scope()?;
    let mut page = PageRequest::first(args.limit)?;
    if let Some(cursor) = &args.after {
        page = page.after(cursor)?;
    }
    let engine = Engine::open_existing(config).await?;
    let found = engine.facts.list(&scope, &page).await?;
    let items = found
        .items
        .into_iter()
        .map(FactJson::from)
        .filter(|fact| args.all || fact.active)
        .collect();
    let facts = FactsJson { items, next_cursor: found.next_cursor };
    output.result(&facts, || {
        let rows = facts.items.iter().map(|fact| {
            let slot = match (&fact.subject, &fact.attribute) {
                (Some(subject), Some(attribute)) => format!("{subject} / {attribute}"),
                _ => String::new(),
            };
            let value = fact.value.clone().unwrap_or_default();
            let text = if fact.active { fact.text.clone() } else { format!("(was) {}", fact.text) };
            vec![fact.kind.to_owned(), text, slot, value]
        });
        let more = facts.next_cursor.as_ref().map(|next| format!("\nmore: --after {next}"));
        table(&["kind", "stated", "slot", "value"], rows) + &more.unwrap_or_default()
    })
}
