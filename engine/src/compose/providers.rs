//! The providers of chat models.

use std::sync::Arc;
#[cfg(feature = "openai")]
use std::time::Duration;

use throughline_core::Result;
use throughline_core::ports::Embedder;

use super::ChatModels;
use crate::config::Config;

/// The chat models of a configuration: of those providers for which there is enough to call them.
///
/// # Errors
/// `InvalidInput` for a provider that was not compiled in, or settings that it cannot use.
pub fn open(config: &Config) -> Result<ChatModels> {
    let default = Some(config.chat.model.clone()).filter(|model| !model.is_empty());
    let specialists = config.specialists.clone();
    let mut models = ChatModels { default, specialists, ..ChatModels::default() };
    if config.providers.openai.is_configured() {
        add_openai(config, &mut models)?;
    }
    Ok(models)
}

#[cfg(feature = "openai")]
fn add_openai(config: &Config, models: &mut ChatModels) -> Result<()> {
    let openai = Arc::new(openai(config)?);
    models.providers.push(Arc::clone(&openai) as _);
    models.compatible = Some(Arc::new(forwarding::Forwarding(openai)));
    Ok(())
}

#[cfg(feature = "openai")]
fn openai(config: &Config) -> Result<throughline_provider_openai::OpenAi> {
    use throughline_provider_openai::{Api, OpenAi, Settings};

    use crate::config::{ModelConfig, OpenAiApi};

    let settings = &config.providers.openai;
    let defaults = Settings::default();
    OpenAi::new(Settings {
        base_url: match settings.base_url.as_str() {
            "" => defaults.base_url.clone(),
            url => url.to_owned(),
        },
        api_key: settings.api_key.given().map(Into::into),
        models: settings.models.iter().map(ModelConfig::info).collect(),
        api: match settings.api {
            OpenAiApi::ChatCompletions => Api::ChatCompletions,
            OpenAiApi::Responses => Api::Responses,
        },
        // Every turn brings its own context.
        keep_threads: Some(false),
        request_timeout: Duration::from_millis(settings.timeout_ms),
        idle_timeout: Duration::from_millis(settings.idle_timeout_ms),
        max_retries: settings.max_retries,
        ..defaults
    })
}

/// An embedding model of the provider `openai`.
#[cfg(feature = "openai")]
pub(super) async fn embedder(config: &Config, model: &str) -> Result<Arc<dyn Embedder>> {
    use throughline_provider_openai::EmbedderSettings;

    use crate::adapters::{O200k, TimeoutEmbedder};

    let settings = EmbedderSettings::new(model, Arc::new(O200k));
    let embedder = openai(config)?.embedder(settings).await?;
    let patience = Duration::from_millis(config.providers.openai.embed_timeout_ms);
    Ok(Arc::new(TimeoutEmbedder::new(Arc::new(embedder), patience)))
}

#[cfg(not(feature = "openai"))]
pub(super) async fn embedder(_: &Config, _: &str) -> Result<Arc<dyn Embedder>> {
    Err(super::not_built("embedder `openai`", "openai"))
}

#[cfg(not(feature = "openai"))]
fn add_openai(_: &Config, _: &mut ChatModels) -> Result<()> {
    Err(super::not_built("provider `openai`", "openai"))
}

/// Requests in OpenAI's own form, by its provider.
#[cfg(feature = "openai")]
mod forwarding {
    use std::sync::Arc;

    use async_trait::async_trait;
    use futures_util::StreamExt as _;
    use http::HeaderMap;
    use throughline_core::Result;
    use throughline_provider_openai::OpenAi;

    use crate::compose::{CompatibleApi, Forwarded};

    pub(super) struct Forwarding(pub Arc<OpenAi>);

    #[async_trait]
    impl CompatibleApi for Forwarding {
        async fn forward(&self, path: &str, body: Vec<u8>) -> Result<Forwarded> {
            let answer = self.0.forward(path, body, &HeaderMap::new()).await?;
            let shown = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
                Some((name.to_string(), value.to_str().ok()?.to_owned()))
            };
            Ok(Forwarded {
                status: answer.status,
                headers: answer.headers.iter().filter_map(shown).collect(),
                body: answer.body.map(|piece| piece.map(|bytes| bytes.to_vec())).boxed(),
            })
        }
    }
}
