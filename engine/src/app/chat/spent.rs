//! What the calls of a turn took together.

use throughline_core::chat::TokenUsage;

use crate::compose::ChosenModel;

/// Tokens and dollars, as far as they are known of every call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    calls: u32,
    usage: TokenUsage,
    /// Calls whose tokens are known.
    counted: u32,
    cost: f64,
    /// Calls whose cost is known.
    priced: u32,
}

impl Spent {
    /// Adds a call.
    pub(super) fn add(&mut self, chosen: &ChosenModel, usage: Option<TokenUsage>) {
        self.calls += 1;
        let Some(used) = usage else { return };
        self.counted += 1;
        self.usage.input += used.input;
        self.usage.cached_input += used.cached_input;
        self.usage.output += used.output;
        if let Some(price) = chosen.info.price {
            self.priced += 1;
            self.cost += price.of(used);
        }
    }

    /// The tokens of all calls; none where one did not say.
    pub(super) fn usage(&self) -> Option<TokenUsage> {
        (self.counted == self.calls && self.calls > 0).then_some(self.usage)
    }

    /// US dollars of all calls; none where one is not known.
    pub(super) fn cost(&self) -> Option<f64> {
        (self.priced == self.calls && self.calls > 0).then_some(self.cost)
    }
}
