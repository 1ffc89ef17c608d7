//! MCP as others see it: the official conformance suite, of both revisions, and the official clients, against the
//! binary.
//!
//! The suite asks for tools of its own, which a build with `mcp-fixtures` serves beside ours. It needs a newer Node.js
//! than many machines have, which comes with it.

mod clients;
mod judge;
pub(crate) mod start;

use std::path::Path;

use xshell::cmd;

use self::judge::{Expected, Ran, findings, never_ran};
use crate::Result;
use crate::proc::{binary, recreate, shell, target_dir};
use crate::service::Service;
use crate::tools;

const EXPECTED: &str = include_str!("../../mcp/expected-failures.yml");
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Every set of tools: all that is ours.
const TOOL_SETS: [&str; 6] = ["memory", "sessions", "documents", "persona", "files", "admin"];

/// Runs everything; true when nothing was found.
pub(crate) fn check() -> Result<bool> {
    let folder = target_dir()?.join("mcp");
    std::fs::create_dir_all(&folder)?;
    let programs = tools::e2e_npm()?;
    crate::test::build()?;
    let fixtures = start(&folder.join("data-fixtures"), &["--mcp-fixtures"])?;
    let fixtures_at = format!("{}/mcp", fixtures.base);
    let conformant = conformance(&folder, &programs, &fixtures_at)?;
    let understood = clients::run(&folder, &programs, &fixtures_at)?;
    Ok(conformant && understood && !fixtures.panicked()?)
}

/// A service of all tools, with its data in the folder.
fn start(data: &Path, flags: &[&str]) -> Result<Service> {
    recreate(data)?;
    let sets = format!("mcp.tool_sets={TOOL_SETS:?}");
    Service::start(&binary("debug")?, data, &[flags, &["--set", &sets]].concat())
}

/// Runs the suite for each revision.
fn conformance(folder: &Path, programs: &Path, url: &str) -> Result<bool> {
    let expected = Expected::read(EXPECTED)?;
    let list = folder.join("expected-failures.yml");
    std::fs::write(&list, EXPECTED)?;
    let sh = shell()?;
    let bin = programs.join("node_modules").join(".bin");
    let (node, suite) = (bin.join("node"), bin.join("conformance"));
    let mut good = true;
    let mut all = Vec::new();
    for revision in REVISIONS {
        let results = folder.join(revision);
        recreate(&results)?;
        let command = cmd!(sh, "{node} {suite} server --url {url} --requirements {revision}");
        let command = command.arg("--expected-failures").arg(&list).arg("-o").arg(&results);
        let told = command.ignore_status().output()?;
        let output = results.join("output.txt");
        std::fs::write(&output, [told.stdout.as_slice(), &told.stderr].concat())?;

        let ran = Ran::all(&results)?;
        let found = findings(&expected, &ran);
        let checks: usize = ran.iter().map(|scenario| scenario.checks).sum();
        let failed = ran.iter().filter(|scenario| !scenario.failed.is_empty()).count();
        let (scenarios, passed) = (ran.len(), ran.len() - failed);
        println!("{revision}: {passed} of {scenarios} scenarios pass, with {checks} checks");
        for finding in &found {
            println!("  {finding}");
        }
        if !told.status.success() || !found.is_empty() || ran.is_empty() {
            println!("  the suite ended with {}, and said: {}", told.status, output.display());
            good = false;
        }
        all.extend(ran);
    }
    for finding in never_ran(&expected, &all) {
        println!("  {finding}");
        good = false;
    }
    Ok(good)
}
