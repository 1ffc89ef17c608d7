//! `throughline files`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use throughline_core::files::{Outcome, Plan};
use throughline_core::ports::FileSource;
use throughline_core::{Error, Result};
use throughline_engine::app::{FileCounts, FilesOfCall};
use throughline_engine::compose::file_source;
use throughline_engine::config::Config;
use throughline_engine::identity::Identity;
use throughline_engine::terminal::{Output, grouped, table};

use crate::wire::{FileCountsJson, FilePlanJson};

use super::open::open;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show which files a call of a session would send, send again, search and skip
    Plan(PlanArgs),
    /// Count the tokens of files and folders
    Count(CountArgs),
    /// Forget which files a session has, so that the next call sends them all
    Reset(ResetArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct PlanArgs {
    /// Files and folders
    #[arg(required_unless_present_any = ["priority", "attachments"])]
    paths: Vec<PathBuf>,
    /// The session; it need not exist yet
    #[arg(long)]
    session: String,
    /// Files and folders to send in any case; may be given several times
    #[arg(long, value_name = "PATH")]
    priority: Vec<PathBuf>,
    /// Files and folders to search in this call only; may be given several times
    #[arg(long = "attach", value_name = "PATH")]
    attachments: Vec<PathBuf>,
    /// Tokens that the files may take [default: what the model's window has, and 100,000 at most]
    #[arg(long, value_name = "TOKENS")]
    budget: Option<u64>,
    /// The model that would be sent them, as provider:model [default: the setting `chat.model`]
    #[arg(long)]
    model: Option<String>,
    /// Keep the list, as a call that sends these files does
    #[arg(long)]
    commit: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct CountArgs {
    /// Files and folders
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct ResetArgs {
    /// The session
    #[arg(long)]
    session: String,
}

#[derive(Serialize)]
struct Reset {
    session: String,
}

pub(super) async fn run(command: &Command, config: &Config, output: &Output) -> Result<()> {
    let caller = Identity::local(config.scope()?);
    match command {
        Command::Plan(args) => {
            let [context, priority, attached] = [&args.paths, &args.priority, &args.attachments];
            let (files, call) = named(config, context, priority, attached, args.budget)?;
            let app = open(config).await?;
            let planned = app
                .plan_files_of_chat(&caller, &args.session, args.model.as_deref(), &*files, call)
                .await?;
            let plan = planned.plan.clone();
            if args.commit {
                app.keep_files(planned).await?;
            }
            output.result(&FilePlanJson::from(&plan), || human(&plan, args.commit))
        }
        Command::Count(args) => {
            let (files, call) = named(config, &args.paths, &[], &[], None)?;
            let counts = open(config).await?.count_tokens(&*files, &call.context).await?;
            let told = counted(&counts);
            output.result(&FileCountsJson::from(counts), || told)
        }
        Command::Reset(args) => {
            open(config).await?.reset_files(&caller, &args.session).await?;
            let reset = Reset { session: args.session.clone() };
            output.result(&reset, || {
                format!("The next call of `{}` sends all files that fit.", args.session)
            })
        }
    }
}

/// The files that a command names, and where they are read from.
pub(super) fn named(
    config: &Config,
    context: &[PathBuf],
    priority: &[PathBuf],
    attachments: &[PathBuf],
    budget: Option<u64>,
) -> Result<(Arc<dyn FileSource>, FilesOfCall)> {
    let (context, priority) = (texts(context)?, texts(priority)?);
    let call =
        FilesOfCall { context, priority, attachments: texts(attachments)?, budget, room: None };
    let all = [&call.context, &call.priority, &call.attachments].into_iter().flatten();
    let files = file_source(&config.files, &all.map(PathBuf::from).collect::<Vec<_>>())?;
    Ok((files, call))
}

/// Paths as the files below the roots are named: those that are relative start at the folder of the command.
fn texts(paths: &[PathBuf]) -> Result<Vec<String>> {
    paths.iter().map(|path| text(path)).collect()
}

fn text(path: &Path) -> Result<String> {
    let whole = std::path::absolute(path)
        .map_err(|error| Error::invalid(format!("{}: {error}", path.display())))?;
    match whole.into_os_string().into_string() {
        Ok(text) => Ok(text),
        Err(_) => Err(Error::invalid(format!(
            "{}: the path is not UTF-8 text: name the folder that it is in",
            path.display()
        ))),
    }
}

fn counted(counts: &FileCounts) -> String {
    let files = counts.files.iter();
    let files =
        files.map(|(path, tokens)| vec![grouped((*tokens).into()), path.clone(), String::new()]);
    let skipped = counts.skipped.iter();
    let skipped =
        skipped.map(|file| vec!["skipped".to_owned(), file.path.clone(), file.reason.to_string()]);
    format!(
        "{}\n{} tokens in {} files; {} are skipped",
        table(&["tokens", "file", "why"], files.chain(skipped)),
        grouped(counts.tokens),
        grouped(counts.files.len() as u64),
        grouped(counts.skipped.len() as u64),
    )
}

fn human(plan: &Plan, is_kept: bool) -> String {
    let rows = plan.files.iter().map(|file| {
        let tokens = grouped(file.tokens.into());
        vec![file.outcome.to_string(), tokens, file.path.clone(), file.reason.to_string()]
    });
    let counts = Outcome::ALL.into_iter().filter_map(|outcome| {
        let count = plan.files.iter().filter(|file| file.outcome == outcome).count();
        (count > 0).then(|| format!("{count} {outcome}"))
    });
    let kept =
        if is_kept { "The list is kept." } else { "Nothing is kept; `--commit` keeps the list." };
    format!(
        "{}\n{}\n{} tokens are sent, {} are not sent again. {kept}",
        table(&["outcome", "tokens", "file", "why"], rows),
        counts.collect::<Vec<_>>().join(", "),
        grouped(plan.tokens.sent),
        grouped(plan.tokens.saved),
    )
}
