//! A budget of memory for the bodies of requests and answers.

use std::sync::Arc;

use throughline_core::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::{ClientId, Shares};

/// The unit in which memory is counted.
const UNIT: usize = 16 << 10;
/// Requests that cost less do not wait for memory: their number is limited.
const SMALL: usize = 256 << 10;
/// Answers that are smaller take no memory of their client: their number is limited.
const SMALL_ANSWER: usize = 64 << 10;

/// Why a body is refused.
const BODIES_FULL: (&str, &str) = (
    "overloaded by large requests: retry in a second (http.max_bodies_mb)",
    "the requests of this key are too large together: retry when some of them are answered",
);
/// Why an answer is refused.
const ANSWERS_FULL: (&str, &str) = (
    "overloaded by large answers: retry in a second (http.max_bodies_mb)",
    "the answers of this key that are not read yet are too large together: read them, then retry",
);

/// Memory for requests: half for bodies that arrive or wait, half for what is made of them at work. Beside it, a quarter as
/// much for answers until they are read: clients that read nothing hold no requests up. One key may take half of each.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    bodies: Pool,
    at_work: Pool,
    answers: Pool,
}

#[derive(Debug, Clone)]
struct Pool {
    all: Arc<Semaphore>,
    share: Arc<Shares>,
}

/// A part of a pool, given back when it is dropped.
#[derive(Debug)]
struct Part {
    of_client: OwnedSemaphorePermit,
    of_all: OwnedSemaphorePermit,
}

/// Memory for a body, until this is dropped.
#[derive(Debug)]
pub struct BodyMemory {
    pool: Pool,
    client: ClientId,
    units: usize,
    held: Option<Part>,
}

/// Memory for an answer, until this is dropped.
#[derive(Debug)]
pub struct AnswerMemory(Part);

/// Memory for a request at work, until this is dropped.
#[derive(Debug)]
pub struct WorkMemory(#[expect(dead_code, reason = "it is held")] Option<Part>);

impl MemoryBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self {
            bodies: Pool::new(bytes / 2),
            at_work: Pool::new(bytes / 2),
            answers: Pool::new(bytes / 4),
        }
    }

    /// Memory for a body of this client of which nothing has arrived.
    #[must_use]
    pub fn body(&self, client: ClientId) -> BodyMemory {
        BodyMemory { pool: self.bodies.clone(), client, units: 0, held: None }
    }

    /// Waits for the memory that a request costs at work. One that costs more than its client may have takes all of that.
    ///
    /// # Errors
    /// None while the service runs.
    pub async fn at_work(&self, client: ClientId, bytes: usize) -> Result<WorkMemory> {
        if bytes < SMALL {
            return Ok(WorkMemory(None));
        }
        Ok(WorkMemory(Some(self.at_work.wait(client, bytes).await?)))
    }

    /// Memory for an answer of so many bytes; a small one needs none. One that is larger than its client may have takes all
    /// of that.
    ///
    /// # Errors
    /// `RateLimited` where the client has too much, `Unavailable` where all together have.
    pub fn answer(&self, client: ClientId, bytes: usize) -> Result<Option<AnswerMemory>> {
        if bytes < SMALL_ANSWER {
            return Ok(None);
        }
        let units = self.answers.units(client, bytes);
        self.answers.take(client, units, ANSWERS_FULL).map(AnswerMemory).map(Some)
    }

    /// The same, but waits until other answers are read.
    ///
    /// # Errors
    /// None while the service runs.
    pub async fn answer_waits(
        &self,
        client: ClientId,
        bytes: usize,
    ) -> Result<Option<AnswerMemory>> {
        if bytes < SMALL_ANSWER {
            return Ok(None);
        }
        self.answers.wait(client, bytes).await.map(AnswerMemory).map(Some)
    }
}

impl Pool {
    fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).clamp(2, u32::MAX as usize);
        let share = Arc::new(Shares::new(units, units / 2));
        Self { all: Arc::new(Semaphore::new(units)), share }
    }

    /// The units of so many bytes, and not more than a client may have.
    fn units(&self, client: ClientId, bytes: usize) -> u32 {
        let units = bytes.div_ceil(UNIT).min(self.share.most(client));
        u32::try_from(units).unwrap_or(u32::MAX)
    }

    async fn wait(&self, client: ClientId, bytes: usize) -> Result<Part> {
        let units = self.units(client, bytes);
        let closed = |_| Error::internal("no memory is given any more");
        // The client's own comes first: so others wait for few of its requests.
        let of_client = self.share.of(client).acquire_many_owned(units).await.map_err(closed)?;
        let all = Arc::clone(&self.all);
        let of_all = all.acquire_many_owned(units).await.map_err(closed)?;
        Ok(Part { of_client, of_all })
    }

    /// Takes so many units, or refuses: why where all together have too much, and where the client has.
    fn take(&self, client: ClientId, units: u32, (all, own): (&str, &str)) -> Result<Part> {
        let of_all = Arc::clone(&self.all).try_acquire_many_owned(units);
        let of_all = of_all.map_err(|_| Error::new(ErrorKind::Unavailable, all))?;
        let of_client = self.share.of(client).try_acquire_many_owned(units);
        let of_client = of_client.map_err(|_| Error::new(ErrorKind::RateLimited, own))?;
        Ok(Part { of_client, of_all })
    }
}

impl AnswerMemory {
    /// Gives back what an answer of so many bytes does not need.
    pub fn shrink_to(&mut self, bytes: usize) {
        let Part { of_client, of_all } = &mut self.0;
        let more = of_all.num_permits().saturating_sub(bytes.div_ceil(UNIT));
        drop((of_client.split(more), of_all.split(more)));
    }
}

impl BodyMemory {
    /// Takes so many bytes in all.
    ///
    /// # Errors
    /// `RateLimited` where the client has too much, `Unavailable` where all together have.
    pub fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.div_ceil(UNIT).saturating_sub(self.units);
        if more == 0 {
            return Ok(());
        }
        let permits = u32::try_from(more).unwrap_or(u32::MAX);
        let part = self.pool.take(self.client, permits, BODIES_FULL)?;
        self.units += more;
        match &mut self.held {
            Some(held) => {
                held.of_client.merge(part.of_client);
                held.of_all.merge(part.of_all);
            }
            none => *none = Some(part),
        }
        Ok(())
    }

    /// Gives everything back.
    pub fn give_back(&mut self) {
        (self.units, self.held) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> ClientId {
        ClientId::Key(id.parse().unwrap())
    }

    #[test]
    fn bodies_of_one_key_leave_memory_to_the_others() {
        let budget = MemoryBudget::new(16 * UNIT);
        let (greedy, other) = (key("0000000000000001"), key("0000000000000002"));
        let (mut one, mut two) = (budget.body(greedy), budget.body(greedy));
        one.grow_to(1).unwrap();
        one.grow_to(3 * UNIT).unwrap();
        two.grow_to(UNIT).unwrap();
        assert_eq!(two.grow_to(UNIT + 1).unwrap_err().kind(), ErrorKind::RateLimited);
        let mut of_other = budget.body(other);
        of_other.grow_to(4 * UNIT).unwrap();
        let refused = budget.body(ClientId::Local).grow_to(1).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable);
        drop((one, of_other));
        two.grow_to(4 * UNIT).unwrap();
        assert_eq!(two.grow_to(4 * UNIT + 1).unwrap_err().kind(), ErrorKind::RateLimited);
        two.give_back();
        two.grow_to(4 * UNIT).unwrap();
    }

    #[tokio::test]
    async fn large_work_of_one_key_waits_for_its_own() {
        let budget = MemoryBudget::new(8 * SMALL);
        let (greedy, other) = (key("0000000000000001"), key("0000000000000002"));
        // More than it may have: it works alone.
        let first = budget.at_work(greedy, 100 * SMALL).await.unwrap();
        let mut second = Box::pin(budget.at_work(greedy, SMALL));
        assert!(futures_util::poll!(&mut second).is_pending());
        for (client, bytes) in [(greedy, SMALL - 1), (other, 2 * SMALL)] {
            let work = Box::pin(budget.at_work(client, bytes));
            assert!(futures_util::poll!(work).is_ready(), "{client:?} {bytes}");
        }
        drop(first);
        assert!(futures_util::poll!(&mut second).is_ready());
    }

    #[tokio::test]
    async fn answers_of_one_key_leave_memory_to_the_others() {
        let budget = MemoryBudget::new(32 * SMALL_ANSWER);
        let (greedy, other) = (key("0000000000000001"), key("0000000000000002"));
        // More than it may have: it takes all of that.
        let mut large = budget.answer(greedy, 100 * SMALL_ANSWER).unwrap().unwrap();
        let refused = |client| budget.answer(client, SMALL_ANSWER).unwrap_err().kind();
        assert_eq!(refused(greedy), ErrorKind::RateLimited);
        assert!(budget.answer(greedy, SMALL_ANSWER - 1).unwrap().is_none());
        let of_other = budget.answer(other, 4 * SMALL_ANSWER).unwrap();
        assert_eq!(refused(ClientId::Local), ErrorKind::Unavailable);
        let mut waits = Box::pin(budget.answer_waits(greedy, 2 * SMALL_ANSWER));
        assert!(futures_util::poll!(&mut waits).is_pending());
        budget.body(greedy).grow_to(UNIT).unwrap();
        large.shrink_to(SMALL_ANSWER + 1);
        assert!(futures_util::poll!(&mut waits).is_ready());
        drop((large, of_other));
        budget.answer(ClientId::Local, 6 * SMALL_ANSWER).unwrap();
    }
}
