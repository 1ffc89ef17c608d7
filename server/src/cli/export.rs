//! `throughline export`.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use serde::Serialize;
use tempfile::NamedTempFile;
use throughline_core::ids::SessionId;
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::persona::Persona;
use throughline_core::{Error, ErrorKind, Result, Scope};
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;
use throughline_engine::export::{MessageLine, records};
use throughline_engine::terminal::{Output, counted, grouped};

use super::facts::FactJson;
use super::open::open_existing;
use super::profile::ProfileJson;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to export, one JSON object per line; `all` and `messages` can be imported again
    #[arg(long, value_enum, default_value_t = What::All)]
    what: What,
    /// Export only the messages of this session
    #[arg(long)]
    session: Option<String>,
    /// File to write; it must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Everything: facts that were stated directly or rejected, the profile, documents, contexts and messages
    All,
    /// All messages
    Messages,
    /// All facts, including superseded ones
    Facts,
    /// The rules and the profile card
    Profile,
}

#[derive(Serialize, Default)]
struct Exported {
    file: String,
    /// Sessions whose messages were written.
    sessions: u64,
    lines: u64,
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let scope = config.scope()?;
    let session = args.session.clone().map(SessionId::new).transpose()?;
    let what = match (args.what, &session) {
        (What::All, Some(_)) => What::Messages,
        (What::Facts | What::Profile, Some(_)) => {
            return Err(Error::invalid(
                "--session works with messages only: facts and profile belong to the user",
            ));
        }
        (what, _) => what,
    };
    if args.to.is_none() && output.is_json() {
        return Err(Error::invalid(
            "--json and the export would both write to standard output: name a file with --to",
        ));
    }
    let engine = open_existing(config).await?.engine;
    let mut target = Target::open(args.to.as_deref())?;
    let mut exported = Exported::default();
    match what {
        What::All => {
            records(&engine, &scope, |record| {
                exported.lines += 1;
                target.line(&record)
            })
            .await?;
            messages(&engine, &scope, false, &mut target, (&mut exported, output)).await?;
        }
        What::Messages => match &session {
            Some(id) => {
                let session = engine.sessions.get(&scope, id).await?;
                let bar = output.progress(session.messages, "exporting");
                exported.sessions = 1;
                exported.lines = one_session(&engine, &scope, id, &mut target, &bar).await?;
                bar.finish_and_clear();
            }
            None => {
                messages(&engine, &scope, true, &mut target, (&mut exported, output)).await?;
            }
        },
        What::Facts => facts(&engine, &scope, &mut target, &mut exported).await?,
        What::Profile => {
            let profile = engine.profiles.get(&scope).await?;
            target.line(&ProfileJson::from(&profile))?;
            exported.lines = 1;
        }
    }
    target.finish()?;
    let Some(to) = &args.to else { return Ok(()) };
    exported.file = to.display().to_string();
    output.result(&exported, || {
        let what = match what {
            What::All => format!("{} records and messages", grouped(exported.lines)),
            What::Messages => {
                let sessions = counted(exported.sessions, "session");
                format!("{} of {sessions}", counted(exported.lines, "message"))
            }
            What::Facts => counted(exported.lines, "fact"),
            What::Profile => "rules and card".to_owned(),
        };
        format!("{} contains {what}", exported.file)
    })
}

/// Session by session, a page at a time: how much there is does not matter. Contexts bring their own conversations.
async fn messages(
    engine: &Engine,
    scope: &Scope,
    with_contexts: bool,
    target: &mut Target,
    (exported, output): (&mut Exported, &Output),
) -> Result<()> {
    let totals = engine.store.totals(scope).await?;
    let bar = output.progress(totals.messages, "exporting");
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let sessions = engine.sessions.list(scope, &page).await?;
        for session in &sessions.items {
            if with_contexts || Persona::of_session(&session.id).is_none() {
                exported.sessions += 1;
                exported.lines += one_session(engine, scope, &session.id, target, &bar).await?;
            }
        }
        match sessions.next_cursor {
            Some(cursor) if !target.is_gone() => {
                page = PageRequest::first(MAX_PAGE)?.after(&cursor)?;
            }
            _ => break,
        }
    }
    bar.finish_and_clear();
    Ok(())
}

async fn one_session(
    engine: &Engine,
    scope: &Scope,
    id: &SessionId,
    target: &mut Target,
    bar: &ProgressBar,
) -> Result<u64> {
    let mut written = 0;
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let messages = engine.sessions.messages(scope, id, &page).await?;
        for message in &messages.items {
            target.line(&MessageLine::of(message)?)?;
        }
        written += messages.items.len() as u64;
        bar.inc(messages.items.len() as u64);
        match messages.next_cursor {
            Some(cursor) if !target.is_gone() => {
                page = PageRequest::first(MAX_PAGE)?.after(&cursor)?;
            }
            _ => return Ok(written),
        }
    }
}

async fn facts(
    engine: &Engine,
    scope: &Scope,
    target: &mut Target,
    exported: &mut Exported,
) -> Result<()> {
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let facts = engine.facts.list(scope, &page).await?;
        for fact in facts.items {
            target.line(&FactJson::from(fact))?;
            exported.lines += 1;
        }
        match facts.next_cursor {
            Some(cursor) if !target.is_gone() => {
                page = PageRequest::first(MAX_PAGE)?.after(&cursor)?;
            }
            _ => return Ok(()),
        }
    }
}

/// Where lines go. A file appears under its name once it is whole, and only its owner may read it.
enum Target {
    Standard(BufWriter<std::io::Stdout>),
    /// A closed pipe (`| head`) is the reader's choice, and ends the export.
    Gone,
    File(BufWriter<NamedTempFile>, PathBuf),
}

impl Target {
    fn open(to: Option<&Path>) -> Result<Self> {
        let Some(to) = to else { return Ok(Self::Standard(BufWriter::new(std::io::stdout()))) };
        if to.exists() {
            return Err(exists(to));
        }
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        let part = tempfile::Builder::new()
            .prefix(".throughline-export-")
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| unwritable(to, error))?;
        Ok(Self::File(BufWriter::new(part), to.to_owned()))
    }

    fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(value)
            .map_err(|error| Error::internal("a line has no JSON form").with_source(error))?;
        line.push(b'\n');
        match self {
            Self::Standard(writer) => {
                let written = writer.write_all(&line);
                self.unless_gone(written)
            }
            Self::Gone => Ok(()),
            Self::File(writer, to) => {
                writer.write_all(&line).map_err(|error| unwritable(to, error))
            }
        }
    }

    fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    fn unless_gone(&mut self, written: std::io::Result<()>) -> Result<()> {
        match written {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                // Dropping it would write the rest of its buffer to a closed pipe.
                *self = Self::Gone;
                Ok(())
            }
            written => written.map_err(|error| unwritable(Path::new("standard output"), error)),
        }
    }

    fn finish(mut self) -> Result<()> {
        if let Self::Standard(writer) = &mut self {
            let written = writer.flush();
            self.unless_gone(written)?;
        }
        match self {
            Self::Standard(_) | Self::Gone => Ok(()),
            Self::File(writer, to) => {
                let part = writer.into_inner().map_err(|error| unwritable(&to, error.into_error()));
                let part = part?;
                part.as_file().sync_all().map_err(|error| unwritable(&to, error))?;
                part.persist_noclobber(&to).map_err(|error| match error.error.kind() {
                    std::io::ErrorKind::AlreadyExists => exists(&to),
                    _ => unwritable(&to, error.error),
                })?;
                Ok(())
            }
        }
    }
}

fn exists(to: &Path) -> Error {
    let to = to.display();
    Error::conflict(format!(
        "{to} already exists: name a new file; an export never overwrites a file"
    ))
}

fn unwritable(to: &Path, error: std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::StorageFull => ErrorKind::StorageFull,
        std::io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("{} cannot be written: {error}", to.display())).with_source(error)
}
