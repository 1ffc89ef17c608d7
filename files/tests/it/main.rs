//! Files on disk: real folders, with what they hold at worst.

#![expect(clippy::unwrap_used, reason = "what a test needs outside of its functions")]

mod limits;
#[cfg(unix)]
mod links;
#[cfg(unix)]
mod odd;
#[cfg(feature = "pdf")]
mod pdf;
#[cfg(unix)]
mod races;
mod support;
mod walking;
