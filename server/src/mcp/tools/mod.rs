//! The tools, a file a set or a part of one.

mod admin;
mod contexts;
mod document;
mod files;
mod memory;
mod messages;
mod persona;

use super::tool::Tool;
use throughline_engine::config::ToolSet;

pub(super) use persona::{ContextForm, ConversationForm, PresetForm, TemplateForm};

/// The tools of these sets, always in the same order; those for files of this machine only where it has any for who calls.
pub(super) fn of_sets(sets: &[ToolSet], has_files: bool) -> Vec<Tool> {
    let all = [
        memory::tools(),
        contexts::tools(),
        messages::tools(),
        document::tools(),
        persona::tools(),
        files::tools(has_files),
        admin::tools(),
    ];
    all.into_iter().flatten().filter(|tool| sets.contains(&tool.set)).collect()
}
