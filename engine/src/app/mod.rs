//! What a caller may do with a memory, the same for every interface: whose session a name means, what a guest of it may
//! do, the defaults of the tenant, the metrics, and the entry in the audit log. HTTP, MCP and the command line read
//! their forms, call this, and write their forms.

mod chat;
mod completions;
mod contexts;
mod cursors;
mod documents;
mod facts;
pub mod failure;
mod files;
mod measures;
mod messages;
mod persona_chat;
mod personas;
mod profiles;
mod search;
mod short_ids;
mod thread;
mod usage;

pub use chat::{ChatPiece, ChatReply, ChatTurn, SpecialistView, TurnFiles};
pub use completions::{Completed, Completion, Sent};
pub use contexts::{Recalling, SessionWindow, Turn};
pub use cursors::{Cursors, invalid_cursor};
pub use facts::{FactFilter, FactSearch, Place};
pub use files::{DEFAULT_FILE_TOKENS, FileCounts, FilePlan, FileStores, FilesOfCall};
pub use messages::WhichMessages;
pub use persona_chat::{KeptAnswer, PersonaPiece, PersonaReply, PersonaTurn};
pub use personas::{DeletedPersona, WhichConversations};
pub use search::{Hit, HitKind, Search};
pub use short_ids::short_id;
pub use thread::{PersonaThread, Thread, is_reserved, personas};

use throughline_core::Result;

use crate::compose::Engine;
use crate::metering::UsageMeter;

/// The engine, with what counts its use.
#[derive(Clone)]
pub struct App {
    /// Core's services, for what needs no more than a scope.
    pub engine: Engine,
    /// Counts contexts without making them wait.
    pub meter: UsageMeter,
    /// The stores of files of calls that run.
    file_stores: files::FileStoreTasks,
}

impl App {
    /// The application over an engine.
    ///
    /// # Errors
    /// Those of the ledger of erasures.
    pub async fn new(engine: Engine) -> Result<Self> {
        let meter = UsageMeter::new(&engine).await?;
        Ok(Self { engine, meter, file_stores: files::FileStoreTasks::default() })
    }
}
