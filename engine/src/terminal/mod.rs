//! What the programs of the command line share: their options, their output, and their exit codes.

mod options;
mod output;

pub use options::{EXIT_CODES, Options, run, runtime};
pub use output::{Output, counted, grouped, percent, saved, table};
