//! The official clients of MCP, in Python and TypeScript, use the binary as programs of others do: `e2e/mcp`.

use std::path::Path;
use std::process::Command;

use super::TOOL_SETS;
use crate::Result;
use crate::proc::{root, throughline};
use crate::tools;

/// The Python client and all that it needs, each at one version.
const PACKAGES: &str = include_str!("../../../e2e/mcp/requirements.txt");

/// Where the clients find what they use.
#[derive(Debug)]
pub(super) struct Served {
    /// The address of what is ours.
    pub(super) ours: String,
    /// The address of a service that has the suite's tools, too.
    pub(super) fixtures: String,
}

/// Runs both programs; true when all that they tried did what it should.
pub(super) fn run(folder: &Path, npm: &Path, served: &Served) -> Result<bool> {
    let programs = root().join("e2e").join("mcp");
    let python = tools::python(folder, PACKAGES)?.join("python");
    let mut in_python = Command::new(python);
    in_python.arg(programs.join("client.py"));
    // Modules are looked for from where a program is.
    for file in ["client.mjs", "calls.json", "reads.json"] {
        std::fs::copy(programs.join(file), npm.join(file))?;
    }
    let mut in_typescript = Command::new(npm.join("node_modules").join(".bin").join("node"));
    in_typescript.arg(npm.join("client.mjs"));

    let binary = throughline("debug")?;
    let mut good = true;
    for client in [&mut in_python, &mut in_typescript] {
        client.arg("--program").arg(binary.get_program());
        client.args(["--url", &served.ours, "--fixtures", &served.fixtures]);
        client.args(["--tool-sets", &TOOL_SETS.join(",")]);
        let status = client.status().map_err(|error| format!("a client did not start: {error}"))?;
        good &= status.success();
    }
    Ok(good)
}
