//! The four combinations of store and vector index on one data set: the same evidence recall.
//!
//! The data set is not in the repository, so a variable names it; without, the step says that it did not run.

use std::path::{Path, PathBuf};

use serde_json::Value;
use xshell::{Shell, cmd};

use crate::Result;
use crate::ci::{Outcome, passed};
use crate::proc::{shell, target_dir, throughline};
use crate::services::{Lease, psql};

/// The variable that names the data set.
const DATA: &str = "THROUGHLINE_EVAL_DATA";
const SKIPPED: &str = "THROUGHLINE_EVAL_DATA names no data set (docs/EVALUATION.md has the format)";
/// The role of the service, which row-level security binds.
const ROLE: &str = "throughline_eval";
/// The most by which two combinations may differ.
const POINT: f64 = 0.01;

/// What one combination reports.
#[derive(Debug, Clone, PartialEq)]
struct Measured {
    name: &'static str,
    recall: f64,
    p50: f64,
    p99: f64,
}

/// Evaluates every combination, prints a table, and passes when no two differ by more than a point.
pub(crate) fn recall() -> Result<Outcome> {
    let Some(data) = std::env::var_os(DATA).filter(|data| !data.is_empty()) else {
        return Ok(Outcome::Skipped(SKIPPED));
    };
    // What is named and not there is a mistake, not a reason to pass by.
    let data = std::path::absolute(PathBuf::from(data))?;
    if !data.exists() {
        return Err(format!("{DATA} names {}, which does not exist", data.display()).into());
    }
    let features =
        ["postgres", "qdrant", "redis"].map(|name| format!("throughline-engine/{name}")).join(",");
    let sh = shell()?;
    cmd!(
        sh,
        "cargo build --release -p throughline-server -p throughline-eval --features {features}"
    )
    .run()?;
    let servers = Lease::take()?;
    let server = |name: &str| {
        let found = servers.variables.iter().find(|(variable, _)| variable == name);
        found.map(|(_, url)| url.as_str()).ok_or_else(|| format!("{name} is not set"))
    };
    let postgres = Database::make(server("THROUGHLINE_TEST_POSTGRES")?)?;
    let qdrant = [
        ("THROUGHLINE_VECTOR_INDEX", "qdrant".to_owned()),
        ("THROUGHLINE_QDRANT__URL", server("THROUGHLINE_TEST_QDRANT")?.to_owned()),
        ("THROUGHLINE_QDRANT__PREFIX", format!("ci-full-{}", std::process::id())),
    ];
    let settings = postgres.settings();
    let combinations = [
        ("sqlite", Vec::new()),
        ("sqlite + qdrant", qdrant.to_vec()),
        ("postgres", settings.to_vec()),
        ("postgres + qdrant", [settings.as_slice(), &qdrant].concat()),
    ];
    let mut all = Vec::new();
    for (name, settings) in combinations {
        println!("evaluating {name}");
        all.push(evaluate(name, &settings, &data)?);
    }
    println!("\n{}", table(&all));
    Ok(passed(agree(&all)))
}

fn evaluate(
    name: &'static str,
    settings: &[(&'static str, String)],
    data: &Path,
) -> Result<Measured> {
    let sh = shell()?;
    // No configuration of the caller's either.
    sh.change_dir(target_dir()?);
    let command = throughline(&sh, "release")?.args(["eval", "retrieval", "--no-ablation"]);
    let command = command.args(["--json", "--data"]).arg(data);
    let report = command.envs(settings.iter().map(|(name, value)| (*name, value))).read()?;
    measured(name, &serde_json::from_str(&report)?)
}

fn measured(name: &'static str, report: &Value) -> Result<Measured> {
    let number = |pointer: &str| {
        let found = report.pointer(pointer).and_then(Value::as_f64);
        found.ok_or_else(|| format!("the report of {name} has no number {pointer}"))
    };
    Ok(Measured {
        name,
        recall: number("/evidence_recall")?,
        p50: number("/assembly_ms/p50")?,
        p99: number("/assembly_ms/p99")?,
    })
}

fn agree(all: &[Measured]) -> bool {
    let recalls = || all.iter().map(|one| one.recall);
    recalls().fold(f64::MIN, f64::max) - recalls().fold(f64::MAX, f64::min) <= POINT
}

fn table(all: &[Measured]) -> String {
    let mut lines =
        vec![format!("{:<18} {:>8} {:>10} {:>10}", "COMBINATION", "RECALL", "P50 MS", "P99 MS")];
    lines.extend(all.iter().map(|one| {
        let Measured { name, recall, p50, p99 } = one;
        format!("{name:<18} {recall:>8.4} {p50:>10.2} {p99:>10.2}")
    }));
    if !agree(all) {
        lines.push("Two combinations differ by more than a point of evidence recall.".to_owned());
    }
    lines.join("\n")
}

/// A database that ends with the evaluation.
#[derive(Debug)]
struct Database {
    /// The server's own, as its superuser.
    server: String,
    name: String,
}

impl Database {
    fn make(server: &str) -> Result<Self> {
        let database =
            Self { server: server.to_owned(), name: format!("tl_ci_full_{}", std::process::id()) };
        let name = &database.name;
        database.execute(&format!(
            "DO $$ BEGIN CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}';
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        ))?;
        database.execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
        database.execute(&format!("CREATE DATABASE {name}"))?;
        Ok(database)
    }

    /// As the service reaches it, and as its owner.
    fn settings(&self) -> [(&'static str, String); 3] {
        let (before, _) = self.server.rsplit_once('/').unwrap_or((&self.server, ""));
        let direct = format!("{before}/{}", self.name);
        let host = direct.split_once('@').map_or(direct.as_str(), |(_, host)| host);
        let url = format!("postgres://{ROLE}:{ROLE}@{host}");
        [
            ("THROUGHLINE_STORE", "postgres".to_owned()),
            ("THROUGHLINE_POSTGRES__URL", url),
            ("THROUGHLINE_POSTGRES__DIRECT_URL", direct),
        ]
    }

    fn execute(&self, statement: &str) -> Result<()> {
        let (sh, psql, server) = (Shell::new()?, psql()?, &self.server);
        let options = ["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"];
        let psql = cmd!(sh, "{psql} {options...} --dbname {server} --command {statement}").secret();
        let done = psql.ignore_status().output().map_err(|error| {
            format!("psql did not start: {error} (`cargo xtask services up` fetches one)")
        })?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).trim().to_owned().into());
        }
        Ok(())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        if let Err(error) = self.execute(&drop) {
            eprintln!("xtask: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(recall: f64) -> Measured {
        Measured { name: "sqlite", recall, p50: 1.0, p99: 2.0 }
    }

    #[test]
    fn a_difference_of_more_than_a_point_is_told() {
        assert!(agree(&[of(0.9473), of(0.9400), of(0.9480)]));
        assert!(!agree(&[of(0.9473), of(0.9480), of(0.9372)]));
        assert!(table(&[of(0.9), of(0.5)]).ends_with("evidence recall."));
        assert!(table(&[of(0.9)]).contains("0.9000       1.00       2.00"));
    }

    #[test]
    fn a_report_is_read_and_one_without_numbers_refused() {
        let report = json!({ "evidence_recall": 0.9, "assembly_ms": { "p50": 1.0, "p99": 2.0 } });
        assert_eq!(measured("sqlite", &report).unwrap(), of(0.9));
        let error = measured("sqlite", &json!({})).unwrap_err().to_string();
        assert!(error.contains("/evidence_recall"), "{error}");
    }

    #[test]
    fn the_service_has_a_role_of_its_own() {
        let server = "postgres://postgres:0a@127.0.0.1:5432/postgres".to_owned();
        // Not dropped: there is no server.
        let database = std::mem::ManuallyDrop::new(Database { server, name: "x".to_owned() });
        let [_, (_, url), (_, direct)] = database.settings();
        assert_eq!(url, format!("postgres://{ROLE}:{ROLE}@127.0.0.1:5432/x"));
        assert_eq!(direct, "postgres://postgres:0a@127.0.0.1:5432/x");
    }
}
