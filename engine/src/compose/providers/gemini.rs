//! Google's Gemini API.

use std::sync::Arc;

use throughline_core::Result;
use throughline_core::ports::Embedder;
use throughline_provider_gemini::{ConnectionSettings, Gemini, Settings};

use crate::compose::ChatModels;
use crate::config::{Config, ModelConfig};

pub(super) fn add(config: &Config, models: &mut ChatModels) -> Result<()> {
    models.providers.push(Arc::new(server(config)?));
    // Google serves OpenAI's API beside its own, under the same key.
    #[cfg(feature = "openai")]
    {
        use throughline_provider_gemini::OPENAI_COMPATIBLE;
        let mut connection = connection(config);
        connection.base_url = format!("{}/openai", connection.base_url.trim_end_matches('/'));
        let compatible = super::openai::compatible(connection, &OPENAI_COMPATIBLE)?;
        models.compatible.push(("gemini", compatible));
    }
    Ok(())
}

pub(in crate::compose) fn embedder(config: &Config, model: &str) -> Result<Arc<dyn Embedder>> {
    let settings = super::embedder_settings(model, &config.providers.gemini.connection());
    Ok(Arc::new(server(config)?.embedder(settings)?))
}

fn server(config: &Config) -> Result<Gemini> {
    let models = config.providers.gemini.models.iter().map(ModelConfig::info).collect();
    Gemini::new(Settings { connection: connection(config), models })
}

fn connection(config: &Config) -> ConnectionSettings {
    super::connection(&config.providers.gemini.connection(), Settings::default().connection)
}
