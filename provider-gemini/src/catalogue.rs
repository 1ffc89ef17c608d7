//! The models that are known without configuration.

use throughline_provider_http::BuiltInModel;

/// Windows, limits and prices as Google's pages of models and prices gave them on 24 November 2026, for its standard
/// tier, in US dollars for a million tokens. Where a price is lower for a time, it is the one that follows: from
/// 1 December 2026 for `gemini-4-carbon` and `gemini-4-argon`, from 1 January 2027 for `gemini-3.8-flash`. Prompts over
/// 200,000 tokens cost more with 2.5 Pro and 3.1 Pro, and storing a cache costs by the hour; neither is counted. From
/// 1 December 2026, Google answers requests to 2.5 Pro with 3.8 Flash, and those to 2.5 Flash with 3.5 Flash-Lite, at
/// their prices. Configuration replaces any of these.
pub(crate) const BUILT_IN: &[BuiltInModel] = &[
    model("gemini-4-carbon", THINKS, [4.0, 0.2, 20.0]),
    model("gemini-4-argon", THINKS, [4.0, 0.2, 20.0]),
    model("gemini-4-neon", THINKS, [3.0, 0.15, 15.0]),
    model("gemini-4-hydrogen", THINKS, [1.5, 0.075, 7.5]),
    model("gemini-3.8-flash", THINKS, [1.5, 0.15, 7.5]),
    model("gemini-3.6-flash", THINKS, [1.5, 0.15, 7.5]),
    model("gemini-3.5-flash-lite", LITE, [0.3, 0.03, 2.5]),
    model("gemini-3.1-pro-preview", OLDER_THINKS, [2.0, 0.2, 12.0]),
    model("gemini-3.1-flash-lite", OLDER_LITE, [0.25, 0.025, 1.5]),
    model("gemini-2.5-pro", OLDER_THINKS, [1.25, 0.125, 10.0]),
    model("gemini-2.5-flash", OLDER_THINKS, [0.3, 0.03, 2.5]),
    model("gemini-2.5-flash-lite", OLDER_LITE, [0.1, 0.01, 0.4]),
];

/// Window and longest answer, which all of them share. With Gemini 4 the answer is part of the window, before it is
/// beside it.
const LIMITS: (u32, u32) = (1_048_576, 65_536);

/// Whether it takes a temperature, and whether it thinks. The small ones do not think unless they are told to.
type Kind = (bool, bool);
/// Since 3.6 Flash, sampling parameters are deprecated, and ignored by Gemini 4.
const THINKS: Kind = (false, true);
const LITE: Kind = (false, false);
const OLDER_THINKS: Kind = (true, true);
const OLDER_LITE: Kind = (true, false);

const fn model(id: &'static str, (temperature, thinks): Kind, price: [f64; 3]) -> BuiltInModel {
    BuiltInModel { id, limits: LIMITS, temperature, thinks, price }
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
    fn knows_which_models_think() {
        let models = catalogue(Vec::new(), BUILT_IN);
        let thinks = |id: &str| models.iter().find(|model| model.id == id).unwrap().thinks;
        for id in ["gemini-4-neon", "gemini-2.5-pro", "gemini-2.5-flash"] {
            assert!(thinks(id), "{id}");
        }
        for id in ["gemini-3.5-flash-lite", "gemini-2.5-flash-lite"] {
            assert!(!thinks(id), "{id}");
        }
    }

    #[test]
    fn models_since_gemini_3_require_signatures() {
        for (id, signed) in [
            ("gemini-4-neon", true),
            ("gemini-3.5-flash-lite", true),
            ("gemini-2.5-pro", false),
            ("gemma-4", false),
        ] {
            assert_eq!(requires_signatures(id), signed, "{id}");
        }
    }
}
