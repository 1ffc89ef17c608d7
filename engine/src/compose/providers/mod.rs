//! The providers of chat models, which also have embedders. Each has a file that turns its settings into it.

#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "openai")]
mod openai;

use std::sync::Arc;
#[cfg(any(feature = "openai", feature = "gemini"))]
use std::time::Duration;

use throughline_core::Result;
#[cfg(not(all(feature = "openai", feature = "gemini")))]
use throughline_core::ports::Embedder;

#[cfg(all(feature = "gemini", not(feature = "openai")))]
use throughline_provider_gemini::{ConnectionSettings, EmbedderSettings};
#[cfg(feature = "openai")]
use throughline_provider_openai::{ConnectionSettings, EmbedderSettings};

use super::ChatModels;
#[cfg(not(all(feature = "openai", feature = "gemini")))]
use super::not_built;
#[cfg(any(feature = "openai", feature = "gemini"))]
use crate::adapters::O200k;
use crate::config::Config;
#[cfg(any(feature = "openai", feature = "gemini"))]
use crate::config::ConnectionConfig;

/// The chat models of a configuration: of those providers for which there is enough to call them.
///
/// # Errors
/// `InvalidInput` for a provider that was not compiled in, or settings that it cannot use.
pub fn open(config: &Config) -> Result<ChatModels> {
    let default = Some(config.chat.model.clone()).filter(|model| !model.is_empty());
    let specialists = config.specialists.clone();
    let mut models = ChatModels { default, specialists, ..ChatModels::default() };
    if config.providers.openai.is_configured() {
        #[cfg(feature = "openai")]
        openai::add(config, &mut models)?;
        #[cfg(not(feature = "openai"))]
        return Err(not_built("provider `openai`", "openai"));
    } else if cfg!(feature = "openai") {
        models.missing.push(
            "openai: set OPENAI_API_KEY or `providers.openai.api_key`, or \
             `providers.openai.base_url` for a server that needs no key",
        );
    }
    if config.providers.gemini.is_configured() {
        #[cfg(feature = "gemini")]
        gemini::add(config, &mut models)?;
        #[cfg(not(feature = "gemini"))]
        return Err(not_built("provider `gemini`", "gemini"));
    } else if cfg!(feature = "gemini") {
        models.missing.push("gemini: set GEMINI_API_KEY or `providers.gemini.api_key`");
    }
    Ok(models)
}

/// An embedding model of the provider `openai`.
#[cfg(feature = "openai")]
pub(super) use openai::embedder as openai_embedder;

/// The stores of files that OpenAI hosts.
#[cfg(feature = "openai")]
pub(super) use openai::hosted_files;

#[cfg(not(feature = "openai"))]
pub(super) fn openai_embedder(_: &Config, _: &str) -> Result<Arc<dyn Embedder>> {
    Err(not_built("embedder `openai`", "openai"))
}

/// An embedding model of the provider `gemini`.
#[cfg(feature = "gemini")]
pub(super) use gemini::embedder as gemini_embedder;

#[cfg(not(feature = "gemini"))]
pub(super) fn gemini_embedder(_: &Config, _: &str) -> Result<Arc<dyn Embedder>> {
    Err(not_built("embedder `gemini`", "gemini"))
}

/// The connection to a provider.
#[cfg(any(feature = "openai", feature = "gemini"))]
fn connection(settings: &ConnectionConfig<'_>, defaults: ConnectionSettings) -> ConnectionSettings {
    ConnectionSettings {
        base_url: match settings.base_url {
            "" => defaults.base_url.clone(),
            url => url.to_owned(),
        },
        api_key: settings.api_key.given().map(Into::into),
        request_timeout: Duration::from_millis(settings.timeout_ms),
        idle_timeout: Duration::from_millis(settings.idle_timeout_ms),
        max_retries: settings.max_retries,
        ..defaults
    }
}

/// An embedding model of a provider.
#[cfg(any(feature = "openai", feature = "gemini"))]
fn embedder_settings(model: &str, settings: &ConnectionConfig<'_>) -> EmbedderSettings {
    let dimensions = Some(settings.embed_dimensions).filter(|size| *size > 0);
    EmbedderSettings {
        dimensions: dimensions.and_then(|size| usize::try_from(size).ok()),
        timeout: Some(Duration::from_millis(settings.embed_timeout_ms)),
        ..EmbedderSettings::new(model, Arc::new(O200k))
    }
}

#[cfg(all(test, feature = "openai", feature = "gemini"))]
mod tests;
