//! The small ports that need no crate of their own: clock, ids, tokenizer.

mod clock;
mod patient;
mod tokenizer;

pub use clock::{Corrected, SystemClock, UuidV7};
pub use patient::Patient;
pub use tokenizer::O200k;
