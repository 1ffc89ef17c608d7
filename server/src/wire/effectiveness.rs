//! How well presets do.

use serde::Serialize;
use throughline_core::persona::Effectiveness;
use throughline_core::time::Timestamp;
use utoipa::ToSchema;

/// How well a version of a preset does.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "preset_id": "preset-calm-counselor", "preset_version": 1, "contexts": 3, "turns": 120, "rated": 40,
    "helpful": 36, "helpful_share": 0.9, "first_rated_at": "2026-03-02T09:14:00Z",
    "last_rated_at": "2026-03-30T18:02:00Z"
}))]
pub(crate) struct EffectivenessJson {
    /// The preset; null for contexts without one.
    pub(crate) preset_id: Option<String>,
    /// Its version; null for contexts whose prompt or personality was changed after their creation.
    pub(crate) preset_version: Option<u64>,
    /// Contexts created from it that exist.
    pub(crate) contexts: u64,
    /// Turns that these contexts answered, at any time.
    pub(crate) turns: u64,
    /// Ratings in the period.
    pub(crate) rated: u64,
    /// Ratings in the period that say that the answer helped.
    pub(crate) helpful: u64,
    /// `helpful` divided by `rated`; null without ratings.
    pub(crate) helpful_share: Option<f64>,
    /// The first rating in the period.
    #[schema(format = DateTime)]
    pub(crate) first_rated_at: Option<String>,
    /// The last rating in the period.
    #[schema(format = DateTime)]
    pub(crate) last_rated_at: Option<String>,
}

impl From<Effectiveness> for EffectivenessJson {
    fn from(of: Effectiveness) -> Self {
        Self {
            helpful_share: of.helpful_share(),
            preset_id: of.preset.map(|id| id.to_string()),
            preset_version: of.preset_version,
            contexts: of.contexts,
            turns: of.turns,
            rated: of.rated,
            helpful: of.helpful,
            first_rated_at: of.first_at.map(Timestamp::to_rfc3339),
            last_rated_at: of.last_at.map(Timestamp::to_rfc3339),
        }
    }
}
