//! `throughline profile`.

use serde::Serialize;
use throughline_core::Result;
use throughline_core::scope::{Profile, ProfileChange};
use throughline_engine::config::Config;
use throughline_engine::terminal::Output;

use super::open::{open, open_existing};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Print the rules and the card
    Show,
    /// Change the rules or the card; an empty text clears it
    Set {
        /// Standing instructions, one per line
        #[arg(long)]
        rules: Option<String>,
        /// Who the user is: project, time zone, role
        #[arg(long)]
        card: Option<String>,
    },
}

#[derive(Serialize)]
pub(super) struct ProfileJson<'p> {
    rules: &'p str,
    card: &'p str,
    version: u64,
}

impl<'p> From<&'p Profile> for ProfileJson<'p> {
    fn from(profile: &'p Profile) -> Self {
        Self { rules: &profile.rules, card: &profile.card, version: profile.version }
    }
}

pub(super) async fn run(command: &Command, config: &Config, output: &Output) -> Result<()> {
    let scope = config.scope()?;
    let profile = match command {
        Command::Show => open_existing(config).await?.engine.profiles.get(&scope).await?,
        Command::Set { rules, card } => {
            let change = ProfileChange { rules: rules.clone(), card: card.clone() };
            open(config).await?.engine.profiles.change(&scope, change).await?
        }
    };
    let Profile { rules, card, .. } = &profile;
    output.result(&ProfileJson::from(&profile), || {
        let or_none = |text: &str| {
            if text.is_empty() { "(none)".into() } else { text.to_owned() }
        };
        format!("rules:\n{}\n\ncard:\n{}", or_none(rules), or_none(card))
    })
}
