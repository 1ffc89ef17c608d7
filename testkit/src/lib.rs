//! Test support for every crate of Throughline: fakes of the ports, builders of values, and one
//! conformance table for each port, which every adapter passes, the fakes included.
//!
//! [`proxy`] breaks the wire between a test and a server, and [`http`] is a server that does what a test says.
//!
//! A dev-dependency only. A test of an adapter is one call of [`conformance::store`] or
//! [`conformance::vector_index`] with a function that opens a fresh, empty instance.

#![deny(missing_docs)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test support: a failure is the answer"
)]

pub mod build;
mod clock;
pub mod conformance;
pub mod http;
pub mod memory;
pub mod proxy;
mod services;
mod tokenizer;

pub use clock::{FakeClock, SequentialIds, SequentialSecrets};
pub use services::Services;
pub use tokenizer::WordTokenizer;
