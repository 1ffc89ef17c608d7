//! Which model answers.

use std::sync::Arc;

use throughline_core::chat::{ChatAnswer, ChatModelRequest, ModelInfo};
use throughline_core::ports::{ChatModel, ChatProvider, ChatStream};
use throughline_core::{Error, Result};

use crate::app::App;
use crate::identity::Identity;

/// What the tenant's settings call the model that answers turns.
const CHAT: &str = "chat";

/// A model of a provider.
#[derive(Clone)]
pub struct ChosenModel {
    /// Its provider's name.
    pub provider: &'static str,
    /// What is known of it.
    pub info: ModelInfo,
    model: Arc<dyn ChatModel>,
}

impl ChosenModel {
    /// Asks it once.
    ///
    /// # Errors
    /// Those of [`ChatModel::complete`].
    pub async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer> {
        self.model.complete(request).await
    }

    pub(super) async fn stream(&self, request: &ChatModelRequest) -> Result<ChatStream> {
        self.model.stream(request).await
    }

    /// Its name with its provider's, as `provider:id`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.provider, self.info.id)
    }
}

impl App {
    /// The model of a name; else the one that the tenant's settings name for chats, or the configured one.
    ///
    /// # Errors
    /// As [`Self::chat_model`]; those of the store.
    pub async fn model_for(&self, caller: &Identity, name: Option<&str>) -> Result<ChosenModel> {
        if name.is_some() {
            return self.chat_model(name);
        }
        let settings = self.settings(caller).await?;
        self.chat_model(settings.models.get(CHAT).map(String::as_str))
    }

    /// The model of a name, or the configured one.
    ///
    /// # Errors
    /// `InvalidInput` where no provider is configured, and for an unknown name, with those that exist.
    pub fn chat_model(&self, name: Option<&str>) -> Result<ChosenModel> {
        let models = &self.engine.models;
        let Some(name) = name.or(models.default.as_deref()) else {
            return Err(Error::invalid(match models.providers.is_empty() {
                true => NO_PROVIDER.to_owned(),
                false => format!("name a model, or set `chat.model`: {}", self.model_names()),
            }));
        };
        let (provider, id) = match name.split_once(':') {
            Some((provider, id)) if models.provider(provider).is_some() => (Some(provider), id),
            _ => (None, name),
        };
        let of_provider =
            |held: &&Arc<dyn ChatProvider>| provider.is_none_or(|provider| held.name() == provider);
        for held in models.providers.iter().filter(of_provider) {
            let info = held.models().iter().find(|model| model.id == id);
            if let (Some(info), Some(model)) = (info, held.model(id)) {
                return Ok(ChosenModel { provider: held.name(), info: info.clone(), model });
            }
        }
        Err(Error::invalid(match models.providers.is_empty() {
            true => NO_PROVIDER.to_owned(),
            false => format!(
                "there is no model `{name}`: use one of {}, or add it to `models` of its provider",
                self.model_names()
            ),
        }))
    }

    fn model_names(&self) -> String {
        let names = self.engine.models.providers.iter().flat_map(|provider| {
            provider.models().iter().map(|model| format!("{}:{}", provider.name(), model.id))
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

const NO_PROVIDER: &str = "no chat provider is configured: set `providers.openai.api_key` or OPENAI_API_KEY, or \
     `providers.openai.base_url` for a server that needs no key";
