//! Plans of files.

use schemars::JsonSchema;
use serde::Serialize;
use throughline_core::files::{Outcome, Plan};
use utoipa::ToSchema;

/// What a call does with its files.
#[derive(Debug, Serialize, JsonSchema, ToSchema)]
pub(crate) struct FilePlanJson {
    files: Vec<PlannedFileJson>,
    tokens: FileTokensJson,
    /// Files that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a call does with a file.
#[derive(Debug, Serialize, JsonSchema, ToSchema)]
struct PlannedFileJson {
    path: String,
    /// inline, unchanged, changed, overflow, new, removed or skipped.
    outcome: &'static str,
    tokens: u32,
    reason: String,
}

#[derive(Debug, Serialize, JsonSchema, ToSchema)]
struct FileTokensJson {
    /// Of files that the prompt gains.
    sent: u64,
    /// Of files that stand in the prompt already.
    saved: u64,
}

impl FilePlanJson {
    /// A plan with at most so many files: those first that are sent, gone or new to it.
    pub(crate) fn shortened(mut plan: Plan, most: usize) -> Self {
        let stays = |outcome| matches!(outcome, Outcome::Unchanged | Outcome::Overflow);
        plan.files.sort_by_key(|file| stays(file.outcome));
        let left_out = plan.files.len().saturating_sub(most);
        plan.files.truncate(most);
        Self { left_out, ..Self::from(&plan) }
    }
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
        Self { files: files.collect(), tokens, left_out: 0 }
    }
}
