//! The models that are known without configuration.

use throughline_provider_http::BuiltInModel;

/// Windows, limits and prices as Google's pages of models and prices gave them on 24 November 2026, for its standard
/// tier, in US dollars for a million tokens. Where a price is lower for a time, it is the one that follows: from
/// 1 December 2026 for `gemini-4-carbon` and `gemini-4-argon`, from 1 January 2027 for `gemini-3.8-flash`. Prompts over
/// 200,000 tokens cost more with 2.5 Pro and 3.1 Pro, and storing a cache costs by the hour; neither is counted. From
/// 1 December 2026, Google answers requests to 2.5 Pro with 3.8 Flash, and those to 2.5 Flash with 3.5 Flash-Lite, at
/// their prices. Configuration replaces any of these.
pub(crate) const BUILT_IN: &[BuiltInModel] = &[
    model("gemini-4-carbon", NO_TEMPERATURE, [4.0, 0.2, 20.0]),
    model("gemini-4-argon", NO_TEMPERATURE, [4.0, 0.2, 20.0]),
    model("gemini-4-neon", NO_TEMPERATURE, [3.0, 0.15, 15.0]),
    model("gemini-4-hydrogen", NO_TEMPERATURE, [1.5, 0.075, 7.5]),
    model("gemini-3.8-flash", NO_TEMPERATURE, [1.5, 0.15, 7.5]),
    model("gemini-3.6-flash", NO_TEMPERATURE, [1.5, 0.15, 7.5]),
    model("gemini-3.5-flash-lite", NO_TEMPERATURE, [0.3, 0.03, 2.5]),
    model("gemini-3.1-pro-preview", TAKES_TEMPERATURE, [2.0, 0.2, 12.0]),
    model("gemini-3.1-flash-lite", TAKES_TEMPERATURE, [0.25, 0.025, 1.5]),
    model("gemini-2.5-pro", TAKES_TEMPERATURE, [1.25, 0.125, 10.0]),
    model("gemini-2.5-flash", TAKES_TEMPERATURE, [0.3, 0.03, 2.5]),
    model("gemini-2.5-flash-lite", TAKES_TEMPERATURE, [0.1, 0.01, 0.4]),
];

/// Window and longest answer, which all of them share. With Gemini 4 the answer is part of the window, before it is
/// beside it.
const LIMITS: (u32, u32) = (1_048_576, 65_536);

const TAKES_TEMPERATURE: bool = true;
/// Since 3.6 Flash, sampling parameters are deprecated, and ignored by Gemini 4.
const NO_TEMPERATURE: bool = false;

const fn model(id: &'static str, temperature: bool, price: [f64; 3]) -> BuiltInModel {
    BuiltInModel { id, limits: LIMITS, temperature, price }
}

/// Whether a model thinks before it writes, and sends nothing meanwhile. The small ones do not unless they are told to.
pub(crate) fn thinks(id: &str) -> bool {
    id.starts_with("gemini-") && !id.contains("-lite")
}

/// Whether a model refuses a call of a tool in its history that is not signed.
pub(crate) fn requires_signatures(id: &str) -> bool {
    let older = ["gemini-1", "gemini-2"].iter().any(|prefix| id.starts_with(prefix));
    id.starts_with("gemini-") && !older
}

#[cfg(test)]
mod tests {
    use throughline_provider_http::catalogue;

    use super::*;

    #[test]
    fn every_model_has_limits_and_a_price() {
        for model in catalogue(Vec::new(), BUILT_IN) {
            assert!(model.max_output < model.window, "{}", model.id);
            let price = model.price.unwrap();
            assert!(price.cached_input < price.input && price.input < price.output, "{}", model.id);
        }
    }

    #[test]
    fn tells_models_apart_by_their_names() {
        for (id, does_think, signed) in [
            ("gemini-4-neon", true, true),
            ("gemini-3.5-flash-lite", false, true),
            ("gemini-2.5-pro", true, false),
            ("gemini-2.5-flash-lite", false, false),
            ("gemma-4", false, false),
        ] {
            assert_eq!((thinks(id), requires_signatures(id)), (does_think, signed), "{id}");
        }
    }
}
