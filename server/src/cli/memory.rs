//! `throughline remember`, `throughline recall` and `throughline forget`.

use serde::Serialize;
use throughline_core::context::Source;
use throughline_core::fact::FactKind;
use throughline_core::services::facts::{Correction, Remember};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};
use throughline_engine::app::{Place, Recalling};
use throughline_engine::config::Config;
use throughline_engine::identity::Identity;
use throughline_engine::terminal::Output;

use super::facts::{FactJson, Slot};
use super::open::{open, open_existing};

#[derive(Debug, clap::Args)]
pub(super) struct RememberArgs {
    /// The fact, in up to 500 characters
    text: String,
    /// Its kind, such as fact, decision, preference or instruction
    #[arg(long, default_value = "fact")]
    kind: FactKind,
    #[command(flatten)]
    slot: Slot,
    /// Topics, such as project:alfred; can be repeated
    #[arg(long = "tag")]
    tags: Vec<String>,
    /// Id of a fact to replace; the new fact inherits its kind, subject, attribute, topics and workspace
    #[arg(long, value_name = "ID")]
    #[arg(conflicts_with_all = ["kind", "subject", "attribute", "tags", "everywhere"])]
    replaces: Option<String>,
    /// Make it hold in all workspaces
    #[arg(long)]
    everywhere: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RecallArgs {
    /// A question or keywords
    query: String,
    /// The session to prefer
    #[arg(long)]
    session: Option<String>,
    /// Maximum number of tokens in the answer
    #[arg(long, value_name = "TOKENS", default_value_t = 1_500)]
    max_tokens: u32,
    /// Maximum number of items
    #[arg(short, value_name = "COUNT")]
    k: Option<usize>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ForgetArgs {
    /// The fact's id, as `recall` and `facts` show it; to remove messages or sessions, use `erase`
    id: String,
}

#[derive(Serialize)]
struct Recalled {
    items: Vec<RecalledItem>,
}

#[derive(Serialize)]
struct RecalledItem {
    source: String,
    /// Of a message.
    session: Option<String>,
    at: Option<String>,
    text: String,
}

pub(super) async fn remember(args: &RememberArgs, config: &Config, output: &Output) -> Result<()> {
    let caller = Identity::local(config.scope()?);
    let app = open(config).await?;
    let fact = match &args.replaces {
        Some(old) => {
            let (_, old) = app.fact_by_id(&caller, old).await?;
            let correction = Correction { text: args.text.clone(), value: args.slot.value.clone() };
            app.correct(&caller, old.id, correction).await?
        }
        None => {
            let new = Remember {
                kind: args.kind,
                text: args.text.clone(),
                subject: args.slot.subject.clone(),
                attribute: args.slot.attribute.clone(),
                value: args.slot.value.clone(),
                tags: args.tags.clone(),
            };
            let place = if args.everywhere { Place::AllWorkspaces } else { Place::Workspace };
            app.remember(&caller, new, place, None).await?
        }
    };
    let fact = FactJson::from(fact);
    output.result(&fact, || format!("remembered: {} ({})", fact.text, fact.id))
}

pub(super) async fn recall(args: &RecallArgs, config: &Config, output: &Output) -> Result<()> {
    if args.query.trim().is_empty() {
        return Err(Error::invalid(
            "give a question or words to look for; `throughline facts` lists all facts",
        ));
    }
    let caller = Identity::local(config.scope()?);
    let app = open_existing(config).await?;
    let asked = Recalling {
        session: args.session.clone(),
        query: args.query.clone(),
        max_tokens: args.max_tokens,
        max_items: args.k,
    };
    let context = app.recall(&caller, asked).await?;
    app.meter.write().await;
    let items = context.recalled().into_iter().map(|(item, text)| RecalledItem {
        source: item.source.to_string(),
        session: match &item.source {
            Source::Message(_) => item.session.as_ref().map(ToString::to_string),
            _ => None,
        },
        at: item.at.map(Timestamp::to_rfc3339),
        text: text.trim().to_owned(),
    });
    let recalled = Recalled { items: items.collect() };
    output.result(&recalled, || match recalled.items.as_slice() {
        [] => "No message or fact matches.".to_owned(),
        items => {
            let lines = items.iter().map(|item| {
                let day = item.at.as_deref().and_then(|at| at.split('T').next()).unwrap_or("");
                let session = item.session.as_ref();
                let session = session.map_or(String::new(), |id| format!(", session {id}"));
                format!(
                    "{day:10}  {}  ({}{session})",
                    item.text.replace('\n', "\n            "),
                    item.source
                )
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    })
}

pub(super) async fn forget(args: &ForgetArgs, config: &Config, output: &Output) -> Result<()> {
    let caller = Identity::local(config.scope()?);
    let app = open_existing(config).await?;
    let (_, fact) = app.fact_by_id(&caller, &args.id).await?;
    let fact = FactJson::from(app.retract(&caller, fact.id).await?);
    output.result(&fact, || format!("forgotten: {}; its value stays rejected", fact.text))
}
