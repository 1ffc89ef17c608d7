//! `throughline assemble`.

use std::io::Read;

use throughline_core::context::AssembledContext;
use throughline_core::turn::{Intent, Tier};
use throughline_core::{Error, Result};
use throughline_engine::app::Turn;
use throughline_engine::config::Config;
use throughline_engine::identity::Identity;
use throughline_engine::terminal::{Output, grouped, saved, table};

use crate::wire::AssembledContextJson;

use super::open::open;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The message of the user; `-` reads it from standard input
    turn: String,
    /// The session; it need not exist yet
    #[arg(long, default_value = "cli")]
    session: String,
    /// Token budget of the whole context [default: the tier's]
    #[arg(long, value_name = "TOKENS")]
    budget: Option<u32>,
    /// quick_capture, context_lookup, deep_analysis or planning [default: detected from the turn]
    #[arg(long)]
    intent: Option<String>,
    /// light, standard or full [default: full]
    #[arg(long)]
    tier: Option<String>,
    /// Maximum number of recalled items
    #[arg(short, value_name = "COUNT")]
    k: Option<usize>,
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let turn = match args.turn.as_str() {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| {
                Error::invalid(format!("standard input is not UTF-8 text: {error}"))
            })?;
            text.trim_end().to_owned()
        }
        turn => turn.to_owned(),
    };
    let caller = Identity::local(config.scope()?);
    let turn = Turn {
        user_turn: turn,
        intent: args.intent.as_deref().map(str::parse::<Intent>).transpose()?,
        tier: args.tier.as_deref().map(str::parse::<Tier>).transpose()?,
        token_budget: args.budget,
        max_items: args.k,
        ..Turn::default()
    };
    let app = open(config).await?;
    let context = app.assemble(&caller, &args.session, turn).await?;
    // The context is ready; that it cannot be counted (a writer holds the store, the user was erased) does
    // not take it.
    app.meter.write().await;
    output.result(&AssembledContextJson::from(context.clone()), || human(&context))
}

fn human(context: &AssembledContext) -> String {
    let mut text = String::new();
    for message in context.payload() {
        text.push_str(&format!("── {} ──\n{}\n\n", message.role, message.content));
    }
    text.push_str(&account(context));
    for warning in &context.budget.warnings {
        text.push_str(&format!("\nwarning: {warning}"));
    }
    text
}

/// Tokens by section, and what was saved.
fn account(context: &AssembledContext) -> String {
    let budget = &context.budget;
    let rows = budget
        .by_section
        .iter()
        .map(|(section, tokens)| vec![section.as_str().to_owned(), tokens.to_string()]);
    let against = match saved(budget.used.into(), context.baseline_tokens).as_str() {
        "-" => String::new(),
        saved => {
            format!(", {saved} less than the whole history of {}", grouped(context.baseline_tokens))
        }
    };
    format!(
        "{}\n{} of {} tokens ({}){against}",
        table(&["section", "tokens"], rows),
        grouped(budget.used.into()),
        grouped(budget.limit.into()),
        budget.tokenizer
    )
}
