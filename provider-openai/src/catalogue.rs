//! The models that are known without configuration.

use throughline_core::chat::ModelInfo;
use throughline_provider_http::BuiltInModel;

/// Windows, limits and prices as OpenAI's model pages gave them between March and May 2026, for its standard
/// tier, in US dollars for a million tokens. Prompts over 272,000 tokens cost more with models whose window is
/// 1,050,000; that is not counted. Configuration replaces any of these.
pub(crate) const BUILT_IN: &[BuiltInModel] = &[
    row("gpt-5.5", GPT_5_LONG, REASONS, [5.0, 0.5, 30.0]),
    row("gpt-5.4", GPT_5_LONG, REASONS, [2.5, 0.25, 15.0]),
    row("gpt-5.4-mini", GPT_5, REASONS, [0.75, 0.075, 4.5]),
    row("gpt-5.4-nano", GPT_5, REASONS, [0.2, 0.02, 1.25]),
    row("gpt-5.2", GPT_5, REASONS, [1.75, 0.175, 14.0]),
    row("gpt-5.1", GPT_5, REASONS, [1.25, 0.125, 10.0]),
    row("gpt-5", GPT_5, REASONS, [1.25, 0.125, 10.0]),
    row("gpt-5-mini", GPT_5, REASONS, [0.25, 0.025, 2.0]),
    row("gpt-5-nano", GPT_5, REASONS, [0.05, 0.005, 0.4]),
    row("o3", O3, REASONS, [2.0, 0.5, 8.0]),
    // It has no price for cached tokens: they cost as much as others.
    row("o3-pro", O3, REASONS, [20.0, 20.0, 80.0]),
    row("gpt-4.1", GPT_4_1, ANSWERS_AT_ONCE, [2.0, 0.5, 8.0]),
    row("gpt-4.1-mini", GPT_4_1, ANSWERS_AT_ONCE, [0.4, 0.1, 1.6]),
    row("gpt-4.1-nano", GPT_4_1, ANSWERS_AT_ONCE, [0.1, 0.025, 0.4]),
    row("gpt-4o", GPT_4O, ANSWERS_AT_ONCE, [2.5, 1.25, 10.0]),
    row("gpt-4o-mini", GPT_4O, ANSWERS_AT_ONCE, [0.15, 0.075, 0.6]),
];

/// Window and longest answer.
type Limits = (u32, u32);
const GPT_5_LONG: Limits = (1_050_000, 128_000);
const GPT_5: Limits = (400_000, 128_000);
const O3: Limits = (200_000, 100_000);
const GPT_4_1: Limits = (1_047_576, 32_768);
const GPT_4O: Limits = (128_000, 16_384);

const ANSWERS_AT_ONCE: bool = false;
/// Reasoning models refuse a temperature.
const REASONS: bool = true;

const fn row(id: &'static str, limits: Limits, thinks: bool, price: [f64; 3]) -> BuiltInModel {
    BuiltInModel { id, limits, temperature: !thinks, thinks, price }
}

/// A model by its id, or by that of a dated snapshot of it, such as `gpt-4.1-2025-04-14`.
pub(crate) fn find(models: &[ModelInfo], id: &str) -> Option<ModelInfo> {
    let named = |name: &str| models.iter().find(|model| model.id == name);
    let found = named(id).or_else(|| named(without_date(id)?))?;
    Some(ModelInfo { id: id.to_owned(), ..found.clone() })
}

/// The id before a date, where it ends with one.
pub(crate) fn without_date(id: &str) -> Option<&str> {
    let (rest, date) = id.split_at_checked(id.len().checked_sub("-2025-04-14".len())?)?;
    let is_date = date.bytes().zip("-0000-00-00".bytes()).all(|(byte, form)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == form,
    });
    is_date.then_some(rest)
}

/// Whether OpenAI serves the model through the Responses API only: those that work longer on an answer. Models of other
/// servers may have such names, too.
pub(crate) fn has_responses_only(id: &str) -> bool {
    let id = without_date(id).unwrap_or(id);
    let is_o =
        || id.strip_prefix('o').is_some_and(|id| id.starts_with(|c: char| c.is_ascii_digit()));
    id.ends_with("-pro") && (id.starts_with("gpt-5") || is_o())
}

#[cfg(test)]
mod tests {
    use throughline_provider_http::catalogue;

    use super::*;

    #[test]
    fn finds_dated_snapshots() {
        let models = catalogue(Vec::new(), BUILT_IN);
        let found = |id: &str| find(&models, id).map(|model| model.id);
        assert_eq!(found("gpt-4.1-2025-04-14").as_deref(), Some("gpt-4.1-2025-04-14"));
        assert_eq!(found("gpt-4.1-2025-04-1é"), None);
        assert_eq!(found("gpt-4.1-latest"), None);
        assert_eq!(found("-2025-04-14"), None);
        assert_eq!(found(""), None);
    }

    #[test]
    fn every_model_has_limits_and_a_price() {
        for model in catalogue(Vec::new(), BUILT_IN) {
            assert!(model.max_output < model.window, "{}", model.id);
            let price = model.price.unwrap();
            assert!(
                price.cached_input <= price.input && price.input < price.output,
                "{}",
                model.id
            );
        }
    }

    #[test]
    fn recognizes_models_without_chat_completions() {
        for id in ["o3-pro", "o3-pro-2025-06-10", "gpt-5-pro", "gpt-5.4-pro"] {
            assert!(has_responses_only(id), "{id}");
        }
        for id in ["o3", "gpt-5", "gemini-2.5-pro", "gpt-4.1", "our-pro", "openai/o3-pro", "o-pro"]
        {
            assert!(!has_responses_only(id), "{id}");
        }
    }
}
