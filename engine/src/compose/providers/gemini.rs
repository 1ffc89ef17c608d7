//! Google's Gemini API.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Result;
use throughline_core::ports::Embedder;
use throughline_provider_gemini::{ConnectionSettings, EmbedderSettings, Gemini, Settings};

use crate::adapters::O200k;
use crate::compose::ChatModels;
use crate::config::{Config, ModelConfig};

pub(super) fn add(config: &Config, models: &mut ChatModels) -> Result<()> {
    models.providers.push(Arc::new(server(config)?));
    // Google serves OpenAI's API beside its own, under the same key.
    #[cfg(feature = "openai")]
    {
        let mut connection = connection(config);
        connection.base_url = format!("{}/openai", connection.base_url.trim_end_matches('/'));
        let key = "Gemini refused the API key: set GEMINI_API_KEY or `providers.gemini.api_key`";
        models.compatible.push(("gemini", super::openai::compatible(connection, key)?));
    }
    Ok(())
}

pub(in crate::compose) async fn embedder(
    config: &Config,
    model: &str,
) -> Result<Arc<dyn Embedder>> {
    let settings = EmbedderSettings::new(model, Arc::new(O200k));
    let embedder = server(config)?.embedder(settings).await?;
    Ok(super::with_timeout(embedder, config.providers.gemini.embed_timeout_ms))
}

fn server(config: &Config) -> Result<Gemini> {
    let models = config.providers.gemini.models.iter().map(ModelConfig::info).collect();
    Gemini::new(Settings { connection: connection(config), models })
}

fn connection(config: &Config) -> ConnectionSettings {
    let settings = &config.providers.gemini;
    let defaults = Settings::default().connection;
    ConnectionSettings {
        base_url: match settings.base_url.as_str() {
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
