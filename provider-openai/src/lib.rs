//! Chat models, embeddings and hosted vector stores of OpenAI, and of any server that speaks its API.
//!
//! [`OpenAi`] is one server with its catalogue of models. Requests are built from the types of
//! `async-openai`; answers are read leniently, because compatible servers leave fields out, add others
//! and report errors in forms of their own. The transport is `throughline-provider-http`. JSON of the API does not
//! leave this crate, except through [`OpenAi::forward`], which does not read it.

mod catalogue;
mod chat;
mod embedder;
mod errors;
mod files;
mod forward;
mod provider;
mod settings;

pub use embedder::OpenAiEmbedder;
pub use files::HostedFiles;
pub use forward::Forwarded;
pub use provider::OpenAi;
pub use settings::{Api, OPENAI, Settings};
pub use throughline_provider_http::{
    ApiProfile, BreakerSettings, ConnectionSettings, EmbedderSettings,
};
