//! The files of a session: what a call would send, and the list that says which stay inline.

mod stores;
#[cfg(test)]
mod stores_tests;

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use throughline_core::files::{
    Budget, CountedFile, FileStat, InlineList, Mode, Plan, PlanRequest, Planned, Readings,
    SkippedFile, files_to_read, plan,
};
use throughline_core::ids::SessionId;
use throughline_core::ports::{FileList, FileRead, FileSource, Write, WriteBatch};
use throughline_core::tokens::Tokenizer;
use throughline_core::{Error, Result, Scope};

use super::{App, Thread};
use crate::identity::Identity;

pub(super) use stores::FileStoreTasks;
pub use stores::FileStores;

/// Tokens of files where neither the call nor a model says how many fit.
pub const DEFAULT_FILE_TOKENS: u64 = 100_000;
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
    /// Tokens that files may take; [`DEFAULT_FILE_TOKENS`] where it is not given.
    pub budget: Option<u64>,
}

/// A plan, with the list that it leaves.
#[derive(Debug, Clone)]
pub struct FilePlan {
    /// What a call does with each file.
    pub plan: Plan,
    scope: Scope,
    session: SessionId,
    next: InlineList,
    /// The revision that it was planned on; 0 for none.
    revision: u64,
}

impl App {
    /// Plans what a call of a session would send, resend, search and skip. Nothing is kept.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid session id, without paths, and for a budget of 0; `Forbidden` for a shared session;
    /// those of [`plan`], of the files and of the store.
    pub async fn plan_files(
        &self,
        caller: &Identity,
        session: &str,
        (files, mode): (&dyn FileSource, Mode),
        call: &FilesOfCall,
    ) -> Result<FilePlan> {
        let (scope, session) = Thread::own(caller, session)?;
        let held = self.engine.store.file_list(&scope, &session).await?;
        let revision = held.as_ref().map_or(0, |held| held.revision);
        let list =
            held.map_or(Ok(InlineList::default()), |held| InlineList::decode(&held.bytes))?;
        let request = requested(files, mode, call).await?;
        let unread = files_to_read(&list, &request);
        let readings = read(files, &unread, &*self.engine.tokenizer).await?;
        let Planned { plan, next } = plan(&list, &request, &readings)?;
        Ok(FilePlan { plan, scope, session, next, revision })
    }

    /// Keeps the list that a plan leaves, as a call that succeeded does.
    ///
    /// # Errors
    /// `Conflict` where another call on the session came first: plan again; those of the store.
    pub async fn keep_files(&self, planned: &FilePlan) -> Result<()> {
        let of = (&planned.scope, &planned.session);
        self.put_file_list(of, planned.revision, planned.next.encode()).await
    }

    /// Forgets which files a session has inline: the next call sends all that fit, and divides them anew.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid session id; `Forbidden` for a shared session; those of the store.
    pub async fn reset_files(&self, caller: &Identity, session: &str) -> Result<()> {
        let (scope, session) = Thread::own(caller, session)?;
        match self.engine.store.file_list(&scope, &session).await? {
            Some(held) => {
                let empty = InlineList::default().encode();
                self.put_file_list((&scope, &session), held.revision, empty).await
            }
            None => Ok(()),
        }
    }

    async fn put_file_list(
        &self,
        (scope, session): (&Scope, &SessionId),
        revision: u64,
        bytes: Vec<u8>,
    ) -> Result<()> {
        let at = self.engine.clock.now();
        let list = FileList { revision: revision + 1, bytes };
        let put = Write::PutFileList { session: session.clone(), list, at };
        self.engine.store.apply(WriteBatch::new(scope.clone(), at).with(put)).await?;
        Ok(())
    }
}

/// The files that are at the paths of a call.
async fn requested(files: &dyn FileSource, mode: Mode, call: &FilesOfCall) -> Result<PlanRequest> {
    let FilesOfCall { context, priority, attachments, budget } = call;
    if context.is_empty() && priority.is_empty() && attachments.is_empty() {
        return Err(Error::invalid("no paths: name the files and folders to plan"));
    }
    let budget = budget.unwrap_or(DEFAULT_FILE_TOKENS);
    if budget == 0 {
        return Err(Error::invalid("budget: must be at least 1 token"));
    }
    let mut request = PlanRequest::new(mode, Budget::of(budget));
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
