//! Starting cargo and other programs.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use xshell::{Cmd, Shell, cmd};

use crate::Result;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// A shell in the root of the repository.
pub(crate) fn shell() -> Result<Shell> {
    let sh = Shell::new()?;
    sh.change_dir(root());
    Ok(sh)
}

/// Where cargo builds: `CARGO_TARGET_DIR` and cargo's configuration are honoured.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let metadata = cargo_metadata()?;
    let dir = metadata["target_directory"].as_str().ok_or("cargo metadata has no target dir")?;
    Ok(PathBuf::from(dir))
}

/// The path of the binary that was built in a profile's folder.
pub(crate) fn binary(profile: &str) -> Result<PathBuf> {
    let name = format!("throughline{}", std::env::consts::EXE_SUFFIX);
    Ok(target_dir()?.join(profile).join(name))
}

/// The binary that was built in a profile's folder, without the caller's settings.
pub(crate) fn throughline<'sh>(sh: &'sh Shell, profile: &str) -> Result<Cmd<'sh>> {
    let is_ours = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("THROUGHLINE_");
    let settings = std::env::vars_os().map(|(name, _)| name).filter(is_ours);
    Ok(settings.fold(sh.cmd(binary(profile)?), Cmd::env_remove))
}

/// Makes the folder anew, empty.
pub(crate) fn recreate(dir: &Path) -> Result<()> {
    let sh = Shell::new()?;
    sh.remove_path(dir)?;
    sh.create_dir(dir)?;
    Ok(())
}

/// `cargo metadata` of the workspace's own crates.
pub(crate) fn cargo_metadata() -> Result<serde_json::Value> {
    let sh = shell()?;
    let text = cmd!(sh, "cargo metadata --no-deps --format-version 1").read()?;
    Ok(serde_json::from_str(&text)?)
}

/// Whether cargo has this subcommand.
pub(crate) fn has_cargo_command(name: &str) -> bool {
    shell().is_ok_and(|sh| cmd!(sh, "cargo {name} --version").ignore_stderr().read().is_ok())
}

/// Prints the command, runs it, and tells whether it succeeded. What it prints passes through, and is also
/// returned without colour.
pub(crate) fn succeeds_captured(cmd: Cmd<'_>) -> Result<(bool, String)> {
    eprintln!("$ {cmd}");
    let failed = format!("`{cmd}` did not start");
    let mut command = Command::from(cmd);
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        // A pipe would turn colour off, though what passes through ends on a terminal.
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{failed}: {error}"))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let text = std::thread::scope(|scope| {
        let out = scope.spawn(|| stdout.map_or(String::new(), |pipe| tee(pipe, std::io::stdout())));
        let err = scope.spawn(|| stderr.map_or(String::new(), |pipe| tee(pipe, std::io::stderr())));
        [out, err].map(|thread| thread.join().unwrap_or_default()).concat()
    });
    Ok((child.wait()?.success(), text))
}

fn tee(from: impl Read, mut to: impl Write) -> String {
    let mut kept = String::new();
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // A closed terminal is no reason to lose the tests' result.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        kept.push_str(&without_colour(&String::from_utf8_lossy(&line)));
        line.clear();
    }
    if !kept.is_empty() && !kept.ends_with('\n') {
        kept.push('\n');
    }
    kept
}

/// The text without terminal escape sequences of the form `ESC [ … letter`.
pub(crate) fn without_colour(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\u{1b}' {
            plain.push(char);
            continue;
        }
        if chars.next() == Some('[') {
            let _ = chars.find(char::is_ascii_alphabetic);
        }
    }
    plain
}

/// `1 min 05 s` or `3.2 s`.
pub(crate) fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_removed() {
        assert_eq!(without_colour("\u{1b}[32;1m ok\u{1b}[0m 5"), " ok 5");
    }

    #[test]
    fn durations_are_readable() {
        assert_eq!(human(Duration::from_millis(3_240)), "3.2 s");
        assert_eq!(human(Duration::from_secs(65)), "1 min 05 s");
    }
}
