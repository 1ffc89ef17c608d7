//! A hot standby of the Postgres that is up: a copy that follows it, and takes no writes.
//!
//! - It is made from a base backup, and streams from there on. What it has to catch up with is kept by the
//!   primary for a while (`wal_keep_size`): no slot, which would outlive it.
//! - Its URL bears the primary's password, as roles are copied too. A primary that was started anew has
//!   another one: by that a standby of one that is gone is known, and made anew.

use super::postgres::{VERSION, answers, install, prepare};
use super::process::{command, output, session, start as start_session};
use super::state::Server;
use super::users::User;
use super::{Place, Service};
use crate::Result;

pub(super) const SERVICE: Service = Service {
    name: "standby",
    variable: "THROUGHLINE_TEST_POSTGRES_REPLICA",
    ports: &["sql"],
    follows: Some("postgres"),
    start,
    answers,
    stop: "INT",
};

fn start(place: &Place) -> Result<Server> {
    let leader = place.leader.as_ref().ok_or("the standby needs Postgres, which is not up")?;
    let user = User::unprivileged()?;
    let bin = install(place, user)?;
    prepare(place, user)?;
    let data = place.folder.join("data");
    let (port, password) = (place.port("sql"), leader.password().ok_or("no password")?);

    let mut backup = command(bin.join("pg_basebackup"));
    backup.arg("--pgdata").arg(&data).args(["--host", "127.0.0.1", "--username", "postgres"]);
    backup.arg("--port").arg(leader.port("sql").to_string());
    backup.args(["--write-recovery-conf", "--wal-method", "stream", "--checkpoint", "fast"]);
    backup.args(["--no-sync", "--no-password"]).env("PGPASSWORD", password);
    output(user.run(backup.current_dir(&place.folder)))?;

    let mut server = session(bin.join("postgres"));
    server.arg("-D").arg(&data).current_dir(&place.folder);
    for (name, value) in [
        ("port", port.to_string()),
        ("unix_socket_directories", place.folder.display().to_string()),
        ("hot_standby", "on".to_owned()),
        // No test asks what it keeps when the machine fails; without this it falls behind on a slow disk.
        ("fsync", "off".to_owned()),
        // Rows that a query here still sees are not vacuumed away there.
        ("hot_standby_feedback", "on".to_owned()),
    ] {
        server.arg("-c").arg(format!("{name}={value}"));
    }
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
