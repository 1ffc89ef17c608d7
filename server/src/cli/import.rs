//! `throughline import`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use throughline_core::Result;
use throughline_core::ids::SessionId;
use throughline_core::ports::Clock;
use throughline_core::secret::SecretPolicy;
use throughline_engine::adapters::SystemClock;
use throughline_engine::config::{Config, SecretsKind, workspace_of};
use throughline_engine::import::{
    Format, ImportFile, ImportOptions, ImportReport, Reading, Skipped, files_in, import_file,
    read_file,
};
use throughline_engine::terminal::{Output, counted, grouped};

use super::open::open;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files to import, or folders with *.jsonl files, such as ~/.claude/projects
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Session for messages without one [default: the file's name]
    #[arg(long)]
    session: Option<String>,
    /// Format of the files, if it is not detected correctly
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// What happens to keys, passwords, tokens and card numbers [default: the setting `secrets`; `drop` for agents'
    /// logs]
    #[arg(long, value_enum)]
    secrets: Option<SecretsKind>,
    /// Also import messages that were erased here before
    #[arg(long)]
    include_erased: bool,
    /// Report every committed batch on standard error: `committed 400 of 6000`
    #[arg(long)]
    commits: bool,
}

#[derive(Serialize)]
struct Imported {
    file: String,
    /// Where it was imported to; nothing for what holds in all workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    /// What finds it: the workspace of a folder that is in no git repository is not that of the commands there.
    #[serde(skip_serializing_if = "Option::is_none")]
    use_with: Option<String>,
    #[serde(flatten)]
    report: ImportReport,
    /// Parts of the file that are not messages.
    #[serde(skip_serializing_if = "Skipped::is_empty")]
    skipped: Skipped,
}

impl Imported {
    fn line(&self) -> String {
        let Self { file, workspace, use_with, report, skipped } = self;
        let of = workspace.as_ref().map_or(String::new(), |name| format!(" (workspace {name})"));
        let of_none = use_with.as_ref().map_or(String::new(), |with| {
            format!(
                "; its folder is in no git repository on this machine: to use its memory, pass \
                 `{with}`"
            )
        });
        let skipped: Vec<String> =
            skipped.iter().map(|(reason, count)| format!("{} {reason}", grouped(*count))).collect();
        let skipped = match skipped.is_empty() {
            true => String::new(),
            false => format!("; left out: {}", skipped.join(", ")),
        };
        let held_back = match report.held_back {
            0 => String::new(),
            held => format!(
                "; {} held back, because they were erased or rejected here (--include-erased \
                 imports erased ones)",
                grouped(held as u64)
            ),
        };
        let kept = match report.kept {
            0 => String::new(),
            kept => format!(
                "; {} not imported, because this store has newer ones or the user's own",
                grouped(kept as u64)
            ),
        };
        let records = [
            (report.facts, "fact"),
            (report.profiles, "profile"),
            (report.documents, "document"),
            (report.contexts, "context"),
        ];
        let records: String = records
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!(", {}", counted(*count as u64, what)))
            .collect();
        format!(
            "{file}{of}: {} ({}) in {}{records}; {} already existed{skipped}{kept}{held_back}{of_none}",
            counted(report.messages as u64, "message"),
            counted(report.tokens, "token"),
            counted(report.sessions as u64, "session"),
            report.replayed
        )
    }
}

/// Every file is read before the store is opened: a broken one changes nothing. Those of a folder may be more
/// than fits in memory, and are read again when their turn comes.
fn check(args: &Args, reading: &Reading) -> Result<Vec<(PathBuf, Option<ImportFile>)>> {
    let mut files = Vec::new();
    for path in &args.files {
        if path.is_dir() {
            for path in files_in(path)? {
                read_file(&path, reading)?;
                files.push((path, None));
            }
        } else {
            files.push((path.clone(), Some(read_file(path, reading)?)));
        }
    }
    Ok(files)
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let reading = Reading {
        session: args.session.clone().map(SessionId::new).transpose()?,
        format: args.format,
        now: Some(SystemClock.now()),
    };
    let files = check(args, &reading)?;
    let engine = open(config).await?.engine;
    let mut imported = Vec::new();
    let mut scopes = BTreeSet::new();
    for (path, file) in files {
        let file = match file {
            Some(file) => file,
            None => read_file(&path, &reading)?,
        };
        let total: u64 = file.sessions.iter().map(|session| session.messages.len() as u64).sum();
        let bar = output.progress(total, "importing");
        let told = |done: u64| {
            bar.set_position(done);
            if args.commits {
                // A closed standard error does not stop the import.
                let _ = writeln!(std::io::stderr(), "committed {done} of {total}");
            }
        };
        let dropped = file.is_agent_log.then_some(SecretPolicy::Drop);
        let options = ImportOptions {
            secrets: args.secrets.map(SecretPolicy::from).or(dropped),
            include_erased: args.include_erased,
        };
        let folder = file.folder.as_deref();
        let scope = match folder {
            Some(folder) => config.clone().of_project(folder).scope()?,
            None => config.clone().in_folder(Path::new(".")).scope()?,
        };
        let report = import_file(&engine, &scope, &file, options, told).await?;
        bar.finish_and_clear();
        // Where a workspace is configured, it is that of every command.
        let own = folder.is_some_and(|folder| workspace_of(folder).is_none())
            && config.identity.workspace.is_empty();
        let named = scope.workspace.as_ref().filter(|_| own);
        imported.push(Imported {
            file: path.display().to_string(),
            use_with: named.map(|name| format!("--workspace '{name}'")),
            workspace: scope.workspace.as_ref().map(ToString::to_string),
            report,
            skipped: file.skipped,
        });
        scopes.insert(scope);
    }
    let mut waiting = 0;
    for scope in &scopes {
        let Some(embeddings) = &engine.embeddings else { continue };
        // Imported messages are in the store even if the index is unavailable.
        waiting += embeddings.waiting(scope).await.unwrap_or_else(|error| {
            tracing::warn!(code = error.kind().code(), "not indexed yet: {}", error.message());
            0
        });
    }
    output.result(&imported, || {
        let mut lines: Vec<String> = imported.iter().map(Imported::line).collect();
        if waiting > 0 {
            lines.push(format!(
                "{} messages and facts wait to be embedded: run `throughline worker --once`; until \
                 then only keyword search finds them",
                grouped(waiting)
            ));
        }
        lines.join("\n")
    })
}
