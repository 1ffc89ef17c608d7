//! The commands and their flags. `cargo xtask help` and the check of documents read this.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

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
        /// The live tests too, against servers that are brought up for them.
        #[arg(long)]
        all: bool,
    },
    /// The servers that live tests need: Postgres, PgBouncer, Qdrant and Redis, on this machine.
    Services {
        #[command(subcommand)]
        action: ServicesAction,
    },
    /// Check the rules of the repository that the compiler does not know.
    Tidy {
        /// Record migrations that are new in xtask/migrations.lock.
        #[arg(long)]
        bless: bool,
    },
    /// Check an edit in a minute or two: format, rules, lints and tests of the crates that changed.
    Check {
        /// Count what changed since this commit [default: uncommitted changes, else the last commit].
        #[arg(long, value_name = "COMMIT")]
        since: Option<String>,
    },
    /// Run all that a change must pass: tests, format, lints, documents, tidy, end to end.
    Ci {
        /// `full` for the widest matrix: what takes too long for every change as well.
        #[arg(value_enum)]
        breadth: Option<Breadth>,
        /// Leave the tests out, when `cargo xtask test` has just been run.
        #[arg(long)]
        after_test: bool,
        /// One step alone, by the name that the report gives it.
        #[arg(long, value_name = "STEP")]
        only: Option<String>,
    },
    /// Measure the engine, or the service under load; prints a table and writes JSON.
    #[command(args_conflicts_with_subcommands = true)]
    Bench {
        #[command(subcommand)]
        part: Option<BenchPart>,
        /// Smaller data and fewer rounds.
        #[arg(long)]
        quick: bool,
        /// Where the JSON goes; in target/bench when not given.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Every combination of stores instead, on servers that are started for it.
        #[arg(long)]
        stores: bool,
        /// Messages of the stores [default: 100000].
        #[arg(long, value_name = "COUNT", requires = "stores")]
        messages: Option<usize>,
    },
    /// Evaluate retrieval on labelled data sets, in the release profile: with one, by part of recall;
    /// with several, on each when the ranking is learnt from the others.
    Eval {
        /// A data set; may be given several times.
        #[arg(long, value_name = "FILE", required = true)]
        data: Vec<PathBuf>,
        /// Passed on to `throughline eval retrieval` as it is.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        rest: Vec<String>,
    },
    /// Make the table of token vectors from a model and texts, in the release profile.
    ///
    /// distill/README.md says which; `cargo xtask distill --help` is answered by the program.
    #[command(disable_help_flag = true)]
    Distill {
        /// Passed on to the program as it is.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        rest: Vec<String>,
    },
}

/// What is measured instead of the engine.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchPart {
    /// The service under load, then every message that it acknowledged is looked for; fails when one is
    /// lost or doubled, or a request failed.
    Http(Http),
    /// How long a client of `throughline mcp` waits for its first answers, and what memory that takes.
    Mcp {
        /// Where the JSON goes; in target/bench when not given.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// The load.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Http {
    /// One mode alone; without, all of them.
    #[arg(long, value_enum)]
    pub(crate) mode: Option<Mode>,
    /// How long each mode lasts.
    #[arg(long, default_value_t = 30)]
    pub(crate) seconds: u64,
    /// Clients at once.
    #[arg(long, default_value_t = 64)]
    pub(crate) clients: usize,
    /// Where the JSON goes; in target/bench when not given.
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
    /// The same with the heads of sessions and the rates in Redis.
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
    /// Everything.
    Full,
}

/// What to do with the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum ServicesAction {
    /// Bring up what is down; prints `export` lines for a shell to evaluate.
    Up,
    /// End every server and remove its data.
    Down,
    /// Show what is up; fails when something is not.
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
