//! The models of a provider: those that are known without configuration, and those of the configuration.

use throughline_core::chat::{ModelInfo, ModelPrice};

/// A model that is known without configuration.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInModel {
    /// Its name at its provider.
    pub id: &'static str,
    /// Window and longest answer, in tokens.
    pub limits: (u32, u32),
    /// Whether it takes a temperature.
    pub temperature: bool,
    /// Whether it thinks before it writes.
    pub thinks: bool,
    /// US dollars for a million tokens of requests, of cached requests, and of answers.
    pub price: [f64; 3],
}

impl BuiltInModel {
    fn info(&self) -> ModelInfo {
        let [input, cached_input, output] = self.price;
        ModelInfo {
            id: self.id.to_owned(),
            window: self.limits.0,
            max_output: self.limits.1,
            tools: true,
            temperature: self.temperature,
            thinks: self.thinks,
            price: Some(ModelPrice { input, cached_input, output }),
        }
    }
}

/// The built-in models and those of the configuration, which come first and replace built-in ones of their id.
#[must_use]
pub fn catalogue(configured: Vec<ModelInfo>, built_in: &[BuiltInModel]) -> Vec<ModelInfo> {
    let mut models: Vec<ModelInfo> = Vec::new();
    for model in configured.into_iter().chain(built_in.iter().map(BuiltInModel::info)) {
        if models.iter().all(|known| known.id != model.id) {
            models.push(model);
        }
    }
    models
}

/// The ids of models, for sentences.
#[must_use]
pub fn listed(models: &[ModelInfo]) -> String {
    models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT_IN: &[BuiltInModel] =
        &[model("large", (100, 10), [2.0, 0.5, 8.0]), model("small", (50, 5), [1.0, 0.1, 4.0])];

    const fn model(id: &'static str, limits: (u32, u32), price: [f64; 3]) -> BuiltInModel {
        BuiltInModel { id, limits, temperature: true, thinks: false, price }
    }

    #[test]
    fn configured_models_replace_built_in_ones() {
        let mine = |id: &str| ModelInfo { id: id.to_owned(), window: 7, ..BUILT_IN[0].info() };
        let models = catalogue(vec![mine("llama3"), mine("small"), mine("llama3")], BUILT_IN);
        assert_eq!(listed(&models), "llama3, small, large");
        assert_eq!(models.iter().map(|model| model.window).collect::<Vec<_>>(), [7, 7, 100]);
        assert_eq!(models[2].price.unwrap().cached_input, 0.5);
    }
}
