//! Throughline's domain: what an agent has seen, and the policy that turns it into the smallest
//! context that keeps the answer right.
//!
//! Nothing here names a runtime, a driver, a file system or a clock. Decisions are pure functions
//! over values ([`context`], [`text`], [`fact`], [`summary`]); the [`services`] gather what they need
//! through [`ports`] and hand back values. Each module uses only those below it, in the order that
//! `xtask/src/tidy/layers.rs` lists. `ARCHITECTURE.md` holds the invariants.

pub mod access;
pub mod append;
pub mod chat;
pub mod context;
pub mod document;
pub mod entity;
pub mod erase;
pub mod error;
pub mod fact;
pub mod files;
pub mod ids;
pub mod index;
pub mod job;
pub mod page;
pub mod persona;
pub mod ports;
pub mod scope;
pub mod secret;
pub mod services;
pub mod session;
pub mod settings;
pub mod summary;
pub mod text;
pub mod time;
pub mod tokens;
pub mod turn;
pub mod usage;

pub use error::{Error, ErrorKind, Result};
pub use scope::Scope;
