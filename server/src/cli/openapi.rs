//! `throughline openapi`.

use std::path::PathBuf;

use throughline_core::{Error, ErrorKind, Result};
use throughline_engine::terminal::Output;

use crate::http;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// File to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

pub(super) fn run(args: &Args, output: &Output) -> Result<()> {
    let text = http::document_text()?;
    match &args.to {
        None => output.text(text.trim_end()),
        Some(path) => std::fs::write(path, text).map_err(|error| {
            Error::new(ErrorKind::Unavailable, format!("{}: {error}", path.display()))
        }),
    }
}
