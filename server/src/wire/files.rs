//! Plans of files, and their tokens.

use schemars::JsonSchema;
use serde::Serialize;
use throughline_core::files::{Outcome, Plan, SkippedFile};
use throughline_engine::app::FileCounts;
use utoipa::ToSchema;

/// Tokens of files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileCountsJson {
    /// The largest first.
    files: Vec<CountedFileJson>,
    skipped: Vec<SkippedFileJson>,
    /// Of all files, also of those that are not listed.
    tokens: u64,
    /// Files that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

/// Tokens of a file, with the fence that a prompt has around it.
#[derive(Debug, Serialize, JsonSchema)]
struct CountedFileJson {
    path: String,
    tokens: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SkippedFileJson {
    path: String,
    reason: String,
}

impl FileCountsJson {
    /// With at most so many files: the largest, and then those that are skipped.
    pub(crate) fn shortened(mut counts: FileCounts, most: usize) -> Self {
        let all = counts.files.len() + counts.skipped.len();
        counts.files.truncate(most);
        counts.skipped.truncate(most - counts.files.len());
        let left_out = all - counts.files.len() - counts.skipped.len();
        Self { left_out, ..Self::from(counts) }
    }
}

impl From<FileCounts> for FileCountsJson {
    fn from(counts: FileCounts) -> Self {
        let FileCounts { files, skipped, tokens } = counts;
        let counted = |(path, tokens)| CountedFileJson { path, tokens };
        let left_out = |SkippedFile { path, reason }| {
            let reason = reason.to_string();
            SkippedFileJson { path, reason }
        };
        Self {
            files: files.into_iter().map(counted).collect(),
            skipped: skipped.into_iter().map(left_out).collect(),
            tokens,
            left_out: 0,
        }
    }
}

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
