//! What providers of models over HTTP share: an adapter adds its API's requests and answers, and nothing else.
//!
//! [`Transport`] has connections, deadlines, retries, the circuit breaker and the key, which no other code sees.
//! [`Origin`] makes every error, from what an [`ApiProfile`] says of the API. [`StreamReader`] reads an API's events,
//! [`Draft`] is what an answer is read into, and [`RemoteEmbedder`] sends texts in batches. It is no adapter itself:
//! it implements `Embedder` for whatever implements [`EmbeddingApi`].

mod answer;
mod catalogue;
mod embedder;
mod errors;
mod events;
pub mod json;
mod profile;
mod request;
mod settings;
mod transport;

pub use answer::{CONTENT_FILTER, Draft, END_TURN, MALFORMED_CALL, MAX_TOKENS, TOOL_USE};
pub use catalogue::{BuiltInModel, catalogue, listed};
pub use embedder::{
    BatchLimits, EmbedderSettings, EmbeddingApi, KnownEmbedding, RemoteEmbedder, vector,
};
pub use errors::{Origin, Problem, RequestedModel, ServerError};
pub use events::{Step, StreamReader, read_event, stream_answer, whole_answer};
pub use profile::ApiProfile;
pub use request::{answered_call, max_tokens, parameters, temperature};
pub use settings::{BreakerSettings, ConnectionSettings, Endpoint};
pub use transport::{
    Answer, Body, Call, JSON, STREAM, TimeLimit, Transport, collect, is_path, wait_of,
};
