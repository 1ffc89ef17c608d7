//! A server: its catalogue, its models, and whether it can be used.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use throughline_core::Result;
use throughline_core::chat::ModelInfo;
use throughline_core::ports::{ChatModel, ChatProvider};
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
    /// Whether it is OpenAI's own service.
    is_openai: bool,
}

impl OpenAi {
    /// A server that is not called yet.
    ///
    /// # Errors
    /// `InvalidInput` that names the setting that is wrong; `Unavailable` where this system has no root certificates.
    pub fn new(settings: Settings) -> Result<Self> {
        let transport = Arc::new(Transport::new(&settings.connection, settings.profile)?);
        let is_openai = transport.endpoint().is_own && settings.profile.host == OPENAI.host;
        // Another server has the models that are named for it; of one without any, it is not known.
        let is_named = !is_openai && !settings.models.is_empty();
        Ok(Self {
            transport,
            models: catalogue(settings.models, if is_named { &[] } else { BUILT_IN }).into(),
            api: settings.api,
            keep_threads: settings.keep_threads.unwrap_or(is_openai),
            is_openai,
        })
    }

    fn dialect(&self, id: &str) -> Dialect {
        match self.api {
            Api::Responses => Dialect::Responses { keep: self.keep_threads },
            // Other servers have the models that they name so behind the API that was chosen.
            Api::ChatCompletions if self.is_openai && has_responses_only(id) => {
                Dialect::Responses { keep: false }
            }
            Api::ChatCompletions => Dialect::Completions { openai: self.is_openai },
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

    /// A model of the catalogue, or a dated snapshot of one.
    fn info(&self, id: &str) -> Option<ModelInfo> {
        find(&self.models, id)
    }

    fn model(&self, id: &str) -> Option<Arc<dyn ChatModel>> {
        let info = self.info(id)?;
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
        let chat = match self.api {
            Api::ChatCompletions => "/chat/completions",
            Api::Responses => "/responses",
        };
        self.transport.check("/models", Some(chat)).await
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

#[cfg(test)]
mod tests {
    use throughline_provider_http::ConnectionSettings;

    use super::*;

    #[test]
    fn only_openai_needs_the_responses_api_for_some_models() {
        let dialect = |url: &str, id: &str| {
            let settings =
                Settings { connection: ConnectionSettings::new(url), ..Settings::default() };
            OpenAi::new(settings).unwrap().dialect(id)
        };
        let own = OPENAI.base_url;
        assert_eq!(dialect(own, "o3-pro"), Dialect::Responses { keep: false });
        assert_eq!(dialect(own, "gpt-4.1"), Dialect::Completions { openai: true });
        let other = "http://127.0.0.1/v1";
        assert_eq!(dialect(other, "o3-pro"), Dialect::Completions { openai: false });
    }
}
