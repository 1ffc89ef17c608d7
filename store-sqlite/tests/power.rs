//! Power loss: SQLite runs on a disk that forgets what was not synced, the plug is pulled at many
//! points, and what is left is opened as after a restart. No acknowledged append may be lost, and
//! none may be there by half.
//!
//! `vfs` puts [`disk::Disk`] under SQLite, `camera` keeps what a cut at chosen moments would leave,
//! `load` writes through the store, `inspect` judges what was left.

// The VFS below forwards to the one of Unix.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test support outside of test functions: a failure is the answer"
)]

#[path = "power/camera.rs"]
mod camera;
#[path = "power/disk.rs"]
mod disk;
#[path = "power/inspect.rs"]
mod inspect;
#[path = "power/load.rs"]
mod load;
#[path = "power/vfs.rs"]
mod vfs;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use throughline_store_sqlite::{Durability, SqliteOptions, SqliteStore};

use camera::{Camera, Cut, Every};
use disk::{Disk, Kind, Moment};
use inspect::inspect;
use load::{Ledger, Load};

/// Decides the messages and what each cut leaves; the order of the tasks is the scheduler's.
const SEED: u64 = 0x7468_726f_7567_686c;

/// Whether a moment, and for writes and syncs the file, is photographed each `n`-th time.
const EVERY: &[Every] = &[
    Every(Moment::Written, Some(Kind::Log), 607),
    Every(Moment::Written, Some(Kind::Database), 151),
    Every(Moment::Syncing, Some(Kind::Log), 9),
    Every(Moment::Synced, Some(Kind::Log), 11),
    Every(Moment::Syncing, Some(Kind::Database), 1),
    Every(Moment::Synced, Some(Kind::Database), 1),
    Every(Moment::Deleted, Some(Kind::Log), 1),
    Every(Moment::Acknowledged, None, 13),
];

fn options(database: &Path, disk: &Disk, durability: Durability) -> SqliteOptions {
    SqliteOptions { durability, vfs: Some(disk.name().to_owned()), ..SqliteOptions::new(database) }
}

/// Runs the load on a store that exists durably, to the end and through the close of the store.
async fn run(load: &Arc<Load>, durability: Durability, directory: &Path) -> Vec<Cut> {
    let disk = vfs::register();
    let database = directory.join("throughline.db");
    // The creation is always durable: it has a test of its own.
    drop(SqliteStore::open(options(&database, disk, Durability::Full)).unwrap());
    let store = SqliteStore::open(options(&database, disk, durability)).unwrap();
    let ledger = Arc::new(Ledger::default());
    let camera = Arc::new(Camera::new(directory, SEED, EVERY, Arc::clone(&ledger)));
    disk.watch(Arc::clone(&camera));
    load::run(load, &store, &ledger, disk).await;
    // The last connection folds the log into the database and deletes it.
    drop(store);
    camera.develop()
}

/// The cuts that the load must have met for the test to say anything.
fn assert_covered(cuts: &[Cut], load: &Load) {
    assert!(cuts.len() >= 60, "only {} cuts", cuts.len());
    for Every(moment, kind, _) in EVERY {
        let met = cuts.iter().any(|cut| (cut.moment, cut.kind) == (*moment, *kind));
        assert!(met, "no cut at {moment:?} {kind:?}");
    }
    let checkpoints: BTreeSet<u64> = cuts.iter().map(|cut| cut.database_syncs).collect();
    assert!(checkpoints.len() >= 4, "checkpoints: {checkpoints:?}");
    let halfway = |cut: &&Cut| cut.moment == Moment::Written && cut.kind == Some(Kind::Database);
    assert!(cuts.iter().filter(halfway).count() >= 5, "too few cuts within a checkpoint");
    let growing = cuts.windows(2).filter(|pair| pair[0].database_writes < pair[1].database_writes);
    assert!(growing.count() >= 5, "the database file hardly changed between cuts");
    let last = cuts.last().unwrap();
    assert_eq!(last.acknowledged, load.batches(), "the last cut comes after the last batch");
    let levels: BTreeSet<usize> = cuts.iter().map(|cut| cut.acknowledged.iter().sum()).collect();
    assert!(levels.len() >= 30, "the cuts are not spread over the run: {levels:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_power_cut_takes_back_an_acknowledged_append() {
    let directory = tempfile::tempdir().unwrap();
    let load = Arc::new(Load::new(SEED));
    let cuts = run(&load, Durability::Full, directory.path()).await;
    assert_covered(&cuts, &load);
    let mut beyond = 0;
    for cut in &cuts {
        let found = inspect(&load, cut).await;
        for (session, (held, promised)) in found.iter().zip(cut.acknowledged).enumerate() {
            assert!(
                *held >= promised,
                "{cut}: {promised} batches of session {session} were acknowledged, {held} are left"
            );
            beyond += held - promised;
        }
    }
    let last = cuts.last().unwrap();
    println!(
        "{} cuts, {} messages acknowledged, {beyond} batches found before their acknowledgement, \
         {} writes and {} syncs of the database file",
        cuts.len(),
        load.messages(),
        last.database_writes,
        last.database_syncs
    );
}

/// The control: the same cuts do find a store that does not wait for the disk. What it keeps is
/// whole all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_a_sync_at_commit_the_same_cuts_lose_appends() {
    let directory = tempfile::tempdir().unwrap();
    let load = Arc::new(Load::new(SEED));
    let cuts = run(&load, Durability::Normal, directory.path()).await;
    let (mut losing, mut most) = (0, 0);
    for cut in &cuts {
        let found = inspect(&load, cut).await;
        let lost: usize =
            found.iter().zip(cut.acknowledged).map(|(held, told)| told.saturating_sub(*held)).sum();
        losing += usize::from(lost > 0);
        most = most.max(lost);
    }
    println!("{} cuts, {losing} of them lost acknowledged batches, {most} at most", cuts.len());
    assert!(losing > 0, "a disk that forgets went unnoticed in {} cuts", cuts.len());
}

/// A cut while the file is created leaves something that the next start completes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_power_cut_while_the_store_is_created_leaves_a_file_that_opens() {
    let every = [
        Every(Moment::Written, Some(Kind::Database), 1),
        Every(Moment::Written, Some(Kind::Journal), 1),
        Every(Moment::Written, Some(Kind::Log), 1),
        Every(Moment::Syncing, Some(Kind::Database), 1),
        Every(Moment::Syncing, Some(Kind::Journal), 1),
        Every(Moment::Syncing, Some(Kind::Log), 1),
        Every(Moment::Synced, Some(Kind::Database), 1),
        Every(Moment::Synced, Some(Kind::Journal), 1),
        Every(Moment::Synced, Some(Kind::Log), 1),
        Every(Moment::Deleted, Some(Kind::Journal), 1),
        Every(Moment::Deleted, Some(Kind::Log), 1),
    ];
    let directory = tempfile::tempdir().unwrap();
    let disk = vfs::register();
    let camera = Arc::new(Camera::new(directory.path(), SEED, &every, Arc::default()));
    disk.watch(Arc::clone(&camera));
    let database = directory.path().join("throughline.db");
    drop(SqliteStore::open(options(&database, disk, Durability::Full)).unwrap());
    let cuts = camera.develop();
    let load = Load::new(SEED);
    for cut in &cuts {
        assert_eq!(inspect(&load, cut).await, [0; load::SESSIONS], "{cut}");
    }
    println!("{} cuts", cuts.len());
}
