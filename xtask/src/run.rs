//! `bench`, `eval` and `distill`: programs of other crates, started with the right profile and paths.

use std::path::PathBuf;
use std::process::Command;

use crate::Result;
use crate::cli::{Http, Mode};
use crate::proc::{cargo, succeeds, target_dir};
use crate::services::Lease;

/// Runs the engine's benchmark.
pub(crate) fn bench(quick: bool, out: Option<PathBuf>) -> Result<bool> {
    let mut command = cargo(["bench", "-p", "throughline-server", "--bench", "engine", "--"]);
    if quick {
        command.arg("--quick");
    }
    measured(command, out, "engine.json")
}

/// Runs the benchmark of all combinations of stores, on servers that are up or brought up for it.
pub(crate) fn bench_stores(
    quick: bool,
    out: Option<PathBuf>,
    messages: Option<usize>,
) -> Result<bool> {
    let servers = Lease::take()?;
    let mut command = cargo(["bench", "-p", "throughline-server", "--bench", "engine"]);
    command.args(["--features", "live-tests", "--", "--only", "stores"]);
    if quick {
        command.arg("--quick");
    }
    if let Some(messages) = messages {
        command.arg("--messages").arg(messages.to_string());
    }
    command.envs(servers.variables.iter().map(|(name, value)| (name, value)));
    measured(command, out, "stores.json")
}

/// Puts the service under load, where a mode needs them on servers that are up or brought up for it; true
/// when nothing was lost or doubled.
pub(crate) fn bench_http(load: &Http) -> Result<bool> {
    let mut command = cargo(["bench", "-p", "throughline-server", "--bench", "engine"]);
    let needs_services = load.mode.is_none_or(Mode::needs_services);
    // To be held as long as the load lasts.
    let servers = if needs_services { Some(Lease::take()?) } else { None };
    if let Some(servers) = &servers {
        command.args(["--features", "live-tests"]);
        command.envs(servers.variables.iter().map(|(name, value)| (name, value)));
    }
    command.args(["--", "--only", "http", "--seconds", &load.seconds.to_string()]);
    command.args(["--clients", &load.clients.to_string()]);
    if let Some(mode) = load.mode {
        command.args(["--mode", mode.name()]);
    }
    measured(command, load.out.clone(), "http.json")
}

fn measured(mut command: Command, out: Option<PathBuf>, name: &str) -> Result<bool> {
    let out = match out {
        Some(out) => std::path::absolute(out)?,
        None => target_dir()?.join("bench").join(name),
    };
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let ok = succeeds(command.arg("--json").arg(&out))?;
    if ok {
        println!("Numbers as JSON: {}", out.display());
    }
    Ok(ok)
}

/// Evaluates retrieval on data sets.
pub(crate) fn eval(data: &[PathBuf], rest: &[String]) -> Result<bool> {
    let mut command = cargo(["run", "--release", "-p", "throughline-eval", "--"]);
    // Paths among the passed arguments are meant from where the caller stands.
    command.current_dir(std::env::current_dir()?);
    command.arg("retrieval");
    for set in data {
        let set = std::path::absolute(set)?;
        if !set.exists() {
            return Err(format!("{} does not exist: name a data set", set.display()).into());
        }
        command.arg("--data").arg(set);
    }
    command.args(rest);
    succeeds(&mut command)
}

/// Makes the table of token vectors.
pub(crate) fn distill(rest: &[String]) -> Result<bool> {
    let package = ["-p", "throughline-distill", "--features", "teacher"];
    let mut command = cargo(["run", "--release"]);
    // Paths among the passed arguments are meant from where the caller stands.
    command.args(package).arg("--").args(rest).current_dir(std::env::current_dir()?);
    succeeds(&mut command)
}
