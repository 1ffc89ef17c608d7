//! Which model answers.

use throughline_core::{Error, Result};

use crate::app::App;
use crate::compose::ChosenModel;
use crate::identity::Identity;

/// What the tenant's settings call the model that answers turns.
const CHAT: &str = "chat";

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

    /// The name of the model that answers where a request names none: that of the tenant's settings, else the configured
    /// one.
    ///
    /// # Errors
    /// Those of the store.
    pub(in crate::app) async fn usual_model(&self, caller: &Identity) -> Result<Option<String>> {
        let settings = self.settings(caller).await?;
        let default = || self.engine.models.default.clone();
        Ok(settings.models.get(CHAT).cloned().or_else(default))
    }

    /// The model of a name, or the configured one.
    ///
    /// # Errors
    /// `InvalidInput` where no provider is configured, and for an unknown name, with those that exist.
    pub fn chat_model(&self, name: Option<&str>) -> Result<ChosenModel> {
        let models = &self.engine.models;
        match name.or(models.default.as_deref()) {
            Some(name) => models.find(name),
            None if models.providers.is_empty() => Err(Error::invalid(models.no_provider())),
            None => Err(Error::invalid(format!(
                "name a model, or set `chat.model`: {}",
                models.names()
            ))),
        }
    }
}
