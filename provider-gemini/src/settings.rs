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
