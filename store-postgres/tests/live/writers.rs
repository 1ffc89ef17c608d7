//! Processes that write to one scope, of which one is killed again and again: what was acknowledged is
//! there, nothing is there twice, and the numbers have no gap.
//!
//! The same where the server itself is killed, comes back read-only, or fails over to its standby.
//!
//! `THROUGHLINE_TEST_WRITERS_SECONDS` sets how long they write; a twelfth of that is between two kills.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use throughline_core::ErrorKind;
use throughline_core::ports::{SessionRepo, Store};
use throughline_store_postgres::{PostgresOptions, PostgresStore, migrate};
use throughline_testkit::build::scope;
use tokio::task::JoinHandle;

use crate::support::Server;
use crate::support::own::Own;
use crate::support::turns::{WRITERS, check, turn};

const SECONDS: &str = "THROUGHLINE_TEST_WRITERS_SECONDS";
/// What a writing process is told: its number, its first batch, and the URL, with spaces between.
const WRITER: &str = "THROUGHLINE_TEST_WRITER";
/// Of the server.
const KILLS: usize = 5;
/// Batches that are acknowledged between two kills.
const BETWEEN: usize = 60;
/// For the writers to go on after a kill.
const SOON: Duration = Duration::from_secs(60);
/// What a writer says of a batch that was acknowledged, and of one that failed.
const DONE: &str = "acknowledged";
const FAILED: &str = "failed";
/// The end of all that a process ever said.
const ENDED: &str = "(ended)";

fn store(url: &str) -> PostgresStore {
    let options = PostgresOptions { connections: 2, ..PostgresOptions::new(url) };
    PostgresStore::connect_lazy(options).unwrap()
}

/// What a writer repeats is there once. As a process that the test below starts, it writes until it is
/// killed.
#[tokio::test]
async fn writer() {
    if let Ok(told) = std::env::var(WRITER) {
        return write(&told).await;
    }
    let server = Server::start("writer").await;
    let store = store(&server.options().url);
    for n in (0..6).chain(0..6) {
        store.apply(turn(0, n)).await.unwrap();
    }
    assert_eq!(store.totals(&scope("ana")).await.unwrap().messages, 12);
    server.end().await;
}

/// Writes without end, and repeats what failed.
async fn write(told: &str) {
    let mut told = told.splitn(3, ' ');
    let mut number = || told.next().unwrap().parse::<usize>().unwrap();
    let (writer, first) = (number(), number());
    let store = store(told.next().unwrap());
    // The harness has begun a line.
    println!();
    for n in first.. {
        while let Err(error) = store.apply(turn(writer, n)).await {
            println!("{FAILED} {:?} {error}", error.kind());
        }
        println!("{DONE} {n}");
    }
}

/// A line of a writer.
type Said = (usize, String);

fn start(number: usize, first: usize, url: &str, say: &Sender<Said>) -> Child {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["writers::writer", "--exact", "--nocapture"])
        .env(WRITER, format!("{number} {first} {url}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let say = say.clone();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if say.send((number, line)).is_err() {
                return;
            }
        }
        let _ = say.send((number, ENDED.to_owned()));
    });
    process
}

/// What the writers said.
#[derive(Default)]
struct Heard {
    /// Batches of each writer that were acknowledged, by killed predecessors too.
    done: [usize; WRITERS],
    failures: Vec<String>,
}

impl Heard {
    fn hear(&mut self, (number, line): Said) {
        match line.split_once(' ') {
            Some((DONE, n)) => {
                assert_eq!(n.parse::<usize>().unwrap(), self.done[number], "in order");
                self.done[number] += 1;
            }
            Some((FAILED, why)) => self.failures.push(why.to_owned()),
            // The harness'.
            _ => {}
        }
    }

    /// Kills a writer, and hears the rest of what it had said.
    fn kill(&mut self, number: usize, process: &mut Child, lines: &Receiver<Said>) {
        process.kill().unwrap();
        process.wait().unwrap();
        loop {
            let said = lines.recv_timeout(Duration::from_secs(10)).unwrap();
            if said == (number, ENDED.to_owned()) {
                return;
            }
            self.hear(said);
        }
    }
}

#[tokio::test]
async fn writers_that_are_killed_lose_nothing_and_double_nothing() {
    let seconds: u64 = std::env::var(SECONDS).map_or(6, |text| text.parse().unwrap());
    let every = Duration::from_millis(seconds * 1_000 / 12);
    let server = Server::start("writers").await;
    let url = server.options().url;
    let (say, lines) = channel();
    let mut heard = Heard::default();
    let mut processes: Vec<Child> = (0..WRITERS).map(|n| start(n, 0, &url, &say)).collect();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut next, mut kills) = (Instant::now() + every, 0);
    while Instant::now() < end {
        if let Ok(said) = lines.recv_timeout(next.saturating_duration_since(Instant::now())) {
            heard.hear(said);
        }
        if Instant::now() >= next {
            let victim = kills % WRITERS;
            heard.kill(victim, &mut processes[victim], &lines);
            processes[victim] = start(victim, heard.done[victim], &url, &say);
            kills += 1;
            next += every;
        }
    }
    for (number, process) in processes.iter_mut().enumerate() {
        heard.kill(number, process, &lines);
    }
    let Heard { done, failures } = heard;
    check(&store(&url), done).await;
    let batches: usize = done.iter().sum();
    println!(
        "{batches} batches in {seconds} s, {kills} kills, {} failed: {:.2} %",
        failures.len(),
        100.0 * failures.len() as f64 / (batches + failures.len()) as f64
    );
    assert!(batches > 100 && kills >= 8, "{batches} batches, {kills} kills");
    assert!(failures.len() * 100 < batches, "{failures:?}");
    server.end().await;
}

/// A database with its tables on a server of the test's own, and a store that has little patience.
async fn database(own: &Own, name: &str) -> (Server, PostgresStore) {
    let server = Server::empty_on(own.admin(), name).await;
    migrate(&server.options()).await.unwrap();
    let options = PostgresOptions {
        connections: 3,
        connect_timeout: Duration::from_secs(1),
        statement_timeout: Duration::from_secs(2),
        ..server.options()
    };
    let store = PostgresStore::connect_lazy(options).unwrap();
    (server, store)
}

/// Writers on one store that repeat each batch until it is acknowledged: whether it was written is not known.
struct Writers {
    done: Arc<[AtomicUsize; WRITERS]>,
    failed: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Writers {
    /// Begins to write. No batch may fail in another way than these.
    fn start(store: &PostgresStore, expected: &'static [ErrorKind]) -> Self {
        let mut writers = Self {
            done: Arc::default(),
            failed: Arc::default(),
            ended: Arc::default(),
            tasks: Vec::new(),
        };
        for writer in 0..WRITERS {
            let (store, done) = (store.clone(), Arc::clone(&writers.done));
            let (failed, ended) = (Arc::clone(&writers.failed), Arc::clone(&writers.ended));
            writers.tasks.push(tokio::spawn(async move {
                for n in 0.. {
                    while let Err(error) = store.apply(turn(writer, n)).await {
                        assert!(expected.contains(&error.kind()), "{error:?}");
                        failed.fetch_add(1, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(20)).await; // tidy: sleep: between two tries
                    }
                    done[writer].store(n + 1, Ordering::Relaxed);
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }));
        }
        writers
    }

    fn acknowledged(&self) -> usize {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum()
    }

    /// Waits until they have written some more.
    async fn go_on(&self) {
        let (begun, before) = (Instant::now(), self.acknowledged());
        while self.acknowledged() < before + BETWEEN {
            assert!(begun.elapsed() < SOON, "the writers go on after {before} batches");
            assert!(!self.tasks.iter().any(JoinHandle::is_finished));
            tokio::time::sleep(Duration::from_millis(5)).await; // tidy: sleep: between two looks
        }
    }

    /// Ends them; what each has written, and how many tries failed.
    async fn end(self) -> ([usize; WRITERS], usize) {
        self.ended.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        let done = [0, 1, 2, 3].map(|writer: usize| self.done[writer].load(Ordering::Relaxed));
        (done, self.failed.load(Ordering::Relaxed))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_killed_loses_nothing_that_was_acknowledged_and_doubles_nothing() {
    let mut own = Own::start().await;
    let (_, store) = database(&own, "killed").await;
    let writers = Writers::start(&store, &[ErrorKind::Unavailable]);
    for _ in 0..KILLS {
        writers.go_on().await;
        own.kill();
        own.up(&[]).await;
    }
    let (done, failed) = writers.end().await;
    assert!(failed >= KILLS, "the kills came in the midst of writing");
    check(&store, done).await;
    assert_eq!(store.health(true).await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_fails_over_loses_nothing_that_was_acknowledged_and_doubles_nothing() {
    let mut own = Own::start().await;
    let (_, store) = database(&own, "failsover").await;
    let mut standby = own.standby().await;
    let writers = Writers::start(&store, &[ErrorKind::Unavailable, ErrorKind::ReadOnly]);
    writers.go_on().await;
    own.kill();
    standby.take_over(own).await;
    // Reads go on before writes do, and the operator is told.
    let problems = store.health(false).await.unwrap().problems;
    assert!(problems.iter().any(|told| told.contains("is a replica")), "{problems:?}");
    assert!(store.totals(&scope("ana")).await.unwrap().messages > 0);
    standby.promote().await;
    writers.go_on().await;
    let (done, failed) = writers.end().await;
    assert!(failed > 0, "the failure came in the midst of writing");
    check(&store, done).await;
    assert_eq!(store.health(true).await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_comes_back_read_only_answers_reads_until_it_takes_writes() {
    let mut own = Own::start().await;
    let (_, store) = database(&own, "comesback").await;
    store.apply(turn(0, 0)).await.unwrap();
    for n in 1..3 {
        own.down();
        let away = store.apply(turn(0, n)).await.unwrap_err();
        assert_eq!(away.kind(), ErrorKind::Unavailable, "{away:?}");
        own.up(&["default_transaction_read_only=on"]).await;
        let refused = store.apply(turn(0, n)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused:?}");
        assert!(refused.message().contains("point `postgres.url` at the primary"), "{refused}");
        let totals = store.totals(&scope("ana")).await.unwrap();
        assert!(totals.messages > 0);
        let problems = store.health(false).await.unwrap().problems;
        assert!(problems.len() == 1 && problems[0].contains("read-only"), "{problems:?}");
        own.down();
        own.up(&[]).await;
        store.apply(turn(0, n)).await.unwrap();
        assert_eq!(store.health(false).await.unwrap().problems, Vec::<String>::new());
    }
    check(&store, [3, 0, 0, 0]).await;
}
