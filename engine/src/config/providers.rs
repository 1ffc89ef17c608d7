//! The services whose chat models answer turns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::chat::{ModelInfo, ModelPrice};
use throughline_core::{Error, Result};

use super::{Secret, text};

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
    /// `temperature`, `input_price`, `cached_input_price` and `output_price` (US dollars for a million tokens).
    pub models: Vec<ModelConfig>,
    /// Timeout of a whole answer, in milliseconds.
    pub timeout_ms: u64,
    /// Timeout between two pieces of a streamed answer, in milliseconds.
    pub idle_timeout_ms: u64,
    /// Timeout for embedding a question, in milliseconds; after it, recall uses keyword search only.
    pub embed_timeout_ms: u64,
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

/// What a model has of which nothing is said: as much as common open models.
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
        let ModelTable { id, window, max_output, tools, temperature, .. } = model;
        ModelInfo { id, window, max_output, tools, temperature, price }
    }
}

impl OpenAiConfig {
    /// Whether there is enough to call it: a key, or a server of one's own.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !self.api_key.is_empty() || !self.base_url.is_empty()
    }

    pub(super) fn check(&self) -> Result<()> {
        let url = self.base_url.as_str();
        if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Error::invalid(
                "configuration key `providers.openai.base_url` must be a URL such as http://localhost:11434/v1",
            ));
        }
        for model in self.models.iter().map(ModelConfig::info) {
            if model.id.trim().is_empty() || model.window == 0 || model.max_output == 0 {
                return Err(Error::invalid(format!(
                    "configuration key `providers.openai.models`: the model `{}` needs an id, and a window and a \
                     max_output above 0",
                    model.id
                )));
            }
        }
        Ok(())
    }
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
                max_retries: 3,
            },
        }
    }
}
