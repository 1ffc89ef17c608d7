//! `throughline import`.

use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;
use throughline_core::Result;
use throughline_core::ids::SessionId;

use super::output::{Output, grouped};
use crate::compose::Engine;
use crate::config::Config;
use crate::import::{ImportReport, import, read_file};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files: JSON lines of messages, samples in the format of `eval`, or an OpenAI-style array
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Session of messages that name none [default: the file's name]
    #[arg(long)]
    session: Option<String>,
    /// Tell of every committed batch on standard error: `committed 400 of 6000`
    #[arg(long)]
    commits: bool,
}

#[derive(Serialize)]
struct Imported {
    file: String,
    #[serde(flatten)]
    report: ImportReport,
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let scope = config.scope()?;
    let session = args.session.clone().map(SessionId::new).transpose()?;
    // Every file is read before the store is opened: a broken one changes nothing.
    let files = args
        .files
        .iter()
        .map(|path| Ok((path, read_file(path, session.as_ref())?)))
        .collect::<Result<Vec<_>>>()?;
    let engine = Engine::open(config).await?;
    let mut imported = Vec::new();
    for (path, file) in files {
        let total: u64 = file.sessions.iter().map(|session| session.messages.len() as u64).sum();
        let bar = output.progress(total, "importing");
        let told = |done: u64| {
            bar.set_position(done);
            if args.commits {
                // Nobody to tell is no reason to stop.
                let _ = writeln!(std::io::stderr(), "committed {done} of {total}");
            }
        };
        let report = import(&engine, &scope, &file.sessions, told).await?;
        bar.finish_and_clear();
        imported.push(Imported { file: path.display().to_string(), report });
    }
    let waiting = match &engine.embeddings {
        // What is imported is in the store, also while the index is away.
        Some(embeddings) => embeddings.waiting(&scope).await.unwrap_or_else(|error| {
            tracing::warn!(code = error.kind().code(), "not indexed yet: {}", error.message());
            0
        }),
        None => 0,
    };
    output.result(&imported, || {
        let mut lines: Vec<String> = imported
            .iter()
            .map(|Imported { file, report }| {
                format!(
                    "{file}: {} messages ({} tokens) in {} sessions; {} were there already",
                    grouped(report.messages as u64),
                    grouped(report.tokens),
                    report.sessions,
                    report.replayed
                )
            })
            .collect();
        if waiting > 0 {
            lines.push(format!(
                "{} messages and facts wait to be embedded: `throughline worker --once` does it; \
                 until then they are recalled by their words",
                grouped(waiting)
            ));
        }
        lines.join("\n")
    })
}
