//! Tests over HTTP, against a server that does what each of them says.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers outside of test functions: a failure is the answer"
)]

mod cassettes;
mod conformance;
mod faults;
mod forward;
mod hosted;
mod secrets;
mod streams;
mod support;
