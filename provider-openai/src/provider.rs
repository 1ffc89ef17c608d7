//! A server: its catalogue, its models, and whether it can be used.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use throughline_core::chat::ModelInfo;
use throughline_core::ports::{ChatModel, ChatProvider};
use throughline_core::{Error, Result};
use throughline_provider_http::{RequestedModel, Transport, catalogue, listed};

use crate::catalogue::{BUILT_IN, find, has_responses_only};
use crate::chat::{Dialect, OpenAiModel};
use crate::settings::{Api, OPENAI, Settings};

/// OpenAI, or a server that speaks its API. Clones share connections and the circuit breaker.
#[derive(Clone)]
pub struct OpenAi {
    pub(crate) transport: Arc<Transport>,
    models: Arc<[ModelInfo]>,
    api: Api,
    keep_threads: bool,
}

impl OpenAi {
    /// A server that is not called yet.
    ///
    /// # Errors
    /// `InvalidInput` that names the setting that is wrong; `Unavailable` where this system has no root certificates.
    pub fn new(settings: Settings) -> Result<Self> {
        let transport = Arc::new(Transport::new(&settings.connection, &OPENAI)?);
        let is_openai = transport.endpoint().is_own;
        // Another server has the models that are named for it; of one without any, it is not known.
        let is_named = !is_openai && !settings.models.is_empty();
        Ok(Self {
            transport,
            models: catalogue(settings.models, if is_named { &[] } else { BUILT_IN }).into(),
            api: settings.api,
            keep_threads: settings.keep_threads.unwrap_or(is_openai),
        })
    }

    /// A model of the catalogue, or a dated snapshot of one.
    ///
    /// # Errors
    /// `NotFound` that lists the models that there are.
    pub fn require_model(&self, id: &str) -> Result<Arc<dyn ChatModel>> {
        let unknown = || {
            let known = listed(&self.models);
            Error::not_found(format!(
                "`providers.openai` has no model `{id}`: choose one of {known}, or add it to \
                 `providers.openai.models`"
            ))
        };
        self.model(id).ok_or_else(unknown)
    }

    /// Whether calls can be made at all; it asks nobody.
    ///
    /// # Errors
    /// `Unauthenticated`, naming the variable to set, where OpenAI's own server has no key.
    pub fn require_key(&self) -> Result<()> {
        self.transport.require_key(&self.transport.origin("require_key", None))
    }

    fn dialect(&self, id: &str) -> Dialect {
        match self.api {
            Api::Responses => Dialect::Responses { keep: self.keep_threads },
            Api::ChatCompletions if has_responses_only(id) => Dialect::Responses { keep: false },
            Api::ChatCompletions => {
                Dialect::Completions { openai: self.transport.endpoint().is_own }
            }
        }
    }
}

#[async_trait]
impl ChatProvider for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn models(&self) -> &[ModelInfo] {
        &self.models
    }

    fn model(&self, id: &str) -> Option<Arc<dyn ChatModel>> {
        let info = find(&self.models, id)?;
        let requested = RequestedModel::of(&info, &self.models);
        let dialect = self.dialect(id);
        Some(Arc::new(OpenAiModel {
            info,
            dialect,
            transport: Arc::clone(&self.transport),
            requested,
        }))
    }

    async fn check(&self) -> Result<()> {
        // Some servers have no list of models; that they say so is enough.
        self.transport.check("/models").await
    }
}

/// Without the key.
impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi")
            .field("server", &self.transport.endpoint().base)
            .field("api", &self.api)
            .field("models", &listed(&self.models))
            .finish_non_exhaustive()
    }
}
