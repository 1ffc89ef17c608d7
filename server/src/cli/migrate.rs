//! `throughline migrate`.

use serde::Serialize;
use throughline_core::ports::Health;
use throughline_core::{Error, ErrorKind, Result};
use throughline_engine::compose::{self, Engine};
use throughline_engine::config::{Config, StoreKind};
use throughline_engine::terminal::Output;

use super::store_migration;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Read all data and compare it with its indexes
    #[arg(long, conflicts_with = "from")]
    check: bool,
    /// Accept the ledger of erasures that is found, or create a new one; erased data that is still in the store stays
    /// there
    #[arg(long, conflicts_with = "from")]
    new_ledger: bool,
    /// Move all data from this store; nothing may write to either store meanwhile
    #[arg(long, value_name = "STORE", requires = "to")]
    from: Option<StoreKind>,
    /// Move to this store; an interrupted move continues
    #[arg(long, value_name = "STORE", requires = "from")]
    to: Option<StoreKind>,
}

#[derive(Serialize)]
struct HealthJson {
    backend: String,
    schema_version: u32,
    problems: Vec<String>,
    /// The vector index and the cache.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<Self>,
}

impl From<Health> for HealthJson {
    fn from(health: Health) -> Self {
        let Health { backend, schema_version, problems } = health;
        Self { backend, schema_version, problems, beside: Vec::new() }
    }
}

impl HealthJson {
    fn line(&self) -> String {
        let schema = match self.schema_version {
            0 => String::new(),
            version => format!(", schema {version}"),
        };
        let state = match self.problems.len() {
            0 => "no problems".to_owned(),
            count => format!("{count} problems:\n{}", self.problems.join("\n")),
        };
        format!("{}{schema}: {state}", self.backend)
    }
}

/// Opening the store migrates it: there is no state in which a program works on an old schema. What
/// takes long is built here, while others work.
pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    if let (Some(from), Some(to)) = (args.from, args.to) {
        return store_migration::run((from, to), config, output).await;
    }
    let engine = match args.new_ledger {
        true => Engine::open_with_new_ledger(config).await?,
        false => Engine::open(config).await?,
    };
    build_indexes(config, output).await?;
    let mut all = engine.health(args.check).await?.into_iter().map(HealthJson::from);
    let Some(store) = all.next() else {
        return Err(Error::internal("the store did not report its health"));
    };
    let report = HealthJson { beside: all.collect(), ..store };
    output.result(&report, || {
        let beside = report.beside.iter().map(HealthJson::line);
        std::iter::once(report.line()).chain(beside).collect::<Vec<_>>().join("\n")
    })?;
    if !report.problems.is_empty() {
        return Err(Error::new(
            ErrorKind::Corrupt,
            "the store has problems, which are listed above",
        ));
    }
    if report.beside.iter().any(|beside| !beside.problems.is_empty()) {
        return Err(Error::new(
            ErrorKind::Unavailable,
            "the vector index or the cache has problems, which are listed above",
        ));
    }
    Ok(())
}

/// Builds what the store defers because it takes long.
pub(super) async fn build_indexes(config: &Config, output: &Output) -> Result<()> {
    let bar = output.progress(0, "building indexes");
    compose::build_deferred(config, |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    })
    .await?;
    bar.finish_and_clear();
    Ok(())
}
