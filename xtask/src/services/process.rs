//! Processes that outlive this one: start, recognise, await, end.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use xshell::{Shell, cmd};

use super::state::Server;
use crate::Result;

/// For a server that starts or ends. On a loaded machine that takes seconds.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// Lines of the log that an error shows.
const TAIL: usize = 20;

/// Variables of these names would change what a server or its tools do.
const FOREIGN: &[&str] = &["PG", "QDRANT__"];

/// What is known of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Up,
    /// It runs and does not answer.
    Silent,
    Down,
}

impl Life {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Silent => "no answer",
            Self::Down => "down",
        }
    }
}

/// A program that reads none of the caller's settings.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if FOREIGN.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// As [`command`]; the program gets a session of its own, so that no terminal takes it along.
pub(super) fn session(program: impl AsRef<OsStr>) -> Command {
    // `setsid` becomes the program: the number of the process stays.
    let mut command = command("setsid");
    command.arg(program);
    command
}

/// Standard output of a program that must succeed, where xshell cannot start it: it runs as another user.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program} did not start: {error}"))?;
    if !output.status.success() {
        return Err(
            format!("{program} failed:\n{}", String::from_utf8_lossy(&output.stderr)).into()
        );
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Starts a session; what it prints goes to the log.
pub(super) fn start(command: &mut Command, log: &Path) -> Result<u32> {
    let log = File::create(log)?;
    command.stdout(log.try_clone()?).stderr(log);
    let child = command.spawn().map_err(|error| format!("setsid did not start: {error}"))?;
    Ok(child.id())
}

/// Whether the process of this number is still the server, and not another that got the number.
pub(super) fn is_ours(server: &Server) -> bool {
    let Server { pid, folder, .. } = server;
    // Arguments are readable for everyone, but Redis overwrites its own; where a process stands
    // is not, but Redis is of our own user. What is dead and not yet waited for shows neither.
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    names(&arguments, folder)
        || std::fs::read_link(format!("/proc/{pid}/cwd"))
            .is_ok_and(|place| names(place.as_os_str().as_encoded_bytes(), folder))
}

/// Whether an argument (they end in zero bytes) names the folder or something in it.
fn names(arguments: &[u8], folder: &Path) -> bool {
    let folder = folder.as_os_str().as_encoded_bytes();
    !folder.is_empty() && arguments.windows(folder.len()).any(|window| window == folder)
}

/// Waits until the server answers; an error shows the end of its log.
pub(super) fn wait_for(server: &Server, log: &Path, answers: impl Fn() -> bool) -> Result<()> {
    let reached = poll(LIMIT, || answers() || !is_ours(server));
    if reached && is_ours(server) {
        return Ok(());
    }
    let what = if reached { "exited during startup" } else { "does not respond" };
    let text = std::fs::read(log).unwrap_or_default();
    let text = tail(&String::from_utf8_lossy(&text), TAIL);
    Err(format!("{what}; its log ends with:\n{text}").into())
}

/// Ends the server if it runs.
pub(super) fn stop(server: &Server, signal: &str) -> Result<()> {
    for signal in [signal, "KILL"] {
        if !is_ours(server) {
            return Ok(());
        }
        let pid = server.pid.to_string();
        // Part of every shell; the program of that name is not everywhere.
        let (sh, kill) = (Shell::new()?, "kill -s \"$1\" \"$2\"");
        if let Err(error) = cmd!(sh, "sh -c {kill} sh {signal} {pid}").read()
            && is_ours(server)
        {
            return Err(error.into());
        }
        if poll(LIMIT, || !is_ours(server)) {
            return Ok(());
        }
    }
    Err(format!("{} (process {}) does not exit", server.name, server.pid).into())
}

/// Whether it became true within the limit.
pub(super) fn poll(limit: Duration, is_true: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while !is_true() {
        if started.elapsed() > limit {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

fn tail(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_process_is_known_by_its_folder() {
        let folder = Path::new("/tmp/throughline-services-1/postgres");
        let ours = b"bin/postgres\0-D\0/tmp/throughline-services-1/postgres/data\0";
        assert!(names(ours, folder));
        assert!(names(b"/tmp/throughline-services-1/postgres (deleted)", folder));
        for other in [b"".as_slice(), b"vim\0", b"-D\0/tmp/throughline-services-2/postgres\0"] {
            assert!(!names(other, folder));
        }
        assert!(!names(ours, Path::new("")), "no folder is nobody's");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_session_runs_under_the_number_it_was_started_with_and_ends() {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        let folder = folder.join(format!("xtask-process-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let log = folder.join("log");
        let mut command = session("sh");
        command.args(["-c", "echo started; exec sleep 600"]).current_dir(&folder);
        let pid = start(&mut command, &log).unwrap();
        let server = Server {
            name: "sh".to_owned(),
            version: String::new(),
            pid,
            url: String::new(),
            folder: folder.clone(),
            ports: BTreeMap::new(),
        };
        let logged = || std::fs::read_to_string(&log).is_ok_and(|text| text == "started\n");
        wait_for(&server, &log, logged).unwrap();
        stop(&server, "TERM").unwrap();
        assert!(!is_ours(&server));
        let error = wait_for(&server, &log, || false).unwrap_err().to_string();
        assert_eq!(error, "exited during startup; its log ends with:\nstarted");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let server = Server {
            name: "init".to_owned(),
            version: String::new(),
            pid: std::process::id(),
            url: String::new(),
            folder: PathBuf::from("/nonexistent/folder"),
            ports: BTreeMap::new(),
        };
        stop(&server, "KILL").unwrap();
    }

    #[test]
    fn the_tail_is_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
        assert_eq!(tail("", 2), "");
    }
}
