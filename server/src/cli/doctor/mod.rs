//! `throughline doctor`: what an operator would look at, and what to do about it.

mod locks;
mod machine;
mod store;

use serde::Serialize;
use throughline_core::{Error, ErrorKind, Result};
use throughline_engine::config::Layers;
use throughline_engine::telemetry;
use throughline_engine::terminal::runtime;
use throughline_engine::terminal::{Output, table};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Read all stored data and compare it with its indexes
    #[arg(long)]
    deep: bool,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    /// It works, and somebody should look at it.
    Warning,
    /// It does not work.
    Problem,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    state: State,
    /// One sentence: what is the case, and what to do where that is not right.
    said: String,
    /// The error that decides the exit code.
    #[serde(skip)]
    kind: Option<ErrorKind>,
}

/// The checks, in the order in which they were made.
#[derive(Debug, Default, Serialize)]
struct Checks {
    checks: Vec<Check>,
}

impl Checks {
    fn add(&mut self, check: &'static str, state: State, said: impl Into<String>) {
        self.checks.push(Check { check, state, said: said.into(), kind: None });
    }

    fn ok(&mut self, check: &'static str, said: impl Into<String>) {
        self.add(check, State::Ok, said);
    }

    fn warning(&mut self, check: &'static str, said: impl Into<String>) {
        self.add(check, State::Warning, said);
    }

    fn problem(&mut self, check: &'static str, kind: ErrorKind, said: impl Into<String>) {
        let (state, said) = (State::Problem, said.into());
        self.checks.push(Check { check, state, said, kind: Some(kind) });
    }

    fn failed(&mut self, check: &'static str, error: &Error) {
        self.problem(check, error.kind(), error.message());
    }

    /// The error of the first problem, after all are reported.
    fn outcome(&self) -> Result<()> {
        let mut kinds = self.checks.iter().filter_map(|check| check.kind);
        let Some(first) = kinds.next() else { return Ok(()) };
        let message = match kinds.count() {
            0 => "there is a problem, which is listed above".to_owned(),
            more => format!("there are {} problems, which are listed above", more + 1),
        };
        Err(Error::new(first, message))
    }
}

/// Loads the configuration itself, for that may be what is wrong.
pub(super) fn run(args: &Args, layers: &Layers, output: &Output) -> Result<()> {
    let mut checks = Checks::default();
    let config = match layers.load() {
        Ok(config) => {
            checks.ok("configuration", machine::layers(layers)?);
            Some(config)
        }
        Err(error) => {
            checks.failed("configuration", &error);
            None
        }
    };
    machine::secrets(&mut checks, layers);
    if let Some(config) = config {
        let _telemetry = telemetry::start(&config)?;
        machine::data_dir(&mut checks, &config);
        machine::workspace(&mut checks, &config);
        machine::files(&mut checks, &config);
        machine::processes(&mut checks, &config);
        machine::address(&mut checks, &config.listen);
        runtime()?.block_on(store::check(&mut checks, &config, args.deep));
    }
    output.result(&checks, || {
        let rows = checks
            .checks
            .iter()
            .map(|check| vec![check.check, check.state.as_str(), check.said.as_str()]);
        table(&["check", "state", "what is the case"], rows)
    })?;
    checks.outcome()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_problem_decides() {
        let mut checks = Checks::default();
        checks.ok("a", "fine");
        checks.warning("b", "odd");
        assert!(checks.outcome().is_ok());
        checks.problem("c", ErrorKind::NotFound, "gone");
        assert_eq!(
            checks.outcome().unwrap_err().message(),
            "there is a problem, which is listed above"
        );
        checks.problem("d", ErrorKind::Corrupt, "broken");
        let error = checks.outcome().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("2 problems"), "{error}");
    }
}
