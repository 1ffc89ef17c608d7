//! The providers of chat models, which also have embedders. Each has a file that turns its settings into it.

#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "openai")]
mod openai;

use std::sync::Arc;

use throughline_core::Result;
use throughline_core::ports::Embedder;

use super::ChatModels;
#[cfg(not(all(feature = "openai", feature = "gemini")))]
use super::not_built;
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

#[cfg(not(feature = "openai"))]
pub(super) async fn openai_embedder(_: &Config, _: &str) -> Result<Arc<dyn Embedder>> {
    Err(not_built("embedder `openai`", "openai"))
}

/// An embedding model of the provider `gemini`.
#[cfg(feature = "gemini")]
pub(super) use gemini::embedder as gemini_embedder;

#[cfg(not(feature = "gemini"))]
pub(super) async fn gemini_embedder(_: &Config, _: &str) -> Result<Arc<dyn Embedder>> {
    Err(not_built("embedder `gemini`", "gemini"))
}

/// An embedder that is not waited for longer than a while.
#[cfg(any(feature = "openai", feature = "gemini"))]
fn with_timeout(embedder: impl Embedder + 'static, timeout_ms: u64) -> Arc<dyn Embedder> {
    let timeout = std::time::Duration::from_millis(timeout_ms);
    Arc::new(crate::adapters::TimeoutEmbedder::new(Arc::new(embedder), timeout))
}
