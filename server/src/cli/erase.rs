//! `throughline erase`.

use clap::Subcommand;
use serde::Serialize;
use throughline_core::ports::Erased;
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};
use throughline_engine::app::WhichMessages;
use throughline_engine::config::Config;
use throughline_engine::identity::Identity;
use throughline_engine::terminal::{Output, grouped};

use super::open::open_existing;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Erase messages of a session, by id or by time
    Message {
        /// The session
        #[arg(long)]
        session: String,
        /// Message ids, such as msg:0198…
        #[arg(required_unless_present = "before")]
        ids: Vec<String>,
        /// Erase the messages before this time, such as 2026-03-02T09:00:00Z
        #[arg(long, conflicts_with = "ids", value_name = "TIME")]
        before: Option<String>,
    },
    /// Erase a session with all of its messages
    Session {
        /// The session
        session: String,
    },
    /// Erase the user with everything in every workspace
    User {
        /// Confirm the erasure
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Serialize)]
struct ErasedJson {
    messages: u64,
    tokens: u64,
    facts: u64,
    entities: u64,
    summaries: u64,
    sessions: u64,
    documents: u64,
    /// Whether the vector index or the cache was unavailable, so that a worker completes the
    /// erasure there.
    waiting: bool,
}

impl From<&Erased> for ErasedJson {
    fn from(erased: &Erased) -> Self {
        Self {
            messages: erased.messages,
            tokens: erased.tokens,
            facts: erased.facts,
            entities: erased.entities,
            summaries: erased.summaries,
            sessions: erased.sessions,
            documents: erased.documents,
            waiting: erased.waiting,
        }
    }
}

pub(super) async fn run(command: &Command, config: &Config, output: &Output) -> Result<()> {
    let caller = Identity::local(config.scope()?);
    let open = async || open_existing(config).await;
    let erased = match command {
        Command::Message { session, before: Some(before), .. } => {
            let which = WhichMessages::Before(Timestamp::parse(before)?);
            open().await?.erase_messages(&caller, session, which).await?
        }
        Command::Message { session, ids, .. } => {
            let ids = ids.iter().map(|id| id.strip_prefix("msg:").unwrap_or(id).parse());
            let which = WhichMessages::Ids(ids.collect::<Result<_>>()?);
            open().await?.erase_messages(&caller, session, which).await?
        }
        Command::Session { session } => open().await?.erase_session(&caller, session).await?,
        Command::User { yes } => {
            let user = caller.scope()?.user;
            if !yes {
                return Err(Error::invalid(format!(
                    "this erases everything of user `{user}`, in every workspace, and cannot be \
                     undone: pass --yes to confirm"
                )));
            }
            open().await?.erase_user(&caller, &user).await?
        }
    };
    output.result(&ErasedJson::from(&erased), || told(&erased))
}

fn told(erased: &Erased) -> String {
    let mut said = format!(
        "erased {} messages ({} tokens), {} facts, {} typed values, {} summaries, {} sessions, \
         {} documents",
        grouped(erased.messages),
        grouped(erased.tokens),
        grouped(erased.facts),
        grouped(erased.entities),
        grouped(erased.summaries),
        grouped(erased.sessions),
        grouped(erased.documents)
    );
    if erased.waiting {
        said.push_str(
            "\nthe vector index or the cache is unavailable: `throughline worker` completes the \
             erasure there when it is back",
        );
    }
    said
}
