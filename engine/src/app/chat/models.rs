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
    /// `InvalidInput` where no provider is configured, and for an unknown name, with those that exist; those of the
    /// store.
    pub async fn model_for(&self, caller: &Identity, name: Option<&str>) -> Result<ChosenModel> {
        let models = &self.engine.models;
        if let Some(name) = name {
            return models.find(name);
        }
        match self.usual_model(caller).await? {
            Some(name) => models.find(&name),
            None if models.providers.is_empty() => Err(Error::invalid(models.no_provider())),
            None => Err(Error::invalid(format!(
                "name a model, or set `chat.model`: {}",
                models.names()
            ))),
        }
    }

    /// The model that answers where none is named, if one is configured.
    ///
    /// # Errors
    /// `InvalidInput` for the name of a model that does not exist; those of the store.
    pub async fn configured_model(&self, caller: &Identity) -> Result<Option<ChosenModel>> {
        let models = &self.engine.models;
        if models.providers.is_empty() {
            return Ok(None);
        }
        self.usual_model(caller).await?.map(|name| models.find(&name)).transpose()
    }

    /// The name of the model that answers where a request names none.
    pub(in crate::app) async fn usual_model(&self, caller: &Identity) -> Result<Option<String>> {
        let settings = self.settings(caller).await?;
        let of_tenant = settings.models.get(CHAT).cloned();
        Ok(of_tenant.or_else(|| self.engine.models.default.clone()))
    }
}
