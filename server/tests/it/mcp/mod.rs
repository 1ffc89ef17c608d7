//! MCP: the real binary, over real HTTP and its standard input.

mod access;
mod canary;
mod changes;
mod client;
mod frames;
mod persona;
mod sessions;
mod stdio;
