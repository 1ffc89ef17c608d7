//! Stores of calls over a search in memory that outlives the "process": a runtime that is dropped.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tempfile::TempDir;
use throughline_core::page::PageRequest;
use throughline_core::ports::{FileHit, FileSearch, SearchableFile};
use throughline_core::services::file_stores::{
    FILE_STORES_LEASE, FileStorePorts, FileStoreService,
};
use throughline_core::{Error, ErrorKind, Result, Scope};
use throughline_testkit::memory::MemoryFileSearch;
use throughline_testkit::{FakeClock, SequentialIds};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::adapters::OsSecrets;
use crate::app::App;
use crate::compose::Engine;
use crate::config::{Config, EmbedderKind};
use crate::identity::Identity;

const KIND: &str = "drop_file_stores_test";

/// A search that fails or hangs when files are added for the n-th time, if so, or when stores are deleted.
#[derive(Default)]
struct Search {
    memory: MemoryFileSearch,
    added: AtomicUsize,
    fails_at: Option<usize>,
    hangs_at: Option<usize>,
    hanging: Notify,
    cannot_delete: AtomicBool,
}

#[async_trait]
impl FileSearch for Search {
    fn max_files(&self) -> usize {
        self.memory.max_files()
    }

    async fn create(&self, label: &str) -> Result<String> {
        self.memory.create(label).await
    }

    async fn add(&self, store: &str, files: Vec<SearchableFile>) -> Result<()> {
        let number = Some(self.added.fetch_add(1, Ordering::SeqCst));
        self.memory.add(store, files).await?;
        if number == self.hangs_at {
            self.hanging.notify_one();
            pending::<()>().await;
        }
        if number == self.fails_at {
            return Err(Error::new(ErrorKind::Unavailable, "away"));
        }
        Ok(())
    }

    async fn search(&self, store: &str, question: &str, limit: usize) -> Result<Vec<FileHit>> {
        self.memory.search(store, question, limit).await
    }

    async fn delete(&self, store: &str) -> Result<()> {
        self.check_deleting()?;
        self.memory.delete(store).await
    }

    async fn delete_labelled(&self, prefix: &str) -> Result<u64> {
        self.check_deleting()?;
        self.memory.delete_labelled(prefix).await
    }
}

impl Search {
    fn check_deleting(&self) -> Result<()> {
        match self.cannot_delete.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Unavailable, "away")),
            false => Ok(()),
        }
    }
}

/// An application whose calls may search 1,000 bytes at once.
struct World {
    app: App,
    search: Arc<Search>,
    clock: Arc<FakeClock>,
    _folder: TempDir,
}

impl World {
    async fn new(search: Search) -> Self {
        let folder = TempDir::new().unwrap();
        let data_dir = folder.path().to_owned();
        let config = Config { data_dir, embedder: EmbedderKind::None, ..Config::default() };
        let mut engine = Engine::open(&config).await.unwrap();
        let (search, clock) = (Arc::new(search), Arc::new(FakeClock::default()));
        engine.file_stores = Some(FileStoreService::new(FileStorePorts {
            search: Arc::clone(&search) as _,
            journal: Some(KIND),
            store: Arc::clone(&engine.store),
            clock: Arc::clone(&clock) as _,
            ids: Arc::new(SequentialIds::new()),
            secrets: Arc::new(OsSecrets::open().unwrap()),
            max_bytes: 1_000,
        }));
        let app = App::new(engine).await.unwrap();
        Self { app, search, clock, _folder: folder }
    }

    /// Jobs that wait.
    async fn jobs(&self) -> usize {
        let page = PageRequest::first(100).unwrap();
        self.app.engine.store.jobs(&scope("ana"), &page).await.unwrap().items.len()
    }

    async fn work(&self) -> (u64, u64, u64) {
        let done = self.app.engine.file_stores.as_ref().unwrap().work(10).await.unwrap();
        (done.jobs, done.failed, done.stores)
    }

    /// Waits for what runs in the background; there must be nothing left then.
    async fn ends_clean(self) {
        self.app.close_file_stores().await;
        assert_eq!(self.search.memory.labels(), [""; 0]);
        assert_eq!(self.jobs().await, 0);
        self.app.engine.file_stores.as_ref().unwrap().begin(&scope("ana"), files(1, 990)).unwrap();
    }
}

fn scope(user: &str) -> Scope {
    Scope::new("acme", user, None).unwrap()
}

fn caller(user: &str) -> Identity {
    Identity::local(scope(user))
}

fn file(name: &str, text: &str) -> SearchableFile {
    SearchableFile { name: name.to_owned(), text: text.to_owned() }
}

/// Files of some bytes each, beside their names.
fn files(count: usize, bytes: usize) -> Vec<SearchableFile> {
    (0..count).map(|n| file(&format!("{n:04}"), &"gull ".repeat(bytes)[..bytes])).collect()
}

#[tokio::test]
async fn closing_and_dropping_deletes() {
    let world = World::new(Search::default()).await;
    let stores =
        world.app.open_file_stores(&caller("ana"), vec![file("a", "A gull.")]).await.unwrap();
    assert_eq!(stores.search("gull", 5).await.unwrap()[0].file, "a");
    assert_eq!((world.search.memory.labels().len(), world.jobs().await), (1, 1));
    stores.close().await.unwrap();
    assert_eq!((world.search.memory.labels().len(), world.jobs().await), (0, 0));
    let dropped =
        world.app.open_file_stores(&caller("ana"), vec![file("a", "A gull.")]).await.unwrap();
    drop(dropped);
    world.ends_clean().await;
}

#[tokio::test]
async fn process_that_ends_closes_open_stores() {
    let world = World::new(Search::default()).await;
    let stores = world.app.open_file_stores(&caller("ana"), files(1, 5)).await.unwrap();
    world.app.close_file_stores().await;
    assert_eq!(stores.search("gull", 5).await.unwrap_err().kind(), ErrorKind::NotFound);
    world.ends_clean().await;
}

#[tokio::test]
async fn files_without_text_need_no_store() {
    let world = World::new(Search::default()).await;
    let stores = world.app.open_file_stores(&caller("ana"), vec![file("a", " \n")]).await.unwrap();
    assert!(stores.is_empty());
    assert_eq!(stores.search("gull", 5).await.unwrap(), []);
    stores.close().await.unwrap();
    assert_eq!(world.search.memory.created(), 0);
    world.ends_clean().await;
}

#[tokio::test]
async fn more_files_than_a_store_holds_go_to_further_stores() {
    let world = World::new(Search::default()).await;
    let stores = world.app.open_file_stores(&caller("ana"), files(45, 5)).await.unwrap();
    assert_eq!(world.search.memory.labels().len(), 3);
    let hits = stores.search("gull", 50).await.unwrap();
    assert_eq!(hits.len(), 45);
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score) && hits[0].score <= 1.0, "{hits:?}");
    let firsts: Vec<&str> = hits[..4].iter().map(|hit| hit.file.as_str()).collect();
    assert_eq!(firsts, ["0000", "0020", "0040", "0001"]);
    assert_eq!(stores.search("gull", 2).await.unwrap().len(), 2);
    stores.close().await.unwrap();
    world.ends_clean().await;
}

#[tokio::test]
async fn error_half_way_leaves_nothing() {
    let world = World::new(Search { fails_at: Some(1), ..Search::default() }).await;
    let error = world.app.open_file_stores(&caller("ana"), files(45, 5)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(world.search.memory.created(), 2);
    world.ends_clean().await;
}

#[tokio::test]
async fn caller_that_hangs_up_while_files_are_added_leaves_nothing() {
    let world = World::new(Search { hangs_at: Some(1), ..Search::default() }).await;
    let caller = caller("ana");
    tokio::select! {
        opened = world.app.open_file_stores(&caller, files(45, 5)) => panic!("{opened:?}"),
        () = world.search.hanging.notified() => {}
    }
    assert_eq!(world.search.memory.labels().len(), 2);
    world.ends_clean().await;
}

#[tokio::test]
async fn bytes_over_the_limit_are_refused_before_anything_is_created() {
    let world = World::new(Search::default()).await;
    let error = world.app.open_file_stores(&caller("ana"), files(2, 600)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.message().contains("`files.max_search_bytes` allows 1000"), "{error}");
    assert_eq!((world.search.memory.created(), world.jobs().await), (0, 0));
    let held = world.app.open_file_stores(&caller("ana"), files(1, 600)).await.unwrap();
    let error = world.app.open_file_stores(&caller("ben"), files(1, 600)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(world.search.memory.created(), 1);
    held.close().await.unwrap();
    world.app.open_file_stores(&caller("ben"), files(1, 600)).await.unwrap().close().await.unwrap();
    world.ends_clean().await;
}

#[tokio::test]
async fn names_that_are_there_twice_are_refused() {
    let world = World::new(Search::default()).await;
    let twice = vec![file("a", "A gull."), file("a", "A heron.")];
    let error = world.app.open_file_stores(&caller("ana"), twice).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    world.ends_clean().await;
}

/// Begins a call in a runtime that ends as a crash ends a process: nothing more is done.
async fn crash(world: &World) {
    let app = world.app.clone();
    let crashed = tokio::task::spawn_blocking(move || {
        let process = Runtime::new().unwrap();
        let stores = process.block_on(app.open_file_stores(&caller("ana"), files(45, 5))).unwrap();
        // No task of it goes on.
        drop(process);
        drop(stores);
    });
    crashed.await.unwrap();
    assert_eq!((world.search.memory.labels().len(), world.jobs().await), (3, 1));
}

#[tokio::test]
async fn job_deletes_what_a_crash_left() {
    let world = World::new(Search::default()).await;
    crash(&world).await;
    assert_eq!(world.work().await, (0, 0, 0));
    world.clock.advance(FILE_STORES_LEASE);
    assert_eq!(world.work().await, (1, 0, 3));
    assert_eq!(world.work().await, (0, 0, 0));
    assert_eq!((world.search.memory.labels().len(), world.jobs().await), (0, 0));
}

#[tokio::test]
async fn job_tries_again_until_the_server_is_back() {
    let world = World::new(Search::default()).await;
    crash(&world).await;
    world.search.cannot_delete.store(true, Ordering::SeqCst);
    for _ in 0..5 {
        world.clock.advance(Duration::from_secs(600));
        assert_eq!(world.work().await, (1, 1, 0));
    }
    world.search.cannot_delete.store(false, Ordering::SeqCst);
    world.clock.advance(Duration::from_secs(600));
    assert_eq!(world.work().await, (1, 0, 3));
    assert_eq!(world.search.memory.labels(), [""; 0]);
}

#[tokio::test]
async fn stores_that_cannot_be_deleted_are_left_to_a_job() {
    let world = World::new(Search::default()).await;
    let stores = world.app.open_file_stores(&caller("ana"), files(1, 5)).await.unwrap();
    world.search.cannot_delete.store(true, Ordering::SeqCst);
    assert_eq!(stores.close().await.unwrap_err().kind(), ErrorKind::Unavailable);
    world.search.cannot_delete.store(false, Ordering::SeqCst);
    assert_eq!(world.work().await, (1, 0, 1));
    world.ends_clean().await;
}

#[tokio::test]
async fn call_that_runs_keeps_its_stores() {
    let world = World::new(Search::default()).await;
    let service = world.app.engine.file_stores.clone().unwrap();
    let mut call = service.begin(&scope("ana"), files(1, 5)).unwrap();
    for _ in 0..5 {
        call.renew().await.unwrap();
        world.clock.advance(FILE_STORES_LEASE - Duration::from_secs(1));
        assert_eq!(world.work().await, (0, 0, 0));
    }
    let store = call.create().await.unwrap();
    let files = call.take_files().remove(0);
    call.add(&store, files).await.unwrap();
    assert_eq!(world.jobs().await, 1);
    call.delete(Some(&[store])).await.unwrap();
    world.ends_clean().await;
}

/// The canary: two users have a file of one path, and search it at the same time.
#[tokio::test]
async fn two_users_with_one_path_find_their_own() {
    let world = World::new(Search::default()).await;
    let one = vec![file("notes.md", "The canary of Ana sings in cage seven.")];
    let other = vec![file("notes.md", "The canary of Ben sings in cage nine.")];
    let one = world.app.open_file_stores(&caller("ana"), one).await.unwrap();
    let other = world.app.open_file_stores(&caller("ben"), other).await.unwrap();
    let labels = world.search.memory.labels();
    assert!(labels[0] != labels[1] && labels.iter().all(|label| label.len() == 37), "{labels:?}");
    for (stores, own) in [(&one, "Ana"), (&other, "Ben")] {
        let hits = stores.search("Where does the canary of Ana and Ben sing?", 50).await.unwrap();
        assert_eq!(hits.len(), 1);
        assert!(hits[0].text.contains(own), "{hits:?}");
        let shown = format!("{stores:?}");
        assert!(labels.iter().all(|label| !shown.contains(label)) && !shown.contains("store-"));
    }
    one.close().await.unwrap();
    assert_eq!(other.search("canary", 50).await.unwrap().len(), 1);
    other.close().await.unwrap();
    world.ends_clean().await;
}
