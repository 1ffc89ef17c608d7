//! The real binary: what its users do, and what goes wrong around it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure is the answer")]

mod cli;
#[cfg(feature = "live-tests")]
mod clocks;
#[cfg(feature = "live-tests")]
mod combinations;
mod faults;
#[cfg(feature = "live-tests")]
mod kills;
mod meaning;
#[cfg(feature = "live-tests")]
mod moving;
#[cfg(feature = "live-tests")]
mod own;
mod standing;
mod support;
mod tokens;
