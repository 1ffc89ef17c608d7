//! PgBouncer in transaction mode before the Postgres of the same command.
//!
//! - An installed one of 1.21 or newer, else that of a named release of Debian: only from 1.21 on does it keep
//!   prepared statements. Its C library comes with it, so that the age of this machine's does not matter.
//! - Any role and database of the tests: passwords are looked up in Postgres (`auth_query`), and what a client
//!   proves with SCRAM, PgBouncer proves on.
//! - Two server connections for each pair of role and database, so that clients really share them.
//! - A Postgres that was started anew has another port and another password, by which a PgBouncer of one that
//!   is gone is known, and made anew.

use std::path::{Path, PathBuf};
use std::process::Command;

use xshell::{Shell, cmd};

use super::fetch::cached;
use super::postgres::answers;
use super::process::{command, output, session, start as start_session};
use super::state::Server;
use super::suite::Suite;
use super::users::{User, open_to_all, set_mode};
use super::{Place, Service};
use crate::Result;

pub(super) const SERVICE: Service = Service {
    name: "pgbouncer",
    variable: "THROUGHLINE_TEST_PGBOUNCER",
    ports: &["sql"],
    follows: Some("postgres"),
    start,
    answers,
    // Ends connections at once.
    stop: "TERM",
};

/// The release of Debian whose PgBouncer is new enough.
const SUITE: &str = "trixie";
/// The program, and the libraries that it loads.
const PACKAGES: &[&str] = &[
    "pgbouncer", "libaudit1", "libc6", "libcap-ng0", "libcap2", "libcares2", "libevent-2.1-7t64",
    "libgcc-s1", "libpam0g", "libssl3t64", "libsystemd0", "libzstd1", "zlib1g",
];
/// The first with `max_prepared_statements`.
const OLDEST: (u32, u32) = (1, 21);

fn start(place: &Place) -> Result<Server> {
    let program = Program::find(place)?;
    let printed = output(program.command(command).arg("--version"))?;
    let version = version(&printed).ok_or("`pgbouncer --version` printed no version")?.to_owned();

    let leader = place.leader.as_ref().ok_or("PgBouncer needs Postgres, which is not up")?;
    let (port, password) = (place.port("sql"), leader.password().ok_or("no password")?);
    let (users, config) = (place.folder.join("users.txt"), place.folder.join("pgbouncer.ini"));
    std::fs::write(&users, format!("\"postgres\" \"{password}\"\n"))?;
    set_mode(&users, 0o600)?;
    std::fs::write(&config, configuration(port, leader.port("sql"), &users))?;
    let user = User::unprivileged()?;
    for path in [&users, &config, &place.folder] {
        user.own(path)?;
    }

    let mut server = program.command(session);
    server.arg(&config).current_dir(&place.folder);
    let pid = start_session(user.run(&mut server), &place.log)?;
    Ok(Server {
        name: SERVICE.name.to_owned(),
        version,
        pid,
        url: format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres"),
        folder: place.folder.clone(),
        ports: place.ports.clone(),
    })
}

/// A program, and where it was unpacked with a C library of its own.
#[derive(Debug)]
struct Program {
    installed: Option<PathBuf>,
    root: PathBuf,
}

impl Program {
    fn find(place: &Place) -> Result<Self> {
        let name = PathBuf::from("pgbouncer");
        let sh = Shell::new()?;
        let printed = cmd!(sh, "{name} --version").read().unwrap_or_default();
        if version(&printed).and_then(parts) >= Some(OLDEST) {
            return Ok(Self { installed: Some(name), root: PathBuf::new() });
        }
        let mut root = cached(&place.cache, &format!("pgbouncer-{SUITE}"), |folder| {
            Suite::fetch(SUITE, folder)?.unpack(PACKAGES, folder)
        })?;
        if User::unprivileged()? == User::Nobody && !open_to_all(&root) {
            // A checkout in root's own home, for instance.
            let copy = place.folder.join("install");
            let sh = Shell::new()?;
            cmd!(sh, "cp -Rp {root} {copy}").quiet().run()?;
            root = copy;
        }
        Ok(Self { installed: None, root })
    }

    /// The program's own C library has a loader of its own, which is what starts it.
    fn command(&self, start: fn(PathBuf) -> Command) -> Command {
        if let Some(program) = &self.installed {
            return start(program.clone());
        }
        let usr = self.root.join("usr");
        let libraries = usr.join("lib").join("x86_64-linux-gnu");
        let mut command = start(libraries.join("ld-linux-x86-64.so.2"));
        command.arg("--library-path").arg(libraries).arg(usr.join("sbin").join("pgbouncer"));
        command
    }
}

fn configuration(port: u16, postgres: u16, users: &Path) -> String {
    let users = users.display();
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={postgres}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         pool_mode = transaction\n\
         max_prepared_statements = 200\n\
         default_pool_size = 2\n\
         max_client_conn = 1000\n\
         auth_type = scram-sha-256\n\
         auth_file = {users}\n\
         auth_user = postgres\n\
         auth_dbname = postgres\n\
         admin_users = postgres\n\
         server_idle_timeout = 20\n"
    )
}

/// Of `PgBouncer 1.24.1` and more lines.
fn version(printed: &str) -> Option<&str> {
    printed.lines().find_map(|line| line.strip_prefix("PgBouncer ")).map(str::trim)
}

fn parts(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_and_compared() {
        let printed = "PgBouncer 1.24.1\nlibevent 2.1.12-stable\n";
        assert_eq!(version(printed), Some("1.24.1"));
        assert_eq!(version("something else"), None);
        for (version, enough) in [("1.18.0", false), ("1.21.0", true), ("2.0", true), ("x", false)]
        {
            assert_eq!(parts(version) >= Some(OLDEST), enough, "{version}");
        }
    }

    #[test]
    fn the_configuration_stays_on_loopback_and_pools_by_transaction() {
        let text = configuration(20_001, 20_002, Path::new("/tmp/a/users.txt"));
        for line in [
            "listen_addr = 127.0.0.1",
            "listen_port = 20001",
            "* = host=127.0.0.1 port=20002",
            "pool_mode = transaction",
            "auth_file = /tmp/a/users.txt",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}");
        }
    }
}
