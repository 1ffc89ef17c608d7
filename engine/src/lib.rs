//! What the server and the evaluation are made of: configuration, core's services over the adapters that it chooses,
//! and what a caller may do with a memory.
//!
//! Modules stand in floors, each over the ones before it: [`config`]; [`adapters`] and [`telemetry`]; [`compose`], which
//! alone names the adapters of stores; [`identity`], [`admission`], [`metering`], [`parts`],
//! [`json_limits`] and [`worker`]; [`app`]; [`import`],
//! [`export`] and [`terminal`].

pub mod adapters;
pub mod admission;
pub mod app;
pub mod backups;
pub mod compose;
pub mod config;
pub mod export;
pub mod identity;
pub mod import;
pub mod json_limits;
pub mod metering;
pub mod parts;
pub mod telemetry;
pub mod terminal;
pub mod worker;
