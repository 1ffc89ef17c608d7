//! The service against its own OpenAPI document: schemathesis makes requests of it, good and bad, and checks
//! every answer.
//!
//! The document and the service are of the same build, so that what one of them says and the other does not do
//! fails. All that is drawn follows from one seed.

use std::path::{Path, PathBuf};

use xshell::{Cmd, Shell, cmd};

use crate::Result;
use crate::proc::{all_succeed, binary, recreate, root, shell, target_dir};
use crate::service::{Service, make_key};
use crate::tools;

/// schemathesis and all that it needs, each at one version.
const PACKAGES: &str = include_str!("../openapi/requirements.txt");
/// Its settings that are no options of its command.
const SETTINGS: &str = "xtask/openapi/schemathesis.toml";
const PROFILE: &str = "release";

/// What is checked of every answer.
///
/// Not `positive_data_acceptance`: JSON Schema has no words for bytes of UTF-8, for the tokens of a profile or the
/// least that a budget can be, and takes 5.0 for a whole number; requests that fit the document and break such a
/// rule are refused with a documented 400 or 422. Not `ensure_resource_availability`: what a request made, the next
/// one of the same user may erase. Not `use_after_free`: a fact that was retracted, and a key that was revoked, is
/// still shown, as such.
const CHECKS: &[&str] = &[
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
];
/// And that a key is asked for, of whoever needs one: the document says so for all but the local user.
const CHECKS_OF_KEYS: &[&str] =
    &["negative_data_rejection", "missing_required_header", "ignored_auth"];
const SEED: &str = "7";

/// A part of the document, asked by one caller of a service that is its own.
#[derive(Debug)]
struct Round {
    name: &'static str,
    /// Whether the caller has a key.
    key: bool,
    /// Which operations, as schemathesis is told.
    operations: &'static [&'static str],
    examples: &'static str,
}

/// Every operation is in one round with a key and in one without.
const ROUNDS: &[Round] = &[
    Round {
        name: "with a key",
        key: true,
        // What would end the key that is used.
        operations: &[
            "--exclude-operation-id", "revoke_key", "--exclude-operation-id", "rotate_key",
        ],
        examples: "20",
    },
    Round {
        name: "what ends keys",
        key: true,
        operations: &["--include-path-regex", "^/v1/keys/"],
        examples: "40",
    },
    Round {
        name: "as the local user",
        key: false,
        // The first key would end the time of the local user.
        operations: &["--exclude-operation-id", "create_key"],
        examples: "10",
    },
];

/// Fetches what it needs; the folder of its programs.
pub(crate) fn fetch() -> Result<PathBuf> {
    let folder = folder()?;
    std::fs::create_dir_all(&folder)?;
    tools::python(&folder, PACKAGES)
}

fn folder() -> Result<PathBuf> {
    Ok(target_dir()?.join("openapi"))
}

/// Runs every round, each on a service of its own; true when nothing was found in any.
pub(crate) fn check() -> Result<bool> {
    let tool = fetch()?.join("schemathesis");
    let sh = shell()?;
    crate::ci::release_build(&sh).run()?;
    let binary = binary(PROFILE)?;
    let mut services = Vec::new();
    let mut programs = Vec::new();
    for (number, round) in ROUNDS.iter().enumerate() {
        let data = folder()?.join(format!("data-{number}"));
        recreate(&data)?;
        let key = if round.key { Some(make_key(&binary, &data, "acme", None)?) } else { None };
        let service = Service::start(&binary, &data, &[])?;
        // It may write where it is.
        sh.change_dir(&data);
        programs.push((round.name.to_owned(), requests(&sh, round, &tool, &service, key).into()));
        services.push(service);
    }
    let mut good = all_succeed(programs)?;
    for service in services {
        good &= !service.panicked()?;
    }
    Ok(good)
}

fn requests<'sh>(
    sh: &'sh Shell,
    round: &Round,
    tool: &Path,
    service: &Service,
    key: Option<String>,
) -> Cmd<'sh> {
    let of_keys = if round.key { CHECKS_OF_KEYS } else { &[] };
    let (document, checks) =
        (format!("{}/openapi.json", service.base), [CHECKS, of_keys].concat().join(","));
    let (examples, operations) = (round.examples, round.operations);
    let settings = root().join(SETTINGS);
    let drawn = ["--seed", SEED, "--generation-database", "none", "--continue-on-failure"];
    let command = cmd!(
        sh,
        "{tool} --config-file {settings} run {document} --checks {checks} --max-examples {examples} {drawn...}
         --request-timeout 30 --no-color {operations...}"
    );
    match key {
        Some(key) => command
            .args(["--header", &format!("Authorization: Bearer {key}")])
            .args(["--header", "Throughline-User: ana"]),
        // A made-up key is refused, whoever sends it.
        None => command.args(["--generation-with-security-parameters", "false"]),
    }
}
