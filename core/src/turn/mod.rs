//! What is said about a turn before its context is made: its intent, the size of the context, and the parts
//! of recall that it uses.

mod fading;
mod intent;
mod recall_options;
mod tier;

pub use fading::Fading;
pub use intent::Intent;
pub use recall_options::{RecallOptions, SIGNALS, Weights};
pub use tier::{DEFAULT_BUDGET, MAX_BUDGET, Tier};
