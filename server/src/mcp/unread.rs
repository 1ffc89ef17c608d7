//! Answers over HTTP: in the memory of their client until they are read.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::Extensions;
use serde::Serialize;
use throughline_core::{Error, Result};
use throughline_engine::admission::{AnswerMemory, ClientId, MemoryBudget};

/// How long an answer that may be as large as any waits for those of its client to be made and read.
const PATIENCE: Duration = Duration::from_secs(5);

/// The memory of what a request was answered. It is given back when the request's handler and its response are gone.
#[derive(Clone)]
pub(crate) struct Unread {
    budget: MemoryBudget,
    client: ClientId,
    /// What the largest answer takes while it is made.
    largest: usize,
    taken: Arc<Mutex<Option<AnswerMemory>>>,
}

impl Unread {
    /// Nothing yet, of this client.
    pub(crate) fn new(budget: MemoryBudget, client: ClientId, largest: usize) -> Self {
        Self { budget, client, largest, taken: Arc::default() }
    }

    /// That of the request at hand; over standard input there is none.
    pub(super) fn of(extensions: &Extensions) -> Option<Self> {
        let parts = extensions.get::<axum::http::request::Parts>()?;
        parts.extensions.get::<Self>().cloned()
    }

    /// Takes the memory of the largest answer, before it is made.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(super) async fn take_largest(&self) -> Result<()> {
        let wait = self.budget.answer_waits(self.client, self.largest);
        let memory = match tokio::time::timeout(PATIENCE, wait).await {
            Ok(memory) => memory?,
            Err(_) => self.budget.answer(self.client, self.largest)?,
        };
        *self.taken() = memory;
        Ok(())
    }

    /// Takes memory for an answer. What can be asked for again without doing anything twice is refused where there is none;
    /// whoever wrote something waits.
    ///
    /// # Errors
    /// `RateLimited` where the client has too much to read, `Unavailable` where all together have.
    pub(super) async fn take<T: Serialize>(&self, answer: &T, is_read: bool) -> Result<()> {
        let size = size_of(answer)?;
        let reserved = self.taken().take().filter(|_| size <= self.largest);
        let memory = match reserved {
            Some(mut reserved) => {
                reserved.shrink_to(size);
                Some(reserved)
            }
            None if is_read => self.budget.answer(self.client, size)?,
            None => self.budget.answer_waits(self.client, size).await?,
        };
        *self.taken() = memory;
        Ok(())
    }

    fn taken(&self) -> MutexGuard<'_, Option<AnswerMemory>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of the answer's JSON.
fn size_of<T: Serialize>(answer: &T) -> Result<usize> {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, answer)
        .map_err(|error| Error::internal("a result has no JSON form").with_source(error))?;
    Ok(counted.0)
}

struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
