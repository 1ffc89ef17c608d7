//! Packages of a release of Debian that is not this machine's.
//!
//! apt-get reads the release's signed index into a folder of ours, from the mirror that this machine uses
//! already, and checks it against the keys that this machine trusts already. Nothing of the system changes.

use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::fetch::{debian_packages_by, run};
use crate::Result;
use crate::proc::recreate;

/// Why it may fail.
const HINT: &str =
    "it needs apt-get with an index of Debian (run `apt-get update` as root) and a network";

/// Debian's keys, where its package of them is installed.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A release whose index was read.
#[derive(Debug)]
pub(super) struct Suite {
    folder: PathBuf,
}

impl Suite {
    /// Reads the index of a release, within `folder`.
    pub(super) fn fetch(name: &str, folder: &Path) -> Result<Self> {
        let folder = folder.join("suite");
        recreate(&folder)?;
        for inner in ["lists/partial", "archives/partial"] {
            std::fs::create_dir_all(folder.join(inner))?;
        }
        let which = ["$(REPO_URI)", "Created-By: Packages", "Origin: Debian", "Label: Debian"];
        let sh = Shell::new()?;
        let targets = cmd!(sh, "apt-get indextargets --format {which...}").read();
        let targets = targets.map_err(|_| format!("apt-get failed\n({HINT})"))?;
        let mirror = targets.lines().next();
        let mirror =
            mirror.ok_or_else(|| format!("apt-get has no Debian mirror configured\n({HINT})"))?;
        // Newer systems trust no key for every source.
        let keys =
            if Path::new(KEYS).exists() { format!("[signed-by={KEYS}] ") } else { String::new() };
        std::fs::write(folder.join("sources.list"), format!("deb {keys}{mirror} {name} main\n"))?;
        std::fs::write(folder.join("status"), "")?;
        std::fs::write(folder.join("apt.conf"), configuration(&folder))?;
        let suite = Self { folder };
        let sh = suite.shell()?;
        run(cmd!(sh, "apt-get update --quiet"), HINT)?;
        Ok(suite)
    }

    /// Downloads the packages and unpacks them into `folder`; the index is not needed any more.
    pub(super) fn unpack(self, packages: &[&str], folder: &Path) -> Result<()> {
        debian_packages_by(&self.shell()?, packages, folder)?;
        std::fs::remove_dir_all(folder.join("download"))?;
        Ok(std::fs::remove_dir_all(self.folder)?)
    }

    /// A shell whose apt-get reads this index.
    fn shell(&self) -> Result<Shell> {
        let sh = Shell::new()?;
        sh.set_var("APT_CONFIG", self.folder.join("apt.conf"));
        Ok(sh)
    }
}

/// Read beside the system's own configuration, which may name a proxy.
fn configuration(folder: &Path) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    let settings = [
        ("Dir::Etc::sourcelist", path("sources.list")),
        ("Dir::Etc::sourceparts", "-".to_owned()),
        ("Dir::State::lists", path("lists")),
        // What is installed here has no part in it.
        ("Dir::State::status", path("status")),
        ("Dir::Cache::archives", path("archives")),
        ("Dir::Cache::pkgcache", String::new()),
        ("Dir::Cache::srcpkgcache", String::new()),
        ("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false".to_owned()),
        ("Acquire::Languages", "none".to_owned()),
        // The folder is ours alone.
        ("APT::Sandbox::User", "root".to_owned()),
    ];
    settings.map(|(name, value)| format!("{name} \"{value}\";\n")).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_apt_writes_is_in_the_folder() {
        let text = configuration(Path::new("/tmp/x"));
        for name in ["State::lists", "State::status", "Cache::archives", "Etc::sourcelist"] {
            let line = text.lines().find(|line| line.contains(name));
            assert!(line.is_some_and(|line| line.contains("\"/tmp/x/")), "{name}");
        }
    }
}
