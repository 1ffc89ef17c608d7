//! What is particular to the API of one provider.

use serde_json::Value;

use crate::errors::ServerError;

/// How an API is reached, how errors name it and its settings, and how its errors are read.
#[derive(Debug)]
pub struct ApiProfile {
    /// The provider's own service, such as `OpenAI`.
    pub service: &'static str,
    /// The host of that service. It does nothing without a key, and neither do its subdomains.
    pub host: &'static str,
    /// Where that service has its API.
    pub base_url: &'static str,
    /// What base URLs usually end with.
    pub usual_end: &'static str,
    /// The table of its settings, such as `providers.openai`.
    pub settings: &'static str,
    /// The environment variable with its key.
    pub key_variable: &'static str,
    /// The header that the key is sent in, in lower case.
    pub key_header: &'static str,
    /// What stands before the key there.
    pub key_prefix: &'static str,
    /// Reads the body of an error, with the status of the answer; none for an error inside an answer that began well.
    /// A body that is not JSON is a string.
    pub read_error: fn(status: Option<u16>, body: &Value) -> ServerError,
}
