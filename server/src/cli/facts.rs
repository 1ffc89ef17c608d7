//! `throughline facts`.

use serde::Serialize;
use throughline_core::Result;
use throughline_core::fact::{Fact, FactKind};
use throughline_core::page::PageRequest;
use throughline_core::services::facts::{Correction, Remember};
use throughline_engine::app::{Place, short_id};
use throughline_engine::config::Config;
use throughline_engine::identity::Identity;
use throughline_engine::terminal::{Output, table};

use super::open::{open, open_existing};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
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

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add a fact; this makes a rejected value valid again
    Add {
        /// The fact, in up to 500 characters
        text: String,
        /// Its kind, such as fact, decision, preference or instruction
        #[arg(long, default_value = "fact")]
        kind: FactKind,
        #[command(flatten)]
        slot: Slot,
    },
    /// Replace what a fact says; the old value stays rejected
    Correct {
        /// The fact's id
        id: String,
        /// The correct fact
        text: String,
        /// The value, if the fact has subject and attribute
        #[arg(long)]
        value: Option<String>,
    },
    /// Retract a fact; its value stays rejected
    Reject {
        /// The fact's id
        id: String,
    },
}

/// What a later fact replaces this one by: all three or none.
#[derive(Debug, clap::Args)]
pub(super) struct Slot {
    /// The person or thing it is about
    #[arg(long, requires = "attribute")]
    pub(super) subject: Option<String>,
    /// The property of the subject
    #[arg(long, requires = "value")]
    pub(super) attribute: Option<String>,
    /// The property's value
    #[arg(long)]
    pub(super) value: Option<String>,
}

#[derive(Serialize)]
struct FactsJson {
    items: Vec<FactJson>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
pub(super) struct FactJson {
    pub(super) id: String,
    kind: &'static str,
    pub(super) text: String,
    subject: Option<String>,
    attribute: Option<String>,
    value: Option<String>,
    tags: Vec<String>,
    weight: f32,
    active: bool,
    observed_at: String,
    extracted_by: Option<String>,
    actor: &'static str,
    rejected: bool,
    sources: Vec<String>,
}

impl From<Fact> for FactJson {
    fn from(fact: Fact) -> Self {
        let active = fact.holds();
        Self {
            id: fact.id.to_string(),
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
            actor: fact.actor.as_str(),
            rejected: fact.rejected,
            sources: fact.sources.iter().map(|id| format!("msg:{id}")).collect(),
        }
    }
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    match &args.command {
        Some(command) => change(command, config, output).await,
        None => list(args, config, output).await,
    }
}

async fn change(command: &Command, config: &Config, output: &Output) -> Result<()> {
    let caller = Identity::local(config.scope()?);
    let (fact, done) = match command {
        Command::Add { text, kind, slot } => {
            let new = Remember {
                kind: *kind,
                text: text.clone(),
                subject: slot.subject.clone(),
                attribute: slot.attribute.clone(),
                value: slot.value.clone(),
                tags: Vec::new(),
            };
            let app = open(config).await?;
            (app.remember(&caller, new, Place::Workspace, None).await?, "remembered")
        }
        Command::Correct { id: of, text, value } => {
            let correction = Correction { text: text.clone(), value: value.clone() };
            let app = open_existing(config).await?;
            let (_, old) = app.fact_by_id(&caller, of).await?;
            (app.correct(&caller, old.id, correction).await?, "corrected")
        }
        Command::Reject { id: of } => {
            let app = open_existing(config).await?;
            let (_, old) = app.fact_by_id(&caller, of).await?;
            (app.retract(&caller, old.id).await?, "rejected")
        }
    };
    let fact = FactJson::from(fact);
    output.result(&fact, || format!("{done}: {} ({})", fact.text, fact.id))
}

async fn list(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let caller = Identity::local(config.scope()?);
    let mut page = PageRequest::first(args.limit)?;
    if let Some(cursor) = &args.after {
        page = page.after(cursor)?;
    }
    let app = open_existing(config).await?;
    let found = app.list_facts(&caller, &page).await?;
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
            vec![short_id(&fact.id), fact.kind.to_owned(), text, slot, value]
        });
        let more = facts.next_cursor.as_ref().map(|next| format!("\nmore: --after {next}"));
        table(&["id", "kind", "stated", "slot", "value"], rows) + &more.unwrap_or_default()
    })
}
