//! The small ports that need no crate of their own: clock, ids, tokenizer.

mod clock;
mod tokenizer;

pub use clock::{SystemClock, UuidV7};
pub use tokenizer::O200k;
