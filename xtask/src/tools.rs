//! Programs of Python and of npm that steps run: each set at the versions of its list, in a folder of its own that
//! is made once.

use std::fs::File;
use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use crate::Result;
use crate::proc::{recreate, target_dir};
use crate::services::run_tool;

/// What the steps `mcp` and `clients` run, each at one version: the suite of MCP, the official clients, a mock of model
/// providers, and the Node.js that runs them.
const NPM: (&str, &str) =
    (include_str!("../../e2e/package.json"), include_str!("../../e2e/package-lock.json"));
const PYTHON: &str = include_str!("../../e2e/requirements.txt");

const PYTHON_HINT: &str =
    "it needs python3, 3.10 or newer, with venv and pip (apt install python3-venv), and a network";
const NPM_HINT: &str = "it needs npm, which comes with Node.js (apt install npm), and a network";

/// The folder of the programs of `e2e` in Python.
pub(crate) fn e2e_python() -> Result<PathBuf> {
    python(&e2e_folder()?, PYTHON)
}

/// The folder with the packages of `e2e` from npm.
pub(crate) fn e2e_npm() -> Result<PathBuf> {
    npm(&e2e_folder()?, NPM.0, NPM.1)
}

fn e2e_folder() -> Result<PathBuf> {
    let folder = target_dir()?.join("e2e");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The folder of programs of an environment with these packages and no others, as pip's list names them.
pub(crate) fn python(folder: &Path, packages: &str) -> Result<PathBuf> {
    let environment = folder.join(format!("python-{}", digest(&[packages])));
    let bin = environment.join("bin");
    once(&environment, || {
        let (sh, python) = (Shell::new()?, bin.join("python"));
        run_tool(cmd!(sh, "python3 -m venv {environment}"), PYTHON_HINT)?;
        let list = environment.join("requirements.txt");
        std::fs::write(&list, packages)?;
        // What is run is compiled when it is: most of it never is.
        let options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"];
        let only = ["--only-binary", ":all:", "--requirement"];
        run_tool(cmd!(sh, "{python} -m pip install {options...} {only...} {list}"), PYTHON_HINT)
    })?;
    Ok(bin)
}

/// A folder with the packages of a manifest, at the versions of its lock.
pub(crate) fn npm(folder: &Path, manifest: &str, lock: &str) -> Result<PathBuf> {
    let environment = folder.join(format!("npm-{}", digest(&[manifest, lock])));
    once(&environment, || {
        let sh = Shell::new()?;
        sh.change_dir(&environment);
        run_tool(cmd!(sh, "npm --version"), NPM_HINT)?;
        std::fs::write(environment.join("package.json"), manifest)?;
        std::fs::write(environment.join("package-lock.json"), lock)?;
        run_tool(cmd!(sh, "npm ci --no-audit --no-fund --loglevel=error"), NPM_HINT)
    })?;
    Ok(environment)
}

/// Fills the folder, unless that was done to the end before.
fn once(folder: &Path, fill: impl FnOnce() -> Result<()>) -> Result<()> {
    let whole = folder.join("whole");
    // Steps, and the fetching ahead of them, may want it at once.
    let lock = File::create(folder.with_extension("lock"))?;
    lock.lock()?;
    if !whole.exists() {
        eprintln!("fetching packages");
        recreate(folder)?;
        fill()?;
        std::fs::write(whole, "")?;
    }
    Ok(())
}

fn digest(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(blake3::hash(part.as_bytes()).as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_a_folder_of_its_own() {
        assert_eq!(digest(&["a", "b"]), digest(&["a", "b"]));
        assert_ne!(digest(&["a", "b"]), digest(&["ab"]));
        assert_ne!(digest(&["a", "b"]), digest(&["ab", ""]));
    }
}
