//! A server of a test's own, for what must not be done to the one that others use.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, cmd};
use tempfile::TempDir;

use crate::support::{driver, url};

/// It ends with the test.
pub(crate) struct Own {
    program: PathBuf,
    arguments: Vec<String>,
    port: u16,
    folder: TempDir,
    child: Option<Child>,
}

impl Own {
    /// Starts the program that the server of the environment runs, with these settings more.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let mut info = driver(&url()).await;
        let info: String = cmd("INFO").arg("server").query_async(&mut info).await.unwrap();
        let program = info.lines().find_map(|line| line.trim_end().strip_prefix("executable:"));
        let program = PathBuf::from(program.unwrap_or_default());
        assert!(
            program.exists(),
            "the program of the server is not on this machine, and these tests start another: run \
             `cargo xtask services up` and set what it prints"
        );
        // The port could be taken before the server has it; then it says so, and the test fails.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let folder = TempDir::new().unwrap();
        let mut own = Self { program, arguments, port, folder, child: None };
        own.up().await;
        own
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Starts it, and waits until it answers, if only that it wants a password.
    pub(crate) async fn up(&mut self) {
        let mut command = Command::new(&self.program);
        if let Some(libraries) = libraries(&self.program) {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string()]);
        command.args(["--save", "", "--dir"]).arg(self.folder.path());
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        let begun = Instant::now();
        loop {
            let connection = Client::open(self.url()).unwrap();
            if let Ok(mut connection) = connection.get_multiplexed_async_connection().await {
                let pong = cmd("PING").query_async::<String>(&mut connection).await;
                if !pong.is_err_and(|error| error.is_io_error()) {
                    return;
                }
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "the server does not start");
            tokio::time::sleep(Duration::from_millis(20)).await; // tidy: sleep: between two tries
        }
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn down(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Sends it a command.
    pub(crate) async fn command(&self, words: &[&str]) {
        self.command_as("", words).await;
    }

    /// Sends it a command under a login, such as `user:password@`.
    pub(crate) async fn command_as(&self, login: &str, words: &[&str]) {
        let url = self.url().replace("redis://", &format!("redis://{login}"));
        let mut command = cmd(words[0]);
        command.arg(&words[1..]);
        let _: redis::Value = command.query_async(&mut driver(&url).await).await.unwrap();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program that was unpacked beside its libraries does not find them by itself.
fn libraries(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?.parent()?.join("lib");
    let mut folders = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    folders.find(|path| path.to_string_lossy().ends_with("-linux-gnu"))
}
