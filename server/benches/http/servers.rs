//! The processes under load: started, watched, killed and started again on the port that they had.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

/// How often memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Requests a minute of the key: the most that a rate may say, so that every call is counted as in life.
const RATE: &str = "100000";

/// What to start.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) folder: PathBuf,
    pub(super) settings: Vec<String>,
    pub(super) servers: usize,
    pub(super) kill_every: Option<Duration>,
}

impl Plan {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        let settings = ["THROUGHLINE_", "OPENAI_", "GEMINI_"];
        for (variable, _) in std::env::vars_os() {
            let name = variable.to_string_lossy();
            if settings.iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(&variable);
            }
        }
        command.env("HOME", &self.folder).env("XDG_DATA_HOME", &self.folder);
        command.args(args).arg("--json").current_dir(&self.folder).stdin(Stdio::null());
        command.args(self.settings.iter().flat_map(|setting| ["--set", setting]));
        command
    }

    /// A key that acts for any user; making it makes the store.
    pub(super) fn make_key(&self) -> String {
        let mut command = self.command(&["keys", "create", "--tenant", "bench", "--any-user"]);
        command.args(["--permissions", "read,write", "--requests-per-minute", RATE]);
        let made = command.output().unwrap();
        assert!(made.status.success(), "no key: {}", String::from_utf8_lossy(&made.stderr));
        let made: Value = serde_json::from_slice(&made.stdout).unwrap();
        made["key"].as_str().unwrap().to_owned()
    }
}

/// A process of the service, which ends with this value.
struct Server {
    plan: Plan,
    port: u16,
    log: PathBuf,
    child: Child,
}

impl Server {
    /// Starts it, and waits until it listens.
    fn start(plan: &Plan, port: u16) -> Self {
        let log = plan.folder.join(format!("{port}.log"));
        let child = Self::spawn(plan, port, &log);
        Self { plan: plan.clone(), port, log, child }
    }

    fn spawn(plan: &Plan, port: u16, log: &Path) -> Child {
        let listen = format!("127.0.0.1:{port}");
        let mut command = plan.command(&["serve", "--listen", &listen]);
        let kept = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(kept).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains(&listen), "it does not serve: {}", tail(log));
        child
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it as a crash does, and starts it again.
    fn restart(&mut self) {
        self.kill();
        self.child = Self::spawn(&self.plan, self.port, &self.log);
    }

    /// Resident memory in KiB, where the system tells.
    fn memory(&self) -> u64 {
        crate::memory_of(&self.child.id().to_string(), "VmRSS:")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("answered")).collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

/// A port that nothing listens on, below those that the system gives to outgoing connections: a server that
/// was killed finds it free again, and no client connects to itself there.
fn free_port(nth: usize) -> u16 {
    let first = 10_000 + std::process::id() as usize % 1_000 * 10 + nth;
    let mut ports = (first..first + 10_000).step_by(10).map(|port| u16::try_from(port).unwrap());
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).unwrap()
}

/// All processes of a mode.
pub(super) struct Fleet {
    servers: Arc<Mutex<Vec<Server>>>,
    kill_every: Option<Duration>,
}

impl Fleet {
    pub(super) fn start(plan: Plan) -> Self {
        let servers = (0..plan.servers).map(|nth| Server::start(&plan, free_port(nth))).collect();
        Self { servers: Arc::new(Mutex::new(servers)), kill_every: plan.kill_every }
    }

    /// Where they listen.
    pub(super) fn bases(&self) -> Vec<String> {
        let servers = self.servers.lock().unwrap();
        servers.iter().map(|server| format!("http://127.0.0.1:{}", server.port)).collect()
    }

    pub(super) fn logs(&self) -> String {
        let servers = self.servers.lock().unwrap();
        servers.iter().map(|server| tail(&server.log)).collect::<Vec<_>>().join("\n")
    }

    /// Looks at the memory for so long, and kills one server after the other; all are up at the end.
    pub(super) fn watch(&self, length: Duration) -> JoinHandle<Watched> {
        let (servers, kill_every) = (Arc::clone(&self.servers), self.kill_every);
        std::thread::spawn(move || {
            let begun = Instant::now();
            let mut watched = Watched { kills: 0, kib: Vec::new() };
            while begun.elapsed() < length {
                std::thread::sleep(LOOK_EVERY); // tidy: sleep: between two looks
                let mut servers = servers.lock().unwrap();
                watched.kib.push(servers.iter().map(Server::memory).sum());
                let due = kill_every.is_some_and(|every| {
                    let next = every * u32::try_from(watched.kills + 1).unwrap();
                    next < length && begun.elapsed() >= next
                });
                if due {
                    let which = watched.kills % servers.len();
                    servers[which].restart();
                    watched.kills += 1;
                }
            }
            watched
        })
    }
}

/// What was seen of the processes.
pub(super) struct Watched {
    pub(super) kills: usize,
    /// Resident memory of all of them, at equal distances.
    pub(super) kib: Vec<u64>,
}

/// How much memory they took.
pub(super) struct Memory {
    pub(super) most: u64,
    /// The mean of the last third of the time by that of the second; it means little where servers were killed.
    pub(super) growth: f64,
}

impl Watched {
    pub(super) fn memory(&self) -> Memory {
        let third = (self.kib.len() / 3).max(1);
        let thirds: Vec<u64> =
            self.kib.rchunks(third).take(2).map(|kib| kib.iter().sum()).collect();
        let growth = match thirds.as_slice() {
            [last, second] if *second > 0 => *last as f64 / *second as f64,
            _ => 1.0,
        };
        Memory { most: self.kib.iter().copied().max().unwrap_or_default(), growth }
    }
}
