//! A server: its catalogue, its models, and whether it can be used.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use throughline_core::chat::{ChatModelRequest, ModelInfo};
use throughline_core::ports::{ChatModel, ChatProvider};
use throughline_core::{Error, Result};
use throughline_provider_http::{Transport, catalogue, is_path, listed};

use crate::catalogue::BUILT_IN;
use crate::chat::GeminiModel;
use crate::settings::{GEMINI, Settings};

/// Google's Gemini API, or a server that speaks it. Clones share connections and the circuit breaker.
#[derive(Clone)]
pub struct Gemini {
    pub(crate) transport: Arc<Transport>,
    models: Arc<[ModelInfo]>,
}

impl Gemini {
    /// A server that is not called yet.
    ///
    /// # Errors
    /// `InvalidInput` that names the setting that is wrong; `Unavailable` where this system has no root certificates.
    pub fn new(settings: Settings) -> Result<Self> {
        let models = catalogue(settings.models, BUILT_IN);
        for model in &models {
            path(&model.id, "generateContent")?;
        }
        let transport = Arc::new(Transport::new(&settings.connection, &GEMINI)?);
        Ok(Self { transport, models: models.into() })
    }

    /// How many tokens a request has, as the model counts them: its instructions and tools included. It costs nothing.
    ///
    /// # Errors
    /// `NotFound` that lists the models that there are; those of the server.
    pub async fn count_tokens(&self, model: &str, request: &ChatModelRequest) -> Result<u64> {
        let unknown = || {
            let known = listed(&self.models);
            Error::not_found(format!("`providers.gemini` has no model `{model}`, but {known}"))
        };
        self.gemini_model(model).ok_or_else(unknown)?.count_tokens(request).await
    }

    fn gemini_model(&self, id: &str) -> Option<GeminiModel> {
        let info = self.models.iter().find(|model| model.id == id)?;
        Some(GeminiModel::new(info.clone(), &self.models, Arc::clone(&self.transport)))
    }
}

/// The resource name of a model: names without a kind before them are of models.
pub(crate) fn resource(model: &str) -> String {
    if model.contains('/') { model.to_owned() } else { format!("models/{model}") }
}

/// Where a method of a model is.
pub(crate) fn path(model: &str, method: &str) -> Result<String> {
    let path = format!("/{}", resource(model));
    if !is_path(&path) || model.contains(':') {
        return Err(Error::invalid(format!(
            "`{model}` is not a name of a model: check `providers.gemini.models` and `embedder`"
        )));
    }
    Ok(format!("{path}:{method}"))
}

#[async_trait]
impl ChatProvider for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn models(&self) -> &[ModelInfo] {
        &self.models
    }

    fn model(&self, id: &str) -> Option<Arc<dyn ChatModel>> {
        self.gemini_model(id).map(|model| Arc::new(model) as Arc<dyn ChatModel>)
    }

    async fn check(&self) -> Result<()> {
        // Whoever speaks this API has the list.
        self.transport.check("/models?pageSize=1", None).await
    }
}

/// Without the key.
impl fmt::Debug for Gemini {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gemini")
            .field("server", &self.transport.endpoint().base)
            .field("models", &listed(&self.models))
            .finish_non_exhaustive()
    }
}
