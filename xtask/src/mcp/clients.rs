//! The official clients of MCP, in Python and TypeScript, use the binary as programs of others do: `e2e/mcp`.

use std::path::Path;

use xshell::cmd;

use super::TOOL_SETS;
use crate::Result;
use crate::proc::{all_succeed, binary, root, shell};
use crate::tools;

/// Runs both programs; true when all that they tried did what it should. Each has a service of its own beside the one
/// with the suite's tools: what one client changes is never what the other reads.
pub(super) fn run(folder: &Path, npm: &Path, fixtures: &str) -> Result<bool> {
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
    let (mut services, mut commands) = (Vec::new(), Vec::new());
    for (name, program, client) in clients {
        let service = super::start(&folder.join(format!("data-{name}")), &[])?;
        let url = format!("{}/mcp", service.base);
        let command = cmd!(sh, "{program} {client} --program {binary} --url {url}");
        let command = command.args(["--fixtures", fixtures, "--tool-sets", &sets]);
        commands.push((name.to_owned(), command.into()));
        services.push(service);
    }
    let mut good = all_succeed(commands)?;
    for service in services {
        good &= !service.panicked()?;
    }
    Ok(good)
}
