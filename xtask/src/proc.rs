//! Starting cargo and other programs.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use xshell::{Cmd, Shell, cmd};

use crate::Result;

/// Longest that a program in the background may take to start: models are read from disks.
const STARTUP: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(50);
/// What the service reads of providers where its settings are silent.
const PROVIDER_KEYS: [&str; 3] = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY"];

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
    Ok(unconfigured(sh, &binary(profile)?))
}

/// A binary without the caller's settings.
pub(crate) fn unconfigured<'sh>(sh: &'sh Shell, binary: &Path) -> Cmd<'sh> {
    let is_setting = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        name.starts_with("THROUGHLINE_") || PROVIDER_KEYS.contains(&&*name)
    };
    let settings = std::env::vars_os().map(|(name, _)| name).filter(is_setting);
    settings.fold(sh.cmd(binary), Cmd::env_remove)
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

/// Runs programs side by side, and prints what each one said when all have ended; true when all succeeded.
pub(crate) fn all_succeed(programs: Vec<(String, Command)>) -> Result<bool> {
    let ended: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = programs
            .into_iter()
            .map(|(name, mut command)| (name, scope.spawn(move || command.output())))
            .collect();
        running.into_iter().map(|(name, thread)| (name, thread.join())).collect()
    });
    let mut good = true;
    for (name, ended) in ended {
        println!("\n-- {name}");
        let output = ended.map_err(|_| format!("{name}: a thread panicked"))?;
        let output = output.map_err(|error| format!("{name} did not start: {error}"))?;
        std::io::stdout().write_all(&output.stdout)?;
        std::io::stderr().write_all(&output.stderr)?;
        if !output.status.success() {
            eprintln!("{name} failed: {}", output.status);
            good = false;
        }
    }
    Ok(good)
}

/// A program in the background, with its output in a file. It ends with this value.
#[derive(Debug)]
pub(crate) struct Background {
    child: Child,
    log: PathBuf,
}

impl Background {
    pub(crate) fn start(mut command: Command, log: PathBuf) -> Result<Self> {
        let file = std::fs::File::create(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().map_err(|error| {
            format!("{} did not start: {error}", command.get_program().display())
        })?;
        Ok(Self { child, log })
    }

    /// Waits until the program prints `text`, and returns the rest of that line.
    pub(crate) fn wait_for(&mut self, text: &str) -> Result<String> {
        let until = Instant::now() + STARTUP;
        loop {
            let ended = self.child.try_wait()?;
            let said = String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned();
            let line = said.split_inclusive('\n').find(|line| line.contains(text));
            if let Some((_, rest)) = line.and_then(|line| line.strip_suffix('\n')?.split_once(text))
            {
                return Ok(rest.trim().to_owned());
            }
            if ended.is_some() || Instant::now() > until {
                return Err(format!("it did not print `{text}`, but:\n{said}").into());
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // It is this process's own child; one that ended already is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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

    #[cfg(unix)]
    #[test]
    fn background_program_is_waited_for_by_what_it_prints() {
        let log = std::env::temp_dir().join(format!("xtask-background-{}", std::process::id()));
        let start = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Background::start(command, log.clone()).unwrap()
        };
        let mut program = start("echo starts; echo 'serves at here'; exec sleep 600");
        assert_eq!(program.wait_for("serves at ").unwrap(), "here");
        drop(program);
        let error = start("echo broken").wait_for("serves at ").unwrap_err().to_string();
        assert!(error.contains("`serves at `") && error.contains("broken"), "{error}");
        std::fs::remove_file(log).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn programs_side_by_side_all_have_to_succeed() {
        let program = |name: &str| (name.to_owned(), Command::new(name));
        assert!(all_succeed(vec![program("true"), program("true")]).unwrap());
        assert!(!all_succeed(vec![program("false"), program("true")]).unwrap());
    }

    #[test]
    fn durations_are_readable() {
        assert_eq!(human(Duration::from_millis(3_240)), "3.2 s");
        assert_eq!(human(Duration::from_secs(65)), "1 min 05 s");
    }
}
