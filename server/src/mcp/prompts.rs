//! The prompts.
use rmcp::model::{GetPromptRequestParams, GetPromptResult, Prompt};
use throughline_core::{Error, Result};

pub(super) fn all() -> Vec<Prompt> {
    Vec::new()
}

pub(super) fn get(request: &GetPromptRequestParams) -> Result<GetPromptResult> {
    Err(Error::invalid(format!("there is no prompt `{}`", request.name)))
}
