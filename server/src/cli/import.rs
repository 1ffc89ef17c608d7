//! `throughline import`.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use throughline_core::Result;
use throughline_core::ids::SessionId;
use throughline_core::ports::Clock;
use throughline_engine::adapters::SystemClock;
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;
use throughline_engine::import::{
    Format, ImportFile, ImportReport, Reading, Skipped, files_in, import, read_file,
};
use throughline_engine::terminal::{Output, grouped};

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
    /// Report every committed batch on standard error: `committed 400 of 6000`
    #[arg(long)]
    commits: bool,
}

#[derive(Serialize)]
struct Imported {
    file: String,
    #[serde(flatten)]
    report: ImportReport,
    /// Parts of the file that are not messages.
    #[serde(skip_serializing_if = "Skipped::is_empty")]
    skipped: Skipped,
}

impl Imported {
    fn line(&self) -> String {
        let Self { file, report, skipped } = self;
        let skipped: Vec<String> =
            skipped.iter().map(|(reason, count)| format!("{} {reason}", grouped(*count))).collect();
        let skipped = match skipped.is_empty() {
            true => String::new(),
            false => format!("; left out: {}", skipped.join(", ")),
        };
        format!(
            "{file}: {} messages ({} tokens) in {} sessions; {} already existed{skipped}",
            grouped(report.messages as u64),
            grouped(report.tokens),
            report.sessions,
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
    let scope = config.scope()?;
    let reading = Reading {
        session: args.session.clone().map(SessionId::new).transpose()?,
        format: args.format,
        now: Some(SystemClock.now()),
    };
    let files = check(args, &reading)?;
    let engine = Engine::open(config).await?;
    let mut imported = Vec::new();
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
        let report = import(&engine, &scope, &file.sessions, told).await?;
        bar.finish_and_clear();
        let file_name = path.display().to_string();
        imported.push(Imported { file: file_name, report, skipped: file.skipped });
    }
    let waiting = match &engine.embeddings {
        // Imported messages are in the store even if the index is unavailable.
        Some(embeddings) => embeddings.waiting(&scope).await.unwrap_or_else(|error| {
            tracing::warn!(code = error.kind().code(), "not indexed yet: {}", error.message());
            0
        }),
        None => 0,
    };
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
