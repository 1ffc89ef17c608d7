//! `cargo xtask test`: every test of the workspace, and one line that counts them.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use xshell::{Cmd, cmd};

use crate::Result;
use crate::cli::Breadth;
use crate::proc::{cargo_metadata, has_cargo_command, human, shell, succeeds_captured};
use crate::services::Lease;

/// The feature of a crate that turns on its tests against a real server.
const LIVE: &str = "live-tests";
/// What else is compiled only when it is asked for. Tests, lints and the steps on a debug binary take all of it, so that
/// there is one build.
const OPTIONAL: [&str; 3] = [
    "throughline-server/local-model",
    "throughline-server/otel",
    "throughline-server/mcp-fixtures",
];

/// The tests that this feature adds: those of the adapters of servers, and of engines on them.
const LIVE_TESTS: &str = "((package(/^throughline-store-(postgres|qdrant|redis)$/) & kind(test) - \
    binary(away)) | test(/^(authority::postgres|clocks|combinations|erasing|file_stores|http::live|kills|limits::live|mcp::live|moving|removed::postgres|replicas|secrets::postgres|trust::postgres)::/))";
/// The tests that need the files of the local model.
const MODEL_TESTS: &str = "((package(throughline-provider-local) & binary(model)) | \
    (package(throughline-server) & test(/(^|::)local_model::/)))";
/// The variable that names the folder with these files.
pub(crate) const MODEL: &str = "THROUGHLINE_TEST_MODEL";
/// Modules of live tests that take too long for every change.
const FULL_TESTS: &str = "test(/(^|::)full::/)";

/// How long writers write that are killed, in seconds, where there is time.
const WRITERS: (&str, &str) = ("THROUGHLINE_TEST_WRITERS_SECONDS", "60");

/// Tests by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
}

/// Who ran tests, and so how the summary is written.
#[derive(Debug, Clone, Copy)]
enum Runner {
    /// One summary at the end.
    Nextest,
    /// What `cargo test` runs: one result for each binary.
    Libtest,
}

/// What the live tests need beside the others.
#[derive(Debug, Default)]
struct Live {
    features: Vec<String>,
    variables: Vec<(String, String)>,
    /// Which tests nextest runs; all where there is none.
    filter: Option<String>,
    /// Whether documentation tests run as well.
    doc: bool,
}

impl Live {
    fn apply<'sh>(&self, mut command: Cmd<'sh>, runner: Runner) -> Cmd<'sh> {
        if !self.features.is_empty() {
            command = command.arg("--features").arg(self.features.join(","));
        }
        if let (Some(filter), Runner::Nextest) = (&self.filter, runner) {
            command = command.args(["--filterset", filter]);
        }
        command.envs(self.variables.iter().cloned())
    }
}

/// Runs the tests that need nothing but this repository. Where nextest can leave the others out, they are compiled as
/// well: later steps then need no other build.
pub(crate) fn run() -> Result<bool> {
    println!("Runs every test of the workspace; none needs a network, a service or a key.");
    let mut live = Live { doc: true, ..Live::default() };
    if has_cargo_command("nextest") {
        live.features = features(&cargo_metadata()?);
        live.filter = Some(format!("not ({LIVE_TESTS} | {MODEL_TESTS})"));
    }
    run_with(&live)
}

/// Runs these and the live tests, against servers that are brought up where none are.
pub(crate) fn run_all() -> Result<bool> {
    println!("Runs every test of the workspace, the live ones too: servers are started for them.");
    run_live(format!("not {MODEL_TESTS}"), &[], true)
}

/// Runs the live tests after the others have been run.
pub(crate) fn run_live_alone(breadth: Option<Breadth>) -> Result<bool> {
    match breadth {
        None => run_live(format!("{LIVE_TESTS} - {FULL_TESTS}"), &[], false),
        Some(Breadth::Full) => run_live(LIVE_TESTS.to_owned(), &[WRITERS], false),
    }
}

/// Runs the tests of the local model, with its files in this folder.
pub(crate) fn run_model(files: &Path) -> Result<bool> {
    let features = features(&cargo_metadata()?);
    let variables = vec![(MODEL.to_owned(), files.display().to_string())];
    run_with(&Live { features, variables, filter: Some(MODEL_TESTS.to_owned()), doc: false })
}

/// Compiles what tests run, for those who need its binary.
pub(crate) fn build() -> Result<()> {
    let features = features(&cargo_metadata()?).join(",");
    let sh = shell()?;
    // With the tests: what they share with the binary would be compiled twice.
    cmd!(sh, "cargo test --workspace --no-run --features {features}").run()?;
    Ok(())
}

fn run_live(filter: String, more: &[(&str, &str)], doc: bool) -> Result<bool> {
    let filter = Some(filter);
    let features = features(&cargo_metadata()?);
    let mut servers = Lease::take()?;
    let mut variables = std::mem::take(&mut servers.variables);
    variables.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    run_with(&Live { features, variables, filter, doc })
}

/// Every feature that adds tests, as cargo's command line names it: that of each crate with live tests, and what is
/// optional.
pub(crate) fn features(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let live = packages
        .iter()
        .filter(|package| package["features"].get(LIVE).is_some())
        .filter_map(|package| Some(format!("{}/{LIVE}", package["name"].as_str()?)));
    live.chain(OPTIONAL.map(str::to_owned)).collect()
}

/// True when some tests ran, none failed, and every runner was content.
fn run_with(live: &Live) -> Result<bool> {
    let started = Instant::now();
    let nextest = has_cargo_command("nextest");
    println!("The first run compiles everything, SQLite included: some minutes on two cores.");
    println!("Later runs take seconds.\n");

    let sh = shell()?;
    // Most tests wait for a disk or a server for half of their time.
    let threads = (2 * std::thread::available_parallelism().map_or(1, usize::from)).to_string();
    let runs = if nextest {
        // nextest runs no documentation tests.
        vec![
            (
                cmd!(sh, "cargo nextest run --workspace --no-fail-fast -j {threads}"),
                Runner::Nextest,
            ),
            (cmd!(sh, "cargo test --workspace --doc --no-fail-fast"), Runner::Libtest),
        ]
        .into_iter()
        .filter(|(_, runner)| live.doc || matches!(runner, Runner::Nextest))
        .collect()
    } else {
        println!("cargo-nextest is not installed; `cargo test` runs the same tests.\n");
        vec![(cmd!(sh, "cargo test --workspace --no-fail-fast"), Runner::Libtest)]
    };
    let mut tally = Tally::default();
    let mut content = true;
    for (command, runner) in runs {
        let (ok, text) = succeeds_captured(live.apply(command, runner))?;
        content &= ok;
        tally.add(&text, runner);
        if !ok && tally == Tally::default() {
            // It did not compile; the next runner would only say so again.
            break;
        }
    }

    let verdict = verdict(tally, content);
    let Tally { passed, failed } = tally;
    println!();
    println!("{} in {}.", verdict.text(), human(started.elapsed()));
    if verdict == Verdict::SomeFailed {
        let one = if nextest { "cargo nextest run NAME" } else { "cargo test --workspace NAME" };
        println!("What failed is named above, with its output. One test alone: {one}");
    }
    if verdict != Verdict::Good {
        println!("CONTRIBUTING.md says what must be installed and where things are.");
    }
    println!("{passed} passed, {failed} failed");
    Ok(verdict == Verdict::Good)
}

/// What the run as a whole means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    SomeFailed,
    NothingRan,
    DidNotFinish,
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::Good => "All tests passed",
            Self::SomeFailed => "Some tests failed",
            Self::NothingRan => "No test ran (most often: something did not compile)",
            Self::DidNotFinish => "A test runner failed outside its tests (see its output)",
        }
    }
}

fn verdict(tally: Tally, content: bool) -> Verdict {
    match tally {
        Tally { failed: 1.., .. } => Verdict::SomeFailed,
        Tally { passed: 0, .. } => Verdict::NothingRan,
        _ if !content => Verdict::DidNotFinish,
        _ => Verdict::Good,
    }
}

impl Tally {
    /// Adds the summaries that the runner prints. The output of a test may hold the other runner's.
    fn add(&mut self, output: &str, runner: Runner) {
        for line in output.lines() {
            match runner {
                Runner::Libtest => {
                    if let Some(result) = line.strip_prefix("test result: ")
                        && let Some((_, counts)) = result.split_once(". ")
                    {
                        self.add_counts(counts.split(';'));
                    }
                }
                Runner::Nextest => {
                    if line.trim_start().starts_with("Summary [")
                        && let Some((_, counts)) = line.split_once(" run: ")
                    {
                        self.add_counts(without_parentheses(counts).split(','));
                    }
                }
            }
        }
    }

    fn add_counts<'a>(&mut self, counts: impl Iterator<Item = &'a str>) {
        for count in counts {
            let Some((number, outcome)) = count.trim().split_once(' ') else {
                continue;
            };
            let number = number.parse::<u64>().unwrap_or(0);
            match outcome.trim() {
                "passed" => self.passed += number,
                "failed" | "exec failed" | "timed out" => self.failed += number,
                _ => {}
            }
        }
    }
}

/// `3 passed (1 slow, 1 leaky), 1 failed` without what is in parentheses.
fn without_parentheses(text: &str) -> String {
    let mut depth = 0_u32;
    text.chars()
        .filter(|char| match char {
            '(' => {
                depth += 1;
                false
            }
            ')' => {
                depth = depth.saturating_sub(1);
                false
            }
            _ => depth == 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tally(output: &str, runner: Runner) -> Tally {
        let mut tally = Tally::default();
        tally.add(output, runner);
        tally
    }

    const RESULTS: &str = "\
running 2 tests
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
test result: FAILED. 3 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s
";

    #[test]
    fn features_are_those_of_live_tests_and_what_is_optional() {
        let metadata = json!({ "packages": [
            { "name": "store-a", "features": { "default": [], "live-tests": [] } },
            { "name": "core", "features": {} },
            { "name": "server", "features": { "live-tests": ["store-a"] } },
        ]});
        let found = features(&metadata);
        assert_eq!(found[..2], ["store-a/live-tests", "server/live-tests"]);
        assert_eq!(found[2..], OPTIONAL);
    }

    #[test]
    fn live_tests_are_named_and_given_their_servers() {
        let live = Live {
            features: vec!["a/live-tests".to_owned(), "b/live-tests".to_owned()],
            variables: vec![("URL".to_owned(), "x".to_owned())],
            filter: Some("all()".to_owned()),
            doc: true,
        };
        let sh = shell().unwrap();
        let command = std::process::Command::from(live.apply(cmd!(sh, "cargo"), Runner::Libtest));
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments, ["--features", "a/live-tests,b/live-tests"]);
        assert_eq!(command.get_envs().count(), 1);
        assert_eq!(Live::default().apply(cmd!(sh, "cargo"), Runner::Libtest).to_string(), "cargo");
    }

    #[test]
    fn libtest_results_are_summed() {
        assert_eq!(tally(RESULTS, Runner::Libtest), Tally { passed: 5, failed: 4 });
    }

    #[test]
    fn nextest_summaries_are_read() {
        let read = |summary: &str| tally(summary, Runner::Nextest);
        let all = "     Summary [   0.512s] 12 tests run: 7 passed (2 slow, 1 leaky), 2 failed, \
                   1 exec failed, 2 timed out, 3 skipped\n";
        assert_eq!(read(all), Tally { passed: 7, failed: 5 });
        // nextest repeats what a failed test printed: the result of its binary among it.
        assert_eq!(read(&format!("{RESULTS}{all}")), Tally { passed: 7, failed: 5 });
        let cut = "     Summary [   0.5s] 2/9 tests run: 1 passed, 1 failed, 0 skipped\n";
        assert_eq!(read(cut), Tally { passed: 1, failed: 1 });
        let one = "     Summary [ 0.1s] 1 test run: 1 passed, 0 skipped";
        assert_eq!(read(one), Tally { passed: 1, failed: 0 });
    }

    #[test]
    fn only_a_full_run_is_good() {
        assert_eq!(verdict(Tally { passed: 1, failed: 0 }, true), Verdict::Good);
        assert_eq!(verdict(Tally { passed: 1, failed: 0 }, false), Verdict::DidNotFinish);
        assert_eq!(verdict(Tally { passed: 1, failed: 1 }, false), Verdict::SomeFailed);
        assert_eq!(verdict(Tally::default(), true), Verdict::NothingRan);
    }
}
