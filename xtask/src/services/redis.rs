//! Redis: the one that is installed, else Debian's, unpacked beside its libraries.
//!
//! It keeps nothing on disk: what the product puts there can be lost.

use std::path::{Path, PathBuf};
use std::process::Command;

use xshell::{Shell, cmd};

use super::fetch::{cached, debian_packages};
use super::probe::answer;
use super::process::{command, output, session, start as start_session};
use super::state::Server;
use super::{Place, Service};
use crate::Result;

pub(super) const SERVICE: Service = Service {
    name: "redis",
    variable: "THROUGHLINE_TEST_REDIS",
    ports: &["resp"],
    follows: None,
    start,
    answers,
    stop: "TERM",
};

/// The program is in one or the other, by the age of the distribution.
const PACKAGES: &[&str] = &["redis-server", "redis-tools"];

fn start(place: &Place) -> Result<Server> {
    let program = Program::find(&place.cache)?;
    let printed = output(program.with_libraries(command(&program.path)).arg("--version"))?;
    let version =
        version(&printed).ok_or("`redis-server --version` printed no version")?.to_owned();

    let port = place.port("resp");
    let mut server = program.with_libraries(session(&program.path));
    server.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
    server.args(["--save", "", "--appendonly", "no", "--daemonize", "no"]);
    server.arg("--dir").arg(&place.folder).current_dir(&place.folder);
    let pid = start_session(&mut server, &place.log)?;
    Ok(Server {
        name: SERVICE.name.to_owned(),
        version,
        pid,
        url: format!("redis://127.0.0.1:{port}/0"),
        folder: place.folder.clone(),
        ports: place.ports.clone(),
    })
}

/// A program, and where its libraries are when the system has none.
#[derive(Debug)]
struct Program {
    path: PathBuf,
    libraries: Option<PathBuf>,
}

impl Program {
    fn find(cache: &Path) -> Result<Self> {
        let sh = Shell::new()?;
        if cmd!(sh, "redis-server --version").read().is_ok() {
            return Ok(Self { path: "redis-server".into(), libraries: None });
        }
        let usr = cached(cache, "redis-debian", fetch)?.join("usr");
        let libraries = usr.join("lib").join("x86_64-linux-gnu");
        Ok(Self { path: usr.join("bin").join("redis-server"), libraries: Some(libraries) })
    }

    fn with_libraries(&self, mut command: Command) -> Command {
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command
    }
}

fn fetch(folder: &Path) -> Result<()> {
    let mut libraries = Vec::new();
    for archive in debian_packages(PACKAGES, folder)? {
        let sh = Shell::new()?;
        let printed = cmd!(sh, "dpkg-deb -f {archive} Depends").read()?;
        libraries.extend(library_packages(&printed));
    }
    libraries.sort();
    libraries.dedup();
    debian_packages(&libraries, folder)?;
    std::fs::remove_dir_all(folder.join("download"))?;
    Ok(())
}

/// Packages of libraries among the dependencies, the first of alternatives; the C library is the
/// system's own.
fn library_packages(depends: &str) -> Vec<String> {
    depends
        .split(',')
        .filter_map(|dependency| dependency.split_whitespace().next())
        .filter(|name| name.starts_with("lib") || name.starts_with("lua"))
        .filter(|name| *name != "libc6")
        .map(str::to_owned)
        .collect()
}

/// Of `Redis server v=7.0.15 sha=00000000:0 …`.
fn version(printed: &str) -> Option<&str> {
    printed.split_whitespace().find_map(|word| word.strip_prefix("v="))
}

fn answers(server: &Server) -> bool {
    answer(server.port("resp"), b"PING\r\n") == Some(*b"+PONG")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_among_the_dependencies() {
        let depends = "adduser, libatomic1 (>= 4.8), libc6 (>= 2.34), lua-cjson | lua5.1-cjson,\
                       \n redis-tools (= 5:7.0)\n";
        assert_eq!(library_packages(depends), ["libatomic1", "lua-cjson"]);
        assert!(library_packages("\n").is_empty());
    }

    #[test]
    fn the_version_is_read() {
        assert_eq!(version("Redis server v=7.0.15 sha=0:0 malloc=jemalloc"), Some("7.0.15"));
        assert_eq!(version("something else"), None);
    }
}
