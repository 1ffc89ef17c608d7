//! The forms of domain values that more than one interface reads or shows, and of failures. The domain carries no serde;
//! what leaves the program does here.

mod context;
mod effectiveness;
mod files;
mod forms;
pub(crate) mod held;
mod models;
pub(crate) mod problem;
pub(crate) mod request;

pub(crate) use context::{AssembledContextJson, PayloadFormat};
pub(crate) use effectiveness::EffectivenessJson;
pub(crate) use files::{FileCountsJson, FilePlanJson};
pub(crate) use forms::{ActorJson, FactKindJson, IntentJson, RoleJson, TierJson, indexed};
pub(crate) use models::ModelJson;
