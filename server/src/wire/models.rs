//! Chat models.

use serde::Serialize;
use throughline_core::ports::ChatProvider;
use utoipa::ToSchema;

/// A model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelJson {
    /// `provider:model`.
    pub(crate) model: String,
    /// Maximum number of tokens of request and answer together.
    pub(crate) window: u32,
    /// Maximum number of tokens of an answer.
    pub(crate) max_output: u32,
    /// Whether it can call functions.
    pub(crate) tools: bool,
    pub(crate) price: Option<PriceJson>,
}

/// US dollars for a million tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PriceJson {
    pub(crate) input: f64,
    pub(crate) cached_input: f64,
    pub(crate) output: f64,
}

impl ModelJson {
    /// The models of a provider.
    pub(crate) fn all_of(provider: &dyn ChatProvider) -> Vec<Self> {
        let models = provider.models().iter().map(|model| Self {
            model: format!("{}:{}", provider.name(), model.id),
            window: model.window,
            max_output: model.max_output,
            tools: model.tools,
            price: model.price.map(|price| PriceJson {
                input: price.input,
                cached_input: price.cached_input,
                output: price.output,
            }),
        });
        models.collect()
    }
}
