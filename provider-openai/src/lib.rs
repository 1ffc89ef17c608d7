//! Chat models and embeddings of OpenAI, and of any server that speaks its API.
//!
//! [`OpenAi`] is one server with its catalogue of models. Requests are built from the types of
//! `async-openai`; answers are read leniently, because compatible servers leave fields out, add others
//! and report errors in forms of their own. Connections, deadlines, retries and the circuit breaker are in
//! `transport`, the one place that sees the API key. JSON of the API does not leave this crate, except
//! through [`OpenAi::forward`], which does not read it.

mod catalogue;
mod chat;
mod embedder;
mod errors;
mod forward;
mod json;
mod provider;
mod settings;
mod transport;

pub use embedder::{EmbedderSettings, OpenAiEmbedder};
pub use forward::Forwarded;
pub use provider::OpenAi;
pub use settings::{Api, BreakerSettings, Settings};
