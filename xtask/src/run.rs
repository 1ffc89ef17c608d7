//! `bench`, `eval` and `distill`: programs of other crates, started with the right profile and paths.

use std::path::PathBuf;

use xshell::{Cmd, Shell, cmd};

use crate::Result;
use crate::cli::{Http, Mode};
use crate::proc::{root, shell, target_dir};
use crate::services::Lease;

/// The manifest of the program that makes the table of token vectors.
const DISTILL: &str = "distill/Cargo.toml";

/// Runs the engine's benchmark.
pub(crate) fn bench(quick: bool, out: Option<PathBuf>) -> Result<()> {
    let (sh, quick) = (shell()?, quick.then_some("--quick"));
    let command = cmd!(sh, "cargo bench -p throughline-server --bench engine -- {quick...}");
    measured(command, out, "engine.json")
}

/// Runs the benchmark of all combinations of stores, on servers that are up or brought up for it.
pub(crate) fn bench_stores(
    quick: bool,
    out: Option<PathBuf>,
    messages: Option<usize>,
) -> Result<()> {
    let servers = Lease::take()?;
    let (sh, quick) = (shell()?, quick.then_some("--quick"));
    let messages = messages.map(|messages| format!("--messages={messages}"));
    let bench = ["bench", "-p", "throughline-server", "--bench", "engine"];
    let command = cmd!(
        sh,
        "cargo {bench...} --features live-tests -- --only stores {quick...} {messages...}"
    );
    measured(command.envs(servers.variables.iter().cloned()), out, "stores.json")
}

/// Puts the service under load, where a mode needs them on servers that are up or brought up for it. Fails when
/// something was lost or doubled.
pub(crate) fn bench_http(load: &Http) -> Result<()> {
    let sh = shell()?;
    let needs_services = load.mode.is_none_or(Mode::needs_services);
    // To be held as long as the load lasts.
    let servers = if needs_services { Some(Lease::take()?) } else { None };
    let features = servers.as_ref().map_or(&[][..], |_| &["--features", "live-tests"]);
    let (seconds, clients) = (load.seconds.to_string(), load.clients.to_string());
    let mode = load.mode.map_or(Vec::new(), |mode| vec!["--mode", mode.name()]);
    let mut command = cmd!(sh, "cargo bench -p throughline-server --bench engine {features...}")
        .args(["--", "--only", "http", "--seconds", &seconds, "--clients", &clients])
        .args(mode);
    if let Some(servers) = &servers {
        command = command.envs(servers.variables.iter().cloned());
    }
    measured(command, load.out.clone(), "http.json")
}

fn measured(command: Cmd<'_>, out: Option<PathBuf>, name: &str) -> Result<()> {
    let out = match out {
        Some(out) => std::path::absolute(out)?,
        None => target_dir()?.join("bench").join(name),
    };
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent)?;
    }
    command.arg("--json").arg(&out).run()?;
    println!("Numbers as JSON: {}", out.display());
    Ok(())
}

/// Evaluates retrieval on data sets. Paths among the passed arguments are meant from where the caller stands.
pub(crate) fn eval(data: &[PathBuf], rest: &[String]) -> Result<()> {
    if let Some(missing) = data.iter().find(|set| !set.exists()) {
        return Err(format!("{} does not exist: name a data set", missing.display()).into());
    }
    let sh = Shell::new()?;
    let data = data.iter().flat_map(|set| ["--data".as_ref(), set.as_os_str()]);
    let run = ["run", "--release", "-p", "throughline-eval", "--"];
    Ok(cmd!(sh, "cargo {run...} retrieval {data...} {rest...}").run()?)
}

/// Makes the table of token vectors. Paths among the passed arguments are meant from where the caller stands.
pub(crate) fn distill(rest: &[String]) -> Result<()> {
    let (sh, manifest) = (Shell::new()?, root().join(DISTILL));
    Ok(cmd!(sh, "cargo run --release --manifest-path {manifest} -- {rest...}").run()?)
}

/// Format, lints and tests of the program that makes the table, which is a workspace of its own. It is built where
/// the product is, whose dependencies it shares.
pub(crate) fn check_distill() -> Result<()> {
    let (sh, target) = (shell()?, target_dir()?);
    cmd!(sh, "cargo fmt --manifest-path {DISTILL} --check").run()?;
    let there = ["--manifest-path", DISTILL, "--target-dir"];
    cmd!(sh, "cargo clippy --all-targets {there...} {target} -- -D warnings").run()?;
    cmd!(sh, "cargo test {there...} {target}").run()?;
    Ok(())
}
