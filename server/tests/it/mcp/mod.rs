//! MCP: the real binary, over real HTTP and its standard input.

mod access;
mod canary;
mod changes;
mod chat;
pub(crate) mod client;
mod frames;
#[cfg(feature = "live-tests")]
mod live;
mod persona;
mod reads;
mod refusals;
mod sampling;
mod sessions;
pub(crate) mod stdio;
