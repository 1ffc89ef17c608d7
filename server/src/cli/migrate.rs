//! `throughline migrate`.

use serde::Serialize;
use throughline_core::{Error, ErrorKind, Result};

use super::output::Output;
use crate::compose::Engine;
use crate::config::Config;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Read everything and compare it with its indexes
    #[arg(long)]
    check: bool,
}

#[derive(Serialize)]
struct HealthJson {
    backend: String,
    schema_version: u32,
    problems: Vec<String>,
}

/// Opening the store migrates it: there is no state in which a program works on an old schema.
pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let engine = Engine::open(config)?;
    let health = engine.store.health(args.check).await?;
    let report = HealthJson {
        backend: health.backend,
        schema_version: health.schema_version,
        problems: health.problems,
    };
    output.result(&report, || {
        let state = match report.problems.len() {
            0 => "no problems".to_owned(),
            count => format!("{count} problems:\n{}", report.problems.join("\n")),
        };
        format!("{}, schema {}: {state}", report.backend, report.schema_version)
    })?;
    if report.problems.is_empty() {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Corrupt, "the store is damaged: restore a backup"))
    }
}
