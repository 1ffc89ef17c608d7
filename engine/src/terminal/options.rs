//! Options that every command has, and how a command ends.

use std::path::PathBuf;
use std::process::ExitCode;

use throughline_core::{Error, ErrorKind, Result};

use super::Output;
use crate::admission::cpu_places;
use crate::config::Layers;

/// What `--help` says of exit codes: the table of `exit_code`.
pub const EXIT_CODES: &str = "\
Exit codes: 0 done · 1 internal error · 2 usage · 3 invalid input · 4 not found · 5 conflict · \
6 budget too small · 7 unavailable, try again · 8 read-only · 9 disk full · 10 newer schema · \
11 damaged · 12 unauthenticated · 13 forbidden · 14 rate limited, try again later · \
15 changed meanwhile, read it again · 16 the model gave no answer";

/// Options of every command.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Configuration file [default: throughline.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the embedded store
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Workspace, such as a project; empty for none [default: the git repository of this folder]
    #[arg(long, global = true, value_name = "NAME")]
    workspace: Option<String>,
    /// Override any setting; can be repeated
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = key_value)]
    settings: Vec<(String, String)>,
    /// Print JSON on standard output
    #[arg(long, global = true)]
    pub json: bool,
}

impl Options {
    /// The layers of the configuration, with settings from flags of the command on top.
    #[must_use]
    pub fn layers(&self, of_command: impl IntoIterator<Item = (String, String)>) -> Layers {
        let mut flags = self.settings.clone();
        if let Some(data_dir) = &self.data_dir {
            flags.push(("data_dir".to_owned(), data_dir.display().to_string()));
        }
        if let Some(workspace) = &self.workspace {
            flags.push(("identity.workspace".to_owned(), format!("{workspace:?}")));
            flags.push(("identity.git_workspace".to_owned(), "false".to_owned()));
        }
        flags.extend(of_command);
        Layers { file: self.config.clone(), flags }
    }

    /// The same options for a command that takes over.
    #[must_use]
    pub fn arguments(&self) -> Vec<std::ffi::OsString> {
        let mut arguments = Vec::new();
        for (flag, path) in [("--config", &self.config), ("--data-dir", &self.data_dir)] {
            if let Some(path) = path {
                arguments.extend([flag.into(), path.clone().into_os_string()]);
            }
        }
        if let Some(workspace) = &self.workspace {
            arguments.extend(["--workspace".into(), workspace.into()]);
        }
        for (key, value) in &self.settings {
            arguments.extend(["--set".into(), format!("{key}={value}").into()]);
        }
        if self.json {
            arguments.push("--json".into());
        }
        arguments
    }
}

fn key_value(text: &str) -> std::result::Result<(String, String), String> {
    text.split_once('=')
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| "must be KEY=VALUE, such as sqlite.readers=8".to_owned())
}

/// Runs a command, prints its error, and returns its exit code.
pub fn run(output: Output, command: impl FnOnce() -> Result<()>) -> ExitCode {
    match command() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            ExitCode::from(exit_code(error.kind()))
        }
    }
}

/// The one table from kinds of errors to exit codes.
fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::InvalidInput => 3,
        ErrorKind::NotFound => 4,
        ErrorKind::Conflict => 5,
        ErrorKind::BudgetTooSmall => 6,
        ErrorKind::Unavailable => 7,
        ErrorKind::ReadOnly => 8,
        ErrorKind::StorageFull => 9,
        ErrorKind::SchemaTooNew => 10,
        ErrorKind::Corrupt => 11,
        ErrorKind::Unauthenticated => 12,
        ErrorKind::Forbidden => 13,
        ErrorKind::RateLimited => 14,
        ErrorKind::PreconditionFailed => 15,
        ErrorKind::Declined => 16,
        _ => 1,
    }
}

/// Bytes of a worker's stack: as much as the main thread has, because unoptimized builds move large futures over it.
const WORKER_STACK: usize = 8 * 1024 * 1024;

/// The runtime of a program.
///
/// # Errors
/// `Internal` where the system starts no threads.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        // Two are left for what waits while all places to compute are taken.
        .worker_threads(cpu_places() + 2)
        .thread_stack_size(WORKER_STACK)
        .enable_all()
        .build()
        .map_err(|error| Error::internal("the runtime cannot start its threads").with_source(error))
}
