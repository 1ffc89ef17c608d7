//! Plans of files.

use schemars::JsonSchema;
use serde::Serialize;
use throughline_core::files::Plan;

/// What a call does with its files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FilePlanJson {
    files: Vec<PlannedFileJson>,
    tokens: FileTokensJson,
}

/// What a call does with a file.
#[derive(Debug, Serialize, JsonSchema)]
struct PlannedFileJson {
    path: String,
    /// inline, unchanged, changed, overflow, new, removed or skipped.
    outcome: &'static str,
    tokens: u32,
    reason: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FileTokensJson {
    /// Of files that are sent.
    sent: u64,
    /// Of inline files that are not sent again.
    saved: u64,
}

impl From<&Plan> for FilePlanJson {
    fn from(plan: &Plan) -> Self {
        let files = plan.files.iter().map(|file| PlannedFileJson {
            path: file.path.clone(),
            outcome: file.outcome.as_str(),
            tokens: file.tokens,
            reason: file.reason.clone().into_owned(),
        });
        let tokens = FileTokensJson { sent: plan.tokens.sent, saved: plan.tokens.saved };
        Self { files: files.collect(), tokens }
    }
}
