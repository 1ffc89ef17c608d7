//! MCP: the real binary, over real HTTP and its standard input.

mod access;
mod canary;
mod client;
mod frames;
mod sessions;
mod stdio;
