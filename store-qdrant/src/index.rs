//! The handle: a server, the collections of a prefix, and which of them were seen.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throughline_core::ports::VectorSpace;
use throughline_core::{Error, ErrorKind, Result};

use crate::collection::{self, vanished};
use crate::options::QdrantOptions;
use crate::server::Server;

/// Vectors in Qdrant.
///
/// Cheap to clone; clones share their connections. Several processes may use one prefix.
#[derive(Clone)]
pub struct QdrantIndex {
    inner: Arc<Inner>,
}

struct Inner {
    server: Server,
    options: QdrantOptions,
    /// Collections that were there. Whoever read a watermark of one counts on what it holds: if it
    /// is gone, none may be made in its place before the watermark was read again.
    seen: Mutex<HashSet<String>>,
}

impl QdrantIndex {
    /// An index on a server, which need not be there: a service starts without it, and each call
    /// is `Unavailable` as long as it is away.
    ///
    /// # Errors
    /// `InvalidInput` when an option cannot be used; the message names its key.
    pub fn open(options: QdrantOptions) -> Result<Self> {
        let server = Server::new(&options)?;
        Ok(Self { inner: Arc::new(Inner { server, options, seen: Mutex::default() }) })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.inner.server
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.inner.options.prefix
    }

    /// The collection of a space, which may not be there.
    pub(crate) fn collection(&self, space: &VectorSpace) -> String {
        collection::name(self.prefix(), space)
    }

    /// All collections of the prefix.
    pub(crate) async fn collections(&self) -> Result<Vec<String>> {
        let server = self.server();
        let answer = server.call("list collections", server.client.list_collections()).await?;
        let names = answer.collections.into_iter().map(|collection| collection.name);
        Ok(names.filter(|name| collection::dimensions_of(self.prefix(), name).is_some()).collect())
    }

    /// Makes sure that a collection is there and has the right shape.
    pub(crate) async fn ensure(&self, name: &str, space: &VectorSpace) -> Result<()> {
        let dimensions = space.dimensions as u64;
        match collection::info(self.server(), name).await? {
            Some(info) => {
                collection::complete(self.server(), name, dimensions, &info).await?;
            }
            None if self.unsee(name) => return Err(vanished(name)),
            None => collection::make(self.server(), name, dimensions).await?,
        }
        self.saw(name);
        Ok(())
    }

    /// Why Qdrant refuses to search: the shape of the collection, where that is it.
    pub(crate) async fn explained(&self, name: &str, space: &VectorSpace, error: Error) -> Error {
        let info = collection::info(self.server(), name).await.ok().flatten();
        let shape = info.map(|info| collection::check(&info, name, space.dimensions as u64));
        match shape {
            Some(Err(wrong)) => wrong.with_source(error),
            _ => error,
        }
    }

    /// An error of a write to a collection that was there a moment ago.
    pub(crate) fn interrupted(&self, name: &str, error: Error) -> Error {
        if error.kind() == ErrorKind::NotFound {
            self.unsee(name);
            return vanished(name).with_source(error);
        }
        error
    }

    pub(crate) fn saw(&self, name: &str) {
        self.seen().insert(name.to_owned());
    }

    /// Whether the collection had been seen.
    pub(crate) fn unsee(&self, name: &str) -> bool {
        self.seen().remove(name)
    }

    fn seen(&self) -> MutexGuard<'_, HashSet<String>> {
        self.inner.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for QdrantIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QdrantIndex").field(&self.inner.options).finish()
    }
}
