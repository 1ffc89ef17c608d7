//! OpenAI, and servers with its API.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use throughline_core::ports::Embedder;
use throughline_core::{Error, ErrorKind, Result};
use throughline_provider_openai::{Api, ConnectionSettings, EmbedderSettings, OpenAi, Settings};

use crate::adapters::O200k;
use crate::compose::{ChatModels, CompatibleApi, Forwarded};
use crate::config::{Config, ModelConfig, OpenAiApi};

pub(super) fn add(config: &Config, models: &mut ChatModels) -> Result<()> {
    let openai = Arc::new(server(config)?);
    models.providers.push(Arc::clone(&openai) as _);
    models.compatible.push(("openai", Arc::new(Forwarding { server: openai, key: None })));
    Ok(())
}

/// The endpoint with OpenAI's API that another provider has. `key` says what to do where it refuses its key.
///
/// # Errors
/// As [`OpenAi::new`].
#[cfg(feature = "gemini")]
pub(super) fn compatible(
    connection: ConnectionSettings,
    key: &'static str,
) -> Result<Arc<dyn CompatibleApi>> {
    let server = OpenAi::new(Settings { connection, ..Settings::default() })?;
    Ok(Arc::new(Forwarding { server: Arc::new(server), key: Some(key) }))
}

pub(in crate::compose) async fn embedder(
    config: &Config,
    model: &str,
) -> Result<Arc<dyn Embedder>> {
    let settings = EmbedderSettings::new(model, Arc::new(O200k));
    let embedder = server(config)?.embedder(settings).await?;
    Ok(super::with_timeout(embedder, config.providers.openai.embed_timeout_ms))
}

fn server(config: &Config) -> Result<OpenAi> {
    let settings = &config.providers.openai;
    let defaults = Settings::default();
    let base_url = match settings.base_url.as_str() {
        "" => defaults.connection.base_url.clone(),
        url => url.to_owned(),
    };
    OpenAi::new(Settings {
        connection: ConnectionSettings {
            base_url,
            api_key: settings.api_key.given().map(Into::into),
            request_timeout: Duration::from_millis(settings.timeout_ms),
            idle_timeout: Duration::from_millis(settings.idle_timeout_ms),
            max_retries: settings.max_retries,
            ..defaults.connection
        },
        models: settings.models.iter().map(ModelConfig::info).collect(),
        api: match settings.api {
            OpenAiApi::ChatCompletions => Api::ChatCompletions,
            OpenAiApi::Responses => Api::Responses,
        },
        // Every turn brings its own context.
        keep_threads: Some(false),
    })
}

/// Requests in OpenAI's own form, by its provider.
struct Forwarding {
    server: Arc<OpenAi>,
    key: Option<&'static str>,
}

#[async_trait]
impl CompatibleApi for Forwarding {
    async fn forward(&self, path: &str, body: Vec<u8>) -> Result<Forwarded> {
        let answer = self.server.forward(path, body, &HeaderMap::new()).await;
        let answer = answer.map_err(|error| match self.key {
            Some(key) if error.kind() == ErrorKind::Unauthenticated => {
                Error::new(error.kind(), key)
            }
            _ => error,
        })?;
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
