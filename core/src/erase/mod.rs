//! Erasure: nothing stays of what is erased, nor of what was made from it, by recorded provenance.
//!
//! An erasure is first recorded in the ledger, which no backup holds, then applied as one batch, then
//! carried to what lies beside the store. Whatever ends the process in between, the next start brings the
//! store to what the ledger says before it serves anything, and a job does the rest. Here are the decisions:
//! entries of the ledger as bytes, which ledger a store goes by, and what becomes of facts.

mod binding;
mod entry;
mod erased_before;
mod facts;

pub use binding::check;
pub use erased_before::ErasedBefore;
pub use facts::{DerivedFact, DerivedIds, FactChanges, FactSource, HeldFact, KeptFact, heal};
