//! The command line: one file a command. Human output by default, JSON with `--json`.

mod assemble;
mod backup;
mod chat;
mod config;
mod contexts;
mod demo;
mod doctor;
mod erase;
mod eval;
mod export;
mod facts;
mod files;
mod import;
mod install;
mod keys;
mod mcp;
mod memory;
mod migrate;
mod model;
mod open;
mod openapi;
mod profile;
mod serve;
mod stop;
mod store_migration;
mod usage;
mod worker;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use throughline_core::Result;
use throughline_engine::config::Config;
use throughline_engine::telemetry;
use throughline_engine::terminal::{self, EXIT_CODES, Options, Output};

/// Stores the conversations of an agent and assembles for every turn the smallest context that
/// still gives the right answer, within a hard token budget.
#[derive(Debug, Parser)]
#[command(name = "throughline", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
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
    /// Remember a fact
    Remember(memory::RememberArgs),
    /// Find what was said or decided
    Recall(memory::RecallArgs),
    /// Forget a fact: retract it and reject its value
    Forget(memory::ForgetArgs),
    /// Import a conversation into a temporary store and show the contexts of some turns
    Demo(demo::Args),
    /// Import conversations: JSON lines, an OpenAI-style array, ChatGPT exports, Claude Code logs
    Import(import::Args),
    /// Export messages as JSON lines that `import` reads, or facts, or the profile
    Export(export::Args),
    /// Assemble the context for one turn
    Assemble(assemble::Args),
    /// Let a model answer a turn, and store the turn and the answer
    Chat(chat::Args),
    /// List and search contexts, and show how helpful their answers were rated
    #[command(subcommand)]
    Contexts(contexts::Command),
    /// Show which files a conversation has, and what is sent of them
    #[command(subcommand)]
    Files(files::Command),
    /// List the models that can answer, and the keys that are missing
    Models,
    /// Measure quality on labelled conversations, with `throughline-eval`
    #[command(disable_help_flag = true)]
    Eval(eval::Args),
    /// Show or change the rules and the profile card of the user
    #[command(subcommand)]
    Profile(profile::Command),
    /// List the facts that the user stated
    Facts(facts::Args),
    /// Show the tokens sent and saved, by day
    Usage(usage::Args),
    /// Fetch the model files of the local embedder
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
    /// Print shell completions, for use as in `source <(throughline completions bash)`
    Completions(CompletionsArgs),
    /// Check configuration, files, store and embedder, and say how to fix problems
    Doctor(doctor::Args),
    /// Show the configuration
    #[command(subcommand)]
    Config(config::Command),
}

#[derive(Debug, clap::Args)]
struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

impl Command {
    /// Whether it works on the memory of the project that it is started in.
    fn is_of_a_folder(&self) -> bool {
        matches!(
            self,
            Self::Mcp(_)
                | Self::Export(_)
                | Self::Assemble(_)
                | Self::Chat(_)
                | Self::Contexts(_)
                | Self::Files(_)
                | Self::Profile(_)
                | Self::Facts(_)
                | Self::Remember(_)
                | Self::Recall(_)
                | Self::Forget(_)
                | Self::Erase(_)
        )
    }
}

/// Runs the command line of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Eval(args) = &cli.command {
        return eval::run(args, &cli.options);
    }
    let output = Output::new(cli.options.json);
    terminal::run(output, || run(cli, &output))
}

fn run(cli: Cli, output: &Output) -> Result<()> {
    let listen = match &cli.command {
        Command::Serve(serve::Args { listen: Some(listen), .. }) => Some(("listen", listen)),
        Command::Worker(worker::Args { listen: Some(listen), .. }) => Some(("jobs.listen", listen)),
        _ => None,
    };
    let listen = listen.map(|(key, address)| (key.to_owned(), address.clone()));
    let layers = cli.options.layers(listen);
    if let Command::Config(command) = &cli.command {
        return config::run(command, &layers, output);
    }
    if let Command::Completions(args) = &cli.command {
        let mut script = Vec::new();
        clap_complete::generate(args.shell, &mut Cli::command(), "throughline", &mut script);
        // A closed pipe is the reader's choice.
        let _ = std::io::stdout().write_all(&script);
        return Ok(());
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
    let config = match cli.command.is_of_a_folder() {
        true => layers.load()?.in_folder(Path::new(".")),
        false => layers.load()?,
    };
    #[cfg(feature = "mcp-fixtures")]
    let config = with_fixtures(config, &cli.command);
    // Outlives the runtime, so that what its tasks end with is sent, too.
    let _telemetry = telemetry::start(&config)?;
    terminal::runtime()?.block_on(async {
        let done = dispatch(cli.command, &config, output).await;
        open::ended(done.as_ref().err()).await;
        done
    })
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

async fn dispatch(command: Command, config: &Config, output: &Output) -> Result<()> {
    match command {
        Command::Serve(_) => serve::run(config, output).await,
        Command::Mcp(args) => mcp::run(&args, config).await,
        Command::Keys(command) => keys::run(&command, config, output).await,
        Command::Demo(args) => demo::run(&args, output).await,
        Command::Remember(args) => memory::remember(&args, config, output).await,
        Command::Recall(args) => memory::recall(&args, config, output).await,
        Command::Forget(args) => memory::forget(&args, config, output).await,
        Command::Import(args) => import::run(&args, config, output).await,
        Command::Export(args) => export::run(&args, config, output).await,
        Command::Assemble(args) => assemble::run(&args, config, output).await,
        Command::Chat(args) => chat::run(&args, config, output).await,
        Command::Contexts(command) => contexts::run(&command, config, output).await,
        Command::Files(command) => files::run(&command, config, output).await,
        Command::Models => chat::models(config, output),
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
        Command::Completions(_)
        | Command::Config(_)
        | Command::Doctor(_)
        | Command::Eval(_)
        | Command::Openapi(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
