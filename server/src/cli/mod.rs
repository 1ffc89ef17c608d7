//! The command line: one file a command. Human output by default, JSON with `--json`.

mod assemble;
mod backup;
mod config;
mod demo;
mod doctor;
mod erase;
mod eval;
mod eval_sets;
mod export;
mod facts;
mod import;
mod install;
mod keys;
mod mcp;
mod migrate;
mod model;
mod openapi;
mod output;
mod profile;
mod serve;
mod stop;
mod store_migration;
mod usage;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use throughline_core::{Error, ErrorKind, Result};

use crate::config::{Config, Layers};
use crate::telemetry;
use output::Output;

/// Stores the conversations of an agent and assembles for every turn the smallest context that
/// still gives the right answer, within a hard token budget.
#[derive(Debug, Parser)]
#[command(name = "throughline", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done · 1 internal error · 2 usage · 3 invalid input · 4 not found · 5 conflict · \
6 budget too small · 7 unavailable, try again · 8 read-only · 9 disk full · 10 newer schema · \
11 damaged · 12 unauthenticated · 13 forbidden · 14 rate limited, try again later";

#[derive(Debug, clap::Args)]
struct Global {
    /// Configuration file [default: throughline.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of the embedded store
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Any other setting; repeatable
    #[arg(long = "set", global = true, value_name = "KEY=VALUE", value_parser = key_value)]
    settings: Vec<(String, String)>,
    /// Print JSON on standard output
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the HTTP interface, documented at /docs
    Serve(serve::Args),
    /// Serve MCP over standard input and output, to one client on this machine
    Mcp(mcp::Args),
    /// Create, list, rotate and revoke API keys
    #[command(subcommand)]
    Keys(keys::Command),
    /// Import a conversation into a temporary store and show the contexts of some turns
    Demo(demo::Args),
    /// Import conversations: JSON lines, an OpenAI-style array, exports of ChatGPT, logs of Claude Code
    Import(import::Args),
    /// Export messages as lines that `import` reads, or facts, or the profile
    Export(export::Args),
    /// Assemble the context of one turn
    Assemble(assemble::Args),
    /// Measure quality on a file of labelled conversations
    #[command(subcommand)]
    Eval(eval::Command),
    /// Show or change the rules and the profile card of the user
    #[command(subcommand)]
    Profile(profile::Command),
    /// List the facts that the user stated
    Facts(facts::Args),
    /// Show the tokens sent and saved, by day
    Usage(usage::Args),
    /// Get the model that runs on this machine
    #[command(subcommand)]
    Model(model::Command),
    /// Run background jobs, such as embedding with a new model
    Worker(worker::Args),
    /// Erase messages, a session or the user, with everything derived from them
    #[command(subcommand)]
    Erase(erase::Command),
    /// Copy the store to a new file while it is in use
    Backup(backup::BackupArgs),
    /// Replace the store with a backup
    Restore(backup::RestoreArgs),
    /// Bring the store's schema up to date, and check the store
    Migrate(migrate::Args),
    /// Print the OpenAPI document of the HTTP interface
    Openapi(openapi::Args),
    /// Check configuration, files, store and embedder, and say how to fix problems
    Doctor(doctor::Args),
    /// Show the configuration
    #[command(subcommand)]
    Config(config::Command),
}

fn key_value(text: &str) -> std::result::Result<(String, String), String> {
    text.split_once('=')
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| "must be KEY=VALUE, such as sqlite.readers=8".to_owned())
}

/// Runs the command line of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.global.json);
    match run(cli, &output) {
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
        _ => 1,
    }
}

fn run(cli: Cli, output: &Output) -> Result<()> {
    let mut flags = cli.global.settings;
    if let Some(data_dir) = &cli.global.data_dir {
        flags.push(("data_dir".to_owned(), data_dir.display().to_string()));
    }
    if let Command::Serve(serve::Args { listen: Some(listen), .. }) = &cli.command {
        flags.push(("listen".to_owned(), listen.clone()));
    }
    if let Command::Worker(worker::Args { listen: Some(listen), .. }) = &cli.command {
        flags.push(("jobs.listen".to_owned(), listen.clone()));
    }
    let layers = Layers { file: cli.global.config, flags };
    if let Command::Config(command) = &cli.command {
        return config::run(command, &layers, output);
    }
    if let Command::Openapi(args) = &cli.command {
        return openapi::run(args, output);
    }
    if let Command::Mcp(mcp::Args { command: Some(mcp::Command::Install(args)), .. }) = &cli.command
    {
        return install::run(args, &layers, output);
    }
    if let Command::Doctor(args) = &cli.command {
        return doctor::run(args, &layers, output);
    }
    let config = layers.load()?;
    #[cfg(feature = "mcp-fixtures")]
    let config = with_fixtures(config, &cli.command);
    // Outlives the runtime, so that what its tasks end with is sent, too.
    let _telemetry = telemetry::start(&config)?;
    runtime()?.block_on(dispatch(cli.command, &config, output))
}

/// With the fixtures of the conformance suite, where a flag asks for them.
#[cfg(feature = "mcp-fixtures")]
fn with_fixtures(mut config: Config, command: &Command) -> Config {
    config.mcp.fixtures = matches!(
        command,
        Command::Serve(serve::Args { mcp_fixtures: true, .. })
            | Command::Mcp(mcp::Args { mcp_fixtures: true, .. })
    );
    config
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Error::internal("the runtime cannot start its threads").with_source(error))
}

async fn dispatch(command: Command, config: &Config, output: &Output) -> Result<()> {
    match command {
        Command::Serve(_) => serve::run(config, output).await,
        Command::Mcp(args) => mcp::run(&args, config).await,
        Command::Keys(command) => keys::run(&command, config, output).await,
        Command::Demo(args) => demo::run(&args, output).await,
        Command::Import(args) => import::run(&args, config, output).await,
        Command::Export(args) => export::run(&args, config, output).await,
        Command::Assemble(args) => assemble::run(&args, config, output).await,
        Command::Eval(eval::Command::Retrieval(args)) => eval::run(&args, config, output).await,
        Command::Eval(eval::Command::Facts(args)) => eval_sets::run_facts(&args, output),
        Command::Eval(eval::Command::Instructions(args)) => {
            eval_sets::run_instructions(&args, output).await
        }
        Command::Profile(command) => profile::run(&command, config, output).await,
        Command::Facts(args) => facts::run(&args, config, output).await,
        Command::Usage(args) => usage::run(&args, config, output).await,
        Command::Model(command) => model::run(&command, config, output).await,
        Command::Worker(args) => worker::run(&args, config, output).await,
        Command::Erase(command) => erase::run(&command, config, output).await,
        Command::Backup(args) => backup::backup(&args, config, output).await,
        Command::Restore(args) => backup::restore(&args, config, output).await,
        Command::Migrate(args) => migrate::run(&args, config, output).await,
        // Answered before the configuration was loaded.
        Command::Config(_) | Command::Doctor(_) | Command::Openapi(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
