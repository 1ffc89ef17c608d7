//! The embedders.

use std::sync::Arc;

use throughline_core::Result;
use throughline_core::ports::Embedder;

use crate::config::{Config, EmbedderKind};

/// The embedder of a configuration; `None` where none is wanted. One on a server is not called before it is used.
///
/// # Errors
/// `InvalidInput` when it was not compiled in; those of its files.
pub fn embedder(config: &Config) -> Result<Option<Arc<dyn Embedder>>> {
    match &config.embedder {
        EmbedderKind::None => Ok(None),
        EmbedderKind::Static => static_embedder(config).map(Some),
        EmbedderKind::Minilm => minilm(config).map(Some),
        EmbedderKind::OpenAi(model) => super::providers::openai_embedder(config, model).map(Some),
        EmbedderKind::Gemini(model) => super::providers::gemini_embedder(config, model).map(Some),
    }
}

#[cfg(feature = "local")]
fn static_embedder(config: &Config) -> Result<Arc<dyn Embedder>> {
    use throughline_provider_local::StaticEmbedder;
    let table = &config.table.table;
    Ok(Arc::new(if table.as_os_str().is_empty() {
        StaticEmbedder::bundled()?
    } else {
        StaticEmbedder::from_file(table)?
    }))
}

#[cfg(not(feature = "local"))]
fn static_embedder(_: &Config) -> Result<Arc<dyn Embedder>> {
    Err(super::not_built("embedder `static`", "local"))
}

#[cfg(feature = "local-model")]
fn minilm(config: &Config) -> Result<Arc<dyn Embedder>> {
    let model = throughline_provider_local::MiniLm::load(&config.minilm_path())?;
    let patience = std::time::Duration::from_millis(config.minilm.timeout_ms);
    Ok(Arc::new(crate::adapters::TimeoutEmbedder::new(Arc::new(model), patience)))
}

#[cfg(not(feature = "local-model"))]
fn minilm(_: &Config) -> Result<Arc<dyn Embedder>> {
    Err(super::not_built("embedder `minilm`", "local-model"))
}

/// Where the files of the embedder `minilm` come from.
#[derive(Debug, Clone)]
pub enum ModelSource {
    /// The Hugging Face hub, or a mirror of it at this address.
    Hub(Option<String>),
    /// A zip file at an address, with its SHA-256.
    Archive {
        /// The address.
        url: String,
        /// In hexadecimal digits.
        sha256: String,
    },
    /// A folder or zip file.
    Local(std::path::PathBuf),
}

/// Gets the files of the embedder `minilm`; `false` when they were there. `progress` gets bytes done and in all.
///
/// # Errors
/// Those of the source and the disk; `InvalidInput` when the embedder was not compiled in.
#[cfg(feature = "local-model")]
pub async fn fetch_model(
    config: &Config,
    source: ModelSource,
    progress: impl Fn(u64, u64) + Send + Sync + 'static,
) -> Result<bool> {
    use throughline_provider_local::{FetchProgress, Fetched, Source, fetch};
    super::create_private(&config.data_dir)?;
    let source = match source {
        ModelSource::Hub(mirror) => {
            Source::Hub { endpoint: mirror.unwrap_or_else(|| Source::HUB.to_owned()) }
        }
        ModelSource::Archive { url, sha256 } => Source::Archive { url, sha256 },
        ModelSource::Local(path) => Source::Local(path),
    };
    let told = move |step: FetchProgress| progress(step.done, step.total);
    Ok(fetch(&config.minilm_path(), source, told).await? == Fetched::Written)
}

/// Gets the files of the embedder `minilm`.
///
/// # Errors
/// `InvalidInput`: the embedder was not compiled in.
#[cfg(not(feature = "local-model"))]
pub async fn fetch_model(
    _: &Config,
    _: ModelSource,
    _: impl Fn(u64, u64) + Send + Sync + 'static,
) -> Result<bool> {
    Err(super::not_built("embedder `minilm`", "local-model"))
}
