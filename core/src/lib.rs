//! Throughline's domain: what an agent has seen, and the policy that turns it into the smallest
//! context that keeps the answer right.
//!
//! Nothing here names a runtime, a driver, a file system or a clock. Decisions are pure functions
//! over values ([`context`], [`text`], [`fact`], [`summary`]); thin services gather what they need
//! through [`ports`] and hand back values. `ARCHITECTURE.md` holds the invariants.

pub mod access;
pub mod archive;
pub mod context;
pub mod document;
pub mod embedding;
pub mod entity;
pub mod erase;
pub mod error;
pub mod fact;
pub mod ids;
pub mod job;
pub mod page;
pub mod persona;
pub mod ports;
pub mod scope;
pub mod session;
pub mod summary;
pub mod text;
pub mod time;
pub mod tokens;
pub mod usage;

pub use error::{Error, ErrorKind, Result};
pub use scope::Scope;
