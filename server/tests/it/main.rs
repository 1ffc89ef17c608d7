//! The real binary: what its users do, and what goes wrong around it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure is the answer")]

mod authority;
mod backups;
mod budgets;
mod chat;
mod cli;
#[cfg(feature = "live-tests")]
mod clocks;
#[cfg(feature = "live-tests")]
mod combinations;
mod corrections;
mod doctor;
#[cfg(feature = "live-tests")]
mod erasing;
mod erasure;
mod faults;
#[cfg(feature = "live-tests")]
mod file_stores;
mod files;
mod first;
mod http;
mod interchange;
#[cfg(feature = "live-tests")]
mod kills;
mod limits;
mod mcp;
mod meaning;
mod metering;
mod model_jobs;
#[cfg(feature = "live-tests")]
mod moving;
mod openai;
#[cfg(feature = "live-tests")]
mod own;
mod places;
mod relevance;
mod removed;
#[cfg(feature = "live-tests")]
mod replicas;
mod search;
mod secrets;
mod standing;
mod stores;
mod support;
mod tokens;
mod trust;
