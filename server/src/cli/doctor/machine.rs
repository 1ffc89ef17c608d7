//! Checks of the configuration, the file system and the machine, without opening the store.

use std::net::TcpListener;
use std::path::Path;

use throughline_core::{ErrorKind, Result};
use throughline_engine::compose::STORE_FILE;
use throughline_engine::config::{Config, Layers, StoreKind};

use super::Checks;

/// Free space under which writes are about to fail, and under which somebody should look.
const LEAST_FREE: u64 = 64 << 20;
const LITTLE_FREE: u64 = 1 << 30;

/// The layers of the settings.
pub(super) fn layers(layers: &Layers) -> Result<String> {
    let explained = layers.explain()?;
    let mut names: Vec<&str> = Vec::new();
    for line in &explained {
        if !names.contains(&line.layer.as_str()) {
            names.push(&line.layer);
        }
    }
    Ok(format!("{} settings, from: {}", explained.len(), names.join(", ")))
}

/// Files that settings refer to as secrets.
pub(super) fn secrets(checks: &mut Checks, layers: &Layers) {
    // An unreadable file was already reported as a problem of the configuration.
    for (key, path) in layers.secret_files().unwrap_or_default() {
        let shown = path.display();
        match others_may(&path) {
            Ok(None) => checks.ok("secret", format!("`{key}`: only its owner can read {shown}")),
            Ok(Some(mode)) => checks.warning(
                "secret",
                format!("`{key}`: {shown} has mode {mode:04o}, so that others can read it: run `chmod 600 {shown}`"),
            ),
            Err(error) => checks.problem(
                "secret",
                ErrorKind::InvalidInput,
                format!("`{key}`: {shown} cannot be read ({error}): name another file"),
            ),
        }
    }
}

/// The workspace of commands in this folder, which a request over HTTP has to name.
pub(super) fn workspace(checks: &mut Checks, config: &Config) {
    let said = match config.clone().in_folder(Path::new(".")).identity.workspace.as_str() {
        "" => "none: this folder is in no git repository, and none is configured".to_owned(),
        name => {
            format!(
                "{name}: commands in this folder use it; over HTTP, send `Throughline-Workspace: \
                 {name}`"
            )
        }
    };
    checks.ok("workspace", said);
}

/// The data directory: there, private, and with room.
pub(super) fn data_dir(checks: &mut Checks, config: &Config) {
    let path = &config.data_dir;
    let shown = path.display();
    if !path.is_dir() {
        if config.store == StoreKind::Sqlite {
            match Path::new("data").join(STORE_FILE).exists() {
                true => checks.warning(
                    "data directory",
                    format!("{shown} does not exist: use the store in this folder with `--data-dir data`"),
                ),
                false => checks.ok(
                    "data directory",
                    format!("{shown} will be created when something is stored"),
                ),
            }
        }
        return;
    }
    match others_may(path) {
        Ok(None) => checks.ok("data directory", format!("only its owner can read {shown}")),
        Ok(Some(mode)) => checks.warning(
            "data directory",
            format!(
                "{shown} has mode {mode:04o}, so that others can read it: run `chmod 700 {shown}`"
            ),
        ),
        Err(error) => checks.problem(
            "data directory",
            ErrorKind::Unavailable,
            format!("{shown} cannot be inspected: {error}"),
        ),
    }
    let Some(free) = free_bytes(path) else { return };
    let mib = free >> 20;
    if free < LEAST_FREE {
        let said =
            format!("only {mib} MiB are free at {shown}: free up space before you write anything");
        checks.problem("free space", ErrorKind::StorageFull, said);
    } else if free < LITTLE_FREE {
        checks.warning(
            "free space",
            format!("only {mib} MiB are free at {shown}: free up space soon"),
        );
    } else {
        checks.ok("free space", format!("{mib} MiB are free at {shown}"));
    }
}

/// The files of the embedded store are private.
pub(super) fn files(checks: &mut Checks, config: &Config) {
    if config.store != StoreKind::Sqlite {
        return;
    }
    let open: Vec<String> = ["", "-wal", "-shm"]
        .iter()
        .map(|ending| config.data_dir.join(format!("{STORE_FILE}{ending}")))
        .filter(|path| matches!(others_may(path), Ok(Some(_))))
        .map(|path| path.display().to_string())
        .collect();
    if !open.is_empty() {
        let said = format!("others can read the stored data: run `chmod 600 {}`", open.join(" "));
        checks.warning("database file", said);
    } else if config.data_dir.join(STORE_FILE).exists() {
        checks.ok("database file", "only its owner can read it");
    }
}

/// Who else has the file of the embedded store open.
pub(super) fn processes(checks: &mut Checks, config: &Config) {
    if config.store != StoreKind::Sqlite {
        return;
    }
    let Some(super::locks::Holders { open, writing }) = holders(&config.data_dir) else { return };
    let ids = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if !writing.is_empty() {
        let said = format!(
            "process {} is writing now: writes of other processes fail if they wait longer than \
             sqlite.busy_timeout_ms",
            ids(&writing)
        );
        checks.warning("other processes", said);
    } else if open.is_empty() {
        checks.ok("other processes", "no other process has the file open");
    } else {
        checks
            .ok("other processes", format!("also open in process {}; this is allowed", ids(&open)));
    }
}

#[cfg(target_os = "linux")]
fn holders(data_dir: &Path) -> Option<super::locks::Holders> {
    use std::os::unix::fs::MetadataExt;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let inode = std::fs::metadata(data_dir.join(format!("{STORE_FILE}-shm"))).ok()?.ino();
    Some(super::locks::holders(&locks, inode))
}

#[cfg(not(target_os = "linux"))]
fn holders(_: &Path) -> Option<super::locks::Holders> {
    None
}

/// Whether the service can listen, or does.
pub(super) fn address(checks: &mut Checks, address: &str) {
    match TcpListener::bind(address) {
        Ok(_) => checks.ok("listen address", format!("{address} is free")),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => checks.warning(
            "listen address",
            format!(
                "{address} is in use: if another program uses it, stop that program, or set \
                 another address"
            ),
        ),
        Err(error) => checks.problem(
            "listen address",
            ErrorKind::InvalidInput,
            format!("cannot listen on {address} ({error}): set another address"),
        ),
    }
}

/// The mode of what others than its owner may read or write.
#[cfg(unix)]
fn others_may(path: &Path) -> std::io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o7777;
    Ok(Some(mode).filter(|mode| mode & 0o077 != 0))
}

#[cfg(not(unix))]
fn others_may(path: &Path) -> std::io::Result<Option<u32>> {
    std::fs::metadata(path).map(|_| None)
}

#[cfg(unix)]
fn free_bytes(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}
