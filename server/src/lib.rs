//! The `throughline` binary as a library: the interfaces over what a caller may do (`throughline_engine::app`).
//!
//! `wire` has the forms that interfaces share; `mcp`, [`http`] and [`cli`] stand on it in this order.

pub mod cli;
pub mod http;
pub mod mcp;
mod wire;
