//! Assembling what one turn sends: `gather → select → trim → order → render → account`.
//!
//! [`ContextService`](crate::services::contexts::ContextService) gathers through the ports; all of this is pure. The
//! payload's order serves prompt caches: header, summary and history stay byte for byte between
//! turns (history changes in steps), and only what recall found and the turn itself change.

mod account;
mod assemble;
mod documents;
mod entity_values;
mod feedback;
mod header;
mod history;
mod hits;
mod ledger;
mod meaning;
mod pack;
mod question;
mod rank;
mod recall;
mod relevance;
mod score_accumulator;
mod source;
mod standing_instructions;
mod superseded;
mod window;

pub use account::{AssembledContext, Budget, Item, ItemKind, Outcome, Reason, Section, Span};
pub use assemble::{Gathered, Turn, assemble};
pub(crate) use assemble::{LEAST_RECALL, least_default, spendable};
pub use documents::DocumentCandidate;
pub(crate) use feedback::{LOOK_AT, choose, shared_terms};
pub use header::{CRITICAL_RULES, ToolLine};
pub(crate) use ledger::NEWEST_READ;
pub(crate) use meaning::{Nearness, blend};
pub use pack::MAX_HEADER_TOKENS;
pub(crate) use rank::{Bm25, Query, Ranked, Ranking};
pub(crate) use recall::select;
pub use recall::{Candidates, FactCandidate, Mark, MessageCandidate};
pub(crate) use relevance::judge;
pub use relevance::{Bearing, Judged, relevance_step};
pub use source::Source;
pub(crate) use standing_instructions::STANDING_READ;
pub(crate) use superseded::{
    REJECTED_READ, SUPERSEDED_READ, Superseded, states_corrected, states_rejected,
};
pub use window::Window;
pub(crate) use window::window;
