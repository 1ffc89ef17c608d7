//! Chat models by their names, and those that read facts and write summaries in the background.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use throughline_core::chat::{ChatAnswer, ChatModelRequest, ModelInfo};
use throughline_core::ports::{ChatModel, ChatProvider, ChatStream, FactReader, Summarizer};
use throughline_core::{Error, ErrorKind, Result};

use super::ChatModels;
use crate::adapters::{ModelFactReader, ModelSummarizer, O200k};
use crate::config::Config;

/// A model with its name, as `provider:id`, and what is known of it.
type NamedModel = (String, ModelInfo, Arc<dyn ChatModel>);

/// A model of a provider.
#[derive(Clone)]
pub struct ChosenModel {
    /// Its provider's name.
    pub provider: &'static str,
    /// What is known of it.
    pub info: ModelInfo,
    pub(crate) model: Arc<dyn ChatModel>,
}

impl ChosenModel {
    /// Asks it once.
    ///
    /// # Errors
    /// Those of [`ChatModel::complete`]; `Unavailable` where the provider refuses the server's key.
    pub async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer> {
        self.model.complete(request).await.map_err(provider_error)
    }

    pub(crate) async fn stream(&self, request: &ChatModelRequest) -> Result<ChatStream> {
        let pieces = self.model.stream(request).await.map_err(provider_error)?;
        Ok(pieces.map(|piece| piece.map_err(provider_error)).boxed())
    }

    /// What an answer cost in US dollars, where price and tokens are known.
    #[must_use]
    pub fn cost(&self, answer: &ChatAnswer) -> Option<f64> {
        Some(self.info.price?.of(answer.usage?))
    }

    /// Its name with its provider's, as `provider:id`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.provider, self.info.id)
    }
}

/// A provider's error as callers are told it. A refused key is the server's: callers would take `Unauthenticated` for their
/// own.
pub(crate) fn provider_error(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Unauthenticated => {
            Error::new(ErrorKind::Unavailable, error.message().to_owned()).with_source(error)
        }
        _ => error,
    }
}

/// A model that reads facts in messages, and how much of it.
#[derive(Clone)]
pub struct FactReading {
    /// The model.
    pub reader: Arc<dyn FactReader>,
    /// Tokens that a tenant may spend on it in a day.
    pub daily_tokens: u64,
    /// How long a message waits for others to be read with it.
    pub delay: Duration,
}

impl FactReading {
    /// That of a configuration, if it has one.
    ///
    /// # Errors
    /// `InvalidInput` for a model that does not exist, with those that do.
    pub fn open(config: &Config, models: &ChatModels) -> Result<Option<Self>> {
        let settings = &config.extraction;
        let Some(model) = models.find_for("extraction.model", &settings.model)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            reader: Arc::new(ModelFactReader::new(model, Arc::new(O200k))),
            daily_tokens: settings.daily_tokens(),
            delay: settings.delay(),
        }))
    }
}

/// A model that writes summaries, and how much of it.
#[derive(Clone)]
pub struct SummaryWriting {
    /// The model.
    pub summarizer: Arc<dyn Summarizer>,
    /// Tokens that a tenant may spend on it in a day.
    pub daily_tokens: u64,
}

impl SummaryWriting {
    /// That of a configuration, if it has one.
    ///
    /// # Errors
    /// `InvalidInput` for a model that does not exist, with those that do.
    pub fn open(config: &Config, models: &ChatModels) -> Result<Option<Self>> {
        let settings = &config.summaries;
        let model = models.find_for("summaries.model", &settings.model)?;
        Ok(model.map(|model| Self {
            summarizer: Arc::new(ModelSummarizer::new(model, Arc::new(O200k))),
            daily_tokens: settings.daily_tokens(),
        }))
    }
}

impl ChatModels {
    /// The model of a setting with its name and what is known of it; none where it is empty.
    fn find_for(&self, setting: &str, name: &str) -> Result<Option<NamedModel>> {
        if name.is_empty() {
            return Ok(None);
        }
        let chosen = self.find(name).map_err(|error| {
            Error::new(error.kind(), format!("configuration key `{setting}`: {}", error.message()))
        })?;
        Ok(Some((chosen.name(), chosen.info, chosen.model)))
    }

    /// A model by its name, as `provider:id` or as the id alone.
    ///
    /// # Errors
    /// `InvalidInput` where no provider is configured, and for an unknown name, with those that exist.
    pub fn find(&self, name: &str) -> Result<ChosenModel> {
        let (provider, id) = match name.split_once(':') {
            Some((provider, id)) if self.provider(provider).is_some() => (Some(provider), id),
            _ => (None, name),
        };
        let of_provider =
            |held: &&Arc<dyn ChatProvider>| provider.is_none_or(|provider| held.name() == provider);
        for held in self.providers.iter().filter(of_provider) {
            if let (Some(info), Some(model)) = (held.info(id), held.model(id)) {
                return Ok(ChosenModel { provider: held.name(), info, model });
            }
        }
        Err(Error::invalid(match self.providers.is_empty() {
            true => self.no_provider(),
            false => format!(
                "there is no model `{name}`: use one of {}, or add it to `models` of its provider",
                self.names()
            ),
        }))
    }

    /// That no provider is configured, and what to set.
    pub(crate) fn no_provider(&self) -> String {
        match self.missing.as_slice() {
            [] => "this binary has no chat provider: build it with `--features openai,gemini`"
                .to_owned(),
            missing => format!("no chat provider is configured: {}", missing.join("; ")),
        }
    }

    /// The names of all models, for a sentence.
    #[must_use]
    pub fn names(&self) -> String {
        let names = self.providers.iter().flat_map(|provider| {
            provider.models().iter().map(|model| format!("{}:{}", provider.name(), model.id))
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(all(test, feature = "openai"))]
mod tests {
    use super::*;
    use crate::compose::chat_models;
    use crate::config::{ProvidersConfig, Secret};

    #[test]
    fn finds_dated_snapshots() {
        let mut providers = ProvidersConfig::default();
        providers.openai.api_key = Secret::new("sk-test");
        let models = chat_models(&Config { providers, ..Config::default() }).unwrap();
        for name in ["openai:gpt-4.1-2025-04-14", "gpt-4.1-2025-04-14"] {
            let found = models.find(name).unwrap();
            assert_eq!(found.name(), "openai:gpt-4.1-2025-04-14");
            assert_eq!(found.info.window, models.find("gpt-4.1").unwrap().info.window);
        }
        assert!(models.find("openai:gpt-9-2025-04-14").is_err());
    }
}
