//! Which server is asked, and for which models.

use throughline_core::chat::ModelInfo;
use throughline_provider_http::{ApiProfile, ConnectionSettings};

use crate::errors::read;

/// The Gemini API of Google's own service. Its key never stands in a URL.
pub(crate) static GEMINI: ApiProfile = ApiProfile {
    service: "Gemini",
    host: "generativelanguage.googleapis.com",
    base_url: "https://generativelanguage.googleapis.com/v1beta",
    usual_end: "/v1beta",
    settings: "providers.gemini",
    key_variable: "GEMINI_API_KEY",
    key_header: "x-goog-api-key",
    key_prefix: "",
    read_error: read,
};

/// The endpoint with OpenAI's API that Google serves beside its own, under the same key and the same settings. Its errors
/// have the same form.
pub static OPENAI_COMPATIBLE: ApiProfile = ApiProfile {
    base_url: "https://generativelanguage.googleapis.com/v1beta/openai",
    key_header: "authorization",
    key_prefix: "Bearer ",
    service: GEMINI.service,
    host: GEMINI.host,
    usual_end: GEMINI.usual_end,
    settings: GEMINI.settings,
    key_variable: GEMINI.key_variable,
    read_error: read,
};

/// Which server is asked, and for which models.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How to reach the server, and how long to wait for it.
    pub connection: ConnectionSettings,
    /// Models beside the built-in catalogue; one of the same id replaces a built-in one.
    pub models: Vec<ModelInfo>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { connection: ConnectionSettings::new(GEMINI.base_url), models: Vec::new() }
    }
}
