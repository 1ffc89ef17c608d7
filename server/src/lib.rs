//! The `throughline` binary as a library: configuration, composition and the command line.
//!
//! Only [`compose`] names an adapter of a store; everything else works on core's services.

pub mod adapters;
mod admission;
pub mod cli;
pub mod compose;
pub mod config;
pub mod eval;
pub mod export;
mod failure;
pub mod http;
mod identity;
pub mod import;
pub mod mcp;
pub mod metering;
pub mod telemetry;
pub mod wire;
pub mod worker;
