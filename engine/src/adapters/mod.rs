//! The small ports that need no crate of their own: clock, ids, secrets, tokenizer, limits.

mod clock;
mod fact_reader;
mod limiter;
mod metered;
mod secrets;
mod structured_model;
mod summarizer;
mod timeout_embedder;
mod tokenizer;

pub use clock::{Corrected, SystemClock, UuidV7};
pub use fact_reader::ModelFactReader;
pub use limiter::InProcessLimiter;
pub use metered::{metered, metered_index};
pub use secrets::OsSecrets;
pub use summarizer::ModelSummarizer;
pub use timeout_embedder::TimeoutEmbedder;
pub use tokenizer::O200k;
