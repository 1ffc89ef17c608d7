//! `throughline eval`: the evaluation is a program of its own, so that what serves users carries none of it.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use throughline_core::Error;
use throughline_engine::terminal::{self, Options, Output};

const PROGRAM: &str = "throughline-eval";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Arguments of `throughline-eval`; `eval --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the program beside this one, or the one on the path, and ends as it does.
pub(super) fn run(args: &Args, options: &Options) -> ExitCode {
    let beside = std::env::current_exe()
        .ok()
        .map(|here| here.with_file_name(format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX)));
    let program = match beside {
        Some(beside) if beside.is_file() => beside,
        _ => PROGRAM.into(),
    };
    match Command::new(program).args(options.arguments()).args(&args.arguments).status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            code.map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => terminal::run(Output::new(options.json), || {
            Err(Error::not_found(format!(
                "{PROGRAM} cannot be started ({error}): build it with `cargo build --release -p {PROGRAM}`, \
                 and put it next to `throughline` or on the PATH"
            )))
        }),
    }
}
