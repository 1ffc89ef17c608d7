//! Group commit: one thread owns the writing connection. Whatever waits when it is free goes into
//! one transaction, each task under a savepoint of its own, so that one flush makes all of them
//! durable and one that fails takes none of the others with it. Large tasks wait for that, and go alone. Between two
//! groups it folds what they made due.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, TryRecvError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use throughline_core::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use crate::connection::driver_error;
use crate::fold::WriteConnection;

/// Most tasks of one transaction: bounds what a failed commit takes back and how long a reader of
/// the log has to catch up.
const MAX_GROUP: usize = 256;

/// Units of the index from which on a task is large: some ten milliseconds of writing.
const LARGE: usize = 512;

/// A unit of writing: runs inside a transaction that it neither begins nor ends.
trait Task: Send {
    fn run(&mut self, connection: &WriteConnection) -> Result<()>;
    /// Units of the index that it writes.
    fn units(&self) -> usize;
    /// Tells the waiting caller; `group` is how the transaction ended.
    fn finish(self: Box<Self>, group: std::result::Result<(), &Error>);
}

struct Job<F, T> {
    work: Option<F>,
    units: usize,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<F, T> Task for Job<F, T>
where
    F: FnOnce(&WriteConnection) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, connection: &WriteConnection) -> Result<()> {
        let Some(work) = self.work.take() else {
            return Ok(());
        };
        match work(connection) {
            Ok(value) => {
                self.outcome = Some(Ok(value));
                Ok(())
            }
            Err(error) => {
                let told = Error::new(error.kind(), error.message());
                self.outcome = Some(Err(error));
                Err(told)
            }
        }
    }

    fn units(&self) -> usize {
        self.units
    }

    fn finish(self: Box<Self>, group: std::result::Result<(), &Error>) {
        let outcome = match (self.outcome, group) {
            (Some(Err(error)), _) => Err(error),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, Err(error)) => Err(Error::new(error.kind(), error.message()).during("commit")),
            (None, Ok(())) => {
                Err(Error::internal("a write panicked and was rolled back; nothing was stored"))
            }
        };
        // The caller may have gone; what was committed stays committed.
        let _ = self.reply.send(outcome);
    }
}

/// The handle of the writing thread. Dropping it finishes what was accepted and folds what is due, then ends the
/// thread.
#[derive(Debug)]
pub(crate) struct Writer {
    tasks: Option<mpsc::Sender<Box<dyn Task>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection) -> Result<Self> {
        let (tasks, waiting) = mpsc::channel::<Box<dyn Task>>();
        let thread = std::thread::Builder::new()
            .name("throughline-writer".into())
            .spawn(move || serve(&WriteConnection::new(connection), &waiting))
            .map_err(|error| {
                Error::internal("the writer thread cannot be started").with_source(error)
            })?;
        Ok(Self { tasks: Some(tasks), thread: Some(thread) })
    }

    /// Runs `work` in the next transaction and waits until it is durable.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&WriteConnection) -> Result<T> + Send + 'static,
    {
        self.run_sized(0, work).await
    }

    /// As [`Self::run`], of work that writes so many units of the index. Many of them let what is small go first.
    pub(crate) async fn run_sized<T, F>(&self, units: usize, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&WriteConnection) -> Result<T> + Send + 'static,
    {
        let stopped = || Error::new(ErrorKind::Unavailable, "the store is shutting down");
        let (reply, answer) = oneshot::channel();
        let task = Job { work: Some(work), units, outcome: None, reply };
        let tasks = self.tasks.as_ref().ok_or_else(stopped)?;
        tasks.send(Box::new(task)).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.tasks.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported by its hook.
            let _ = thread.join();
        }
    }
}

/// Tasks that wait.
#[derive(Default)]
struct Queue {
    small: VecDeque<Box<dyn Task>>,
    large: VecDeque<Box<dyn Task>>,
    /// Whether a large one comes next, where one waits.
    is_turn_of_large: bool,
}

impl Queue {
    fn add(&mut self, task: Box<dyn Task>) {
        let queue = if task.units() < LARGE { &mut self.small } else { &mut self.large };
        queue.push_back(task);
    }

    fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_empty()
    }

    /// The tasks of the next transaction: all small ones, or one large one, in turns.
    fn group(&mut self) -> Vec<Box<dyn Task>> {
        let is_large = self.is_turn_of_large || self.small.is_empty();
        self.is_turn_of_large = !is_large;
        match self.large.pop_front_if(|_| is_large) {
            Some(task) => vec![task],
            None => self.small.drain(..self.small.len().min(MAX_GROUP)).collect(),
        }
    }
}

/// Commits what comes, and folds what is due while nothing waits, until nobody can send any more.
fn serve(connection: &WriteConnection, waiting: &mpsc::Receiver<Box<dyn Task>>) {
    let mut queue = Queue::default();
    loop {
        if queue.is_empty() {
            let next = if connection.is_due() {
                match waiting.try_recv() {
                    Err(TryRecvError::Empty) => {
                        connection.fold_slice();
                        continue;
                    }
                    next => next.ok(),
                }
            } else {
                waiting.recv().ok()
            };
            let Some(first) = next else { break };
            queue.add(first);
        }
        waiting.try_iter().for_each(|task| queue.add(task));
        commit_group(connection, queue.group());
        for _ in 0..connection.slices_behind() {
            connection.fold_slice();
        }
    }
    connection.fold_rest();
}

fn commit_group(connection: &WriteConnection, mut group: Vec<Box<dyn Task>>) {
    let committed = run_group(connection, &mut group);
    if committed.is_err() && !connection.is_autocommit() {
        // Nothing of the group may linger in an open transaction.
        let _ = connection.execute_batch("ROLLBACK");
    }
    for task in group {
        task.finish(committed.as_ref().copied());
    }
}

fn run_group(connection: &WriteConnection, group: &mut [Box<dyn Task>]) -> Result<()> {
    let run = |sql| {
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(|_| ())
            .map_err(|error| driver_error(error, "commit"))
    };
    run("BEGIN IMMEDIATE")?;
    // A savepoint costs a copy of every page that the task changes. A task that is alone needs none.
    let is_alone = group.len() == 1;
    for task in group.iter_mut() {
        if !is_alone {
            run("SAVEPOINT task")?;
        }
        // A task that panics must not take the thread, and with it every later write.
        let ran = catch_unwind(AssertUnwindSafe(|| task.run(connection)));
        if let Err(error) = ran.unwrap_or_else(|_| Err(Error::internal("a write panicked"))) {
            if connection.is_autocommit() {
                // SQLite rolled back everything (disk full, I/O error): so did we, then.
                return Err(error);
            }
            if is_alone {
                return run("ROLLBACK");
            }
            run("ROLLBACK TO task")?;
        }
        if !is_alone {
            run("RELEASE task")?;
        }
    }
    run("COMMIT")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::apply;
    use crate::fold::tests::{batch, held, messages, open};

    /// Appends what fills a tail, and looks at the file, as another process would, when it is answered.
    struct Fills {
        file: std::path::PathBuf,
        answered: std::sync::Arc<std::sync::Mutex<Option<[u64; 3]>>>,
    }

    impl Task for Fills {
        fn run(&mut self, connection: &WriteConnection) -> Result<()> {
            apply(connection, &batch(&messages(0..600))).map(|_| ())
        }

        fn units(&self) -> usize {
            600
        }

        fn finish(self: Box<Self>, group: std::result::Result<(), &Error>) {
            assert!(group.is_ok());
            let seen = held(&Connection::open(&self.file).unwrap());
            *self.answered.lock().unwrap() = Some(seen);
        }
    }

    #[test]
    fn the_append_that_fills_a_tail_is_answered_before_the_fold() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let connection = open(&file);
        let answered = std::sync::Arc::default();
        let (tasks, waiting) = mpsc::channel::<Box<dyn Task>>();
        tasks.send(Box::new(Fills { file, answered: std::sync::Arc::clone(&answered) })).unwrap();
        drop(tasks);
        serve(&connection, &waiting);
        assert_eq!(*answered.lock().unwrap(), Some([600, 0, 600]), "nothing was folded yet");
        let [tail, blocks, vectors] = held(&connection);
        assert!(tail == 0 && blocks > 0 && vectors < 512, "{tail} {blocks} {vectors}");
    }

    /// A task that others follow when it runs.
    struct Follows {
        name: &'static str,
        units: usize,
        then: Vec<Follows>,
        tasks: mpsc::Sender<Box<dyn Task>>,
        ran: std::sync::Arc<std::sync::Mutex<Vec<&'static str>>>,
    }

    impl Task for Follows {
        fn run(&mut self, _: &WriteConnection) -> Result<()> {
            self.ran.lock().unwrap().push(self.name);
            for then in self.then.drain(..) {
                self.tasks.send(Box::new(then)).unwrap();
            }
            Ok(())
        }

        fn units(&self) -> usize {
            self.units
        }

        fn finish(self: Box<Self>, group: std::result::Result<(), &Error>) {
            assert!(group.is_ok());
        }
    }

    #[test]
    fn large_tasks_let_small_ones_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let connection = open(&folder.path().join("store.db"));
        let ran = std::sync::Arc::<std::sync::Mutex<Vec<_>>>::default();
        let (tasks, waiting) = mpsc::channel::<Box<dyn Task>>();
        let task = |name, units, then| {
            let (tasks, ran) = (tasks.clone(), std::sync::Arc::clone(&ran));
            Follows { name, units, then, tasks, ran }
        };
        let small = |name| task(name, LARGE - 1, Vec::new());
        let first = task("large 1", LARGE, vec![small("small 2"), small("small 3")]);
        for task in [first, task("large 2", LARGE, Vec::new()), small("small 1")] {
            tasks.send(Box::new(task)).unwrap();
        }
        drop(tasks);
        serve(&connection, &waiting);
        let order = ["small 1", "large 1", "small 2", "small 3", "large 2"];
        assert_eq!(*ran.lock().unwrap(), order);
    }

    #[tokio::test]
    async fn a_task_that_fails_or_panics_takes_no_other_with_it() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE kept (x)").unwrap();
        let writer = Writer::start(connection).unwrap();
        let insert = |number: i64| {
            move |connection: &WriteConnection| {
                let done = connection.execute("INSERT INTO kept VALUES (?1)", [number]);
                done.map_err(|error| driver_error(error, "test"))
            }
        };
        let fail = move |connection: &WriteConnection| {
            insert(2)(connection)?;
            Err::<usize, _>(Error::conflict("refused"))
        };
        let panic = move |connection: &WriteConnection| -> Result<usize> {
            insert(3)(connection)?;
            panic!("a defect, on purpose")
        };
        let (first, failed, panicked, last) = tokio::join!(
            writer.run(insert(1)),
            writer.run(fail),
            writer.run(panic),
            writer.run(insert(4)),
        );
        assert!(first.is_ok() && last.is_ok());
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(panicked.unwrap_err().kind(), ErrorKind::Internal);
        let sum = |connection: &WriteConnection| {
            let sum =
                connection.query_row("SELECT sum(x) FROM kept", [], |row| row.get::<_, i64>(0));
            sum.map_err(|error| driver_error(error, "test"))
        };
        assert_eq!(writer.run(sum).await.unwrap(), 5_i64);
    }
}
