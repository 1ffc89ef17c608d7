//! The HTTP interface: the real binary, over real HTTP.

mod access;
mod audit;
mod canary;
mod contexts;
mod document;
mod documents;
mod erasure;
mod keys;
#[cfg(feature = "live-tests")]
mod live;
mod operations;
mod quickstart;
mod receipts;
mod requests;
pub(crate) mod service;
mod shares;
mod sharing;
mod slow;
