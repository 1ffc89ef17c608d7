//! The files of a session: what a call would send, and the list that says which stay inline.

mod stores;
#[cfg(test)]
mod stores_tests;

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use throughline_core::files::{
    Budget, ContentHash, CountedFile, FileStat, InlineList, Mode, Plan, PlanRequest, Planned,
    Readings, SkipReason, SkippedFile, files_to_read, plan, render,
};
use throughline_core::ids::SessionId;
use throughline_core::ports::{FileList, FileRead, FileSource, Write, WriteBatch};
use throughline_core::tokens::Tokenizer;
use throughline_core::{Error, ErrorKind, Result, Scope};

use super::{App, Thread};
use crate::identity::Identity;

pub(super) use stores::FileStoreTasks;
pub use stores::FileStores;

/// Tokens of files where neither the call nor a model says how many fit.
pub const DEFAULT_FILE_TOKENS: u64 = 100_000;
/// The share of the room for files that is filled at first, as 3 of 4: what changes is sent again, and has the rest.
const ROOM_SHARE: (u64, u64) = (3, 4);
/// Files that are read at once.
const AT_ONCE: usize = 8;

/// The files of a call, by paths of files and folders.
#[derive(Debug, Clone, Default)]
pub struct FilesOfCall {
    /// Files of the conversation.
    pub context: Vec<String>,
    /// Files of the conversation that are inline in any case.
    pub priority: Vec<String>,
    /// Files that are searched in this call.
    pub attachments: Vec<String>,
    /// Tokens that inline files may take; three quarters of the room, and [`DEFAULT_FILE_TOKENS`] at most, where it is not
    /// given.
    pub budget: Option<u64>,
    /// Tokens that the model's window has for files, those included that were replaced since they were sent. Follows from
    /// the budget where no model is known.
    pub room: Option<u64>,
}

impl FilesOfCall {
    /// Tokens that inline files may take, and all that was sent of them.
    fn limits(&self) -> Result<(u64, u64)> {
        if self.budget == Some(0) {
            return Err(Error::invalid("budget: must be at least 1 token"));
        }
        let (share, whole) = ROOM_SHARE;
        Ok(match (self.budget, self.room) {
            (Some(budget), None) => (budget, budget.saturating_mul(whole) / share),
            (None, None) => (DEFAULT_FILE_TOKENS, DEFAULT_FILE_TOKENS * whole / share),
            (Some(budget), Some(room)) => (budget.min(room), room),
            (None, Some(room)) => (DEFAULT_FILE_TOKENS.min(room * share / whole), room),
        })
    }
}

/// A plan, with what it sends and the list that it leaves.
#[derive(Debug, Clone)]
pub struct FilePlan {
    /// What a call does with each file.
    pub plan: Plan,
    /// The files as a model is sent them: all that it was sent so far, and what this call adds. Empty without inline files.
    pub prompt: String,
    scope: Scope,
    session: SessionId,
    /// What is kept once the call has succeeded; nothing where nothing changed.
    pub(super) kept: Option<FileList>,
}

/// Tokens of files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileCounts {
    /// Names and tokens, each with the fence that a prompt has around it; the largest first, then by name.
    pub files: Vec<(String, u32)>,
    /// What has no tokens, sorted by name.
    pub skipped: Vec<SkippedFile>,
    /// Tokens of all files.
    pub tokens: u64,
}

impl App {
    /// Counts the tokens of files and folders, as prompts have them. Nothing is kept.
    ///
    /// # Errors
    /// `InvalidInput` without paths; those of the files.
    pub async fn count_tokens(
        &self,
        files: &dyn FileSource,
        paths: &[String],
    ) -> Result<FileCounts> {
        if paths.is_empty() {
            return Err(Error::invalid("no paths: name the files and folders to count"));
        }
        let walk = files.walk(paths).await?;
        let all: Vec<&FileStat> = walk.files.iter().collect();
        let mut counts = FileCounts { skipped: walk.skipped, ..FileCounts::default() };
        for (path, reading) in read(files, &all, &*self.engine.tokenizer).await? {
            match reading {
                Ok(counted) if counted.size > 0 => counts.files.push((path, counted.tokens)),
                Ok(_) => counts.skipped.push(SkippedFile { path, reason: SkipReason::Empty }),
                Err(reason) => counts.skipped.push(SkippedFile { path, reason }),
            }
        }
        counts.files.sort_by(|(path, tokens), (other, more)| (more, path).cmp(&(tokens, other)));
        counts.skipped.sort_by(|file, other| file.path.cmp(&other.path));
        counts.tokens = counts.files.iter().map(|(_, tokens)| u64::from(*tokens)).sum();
        Ok(counts)
    }

    /// Plans what a call of a session would send, resend, search and skip. Nothing is kept.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid session id, without paths, and for a budget of 0; `Forbidden` for a shared session;
    /// those of [`plan`], of the files and of the store.
    pub async fn plan_files(
        &self,
        caller: &Identity,
        session: &str,
        files: &dyn FileSource,
        call: &FilesOfCall,
    ) -> Result<FilePlan> {
        let mode = self.engine.file_lists;
        let (scope, session) = Thread::own(caller, session)?;
        let held = self.engine.store.file_list(&scope, &session).await?;
        let list = held
            .as_ref()
            .map_or(Ok(InlineList::default()), |held| InlineList::decode(&held.bytes))?;
        let mut seen =
            SeenFiles { source: files, readings: Readings::new(), texts: BTreeMap::new() };
        let (planned, afresh) = self.planned(&mut seen, call, &list).await?;
        let added = render(&planned.plan, |path| seen.texts.get(path).map(String::as_str))?;
        let added = self.engine.masking.shown(&added);
        let sent = held.as_ref().map(|held| held.sent.as_str());
        let sent = sent.filter(|_| !afresh && mode == Mode::On).unwrap_or_default();
        let prompt = format!("{sent}{added}");
        let is_kept = mode != Mode::Off && (planned.next != list || !added.is_empty());
        let kept = is_kept.then(|| FileList {
            revision: held.as_ref().map_or(0, |held| held.revision) + 1,
            bytes: planned.next.encode(),
            sent: prompt.clone(),
        });
        Ok(FilePlan { plan: planned.plan, prompt, scope, session, kept })
    }

    /// The plan, with the texts that it sends, and whether the prompt is begun anew: because what was replaced fills it, or
    /// because it was made for a larger window.
    async fn planned(
        &self,
        seen: &mut SeenFiles<'_>,
        call: &FilesOfCall,
        list: &InlineList,
    ) -> Result<(Planned, bool)> {
        let mode = self.engine.file_lists;
        let tokenizer = &*self.engine.tokenizer;
        let mut request = requested(seen.source, mode, call).await?;
        let room = request.budget.call;
        let left = match mode {
            Mode::On => room.checked_sub(list.spent()),
            Mode::Off | Mode::Record => Some(room),
        };
        if let Some(left) = left {
            request.budget.call = left;
            match seen.plan(list, &request, tokenizer).await {
                Err(full) if full.kind() == ErrorKind::BudgetTooSmall && !list.is_empty() => {}
                planned => return Ok((planned?, false)),
            }
        }
        (request.afresh, request.budget.call) = (true, room);
        Ok((seen.plan(list, &request, tokenizer).await?, true))
    }

    /// Keeps the list that a plan leaves, as a call that succeeded does.
    ///
    /// # Errors
    /// `Conflict` where another call on the session came first: plan again; those of the store.
    pub async fn keep_files(&self, planned: FilePlan) -> Result<()> {
        match planned.kept {
            Some(list) => self.put_file_list((&planned.scope, &planned.session), list).await,
            None => Ok(()),
        }
    }

    /// Forgets which files a session has inline: the next call sends all that fit, and divides them anew.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid session id; `Forbidden` for a shared session; those of the store.
    pub async fn reset_files(&self, caller: &Identity, session: &str) -> Result<()> {
        let (scope, session) = Thread::own(caller, session)?;
        match self.engine.store.file_list(&scope, &session).await? {
            Some(held) => {
                let empty = FileList {
                    revision: held.revision + 1,
                    bytes: InlineList::default().encode(),
                    sent: String::new(),
                };
                self.put_file_list((&scope, &session), empty).await
            }
            None => Ok(()),
        }
    }

    async fn put_file_list(
        &self,
        (scope, session): (&Scope, &SessionId),
        list: FileList,
    ) -> Result<()> {
        let at = self.engine.clock.now();
        let put = Write::PutFileList { session: session.clone(), list, at };
        self.engine.store.apply(WriteBatch::new(scope.clone(), at).with(put)).await?;
        Ok(())
    }
}

/// The files that are at the paths of a call.
async fn requested(files: &dyn FileSource, mode: Mode, call: &FilesOfCall) -> Result<PlanRequest> {
    let FilesOfCall { context, priority, attachments, .. } = call;
    if context.is_empty() && priority.is_empty() && attachments.is_empty() {
        return Err(Error::invalid("no paths: name the files and folders to plan"));
    }
    let (session, room) = call.limits()?;
    let mut request = PlanRequest::new(mode, Budget { session, call: room });
    let mut skipped: BTreeMap<String, SkippedFile> = BTreeMap::new();
    let mut found = async |paths: &[String]| -> Result<Vec<FileStat>> {
        let walk = files.walk(paths).await?;
        request.given.extend(walk.given);
        skipped.extend(walk.skipped.into_iter().map(|file| (file.path.clone(), file)));
        Ok(walk.files)
    };
    let (context, priority, attachments) =
        (found(context).await?, found(priority).await?, found(attachments).await?);
    (request.context, request.priority, request.attachments) = (context, priority, attachments);
    request.skipped = skipped.into_values().collect();
    Ok(request)
}

/// Files as they were seen by a call.
struct SeenFiles<'s> {
    source: &'s dyn FileSource,
    readings: Readings,
    /// Texts of files that are sent, each as its reading says.
    texts: BTreeMap<String, String>,
}

impl SeenFiles<'_> {
    /// Reads what a plan needs, makes it, and reads the texts that it sends. A file that changed in between is planned as it
    /// then is: it is not read a third time, so files that never rest end nothing.
    async fn plan(
        &mut self,
        list: &InlineList,
        request: &PlanRequest,
        tokenizer: &dyn Tokenizer,
    ) -> Result<Planned> {
        let mut unread = files_to_read(list, request);
        unread.retain(|file| !self.readings.contains_key(&file.path));
        self.readings.extend(read(self.source, &unread, tokenizer).await?);
        loop {
            let planned = plan(list, request, &self.readings)?;
            if self.read_texts(&planned.plan, tokenizer).await? {
                return Ok(planned);
            }
        }
    }

    /// Reads the texts that a plan sends; whether all are as they were when it was made.
    async fn read_texts(&mut self, plan: &Plan, tokenizer: &dyn Tokenizer) -> Result<bool> {
        let sent = plan.files.iter().filter(|file| file.outcome.is_sent());
        let unread = sent.filter(|file| !self.texts.contains_key(&file.path));
        let paths: Vec<String> = unread.map(|file| file.path.clone()).collect();
        let source = self.source;
        let read = stream::iter(paths).map(async |path| {
            let read = source.read(&path).await?;
            Ok::<_, Error>((path, read))
        });
        let read: Vec<(String, FileRead)> = read.buffered(AT_ONCE).try_collect().await?;
        let mut are_same = true;
        for (path, read) in read {
            let reading = match read {
                FileRead::Text(file) => {
                    let counted = CountedFile::of(&file, tokenizer);
                    self.texts.insert(path.clone(), file.text);
                    Ok(counted)
                }
                FileRead::Skipped(reason) => Err(reason),
            };
            are_same &= content_of(self.readings.get(&path)) == content_of(Some(&reading));
            self.readings.insert(path, reading);
        }
        Ok(are_same)
    }
}

/// What two readings have to agree on.
fn content_of(
    reading: Option<&std::result::Result<CountedFile, SkipReason>>,
) -> Option<ContentHash> {
    reading.and_then(|reading| reading.as_ref().ok()).map(|file| file.hash)
}

/// Reads and counts files.
async fn read(
    files: &dyn FileSource,
    unread: &[&FileStat],
    tokenizer: &dyn Tokenizer,
) -> Result<Readings> {
    let paths: Vec<String> = unread.iter().map(|file| file.path.clone()).collect();
    let counted = stream::iter(paths).map(async |path| {
        let reading = match files.read(&path).await? {
            FileRead::Text(file) => Ok(CountedFile::of(&file, tokenizer)),
            FileRead::Skipped(reason) => Err(reason),
        };
        Ok::<_, Error>((path, reading))
    });
    counted.buffer_unordered(AT_ONCE).try_collect().await
}
