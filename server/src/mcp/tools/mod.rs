//! The tools, a file a set or a part of one.

mod admin;
mod chat;
mod contexts;
mod document;
mod files;
mod memory;
mod messages;
mod persona;

use throughline_core::Result;
use throughline_engine::compose::ChatModels;
use throughline_engine::config::McpConfig;

use super::tool::Tool;

pub(super) use persona::{ContextForm, ConversationForm, PresetForm, TemplateForm};

/// The tools of the chosen sets, always in the same order; those for files of this machine only where it has any for who
/// calls, and those of models only where there are any.
///
/// # Errors
/// `InvalidInput` for a configured model that does not exist.
pub(super) fn of_sets(
    config: &McpConfig,
    models: &ChatModels,
    has_files: bool,
) -> Result<Vec<Tool>> {
    let all = [
        memory::tools(),
        contexts::tools(),
        messages::tools(),
        document::tools(),
        persona::tools(),
        files::tools(has_files),
        chat::tools(models, config)?,
        admin::tools(),
    ];
    let is_chosen = |tool: &Tool| config.tool_sets.contains(&tool.set);
    Ok(all.into_iter().flatten().filter(is_chosen).collect())
}
