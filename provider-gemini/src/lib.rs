//! Chat models, token counts and embeddings of Google's Gemini API.
//!
//! [`Gemini`] is one server with its catalogue of models. Requests and answers are of the REST API `v1beta`:
//! `generateContent`, `streamGenerateContent`, `countTokens`, `embedContent` and `batchEmbedContents`. Answers are read
//! leniently, because fields are left out where they are empty, and new ones come. The transport is
//! `throughline-provider-http`. JSON of the API does not leave this crate.

mod catalogue;
mod chat;
mod embedder;
mod errors;
mod provider;
mod schema;
mod settings;

pub use embedder::GeminiEmbedder;
pub use provider::Gemini;
pub use settings::{OPENAI_COMPATIBLE, Settings};
pub use throughline_provider_http::{BreakerSettings, ConnectionSettings, EmbedderSettings};
