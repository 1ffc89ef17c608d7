//! The services whose chat models answer turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::chat::{ModelInfo, ModelPrice};
use throughline_core::{Error, Result};

use super::{Secret, text};

/// Most repeats of a call.
const MAX_RETRIES: u32 = 10;

/// Chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatConfig {
    /// The model that answers where a request names none, as `provider:model`, such as `openai:gpt-4.1`; empty to require
    /// a name.
    #[serde(deserialize_with = "text")]
    pub model: String,
}

/// The providers of chat models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProvidersConfig {
    /// OpenAI, or any server with its API.
    pub openai: OpenAiConfig,
    /// Google's Gemini API.
    pub gemini: GeminiConfig,
}

/// OpenAI, or any server with its API, such as Ollama, vLLM, llama.cpp or LiteLLM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// URL of the API, which mostly ends with `/v1`; empty for OpenAI's. The environment variable OPENAI_BASE_URL is used
    /// where no other layer sets it.
    #[serde(deserialize_with = "text")]
    pub base_url: String,
    /// API key; empty for none. The environment variable OPENAI_API_KEY is used where no other layer sets it.
    pub api_key: Secret,
    /// The API for chats.
    pub api: OpenAiApi,
    /// Models beside those that are built in, as names or as tables with `id`, `window`, `max_output`, `tools`,
    /// `temperature`, `thinks` (it sends nothing for a while, and its thoughts count as output), `input_price`,
    /// `cached_input_price` and `output_price` (US dollars for a million tokens).
    pub models: Vec<ModelConfig>,
    /// Timeout of a whole answer, in milliseconds.
    pub timeout_ms: u64,
    /// Timeout between two pieces of a streamed answer, in milliseconds. It is not used for models that think before
    /// they write, nor for requests to `/openai/v1`.
    pub idle_timeout_ms: u64,
    /// Timeout for embedding a question, in milliseconds; after it, recall uses keyword search only.
    pub embed_timeout_ms: u64,
    /// Size of the vectors of `embedder`; 0 for the model's own, which is asked for once where the model is not known.
    /// Models that can are asked for smaller vectors.
    pub embed_dimensions: u32,
    /// How often a call is repeated that failed before any answer: refused connections, rate limits, and errors of the
    /// server.
    pub max_retries: u32,
}

/// Google's Gemini API, or a proxy with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeminiConfig {
    /// URL of the API, which mostly ends with `/v1beta`; empty for Google's.
    #[serde(deserialize_with = "text")]
    pub base_url: String,
    /// API key; empty for none. The environment variable GEMINI_API_KEY is used where no other layer sets it.
    pub api_key: Secret,
    /// Models beside those that are built in, in the form of `providers.openai.models`.
    pub models: Vec<ModelConfig>,
    /// Timeout of a whole answer, in milliseconds.
    pub timeout_ms: u64,
    /// Timeout between two pieces of a streamed answer, in milliseconds. It is not used for models that think before
    /// they write, nor for requests to `/openai/v1`.
    pub idle_timeout_ms: u64,
    /// Timeout for embedding a question, in milliseconds; after it, recall uses keyword search only.
    pub embed_timeout_ms: u64,
    /// Size of the vectors of `embedder`; 0 for the model's own, which is asked for once where the model is not known.
    /// Models that can are asked for smaller vectors.
    pub embed_dimensions: u32,
    /// How often a call is repeated that failed before any answer: refused connections, rate limits, and errors of the
    /// server.
    pub max_retries: u32,
}

/// The APIs for chats that OpenAI has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenAiApi {
    /// Chat Completions, which every compatible server has.
    ChatCompletions,
    /// Responses.
    Responses,
}

/// A model in the configuration: its name, or what is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelConfig {
    /// Its name at the provider.
    Name(String),
    /// What is known of it.
    Model(ModelTable),
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelTable {
    /// Its name at the provider, which has to be given.
    #[serde(default)]
    pub id: String,
    /// Tokens that request and answer may have together.
    #[serde(default = "default_window")]
    pub window: u32,
    /// Maximum number of tokens of an answer.
    #[serde(default = "default_output")]
    pub max_output: u32,
    /// Whether it can call tools.
    #[serde(default = "yes")]
    pub tools: bool,
    /// Whether it takes a temperature.
    #[serde(default = "yes")]
    pub temperature: bool,
    /// Whether it thinks before it writes. If not given, models that take no temperature do.
    #[serde(default)]
    pub thinks: Option<bool>,
    /// US dollars for a million tokens of requests.
    #[serde(default)]
    pub input_price: Option<f64>,
    /// US dollars for a million tokens of requests from the prompt cache; as `input_price` if not given.
    #[serde(default)]
    pub cached_input_price: Option<f64>,
    /// US dollars for a million tokens of answers.
    #[serde(default)]
    pub output_price: Option<f64>,
}

/// The defaults are those of common open models.
fn default_window() -> u32 {
    32_768
}

fn default_output() -> u32 {
    4_096
}

fn yes() -> bool {
    true
}

impl ModelConfig {
    /// The model as the domain knows it.
    #[must_use]
    pub fn info(&self) -> ModelInfo {
        let model = match self {
            Self::Name(id) => ModelTable {
                id: id.clone(),
                window: default_window(),
                max_output: default_output(),
                tools: true,
                temperature: true,
                thinks: None,
                input_price: None,
                cached_input_price: None,
                output_price: None,
            },
            Self::Model(model) => model.clone(),
        };
        let price = model.input_price.zip(model.output_price).map(|(input, output)| ModelPrice {
            input,
            cached_input: model.cached_input_price.unwrap_or(input),
            output,
        });
        let ModelTable { id, window, max_output, tools, temperature, thinks, .. } = model;
        let thinks = thinks.unwrap_or(!temperature);
        ModelInfo { id, window, max_output, tools, temperature, thinks, price }
    }
}

impl OpenAiConfig {
    /// Whether there is enough to call it: a key, or a server of one's own.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !self.api_key.is_empty() || !self.base_url.is_empty()
    }
}

impl GeminiConfig {
    /// Whether there is enough to call it: a key, or a proxy that has one.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !self.api_key.is_empty() || !self.base_url.is_empty()
    }
}

/// The settings of a connection, which every provider has.
#[cfg(any(feature = "openai", feature = "gemini"))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionConfig<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) api_key: &'a Secret,
    pub(crate) timeout_ms: u64,
    pub(crate) idle_timeout_ms: u64,
    pub(crate) embed_timeout_ms: u64,
    pub(crate) embed_dimensions: u32,
    pub(crate) max_retries: u32,
}

/// Reads the connection of settings that have these fields.
#[cfg(any(feature = "openai", feature = "gemini"))]
macro_rules! connection_of {
    ($settings:ty) => {
        impl $settings {
            pub(crate) fn connection(&self) -> ConnectionConfig<'_> {
                ConnectionConfig {
                    base_url: &self.base_url,
                    api_key: &self.api_key,
                    timeout_ms: self.timeout_ms,
                    idle_timeout_ms: self.idle_timeout_ms,
                    embed_timeout_ms: self.embed_timeout_ms,
                    embed_dimensions: self.embed_dimensions,
                    max_retries: self.max_retries,
                }
            }
        }
    };
}

#[cfg(feature = "openai")]
connection_of!(OpenAiConfig);
#[cfg(feature = "gemini")]
connection_of!(GeminiConfig);

impl ProvidersConfig {
    /// The keys of timeouts, with their values.
    pub(super) fn timeouts(&self) -> [(&'static str, u64); 6] {
        let Self { openai, gemini } = self;
        [
            ("providers.openai.timeout_ms", openai.timeout_ms),
            ("providers.openai.idle_timeout_ms", openai.idle_timeout_ms),
            ("providers.openai.embed_timeout_ms", openai.embed_timeout_ms),
            ("providers.gemini.timeout_ms", gemini.timeout_ms),
            ("providers.gemini.idle_timeout_ms", gemini.idle_timeout_ms),
            ("providers.gemini.embed_timeout_ms", gemini.embed_timeout_ms),
        ]
    }

    pub(super) fn check(&self) -> Result<()> {
        let Self { openai, gemini } = self;
        let example = "http://localhost:11434/v1";
        check("openai", &openai.base_url, example, &openai.models, openai.max_retries)?;
        let example = "http://localhost:8080/v1beta";
        check("gemini", &gemini.base_url, example, &gemini.models, gemini.max_retries)
    }
}

/// What every provider has.
fn check(
    provider: &str,
    url: &str,
    example: &str,
    models: &[ModelConfig],
    max_retries: u32,
) -> Result<()> {
    let wrong = |key: &str, what: String| {
        Err(Error::invalid(format!("configuration key `providers.{provider}.{key}`{what}")))
    };
    if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
        return wrong("base_url", format!(" must be a URL such as {example}"));
    }
    for model in models.iter().map(ModelConfig::info) {
        if model.id.trim().is_empty() || model.window == 0 || model.max_output == 0 {
            let id = model.id;
            let what = "needs an id, and a window and a max_output above 0";
            return wrong("models", format!(": the model `{id}` {what}"));
        }
    }
    if max_retries > MAX_RETRIES {
        return wrong("max_retries", format!(" must be 0 to {MAX_RETRIES}"));
    }
    Ok(())
}

impl Default for ProvidersConfig {
    fn default() -> Self {
        Self {
            openai: OpenAiConfig {
                base_url: String::new(),
                api_key: Secret::default(),
                api: OpenAiApi::ChatCompletions,
                models: Vec::new(),
                timeout_ms: 300_000,
                idle_timeout_ms: 60_000,
                embed_timeout_ms: 1_500,
                embed_dimensions: 0,
                max_retries: 3,
            },
            gemini: GeminiConfig {
                base_url: String::new(),
                api_key: Secret::default(),
                models: Vec::new(),
                timeout_ms: 300_000,
                idle_timeout_ms: 60_000,
                embed_timeout_ms: 1_500,
                embed_dimensions: 0,
                max_retries: 3,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_without_a_temperature_think_unless_configured() {
        for (table, thinks) in [
            (r#"{"id": "m"}"#, false),
            (r#"{"id": "m", "temperature": false}"#, true),
            (r#"{"id": "m", "temperature": false, "thinks": false}"#, false),
            (r#"{"id": "m", "thinks": true}"#, true),
            (r#""m""#, false),
        ] {
            let model: ModelConfig = serde_json::from_str(table).unwrap();
            assert_eq!(model.info().thinks, thinks, "{table}");
        }
    }
}
