//! OpenAI, and servers with its API.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use http::{HeaderName, HeaderValue};
use throughline_core::Result;
use throughline_core::ports::{Embedder, FileSearch};
use throughline_provider_openai::{Api, OpenAi, Settings};
#[cfg(feature = "gemini")]
use throughline_provider_openai::{ApiProfile, ConnectionSettings};

use crate::compose::{ChatModels, CompatibleApi, Forwarded};
use crate::config::{Config, ModelConfig, OpenAiApi};

pub(super) fn add(config: &Config, models: &mut ChatModels) -> Result<()> {
    let openai = Arc::new(server(config)?);
    models.providers.push(Arc::clone(&openai) as _);
    models.compatible.push(("openai", Arc::new(Forwarding(openai))));
    Ok(())
}

/// The endpoint with OpenAI's API that another provider has.
///
/// # Errors
/// As [`OpenAi::new`].
#[cfg(feature = "gemini")]
pub(super) fn compatible(
    connection: ConnectionSettings,
    profile: &'static ApiProfile,
) -> Result<Arc<dyn CompatibleApi>> {
    let server = OpenAi::new(Settings { profile, connection, ..Settings::default() })?;
    Ok(Arc::new(Forwarding(Arc::new(server))))
}

pub(in crate::compose) fn embedder(config: &Config, model: &str) -> Result<Arc<dyn Embedder>> {
    let settings = super::embedder_settings(model, &config.providers.openai.connection());
    Ok(Arc::new(server(config)?.embedder(settings)?))
}

pub(in crate::compose) fn hosted_files(config: &Config) -> Result<Arc<dyn FileSearch>> {
    // Indexing a batch may take as long as an answer.
    let timeout = Duration::from_millis(config.providers.openai.timeout_ms);
    Ok(Arc::new(server(config)?.hosted_files(timeout)))
}

fn server(config: &Config) -> Result<OpenAi> {
    let settings = &config.providers.openai;
    OpenAi::new(Settings {
        connection: super::connection(&settings.connection(), Settings::default().connection),
        models: settings.models.iter().map(ModelConfig::info).collect(),
        api: match settings.api {
            OpenAiApi::ChatCompletions => Api::ChatCompletions,
            OpenAiApi::Responses => Api::Responses,
        },
        // Every turn brings its own context.
        keep_threads: Some(false),
        ..Settings::default()
    })
}

/// Requests in OpenAI's own form.
struct Forwarding(Arc<OpenAi>);

#[async_trait]
impl CompatibleApi for Forwarding {
    async fn forward(&self, path: &str, body: Vec<u8>) -> Result<Forwarded> {
        let answer = self.0.forward(path, body).await?;
        let shown = |(name, value): (&HeaderName, &HeaderValue)| {
            Some((name.to_string(), value.to_str().ok()?.to_owned()))
        };
        Ok(Forwarded {
            status: answer.status,
            headers: answer.headers.iter().filter_map(shown).collect(),
            body: answer.body.map(|piece| piece.map(|bytes| bytes.to_vec())).boxed(),
        })
    }
}
