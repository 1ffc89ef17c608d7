//! The service of a step, with its data in a folder of the step's.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use xshell::{Cmd, Shell};

use crate::Result;
use crate::proc::{shell, unconfigured};

/// A command of the binary that answers in JSON, with its data in the folder.
fn throughline<'sh>(sh: &'sh Shell, binary: &Path, data: &Path, args: &[&str]) -> Cmd<'sh> {
    sh.change_dir(data);
    unconfigured(sh, binary).args(args).arg("--json").arg("--data-dir").arg(data)
}

/// Makes a key in the service's data: of a tenant's user, or of any that a request names.
pub(crate) fn make_key(
    binary: &Path,
    data: &Path,
    tenant: &str,
    user: Option<&str>,
) -> Result<String> {
    let user = user.map_or(vec!["--any-user"], |user| vec!["--user", user]);
    let permissions = ["--permissions", "read,write,chat,admin"];
    let args = [&["keys", "create", "--tenant", tenant], &user[..], &permissions].concat();
    let sh = shell()?;
    let made: serde_json::Value =
        serde_json::from_str(&throughline(&sh, binary, data, &args).read()?)?;
    Ok(made["key"].as_str().ok_or("no key was made")?.to_owned())
}

/// A running service. It ends with this value.
#[derive(Debug)]
pub(crate) struct Service {
    child: Child,
    log: PathBuf,
    /// Where it listens.
    pub(crate) base: String,
}

impl Service {
    /// Serves on a free port of the loopback address, with these flags.
    pub(crate) fn start(binary: &Path, data: &Path, flags: &[&str]) -> Result<Self> {
        let sh = shell()?;
        Self::spawn(Self::command(&sh, binary, data, flags).into(), data)
    }

    /// The same, where it may open only so many files.
    pub(crate) fn start_with_files(
        binary: &Path,
        data: &Path,
        flags: &[&str],
        files: u32,
    ) -> Result<Self> {
        let sh = shell()?;
        let serve = Command::from(Self::command(&sh, binary, data, flags));
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("ulimit -n {files}; exec \"$0\" \"$@\""));
        command.arg(serve.get_program()).args(serve.get_args()).current_dir(data);
        for (name, value) in serve.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Self::spawn(command, data)
    }

    fn command<'sh>(sh: &'sh Shell, binary: &Path, data: &Path, flags: &[&str]) -> Cmd<'sh> {
        let args = ["serve", "--listen", "127.0.0.1:0", "--set", "http.requests_per_minute=0"];
        throughline(sh, binary, data, &args).args(flags)
    }

    fn spawn(mut command: Command, data: &Path) -> Result<Self> {
        let log = data.join("log");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(std::fs::File::create(&log)?).spawn()?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let mut service = Self { child, log, base: String::new() };
        let told: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let base = told["listening"].as_str().ok_or_else(|| {
            let log = std::fs::read_to_string(&service.log).unwrap_or_default();
            format!("the service does not serve: {log}")
        })?;
        service.base = base.to_owned();
        Ok(service)
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it panicked so far; says where.
    pub(crate) fn panicked(&self) -> Result<bool> {
        let log = std::fs::read_to_string(&self.log)?;
        let panicked = log.lines().find(|line| line.contains("panicked"));
        if let Some(line) = panicked {
            eprintln!("the service panicked: {line}");
        }
        Ok(panicked.is_some())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It is this process's own child; one that ended already is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
