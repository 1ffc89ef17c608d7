//! What a stable list of files saves: a project that changes from turn to turn, planned as a conversation about it would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use throughline_core::files::{Outcome, Plan};
use throughline_core::ids::SessionId;
use throughline_core::{Error, Result, Scope};
use throughline_engine::app::{App, FilesOfCall};
use throughline_engine::compose::{Engine, file_source};
use throughline_engine::config::{Config, FilesConfig, StableInlineList};
use throughline_engine::identity::Identity;

/// Files that are edited in a turn.
const EDITS: usize = 3;
/// The turn in which the whole project changes, as after a switch to another branch, and the share of files that do.
const BRANCH_TURN: usize = 10;
const BRANCH_SHARE: f64 = 0.03;

#[derive(Debug, clap::Args)]
pub(crate) struct FilesArgs {
    /// A folder; it is copied, and only the copy changes
    #[arg(long)]
    folder: PathBuf,
    /// Turns of the conversation
    #[arg(long, default_value_t = 20)]
    turns: usize,
    /// Tokens that files may take
    #[arg(long, default_value_t = 1_000_000)]
    budget: u64,
    /// Which files change follows from this
    #[arg(long, default_value_t = 7)]
    seed: u64,
}

/// What the turns of one conversation took.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FilesReport {
    /// Files of the first turn.
    pub files: usize,
    /// Those that were inline in it.
    pub inline: usize,
    /// Turns.
    pub turns: usize,
    /// Files that were inline in one turn and searched in a later one, or the other way.
    pub moved: usize,
    /// Times that a file was sent whose content the model had.
    pub resent_unchanged: usize,
    /// Tokens sent, over all turns.
    pub sent_tokens: u64,
    /// Tokens that sending all inline files in every turn takes.
    pub resent_all_tokens: u64,
    /// The share that was not sent.
    pub saved: f64,
    /// The share of the bytes of inline files that a turn leaves as they were, on average and at least.
    pub stable_bytes: f64,
    pub least_stable_bytes: f64,
    /// Milliseconds to plan a tree in which nothing changed, walk included, for 100 files: the median, and the slowest.
    pub plan_ms_per_100: f64,
    pub slowest_plan_ms_per_100: f64,
    /// Bytes of the list at the end, for 1,000 inline files.
    pub list_bytes_per_1000: u64,
}

/// Copies the folder and plays the conversation.
///
/// # Errors
/// `InvalidInput` for a folder that cannot be copied; those of planning.
pub(crate) async fn files(
    args: &FilesArgs,
    config: &Config,
    progress: impl Fn(u64),
) -> Result<FilesReport> {
    let folder = tempfile::tempdir().map_err(unwritable)?;
    let root = folder.path().join("project");
    copy(&args.folder, &root).map_err(unwritable)?;
    let mut config = config.clone();
    config.data_dir = folder.path().join("data");
    config.files = FilesConfig {
        roots: vec![root.clone()],
        stable_inline_list: StableInlineList::On,
        ..config.files
    };
    let source = file_source(&config.files, &[])?;
    let app = App::new(Engine::open(&config).await?).await?;
    let scope = Scope::new("eval", "files", None)?;
    let caller = Identity::local(scope.clone());
    let call = FilesOfCall {
        context: vec![root.to_string_lossy().into_owned()],
        budget: Some(args.budget),
        ..FilesOfCall::default()
    };
    let mut project = Project { root, dice: fastrand::Rng::with_seed(args.seed), made: 0 };
    let mut report =
        FilesReport { turns: args.turns, least_stable_bytes: 1.0, ..FilesReport::default() };
    let mut played = Played::default();
    let mut idle = Vec::new();
    for turn in 1..=args.turns {
        if turn > 1 {
            project.change(turn).map_err(unwritable)?;
        }
        let planned = app.plan_files(&caller, "s", &*source, &call).await?;
        app.keep_files(planned.clone()).await?;
        played.count(&planned.plan, &project.root, &mut report).map_err(unwritable)?;
        let begun = Instant::now();
        let again = app.plan_files(&caller, "s", &*source, &call).await?;
        idle.push((begun.elapsed(), again.plan.files.len()));
        if again.plan.tokens.sent > 0 {
            report.resent_unchanged += 1;
        }
        progress(turn as u64);
    }
    let mut per_100: Vec<f64> =
        idle.iter().map(|(took, files)| per_hundred(*took, *files)).collect();
    per_100.sort_by(f64::total_cmp);
    report.plan_ms_per_100 = per_100.get(per_100.len() / 2).copied().unwrap_or_default();
    report.slowest_plan_ms_per_100 = per_100.last().copied().unwrap_or_default();
    report.saved = 1.0 - report.sent_tokens as f64 / report.resent_all_tokens.max(1) as f64;
    let turns = args.turns.saturating_sub(1).max(1) as f64;
    report.stable_bytes /= turns;
    let list = app.engine.store.file_list(&scope, &SessionId::new("s")?).await?;
    let bytes = list.map_or(0, |list| list.bytes.len() as u64);
    report.list_bytes_per_1000 = bytes * 1_000 / (played.inline.len() as u64).max(1);
    Ok(report)
}

fn per_hundred(took: Duration, files: usize) -> f64 {
    took.as_secs_f64() * 1_000.0 / (files.max(1) as f64 / 100.0)
}

/// What the turns so far showed.
#[derive(Default)]
struct Played {
    /// The files that the model has, with what it was last sent.
    inline: BTreeMap<String, String>,
    /// Which files were searched once.
    searched: BTreeSet<String>,
}

impl Played {
    fn count(&mut self, plan: &Plan, root: &Path, report: &mut FilesReport) -> std::io::Result<()> {
        let is_first = report.files == 0;
        let (mut bytes, mut stable) = (0, 0);
        for file in &plan.files {
            let was_inline = self.inline.contains_key(&file.path);
            match file.outcome {
                Outcome::Inline | Outcome::Changed => {
                    let text = fs::read_to_string(root.join(&file.path))?;
                    report.moved += usize::from(self.searched.contains(&file.path));
                    let had = self.inline.get(&file.path);
                    report.resent_unchanged += usize::from(had == Some(&text));
                    report.resent_all_tokens += u64::from(file.tokens);
                    bytes += text.len();
                    self.inline.insert(file.path.clone(), text);
                }
                Outcome::Unchanged => {
                    report.resent_all_tokens += u64::from(file.tokens);
                    let len = self.inline.get(&file.path).map_or(0, String::len);
                    (bytes, stable) = (bytes + len, stable + len);
                }
                Outcome::Overflow | Outcome::New => {
                    report.moved += usize::from(was_inline);
                    self.searched.insert(file.path.clone());
                }
                // It may come back, and is sent again then.
                Outcome::Removed => drop(self.inline.insert(file.path.clone(), String::new())),
                Outcome::Skipped => {}
            }
        }
        report.sent_tokens += plan.tokens.sent;
        if is_first {
            report.files = plan.files.len();
            report.inline = self.inline.len();
        } else {
            let share = stable as f64 / bytes.max(1) as f64;
            report.stable_bytes += share;
            report.least_stable_bytes = report.least_stable_bytes.min(share);
        }
        Ok(())
    }
}

/// A project that people work on.
struct Project {
    root: PathBuf,
    dice: fastrand::Rng,
    made: usize,
}

impl Project {
    /// Edits some files; now and then one is added, renamed or deleted, one is written as it was, and once the branch
    /// changes.
    fn change(&mut self, turn: usize) -> std::io::Result<()> {
        let files = texts(&self.root)?;
        for _ in 0..EDITS {
            let file = &files[self.dice.usize(..files.len())];
            self.edit(file)?;
        }
        let any = |dice: &mut fastrand::Rng| files[dice.usize(..files.len())].clone();
        let touched = any(&mut self.dice);
        fs::write(&touched, fs::read(&touched)?)?;
        if turn.is_multiple_of(3) {
            self.made += 1;
            fs::write(self.root.join(format!("made-{}.txt", self.made)), "a new file\n")?;
        }
        if turn.is_multiple_of(4) {
            let from = any(&mut self.dice);
            fs::rename(&from, from.with_extension(format!("renamed-{turn}")))?;
        }
        if turn.is_multiple_of(5) {
            fs::remove_file(any(&mut self.dice)).or_else(|error| match error.kind() {
                // It was renamed in this turn.
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
        }
        if turn == BRANCH_TURN {
            let files = texts(&self.root)?;
            let changed = (files.len() as f64 * BRANCH_SHARE) as usize;
            for file in self.dice.choose_multiple(files.iter(), changed) {
                let mut text = fs::read(file)?;
                text.extend_from_slice(b"\n// of another branch\n");
                fs::write(file, text)?;
            }
        }
        Ok(())
    }

    fn edit(&mut self, file: &Path) -> std::io::Result<()> {
        let mut text = fs::read(file)?;
        text.extend_from_slice(format!("\n// edit {}\n", self.dice.u32(..)).as_bytes());
        fs::write(file, text)
    }
}

/// The text files of a folder, in order.
fn texts(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.append(&mut texts(&path)?);
        } else if fs::read_to_string(&path).is_ok_and(|text| !text.is_empty()) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => copy(&entry.path(), &target)?,
            kind if kind.is_file() => drop(fs::copy(entry.path(), target)?),
            _ => {}
        }
    }
    Ok(())
}

fn unwritable(error: std::io::Error) -> Error {
    Error::invalid(format!("the folder cannot be copied and changed: {error}"))
}
