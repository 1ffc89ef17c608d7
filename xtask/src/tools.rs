//! Programs of Python and of npm that steps run: each set at the versions of its list, in a folder of its own that
//! is made once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;
use crate::proc::recreate;
use crate::services::run_tool;

const PYTHON_HINT: &str =
    "it needs python3, 3.10 or newer, with venv and pip (apt install python3-venv), and a network";
const NPM_HINT: &str = "it needs npm, which comes with Node.js (apt install npm), and a network";

/// The folder of programs of an environment with these packages and no others, as pip's list names them.
pub(crate) fn python(folder: &Path, packages: &str) -> Result<PathBuf> {
    let environment = folder.join(format!("python-{}", digest(&[packages])));
    let bin = environment.join("bin");
    once(&environment, || {
        run_tool(Command::new("python3").args(["-m", "venv"]).arg(&environment), PYTHON_HINT)?;
        let list = environment.join("requirements.txt");
        std::fs::write(&list, packages)?;
        let mut pip = Command::new(bin.join("python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        run_tool(pip.args(["--only-binary", ":all:", "--requirement"]).arg(&list), PYTHON_HINT)
    })?;
    Ok(bin)
}

/// A folder with the packages of a manifest, at the versions of its lock.
pub(crate) fn npm(folder: &Path, manifest: &str, lock: &str) -> Result<PathBuf> {
    let environment = folder.join(format!("npm-{}", digest(&[manifest, lock])));
    once(&environment, || {
        let found = Command::new("npm").arg("--version").stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return Err(format!("npm did not start: {NPM_HINT}").into());
        }
        std::fs::write(environment.join("package.json"), manifest)?;
        std::fs::write(environment.join("package-lock.json"), lock)?;
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
        run_tool(npm.current_dir(&environment), NPM_HINT)
    })?;
    Ok(environment)
}

/// Fills the folder, unless that was done to the end before.
fn once(folder: &Path, fill: impl FnOnce() -> Result<()>) -> Result<()> {
    let whole = folder.join("whole");
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
