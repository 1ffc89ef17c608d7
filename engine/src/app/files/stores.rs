//! Stores of files that live for one call: the model of the call searches them, and they are deleted when it ends.
//!
//! A task of its own creates, keeps and deletes the stores of a call, so that a caller that is dropped (an error, a timeout, a
//! client that hangs up) only has to be noticed. What a killed process leaves is in the journal ([`FileStoreService`]).

use std::fmt;
use std::time::Duration;

use throughline_core::ports::{FileHit, SearchableFile};
use throughline_core::services::file_stores::{FileStoreCall, FileStoreService, RENEW_FILE_STORES};
use throughline_core::{Error, ErrorKind, Result};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::app::App;
use crate::identity::Identity;

/// How long a process that ends waits for stores to be deleted. The journal has what is left then.
const LAST_DELETIONS: Duration = Duration::from_secs(10);

/// The tasks that keep the stores of calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileStoreTasks {
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The files of one call, which can be searched until this is closed or dropped. Then the stores that hold them are deleted.
pub struct FileStores {
    service: FileStoreService,
    /// The ids of the stores, which never leave this process.
    stores: Vec<String>,
    bytes: u64,
    end: DropGuard,
    deleted: oneshot::Receiver<Result<()>>,
}

impl App {
    /// Puts files into stores of their own, which only the returned value can search. They can be searched when this returns.
    /// Dropping the future, or the value, deletes the stores in the background.
    ///
    /// Names are what hits are called by, such as paths. Files without text are left out. More files than a store holds go to
    /// further stores.
    ///
    /// # Errors
    /// Before anything is created: `InvalidInput` for a name that is empty, longer than 500 bytes, or there twice, and for files
    /// with more bytes than `files.max_search_bytes`; `RateLimited` where they have that with those of calls that run. Then those
    /// of the search, such as `Unavailable` for a server that is away: what was created is deleted.
    pub async fn open_file_stores(
        &self,
        caller: &Identity,
        files: Vec<SearchableFile>,
    ) -> Result<FileStores> {
        let scope = caller.scope()?;
        let service = self.engine.file_stores.clone().ok_or_else(|| {
            Error::invalid(
                "files cannot be searched: see the log of the start for what `files.search` lacks",
            )
        })?;
        let call = service.begin(&scope, files)?;
        let bytes = call.bytes();
        let ended = self.file_stores.stop.child_token();
        let end = ended.clone().drop_guard();
        let (ready, opened) = oneshot::channel();
        let (tell, deleted) = oneshot::channel();
        let task = async move {
            let _ = tell.send(keep(call, ended, ready).await);
        };
        self.file_stores.tasks.spawn(task.in_current_span());
        let stores = opened.await.map_err(|_| stopped())??;
        Ok(FileStores { service, stores, bytes, end, deleted })
    }

    /// Ends the stores of all calls, and waits for their deletion for some seconds: for a process that ends.
    pub async fn close_file_stores(&self) {
        let FileStoreTasks { tasks, stop } = &self.file_stores;
        stop.cancel();
        tasks.close();
        if tokio::time::timeout(LAST_DELETIONS, tasks.wait()).await.is_err() {
            tracing::warn!(
                "stores of files are still being deleted: the next start deletes the rest"
            );
        }
    }
}

impl FileStores {
    /// The passages that are nearest to a question, best first, at most `limit` (1 to 50).
    ///
    /// # Errors
    /// Those of the search: `Unavailable` for a server that is away, `NotFound` where the stores were deleted because this
    /// process stood still for minutes.
    pub async fn search(&self, question: &str, limit: usize) -> Result<Vec<FileHit>> {
        self.service.search(&self.stores, question, limit).await
    }

    /// Whether there is nothing to search.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    /// Bytes of the names and texts that are searched.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Deletes the stores and waits for it.
    ///
    /// # Errors
    /// Those of the search. What is left is deleted by a job, or by the server's own expiry.
    pub async fn close(self) -> Result<()> {
        let Self { end, deleted, .. } = self;
        drop(end);
        deleted.await.map_err(|_| stopped())?
    }
}

/// Ids stay within.
impl fmt::Debug for FileStores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileStores").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

fn stopped() -> Error {
    Error::new(ErrorKind::Unavailable, "the service stops: try again later")
}

/// Creates the stores of a call, keeps them until it has ended, and deletes them.
async fn keep(
    mut call: FileStoreCall,
    ended: CancellationToken,
    ready: oneshot::Sender<Result<Vec<String>>>,
) -> Result<()> {
    let batches = call.take_files();
    if batches.is_empty() {
        let _ = ready.send(Ok(Vec::new()));
        ended.cancelled().await;
        return Ok(());
    }
    let _measured = Measured::new(batches.len(), call.bytes());
    let opened = tokio::select! {
        opened = open(&call, batches, &ended) => opened,
        never = renew(&call) => match never {},
    };
    let deleted = match opened {
        Ok(stores) => {
            if ready.send(Ok(stores.clone())).is_ok() {
                tokio::select! {
                    () = ended.cancelled() => {}
                    never = renew(&call) => match never {},
                }
            }
            call.delete(Some(&stores)).await
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            call.delete(None).await
        }
    };
    if let Err(error) = &deleted {
        tracing::warn!(
            code = error.kind().code(),
            "stores of files were not deleted and will be later: {}",
            error.message()
        );
    }
    deleted
}

/// Creates and fills stores until all files are in one, or the call has ended.
async fn open(
    call: &FileStoreCall,
    batches: Vec<Vec<SearchableFile>>,
    ended: &CancellationToken,
) -> Result<Vec<String>> {
    call.renew().await?;
    let mut stores = Vec::with_capacity(batches.len());
    for files in batches {
        if ended.is_cancelled() {
            return Err(stopped());
        }
        let store = call.create().await?;
        ended.run_until_cancelled(call.add(&store, files)).await.ok_or_else(stopped)??;
        stores.push(store);
    }
    Ok(stores)
}

/// Says from time to time that the stores are in use.
async fn renew(call: &FileStoreCall) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(RENEW_FILE_STORES).await;
        if let Err(error) = call.renew().await {
            tracing::warn!(code = error.kind().code(), "{}", error.message());
        }
    }
}

/// Counts stores and bytes as open until it is dropped.
struct Measured {
    stores: f64,
    bytes: f64,
}

impl Measured {
    fn new(stores: usize, bytes: u64) -> Self {
        let measured = Self { stores: stores as f64, bytes: bytes as f64 };
        metrics::gauge!("throughline_file_stores_open").increment(measured.stores);
        metrics::gauge!("throughline_file_store_bytes").increment(measured.bytes);
        measured
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        metrics::gauge!("throughline_file_stores_open").decrement(self.stores);
        metrics::gauge!("throughline_file_store_bytes").decrement(self.bytes);
    }
}
