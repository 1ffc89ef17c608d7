//! A Postgres of a test's own, of the program that the server of the environment runs.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tempfile::TempDir;

use super::{execute, named};

/// For a server that was killed to recover.
const PATIENCE: Duration = Duration::from_secs(60);
/// User and group `nobody` of every Linux: Postgres refuses to run as root.
const NOBODY: u32 = 65_534;

/// It ends with the test.
pub(crate) struct Own {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Own {
    /// Makes an empty one, and starts it.
    pub(crate) async fn start() -> Self {
        let mut server = named("THROUGHLINE_TEST_POSTGRES").connect().await.unwrap();
        let programs: String =
            sqlx::query_scalar("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
                .fetch_one(&mut server)
                .await
                .unwrap();
        let programs = PathBuf::from(programs);
        let mut own = Self::beside(programs);
        assert!(
            own.programs.join("initdb").exists(),
            "the programs of the server are not on this machine, and these tests start another: run \
             `cargo xtask services up` and set what it prints"
        );
        let mut initdb = own.program("initdb");
        initdb
            .args(["--username", "postgres", "--auth", "trust", "--no-sync", "--encoding", "UTF8"]);
        initdb
            .args(["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"]);
        let made = initdb.arg("--pgdata").arg(own.data()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        own.up(&[]).await;
        own
    }

    /// One that has no data yet.
    fn beside(programs: PathBuf) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        if is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Self { programs, folder, port: free_port(), child: None }
    }

    /// A hot standby of it. From now on a commit is acknowledged when both have it.
    pub(crate) async fn standby(&self) -> Self {
        let mut standby = Self::beside(self.programs.clone());
        let mut backup = standby.program("pg_basebackup");
        backup.args(["--host", "127.0.0.1", "--username", "postgres", "--checkpoint", "fast"]);
        backup.args(["--write-recovery-conf", "--no-sync", "--port", &self.port.to_string()]);
        let made = backup.arg("--pgdata").arg(standby.data()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        standby.up(&[]).await;
        for statement in
            ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"]
        {
            execute(&self.admin(), statement.to_owned()).await;
        }
        standby
    }

    /// Puts a standby where a server was that is gone. It takes no writes before [`Self::promote`].
    pub(crate) async fn take_over(&mut self, gone: Self) {
        self.down();
        self.port = gone.port;
        self.up(&[]).await;
    }

    /// Makes a standby the primary.
    pub(crate) async fn promote(&self) {
        execute(&self.admin(), "SELECT pg_promote()".to_owned()).await;
    }

    /// As its superuser.
    pub(crate) fn admin(&self) -> PgConnectOptions {
        let url = format!("postgres://postgres:any@127.0.0.1:{}/postgres", self.port);
        url.parse().unwrap()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("PG") {
                command.env_remove(variable);
            }
        }
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Starts it with these settings more, as often as it takes: what is left of one that was killed may
    /// hold its memory for a moment. Waits until it takes a connection.
    pub(crate) async fn up(&mut self, settings: &[&str]) {
        let begun = Instant::now();
        loop {
            if self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some()) {
                let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
                let mut command = self.program("postgres");
                command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
                command.args(["-h", "127.0.0.1", "-k", ""]);
                for setting in settings {
                    command.args(["-c", setting]);
                }
                command.stdout(log.try_clone().unwrap()).stderr(log);
                self.child = Some(command.spawn().unwrap());
            }
            if let Ok(connection) = self.admin().connect().await {
                let _ = connection.close().await;
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "the server does not start");
            tokio::time::sleep(Duration::from_millis(20)).await; // tidy: sleep: between two tries
        }
    }

    /// Ends all of its processes at once, with nothing written down that was not.
    pub(crate) fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let id = child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        child.kill().unwrap();
        for child in children.unwrap_or_default().split_whitespace() {
            // Each of them ends by itself, too, when it sees that the first is gone.
            let _ = Command::new("sh").args(["-c", "kill -s KILL \"$1\"", "sh", child]).output();
        }
        child.wait().unwrap();
    }

    /// Ends it as an operator does, with its connections.
    pub(crate) fn down(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let id = child.id().to_string();
        let ended = Command::new("sh").args(["-c", "kill -s INT \"$1\"", "sh", &id]).status();
        assert!(ended.unwrap().success());
        child.wait().unwrap();
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A port that nothing listens on, below those that the system gives to outgoing connections: a server that
/// was killed finds it free again. Servers of other tests may be down at the moment: each has its own.
fn free_port() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let own = std::process::id().wrapping_mul(16) + TAKEN.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + u16::try_from(own % 10_000).unwrap();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
