//! The official clients of MCP, in Python and TypeScript, use the binary as programs of others do: `e2e/mcp`.

use std::path::Path;

use xshell::cmd;

use super::TOOL_SETS;
use crate::Result;
use crate::proc::{binary, root, shell};
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
    // Modules are looked for from where a program is.
    for file in ["client.mjs", "calls.json", "reads.json"] {
        std::fs::copy(programs.join(file), npm.join(file))?;
    }
    let python = tools::python(folder, PACKAGES)?.join("python");
    let node = npm.join("node_modules").join(".bin").join("node");
    let clients = [(python, programs.join("client.py")), (node, npm.join("client.mjs"))];
    let (sh, binary, sets) = (shell()?, binary("debug")?, TOOL_SETS.join(","));
    let Served { ours, fixtures } = served;
    let mut good = true;
    for (program, client) in clients {
        let command = cmd!(sh, "{program} {client} --program {binary} --url {ours}");
        let command = command.args(["--fixtures", fixtures, "--tool-sets", &sets]);
        good &= command.run().inspect_err(|error| eprintln!("{error}")).is_ok();
    }
    Ok(good)
}
