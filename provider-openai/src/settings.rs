//! Which server is asked, through which API, and for which models.

use throughline_core::chat::ModelInfo;
use throughline_provider_http::{ApiProfile, ConnectionSettings};

use crate::errors::read;

/// OpenAI's API, and its own service.
pub static OPENAI: ApiProfile = ApiProfile {
    service: "OpenAI",
    host: "api.openai.com",
    base_url: "https://api.openai.com/v1",
    usual_end: "/v1",
    settings: "providers.openai",
    key_variable: "OPENAI_API_KEY",
    key_header: "authorization",
    key_prefix: "Bearer ",
    read_error: read,
};

/// Which of the two chat APIs is used. Models that have the Responses API only, such as `o3-pro`, are asked
/// through it whatever is chosen here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Api {
    /// `/chat/completions`, which every compatible server has.
    #[default]
    ChatCompletions,
    /// `/responses`, where the server may keep the conversation.
    Responses,
}

/// Which server is asked, through which API, and for which models.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The service that has this API, and what its settings are called; OpenAI, and others that serve the same API.
    pub profile: &'static ApiProfile,
    /// How to reach the server, and how long to wait for it.
    pub connection: ConnectionSettings,
    /// Models beside the built-in catalogue; one of the same id replaces a built-in one.
    pub models: Vec<ModelInfo>,
    /// The chat API.
    pub api: Api,
    /// Whether the Responses API keeps conversations, so that answers have a thread. Where it is not given, OpenAI's
    /// own server does and others do not.
    pub keep_threads: Option<bool>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            profile: &OPENAI,
            connection: ConnectionSettings::new(OPENAI.base_url),
            models: Vec::new(),
            api: Api::default(),
            keep_threads: None,
        }
    }
}
