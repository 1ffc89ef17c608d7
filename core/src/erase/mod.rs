//! Erasure: nothing stays of what is erased, nor of what was made from it, by recorded provenance.
//!
//! An erasure is first recorded in the ledger, which no backup holds, then applied as one batch, then
//! carried to what lies beside the store. Whatever ends the process in between, the next start brings the
//! store to what the ledger says before it serves anything, and a job does the rest.

mod entry;
mod facts;
mod replay;
mod service;

pub use facts::{DerivedFact, DerivedIds, FactChanges, FactSource, HeldFact, KeptFact, heal};
pub use replay::{Replayed, check, copy_ledger};
pub use service::{EraseService, FORGET_JOB, SCOPE_TAG};
