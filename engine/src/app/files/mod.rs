//! The files of a session: what a call would send, and the list that says which stay inline.

mod stores;
#[cfg(test)]
mod stores_tests;

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use throughline_core::files::{
    Budget, CountedFile, FileStat, InlineList, Mode, Plan, PlanRequest, Planned, Readings,
    SkippedFile, files_to_read, plan, render,
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
/// How often files that change meanwhile are read.
const READ_ATTEMPTS: usize = 3;
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
                Ok(counted) => counts.files.push((path, counted.tokens)),
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
    /// `Conflict` where files change faster than they are read; those of [`plan`], of the files and of the store.
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
        for _ in 0..READ_ATTEMPTS {
            let (planned, afresh) = self.planned(files, call, &list).await?;
            let Some(added) = self.rendered(files, &planned).await? else { continue };
            let sent = held.as_ref().map(|held| held.sent.as_str());
            let sent = sent.filter(|_| !afresh && mode == Mode::On).unwrap_or_default();
            let prompt = format!("{sent}{added}");
            let is_kept = mode != Mode::Off && (planned.next != list || !added.is_empty());
            let kept = is_kept.then(|| FileList {
                revision: held.as_ref().map_or(0, |held| held.revision) + 1,
                bytes: planned.next.encode(),
                sent: prompt.clone(),
            });
            return Ok(FilePlan { plan: planned.plan, prompt, scope, session, kept });
        }
        Err(Error::conflict("files changed while they were read, several times: try again"))
    }

    /// The plan, and whether the prompt is begun anew, because what was replaced fills it.
    async fn planned(
        &self,
        files: &dyn FileSource,
        call: &FilesOfCall,
        list: &InlineList,
    ) -> Result<(Planned, bool)> {
        let mode = self.engine.file_lists;
        let mut request = requested(files, mode, call).await?;
        let room = request.budget.call;
        request.budget.call = match mode {
            Mode::On => room.saturating_sub(list.spent()),
            Mode::Off | Mode::Record => room,
        };
        let counted = async |request: &PlanRequest| -> Result<Planned> {
            let unread = files_to_read(list, request);
            plan(list, request, &read(files, &unread, &*self.engine.tokenizer).await?)
        };
        match counted(&request).await {
            Err(full) if full.kind() == ErrorKind::BudgetTooSmall && !list.is_empty() => {
                (request.afresh, request.budget.call) = (true, room);
                Ok((counted(&request).await?, true))
            }
            planned => Ok((planned?, false)),
        }
    }

    /// What a plan adds to the prompt; nothing if a file changed since it was planned.
    async fn rendered(&self, files: &dyn FileSource, planned: &Planned) -> Result<Option<String>> {
        let sent = planned.plan.files.iter().filter(|file| file.outcome.is_sent());
        let paths: Vec<String> = sent.map(|file| file.path.clone()).collect();
        let read = stream::iter(paths).map(async |path| files.read(&path).await);
        let read: Vec<FileRead> = read.buffered(AT_ONCE).try_collect().await?;
        let mut texts = BTreeMap::new();
        for file in read {
            match file {
                FileRead::Text(file) if planned.next.has_sent(&file.stat.path, file.hash) => {
                    texts.insert(file.stat.path, file.text);
                }
                FileRead::Text(_) | FileRead::Skipped(_) => return Ok(None),
            }
        }
        let prompt = render(&planned.plan, |path| texts.get(path).map(String::as_str))?;
        Ok(Some(self.engine.masking.shown(&prompt).into_owned()))
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
