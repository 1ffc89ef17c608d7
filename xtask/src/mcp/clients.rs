//! The official clients of MCP, in Python and TypeScript, use the binary as programs of others do: `e2e/mcp`.

use std::path::Path;

use xshell::cmd;

use super::TOOL_SETS;
use crate::Result;
use crate::proc::{all_succeed, binary, root, shell};
use crate::tools;

/// Where the clients find what they use.
#[derive(Debug)]
pub(super) struct Served {
    /// The address of what is ours.
    pub(super) ours: String,
    /// The address of a service that has the suite's tools, too.
    pub(super) fixtures: String,
}

/// Runs both programs; true when all that they tried did what it should.
pub(super) fn run(npm: &Path, served: &Served) -> Result<bool> {
    let programs = root().join("e2e").join("mcp");
    // Modules are looked for from where a program is.
    for file in ["client.mjs", "calls.json", "reads.json"] {
        std::fs::copy(programs.join(file), npm.join(file))?;
    }
    let python = tools::e2e_python()?.join("python");
    let node = npm.join("node_modules").join(".bin").join("node");
    let clients =
        [("python", python, programs.join("client.py")), ("node", node, npm.join("client.mjs"))];
    let (sh, binary, sets) = (shell()?, binary("debug")?, TOOL_SETS.join(","));
    let Served { ours, fixtures } = served;
    let clients = clients.map(|(name, program, client)| {
        let command = cmd!(sh, "{program} {client} --program {binary} --url {ours}");
        let command = command.args(["--fixtures", fixtures, "--tool-sets", &sets]);
        (name.to_owned(), command.into())
    });
    all_succeed(clients.into())
}
