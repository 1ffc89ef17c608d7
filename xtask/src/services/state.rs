//! What runs, written down where the next command finds it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::users::set_mode;
use super::{hex, random};
use crate::Result;

/// How folders of data are named. Nothing else is ever removed.
const PREFIX: &str = "throughline-services-";

/// A server that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) pid: u32,
    /// What a client is given.
    pub(super) url: String,
    /// Its data. Also how its process is told from another of the same number.
    pub(super) folder: PathBuf,
    pub(super) ports: BTreeMap<String, u16>,
}

impl Server {
    pub(super) fn port(&self, name: &str) -> u16 {
        self.ports.get(name).copied().unwrap_or_default()
    }

    /// The password in its address.
    pub(super) fn password(&self) -> Option<&str> {
        let (login, _) = self.url.split_once("://")?.1.split_once('@')?;
        Some(login.split_once(':')?.1)
    }

    /// Whether it was made from this one, whose password no other has.
    pub(super) fn is_copy_of(&self, leader: &Self) -> bool {
        self.password().is_some() && self.password() == leader.password()
    }
}

/// All that was started, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    file: PathBuf,
    /// The folder that holds each server's own.
    pub(super) data: PathBuf,
    pub(super) servers: BTreeMap<String, Server>,
}

impl State {
    /// Nothing started yet; data will be in a new temporary folder.
    pub(super) fn new(home: &Path) -> Result<Self> {
        // The kernel shows where a process stands without links.
        let temporary = std::env::temp_dir().canonicalize()?;
        let data = temporary.join(format!("{PREFIX}{}", hex(&random::<4>()?)));
        Ok(Self::of(home, data, BTreeMap::new()))
    }

    pub(super) fn of(home: &Path, data: PathBuf, servers: BTreeMap<String, Server>) -> Self {
        Self { file: home.join("state.json"), data, servers }
    }

    /// Makes the folder of data where it is missing: it is new, or the system cleaned up.
    pub(super) fn ensure_data(&self) -> Result<()> {
        if !self.data.is_dir() {
            std::fs::create_dir(&self.data)?;
        }
        // Another user must pass through to Postgres' own folder, which nobody else can enter.
        set_mode(&self.data, 0o755)
    }

    /// What the last command wrote; none when nothing is up.
    pub(super) fn load(home: &Path) -> Result<Option<Self>> {
        let none = Self::of(home, PathBuf::new(), BTreeMap::new());
        let text = match std::fs::read_to_string(&none.file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let (data, servers) = parse(&text).map_err(|error| {
            let file = none.file.display();
            format!("{file}: {error}; stop the processes that it lists, then remove the file")
        })?;
        Ok(Some(Self { data, servers, ..none }))
    }

    /// Adds or replaces a server, and writes that down.
    pub(super) fn put(&mut self, server: Server) -> Result<()> {
        self.servers.insert(server.name.clone(), server);
        self.save()
    }

    /// A reader sees the old state or the new one, whole.
    pub(super) fn save(&self) -> Result<()> {
        let part = self.file.with_extension("part");
        std::fs::write(&part, self.render())?;
        // The address of Postgres holds its password.
        set_mode(&part, 0o600)?;
        std::fs::rename(part, &self.file)?;
        Ok(())
    }

    /// Removes the data, then the state.
    pub(super) fn forget(self) -> Result<()> {
        let name = self.data.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(PREFIX) && self.data.is_dir() {
            // Hundreds of databases take a while: it goes on when this program has ended.
            let removal = Command::new("rm").arg("-rf").arg(&self.data).spawn();
            removal.map_err(|error| format!("rm did not start: {error}"))?;
        }
        std::fs::remove_file(self.file)?;
        Ok(())
    }

    fn render(&self) -> String {
        let servers: Vec<_> = self
            .servers
            .values()
            .map(|server| {
                json!({
                    "name": server.name,
                    "version": server.version,
                    "pid": server.pid,
                    "url": server.url,
                    "folder": server.folder.to_string_lossy(),
                    "ports": server.ports,
                })
            })
            .collect();
        format!("{:#}\n", json!({ "data": self.data.to_string_lossy(), "servers": servers }))
    }
}

fn parse(text: &str) -> Result<(PathBuf, BTreeMap<String, Server>)> {
    let value: Value = serde_json::from_str(text)?;
    let servers = value["servers"].as_array().ok_or("no list of servers")?;
    let servers = servers.iter().map(|value| {
        let server = server(value)?;
        Ok((server.name.clone(), server))
    });
    Ok((PathBuf::from(string(&value, "data")?), servers.collect::<Result<_>>()?))
}

fn server(value: &Value) -> Result<Server> {
    let ports = value["ports"].as_object().ok_or("a server without ports")?;
    let ports = ports.iter().map(|(name, port)| Ok((name.clone(), number(port, name)?)));
    Ok(Server {
        name: string(value, "name")?,
        version: string(value, "version")?,
        pid: number(&value["pid"], "pid")?,
        url: string(value, "url")?,
        folder: PathBuf::from(string(value, "folder")?),
        ports: ports.collect::<Result<_>>()?,
    })
}

fn string(value: &Value, key: &str) -> Result<String> {
    Ok(value[key].as_str().ok_or_else(|| format!("no text `{key}`"))?.to_owned())
}

fn number<T: TryFrom<u64>>(value: &Value, key: &str) -> Result<T> {
    let number = value.as_u64().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("`{key}` is not a number that fits").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let server = Server {
            name: "qdrant".to_owned(),
            version: "1.16.3".to_owned(),
            pid: 4711,
            url: "http://127.0.0.1:20002".to_owned(),
            folder: PathBuf::from("/tmp/x/qdrant"),
            ports: [("http".to_owned(), 20_001), ("grpc".to_owned(), 20_002)].into(),
        };
        let servers = [(server.name.clone(), server)].into();
        State::of(Path::new("/none"), PathBuf::from("/tmp/x"), servers)
    }

    #[test]
    fn what_was_written_is_read() {
        let state = state();
        assert_eq!(parse(&state.render()).unwrap(), (state.data, state.servers));
    }

    #[test]
    fn a_copy_has_the_password_of_what_it_follows() {
        let of = |url: &str| {
            let server = state().servers.remove("qdrant").unwrap();
            Server { url: url.to_owned(), ..server }
        };
        let leader = of("postgres://postgres:0a@127.0.0.1:1/postgres");
        assert_eq!(leader.password(), Some("0a"));
        assert!(of("postgres://postgres:0a@127.0.0.1:2/postgres").is_copy_of(&leader));
        assert!(!of("postgres://postgres:0b@127.0.0.1:2/postgres").is_copy_of(&leader));
        assert!(!of("http://127.0.0.1:2").is_copy_of(&of("http://127.0.0.1:2")));
    }

    #[test]
    fn a_damaged_state_is_an_error() {
        let whole = state().render();
        for (from, to) in [
            ("4711", "-1"),
            ("4711", "4294967296"),
            ("20001", "65536"),
            ("\"url\"", "\"address\""),
            ("\"servers\"", "\"others\""),
            ("\"data\"", "\"place\""),
            ("}", ""),
        ] {
            assert!(whole.contains(from), "{from}");
            assert!(parse(&whole.replace(from, to)).is_err(), "{from} -> {to}");
        }
    }

    #[test]
    fn nothing_is_up_without_a_file() {
        assert_eq!(State::load(Path::new("/nonexistent")).unwrap(), None);
    }
}
