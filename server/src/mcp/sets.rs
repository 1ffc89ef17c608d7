//! Which tools a client is shown, so that it pays for what it uses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A set of tools.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolSet {
    /// Messages, facts, assembled contexts and documents.
    Memory,
    /// Personas, their presets and conversations.
    Persona,
    /// Files that a session refers to.
    Files,
    /// Usage, settings and the state of the service.
    Admin,
}
