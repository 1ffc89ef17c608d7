//! The small ports that need no crate of their own: clock, ids, secrets, tokenizer, limits, and files that
//! come with a request.

mod clock;
mod fact_reader;
mod limiter;
mod metered;
mod secrets;
mod sent_files;
mod structured_model;
mod summarizer;
mod timeout_embedder;
mod tokenizer;

pub use clock::{Corrected, SystemClock, UuidV7};
pub use fact_reader::ModelFactReader;
pub use limiter::InProcessLimiter;
pub use metered::{metered, metered_index};
pub use secrets::OsSecrets;
pub use sent_files::SentFiles;
pub use summarizer::ModelSummarizer;
pub use timeout_embedder::TimeoutEmbedder;
pub use tokenizer::O200k;
