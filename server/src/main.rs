//! The `throughline` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    throughline_server::cli::main()
}
