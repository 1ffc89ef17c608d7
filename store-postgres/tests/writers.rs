//! Processes that write to one scope, of which one is killed again and again: what was acknowledged is
//! there, nothing is there twice, and the numbers have no gap.
//!
//! `THROUGHLINE_TEST_WRITERS_SECONDS` sets how long they write; a twelfth of that is between two kills.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use throughline_core::ids::MessageId;
use throughline_core::page::PageRequest;
use throughline_core::ports::{HeadLimits, SessionRepo, Store, WriteBatch};
use throughline_core::session::Message;
use throughline_store_postgres::{PostgresOptions, PostgresStore};
use throughline_testkit::build::{append, batch, say, scope, session};
use uuid::Uuid;

use support::Server;

const SECONDS: &str = "THROUGHLINE_TEST_WRITERS_SECONDS";
/// What a writing process is told: its number, its first batch, and the URL, with spaces between.
const WRITER: &str = "THROUGHLINE_TEST_WRITER";
const WRITERS: usize = 4;
/// Sessions are fewer than writers, so that writers meet in them.
const SESSIONS: usize = 2;
/// What a writer says of a batch that was acknowledged, and of one that failed.
const DONE: &str = "acknowledged";
const FAILED: &str = "failed";
/// The end of all that a process ever said.
const ENDED: &str = "(ended)";

/// The n-th batch of a writer: the same whenever it is repeated.
fn turn(writer: usize, n: usize) -> WriteBatch {
    let mut batch = batch(&scope("ana"));
    for part in 0..=n % 3 {
        let text = format!("{writer} says {n} {part}");
        let session = format!("s{}", writer % SESSIONS);
        let mut said = say(&text).external(&text).build();
        // The builder's ids count up alike in every process.
        let process = u128::from(std::process::id()) << 96;
        said.id = MessageId::from_uuid(Uuid::from_u128(said.id.as_uuid().as_u128() ^ process));
        batch.writes.push(append(&session, said));
    }
    batch
}

/// The external ids of a batch.
fn ids(writer: usize, n: usize) -> Vec<String> {
    (0..=n % 3).map(|part| format!("{writer} says {n} {part}")).collect()
}

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
        .args(["writer", "--exact", "--nocapture"])
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

/// What the writers left: each writer's acknowledged batches, and at most one more that was under way.
async fn check(store: &PostgresStore, done: [usize; WRITERS]) {
    // A batch that was under way at the kill is there or not; repeated, it is there once.
    for (writer, done) in done.into_iter().enumerate() {
        store.apply(turn(writer, done)).await.unwrap();
    }
    let mut seqs = Vec::new();
    for at in 0..SESSIONS {
        let of = format!("s{at}");
        let held = messages(store, &of).await;
        let mut found: Vec<String> =
            held.iter().map(|m| m.external_id.as_ref().unwrap().as_str().to_owned()).collect();
        let writers = (0..WRITERS).filter(|writer| writer % SESSIONS == at);
        let mut expected: Vec<String> = writers
            .flat_map(|writer| (0..=done[writer]).flat_map(move |n| ids(writer, n)))
            .collect();
        found.sort();
        expected.sort();
        assert!(found == expected, "{of}: {} messages of {}", found.len(), expected.len());
        let positions: Vec<u32> = held.iter().map(|message| message.position).collect();
        assert_eq!(positions, (0..u32::try_from(held.len()).unwrap()).collect::<Vec<u32>>());
        let limits = HeadLimits { messages: 1, entities: 1 };
        let head = store.head(&scope("ana"), &session(&of), limits).await.unwrap().unwrap().session;
        let tokens: u64 = held.iter().map(|message| u64::from(message.tokens)).sum();
        assert_eq!((head.messages, head.tokens), (held.len() as u64, tokens), "{of}");
        seqs.extend(held.iter().map(|message| message.seq));
    }
    seqs.sort_unstable();
    let all = seqs.len() as u64;
    assert!(seqs == (1..=all).collect::<Vec<u64>>(), "{all} sequence numbers have no gap");
    let totals = store.totals(&scope("ana")).await.unwrap();
    assert_eq!((totals.messages, totals.last_seq), (all, all));
}

async fn messages(store: &PostgresStore, of: &str) -> Vec<Message> {
    let mut held = Vec::new();
    let mut page = PageRequest::first(500).unwrap();
    loop {
        let found = store.messages(&scope("ana"), &session(of), &page).await.unwrap();
        held.extend(found.items);
        let Some(next) = found.next_cursor else { return held };
        page = page.after(&next).unwrap();
    }
}
