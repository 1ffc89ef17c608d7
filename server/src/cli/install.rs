//! `throughline mcp install`: the configuration of MCP clients, printed or merged into their files.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value, json};
use throughline_core::{Error, ErrorKind, Result};
use throughline_engine::config::{
    Config, DEFAULT_FILE, ENV_PREFIX, Layers, ToolSet, user_data_dir,
};
use throughline_engine::terminal::Output;

/// The name of the server in the client's configuration.
const NAME: &str = "throughline";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The client to configure
    #[arg(long, value_enum)]
    client: Client,
    /// Write the entry into the client's configuration file, which keeps all other entries
    #[arg(long)]
    write: bool,
    /// The client's configuration file, if it is not the usual one
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Tool sets to offer, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    tool_sets: Option<Vec<ToolSet>>,
}

/// A client whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Client {
    /// Claude Code: .mcp.json in this directory
    ClaudeCode,
    /// Claude Desktop: this user's configuration
    ClaudeDesktop,
    /// Cursor: this user's .cursor/mcp.json
    Cursor,
    /// VS Code: .vscode/mcp.json in this directory
    Vscode,
}

impl Client {
    /// Whether its usual file belongs to a project, and is shared with it.
    fn is_shared(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Vscode)
    }

    /// The key of its file under which servers are.
    fn key(self) -> &'static str {
        match self {
            Self::Vscode => "servers",
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor => "mcpServers",
        }
    }

    /// Its usual file; `None` without a home directory.
    fn file(self) -> Option<PathBuf> {
        Some(match self {
            Self::ClaudeCode => PathBuf::from(".mcp.json"),
            Self::Vscode => PathBuf::from(".vscode").join("mcp.json"),
            Self::Cursor => std::env::home_dir()?.join(".cursor").join("mcp.json"),
            Self::ClaudeDesktop => {
                settings_dir()?.join("Claude").join("claude_desktop_config.json")
            }
        })
    }
}

/// Where applications of this system keep what a user set.
fn settings_dir() -> Option<PathBuf> {
    if cfg!(windows) {
        return std::env::var_os("APPDATA").map(PathBuf::from);
    }
    let home = std::env::home_dir()?;
    if cfg!(target_os = "macos") {
        return Some(home.join("Library").join("Application Support"));
    }
    let named = std::env::var_os("XDG_CONFIG_HOME").filter(|named| !named.is_empty());
    Some(named.map_or_else(|| home.join(".config"), PathBuf::from))
}

#[derive(Serialize)]
struct Installed {
    file: String,
    written: bool,
    configuration: Value,
    /// What is in force here, and not in it: variables of the environment, and paths in a file that is shared.
    left_out: Vec<String>,
}

pub(super) fn run(args: &Args, layers: &Layers, output: &Output) -> Result<()> {
    let config = layers.load()?;
    let no_home = || Error::invalid("this user has no home directory: name the file with --file");
    let file = match &args.file {
        Some(file) => file.clone(),
        None => args.client.file().ok_or_else(no_home)?,
    };
    let mut left_out = variables();
    let start = if args.client.is_shared() {
        shared(args, layers, &config, &mut left_out)
    } else {
        whole(args, layers, &config)?
    };
    if start.data.is_some() {
        left_out.retain(|name| name != &format!("{ENV_PREFIX}DATA_DIR"));
    }
    let entry = entry(&start);
    let alone = json!({args.client.key(): {NAME: entry}});
    if args.write {
        let held = match std::fs::read_to_string(&file) {
            Ok(held) => Some(held),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(&file.display().to_string(), &error)),
        };
        let merged = merged(held.as_deref(), args.client.key(), entry)
            .map_err(|why| Error::invalid(format!("{}: {why}", file.display())))?;
        write(&file, &merged)?;
    }
    let installed = Installed {
        file: file.display().to_string(),
        written: args.write,
        configuration: alone,
        left_out,
    };
    output.result(&installed, || {
        let told = match installed.written {
            true => format!("{} now starts Throughline: restart the client", installed.file),
            false => format!(
                "{:#}\n\nAdd this to {}, or run the command again with --write.",
                installed.configuration, installed.file
            ),
        };
        match installed.left_out.as_slice() {
            [] => told,
            left_out => format!(
                "{told}\nThe entry does not contain {}: put it into {DEFAULT_FILE}, or pass it with --set.",
                left_out.join(", ")
            ),
        }
    })
}

/// Variables that set something here, and do not where a client starts the server.
fn variables() -> Vec<String> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(ENV_PREFIX)).collect();
    names.sort();
    names
}

/// How the server is started.
struct Start {
    program: String,
    data: Option<PathBuf>,
    config: Option<PathBuf>,
    /// Settings that were given by flags.
    settings: Vec<(String, String)>,
    sets: Option<Vec<ToolSet>>,
}

/// In a file of this user: paths are whole, since the client starts it from anywhere.
fn whole(args: &Args, layers: &Layers, config: &Config) -> Result<Start> {
    let whole = |path: &Path| {
        std::path::absolute(path).map_err(|error| unreadable(&path.display().to_string(), &error))
    };
    let program = std::env::current_exe().and_then(std::path::absolute);
    let program = program.map_err(|error| unreadable("this program", &error))?;
    let in_force = layers.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    let own = user_data_dir().is_ok_and(|own| own == config.data_dir);
    Ok(Start {
        program: program.display().to_string(),
        data: if own { None } else { Some(whole(&config.data_dir)?) },
        config: in_force.is_file().then(|| whole(in_force)).transpose()?,
        settings: layers.flags.iter().filter(|(key, _)| key != "data_dir").cloned().collect(),
        sets: args.tool_sets.clone(),
    })
}

/// In a file that a project shares: nothing in it is of this machine. The client starts it in the project's folder, with
/// the program of each user's path.
fn shared(args: &Args, layers: &Layers, config: &Config, left_out: &mut Vec<String>) -> Start {
    let name = std::env::current_exe().ok();
    let name = name.as_deref().and_then(Path::file_stem).map(|name| name.to_string_lossy());
    let program = name.map_or_else(|| NAME.to_owned(), Cow::into_owned);
    let is_found = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(&program).is_file())
    });
    if !is_found {
        left_out.push(format!("the folder of {program}, which is not in PATH"));
    }
    let mut settings = Vec::new();
    for (key, value) in &layers.flags {
        if names_a_path(value) {
            left_out.push(format!("`{key}`, a path of this machine"));
        } else if key != "data_dir" {
            settings.push((key.clone(), value.clone()));
        }
    }
    let relative = |path: &Path| path.is_relative().then(|| path.to_owned());
    let named = layers.file.as_deref();
    if named.is_some_and(Path::is_absolute) {
        left_out.push("--config, a path of this machine".to_owned());
    }
    Start {
        program,
        data: relative(&config.data_dir),
        config: named.and_then(relative),
        settings,
        sets: args.tool_sets.clone(),
    }
}

/// Whether a value has an absolute path: alone, in quotation marks or a list, or as a file with a secret (`file:/…`).
fn names_a_path(value: &str) -> bool {
    let parts = value.split(|c: char| c.is_whitespace() || "\"'[]{}=,".contains(c));
    parts.map(|part| part.strip_prefix("file:").unwrap_or(part)).any(|part| {
        Path::new(part).is_absolute() || part.starts_with("~/") || part.starts_with("file://")
    })
}

fn entry(start: &Start) -> Value {
    let mut args = vec!["mcp".to_owned()];
    for (flag, path) in [("--data-dir", &start.data), ("--config", &start.config)] {
        if let Some(path) = path {
            args.extend([flag.to_owned(), path.display().to_string()]);
        }
    }
    for (key, value) in &start.settings {
        args.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    if let Some(sets) = &start.sets {
        let names = sets.iter().filter_map(clap::ValueEnum::to_possible_value);
        let names: Vec<String> = names.map(|name| name.get_name().to_owned()).collect();
        args.extend(["--tool-sets".to_owned(), names.join(",")]);
    }
    json!({"type": "stdio", "command": start.program, "args": args})
}

/// The text of a client's file with the server in it; all else stays, its keys sorted, and so does what a user added
/// to the server's own entry, such as `env`.
fn merged(held: Option<&str>, key: &str, mut entry: Value) -> std::result::Result<String, String> {
    let held = held.filter(|held| !held.trim().is_empty()).unwrap_or("{}");
    let mut whole: Map<String, Value> = serde_json::from_str(held).map_err(|error| {
        format!(
            "not a JSON object ({error}): fix it, or run without --write and add the printed entry \
             yourself"
        )
    })?;
    let servers = whole.entry(key).or_insert_with(|| Value::Object(Map::new()));
    let servers = servers.as_object_mut().ok_or_else(|| format!("`{key}` is not an object"))?;
    if let (Some(Value::Object(former)), Some(entry)) =
        (servers.remove(NAME), entry.as_object_mut())
    {
        for (key, value) in former {
            entry.entry(key).or_insert(value);
        }
    }
    servers.insert(NAME.to_owned(), entry);
    Ok(format!("{:#}\n", Value::Object(whole)))
}

/// Writes beside the file and renames, so that no client reads half of it. A link stays one, and who may read the file
/// may read it afterwards.
fn write(file: &Path, text: &str) -> Result<()> {
    let failed = |error: std::io::Error| {
        let what = format!("{} cannot be written ({error})", file.display());
        Error::new(ErrorKind::InvalidInput, what)
    };
    let linked = std::fs::canonicalize(file);
    let file = linked.as_deref().unwrap_or(file);
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut beside = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    beside.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(held) = std::fs::metadata(file) {
        beside.as_file().set_permissions(held.permissions()).map_err(failed)?;
    }
    beside.persist(file).map_err(|error| failed(error.error)).map(drop)
}

fn unreadable(what: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("{what} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_servers_and_settings_stay() {
        let entry = || json!({"command": "new"});
        let table = [
            (None, json!({"mcpServers": {"throughline": {"command": "new"}}})),
            (Some("  "), json!({"mcpServers": {"throughline": {"command": "new"}}})),
            (
                Some(r#"{"theme": "dark", "mcpServers": {"other": {"command": "o"}}}"#),
                json!({"theme": "dark", "mcpServers": {
                    "other": {"command": "o"}, "throughline": {"command": "new"}}}),
            ),
            (
                Some(r#"{"mcpServers": {"throughline": {"command": "old", "env": {"A": "b"}}}}"#),
                json!({"mcpServers": {"throughline": {"command": "new", "env": {"A": "b"}}}}),
            ),
        ];
        for (held, expected) in table {
            let text = merged(held, "mcpServers", entry()).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{held:?}");
        }
        for bad in ["[]", "{", "{\"mcpServers\": 1}", "// a comment\n{}"] {
            assert!(merged(Some(bad), "mcpServers", entry()).is_err(), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn keeps_symlink_and_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["kept.json", "mcp.json"].map(|name| folder.path().join(name));
        std::fs::write(&file, "{}").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, "{\"a\": 1}").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"a\": 1}");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn the_entry_starts_this_program_from_anywhere() {
        let sets = [ToolSet::Memory, ToolSet::Persona];
        let start = Start {
            program: "/bin/throughline".to_owned(),
            data: Some("/srv/data".into()),
            config: Some("/srv/throughline.toml".into()),
            settings: vec![("identity.user".to_owned(), "ana".to_owned())],
            sets: Some(sets.into()),
        };
        let entry = entry(&start);
        let args = json!([
            "mcp", "--data-dir", "/srv/data", "--config", "/srv/throughline.toml", "--set",
            "identity.user=ana", "--tool-sets", "memory,persona",
        ]);
        assert_eq!(entry["args"], args);
        assert_eq!(entry["command"], "/bin/throughline");
    }
}
