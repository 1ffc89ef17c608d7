//! Assembling what one turn sends: `gather → select → trim → order → render → account`.
//!
//! [`ContextService`] gathers through the ports; [`assemble()`] and everything below it is pure. The
//! payload's order serves prompt caches: header, summary and history stay byte for byte between
//! turns (history changes in steps), and only what recall found and the turn itself change.

mod account;
mod assemble;
mod block;
mod documents;
mod entity_values;
mod feedback;
mod header;
mod history;
mod intent;
mod ledger;
mod meaning;
mod pack;
mod question;
mod rank;
mod recall;
mod relevance;
mod score_accumulator;
mod service;
mod standing_instructions;
mod superseded;
mod window;

pub use account::{
    AssembledContext, Budget, ContextMessage, Item, ItemKind, Outcome, Reason, Section, Span,
};
pub(crate) use assemble::spendable;
pub use assemble::{Gathered, assemble};
pub use block::Found;
pub use documents::DocumentCandidate;
pub use header::{CRITICAL_RULES, ToolLine};
pub use intent::Intent;
pub use pack::{DEFAULT_BUDGET, MAX_BUDGET, MAX_HEADER_TOKENS, Tier};
pub use recall::{Candidates, FactCandidate, Mark, MessageCandidate, RecallOptions};
pub use relevance::{Bearing, Judged, SIGNALS, Weights};
pub use service::{AssembleRequest, ContextService};
pub use window::Window;
