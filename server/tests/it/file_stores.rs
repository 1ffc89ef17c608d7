//! Calls that search files in Qdrant, in processes that are killed at any point: after a start, none of their stores is left.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use throughline_core::Scope;
use throughline_core::ports::{Clock, SearchableFile};
use throughline_core::services::file_stores::FILE_STORES_LEASE;
use throughline_core::time::Timestamp;
use throughline_engine::adapters::SystemClock;
use throughline_engine::app::App;
use throughline_engine::compose::Engine;
use throughline_engine::config::{Config, FileSearchKind};
use throughline_engine::identity::Identity;
use throughline_engine::worker;

use crate::own::Qdrant;

/// What a process that calls is told: its folder and the URL of Qdrant, with a space between.
const CALLER: &str = "THROUGHLINE_TEST_FILE_CALLER";
/// Processes that are killed, and calls of each that run at once.
const KILLS: usize = 20;
const CALLS: usize = 5;
/// What a process says when a first call, which never ends, has its stores.
const BEGUN: &str = "begun";

/// Later by the lease of the stores.
struct Later;

impl Clock for Later {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(FILE_STORES_LEASE)
    }
}

fn config(folder: &Path, url: &str) -> Config {
    let mut config = Config { data_dir: folder.to_owned(), ..Config::default() };
    config.files.search = FileSearchKind::Qdrant;
    config.qdrant.url = url.to_owned();
    config
}

fn files(user: &str) -> Vec<SearchableFile> {
    let file = |n: usize| SearchableFile {
        name: format!("notes/{n}.md"),
        text: format!("The canary {n} of {user} sings.\n\n").repeat(200),
    };
    (0..5).map(file).collect()
}

/// A call of a user: opens stores, searches them, finds nothing of others, and ends, well or not.
async fn call(app: &App, user: &str, ends_well: bool) {
    let caller = Identity::local(Scope::new("acme", user, None).unwrap());
    let stores = app.open_file_stores(&caller, files(user)).await.unwrap();
    let hits = stores.search("Which canary of user-0, user-1 and user-2 sings?", 50).await.unwrap();
    assert!(!hits.is_empty());
    assert!(hits.iter().all(|hit| hit.text.contains(&format!("of {user} "))), "{user}: {hits:?}");
    if ends_well {
        stores.close().await.unwrap();
    }
}

/// Calls of several users leave nothing. As a process that the test below starts, it calls until it is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_leave_nothing() {
    if let Ok(told) = std::env::var(CALLER) {
        return call_until_killed(&told).await;
    }
    let (qdrant, folder) = (Qdrant::start(), TempDir::new().unwrap());
    let engine = Engine::open(&config(folder.path(), &qdrant.url())).await.unwrap();
    let app = App::new(engine).await.unwrap();
    let users: Vec<String> = (0..3).map(|n| format!("user-{n}")).collect();
    let calls = users.iter().map(|user| call(&app, user, user != "user-1"));
    futures_util::future::join_all(calls).await;
    app.close_file_stores().await;
    assert_eq!(qdrant.collections(), [""; 0]);
}

async fn call_until_killed(told: &str) {
    let (folder, url) = told.split_once(' ').unwrap();
    let app = App::new(Engine::open(&config(Path::new(folder), url)).await.unwrap()).await.unwrap();
    let first = Identity::local(Scope::new("acme", "first", None).unwrap());
    let _open = app.open_file_stores(&first, files("first")).await.unwrap();
    // The harness has begun a line.
    println!("\n{BEGUN}");
    let caller = async |number: usize| {
        for n in 0_usize.. {
            call(&app, &format!("user-{number}"), !n.is_multiple_of(3)).await;
        }
    };
    futures_util::future::join_all((0..CALLS).map(caller)).await;
}

fn start(folder: &Path, url: &str) -> Child {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["file_stores::calls_leave_nothing", "--exact", "--nocapture"])
        .env(CALLER, format!("{} {url}", folder.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == BEGUN), "the process ended");
    process
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_calls_that_were_killed() {
    let (qdrant, folder) = (Qdrant::start(), TempDir::new().unwrap());
    for _ in 0..KILLS {
        let mut process = start(folder.path(), &qdrant.url());
        let point = Duration::from_millis(fastrand::u64(0..400));
        tokio::time::sleep(point).await; // tidy: sleep: any point of a call
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let left = qdrant.collections().len();
    assert!(left >= KILLS, "the first call of each process was killed, and {left} were left");
    let config = config(folder.path(), &qdrant.url());
    let engine = Engine::open_by(&config, Arc::new(Later)).await.unwrap();
    worker::run_once(&engine, |_| ()).await.unwrap();
    assert_eq!(qdrant.collections(), [""; 0], "{left} were left by {KILLS} killed processes");
    println!("{left} stores were left by {KILLS} killed processes, and none after a start");
}
