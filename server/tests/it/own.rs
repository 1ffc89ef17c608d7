//! Servers of a test's own, for what must not be done to those that others use. They end with the test.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// For a server to start.
const PATIENCE: Duration = Duration::from_secs(30);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!(
            "{name} is not set: run `cargo xtask services up` and set what it prints, or run \
             `cargo xtask test --all`"
        )
    })
}

/// A port that nothing listens on, below those that the system gives to outgoing connections: a server that
/// was killed finds it free again.
fn free_port() -> u16 {
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
    let process = u16::try_from(std::process::id() % 1_000).unwrap();
    loop {
        let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let port = 10_000 + process * 10 + next;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

fn until(what: &str, is_true: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10)); // tidy: sleep: between two tries
    }
}

/// A program that is ended as a crash ends it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Qdrant on a folder that outlives its process.
pub(crate) struct Qdrant {
    program: PathBuf,
    folder: TempDir,
    http: u16,
    grpc: u16,
    running: Option<Running>,
}

impl Qdrant {
    pub(crate) fn start() -> Self {
        let program = PathBuf::from(variable("THROUGHLINE_TEST_QDRANT_BINARY"));
        let folder = TempDir::new().unwrap();
        let mut own = Self { program, folder, http: free_port(), grpc: free_port(), running: None };
        own.up();
        own
    }

    /// Where clients connect.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.grpc)
    }

    /// Starts it on the folder that it had, and waits until it answers.
    pub(crate) fn up(&mut self) {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let config = json!({
            "telemetry_disabled": true,
            "storage": {
                "storage_path": path("storage"),
                "snapshots_path": path("snapshots"),
                "temp_path": path("temporary"),
            },
            "service": {
                "host": "127.0.0.1",
                "http_port": self.http,
                "grpc_port": self.grpc,
                "enable_static_content": false,
            },
        });
        std::fs::write(path("config.yaml"), config.to_string()).unwrap();
        let log = std::fs::File::create(path("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.args(["--disable-telemetry", "--config-path"]).arg(path("config.yaml"));
        command.env("QDRANT__TELEMETRY_DISABLED", "true").current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.running = Some(Running(command.spawn().unwrap()));
        let listens = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        until("Qdrant does not start", || {
            self.asked("GET", "/readyz", "").0 == 200 && listens(self.grpc)
        });
    }

    /// Ends it at once, with nothing written down that was not.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    /// Asks its HTTP interface; the status is 0 while it does not answer.
    fn asked(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.http)) else {
            return (0, String::new());
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut answer = String::new();
        let read =
            stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        match (read, status) {
            (Ok(_), Some(status)) => {
                (status, answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())
            }
            _ => (0, String::new()),
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.asked(method, path, &body.to_string());
        assert_eq!(status, 200, "{method} {path}: {answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["result"].clone()
    }

    pub(crate) fn collections(&self) -> Vec<String> {
        let all = self.ask("GET", "/collections", &Value::Null);
        let names = all["collections"].as_array().unwrap().iter();
        names.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Makes a snapshot of a collection; its name.
    pub(crate) fn snapshot(&self, collection: &str) -> String {
        let path = format!("/collections/{collection}/snapshots?wait=true");
        let made = self.ask("POST", &path, &json!({}));
        made["name"].as_str().unwrap().to_owned()
    }

    /// Puts a snapshot in the place of what a collection holds.
    pub(crate) fn restore(&self, collection: &str, snapshot: &str) {
        let file = self.folder.path().join("snapshots").join(collection).join(snapshot);
        let body =
            json!({ "location": format!("file://{}", file.display()), "priority": "snapshot" });
        self.ask("PUT", &format!("/collections/{collection}/snapshots/recover?wait=true"), &body);
    }
}

/// Redis, of the program that the server of the environment runs.
pub(crate) struct Redis {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    running: Option<Running>,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let url = variable("THROUGHLINE_TEST_REDIS");
        let at = url.trim_start_matches("redis://").split('/').next().unwrap().to_owned();
        let info = said_by(&at, "INFO server").unwrap_or_default();
        let program = info.lines().find_map(|line| line.trim_end().strip_prefix("executable:"));
        let program = PathBuf::from(program.unwrap_or_default());
        assert!(
            program.exists(),
            "the program of the server is not on this machine, and these tests start another: run \
             `cargo xtask services up` and set what it prints"
        );
        let folder = TempDir::new().unwrap();
        let mut own = Self { program, folder, port: free_port(), running: None };
        own.up();
        own
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Starts it, empty, and waits until it answers.
    pub(crate) fn up(&mut self) {
        let mut command = Command::new(&self.program);
        if let Some(libraries) = libraries(&self.program) {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string(), "--save", ""]);
        command.arg("--dir").arg(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        self.running = Some(Running(command.spawn().unwrap()));
        until("Redis does not start", || self.command("PING").contains("PONG"));
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    /// What it answers to a command; nothing while it is away.
    pub(crate) fn command(&self, words: &str) -> String {
        said_by(&format!("127.0.0.1:{}", self.port), words).unwrap_or_default()
    }

    /// A number of its statistics.
    pub(crate) fn counted(&self, name: &str) -> u64 {
        let info = self.command("INFO stats");
        let line = info.lines().find_map(|line| line.trim_end().strip_prefix(name));
        line.and_then(|rest| rest.strip_prefix(':')?.parse().ok()).unwrap_or_default()
    }
}

/// What a Redis says to a command and its end.
fn said_by(address: &str, words: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{words}\r\nQUIT\r\n").as_bytes())?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

/// A program that was unpacked beside its libraries does not find them by itself.
fn libraries(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?.parent()?.join("lib");
    let mut folders = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    folders.find(|path| path.to_string_lossy().ends_with("-linux-gnu"))
}
