//! Copies of the store that `serve` makes by itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use throughline_core::time::Timestamp;
use throughline_engine::backups::DailyBackups;
use throughline_engine::compose::Engine;
use throughline_engine::config::{Config, EmbedderKind};
use throughline_testkit::FakeClock;

use crate::http::service::Service;
use crate::support::Throughline;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_copy_of_each_day_is_kept_for_so_many_days() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config {
        data_dir: folder.path().join("data"),
        embedder: EmbedderKind::None,
        ..Config::default()
    };
    assert_eq!(config.backup.days, 7);
    let clock = Arc::new(FakeClock::at(Timestamp::parse("2026-02-27T23:50:00Z").unwrap()));
    let engine = Engine::open_by(&config, clock.clone()).await.unwrap();
    config.backup.days = 2;
    let copies = DailyBackups::of(&config, &engine).unwrap();
    let backups = config.data_dir.join("backups");

    // What fails is tried again.
    std::fs::write(&backups, "in the way").unwrap();
    assert!(copies.make().await.is_err());
    std::fs::remove_file(&backups).unwrap();
    let made = copies.make().await.unwrap().unwrap();
    assert_eq!(made, backups.join("throughline-2026-02-27.db"));
    assert_eq!(copies.make().await.unwrap(), None, "today's is there");
    assert_eq!(DailyBackups::of(&config, &engine).unwrap().make().await.unwrap(), None);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&backups), mode(&made)), (0o700, 0o600));
    }

    for own in ["throughline-before-the-move.db", "notes.txt"] {
        std::fs::write(backups.join(own), "mine").unwrap();
    }
    std::fs::write(backups.join(".throughline-killed.part"), "half").unwrap();
    for _ in 0..2 {
        clock.advance(Duration::from_secs(86_400));
        copies.make().await.unwrap().unwrap();
    }
    let kept = [
        "notes.txt",
        "throughline-2026-02-28.db",
        "throughline-2026-03-01.db",
        "throughline-before-the-move.db",
    ];
    assert_eq!(names(&backups), kept);

    config.backup.days = 0;
    assert!(DailyBackups::of(&config, &engine).is_none());
}

#[tokio::test]
async fn a_restored_copy_is_still_bound_by_what_was_erased() {
    let data = Throughline::new();
    data.json(&["remember", "The locker of Ana is number 44."]);
    let said = json!({"role": "user", "content": "The safe opens with the word marigold.", "session": "s"});
    data.file("said.jsonl", said.to_string());
    data.json(&["import", "said.jsonl"]);
    let mut service = Service::start(&data);
    let told = service.logged("backed up the store to").await;
    let backups = data.data_dir().join("backups");
    let [file] = names(&backups).try_into().unwrap();
    assert!(told.contains(&file), "{told}");
    let before = std::fs::metadata(backups.join(&file)).unwrap().modified().unwrap();
    service.terminate();
    assert!(service.wait());

    // A restart makes no second one of the day.
    let mut again = Service::start(&data);
    again.get("/healthz").await.ok();
    again.terminate();
    assert!(again.wait());
    assert!(!again.log().contains("backed up the store to"));
    assert_eq!(std::fs::metadata(backups.join(&file)).unwrap().modified().unwrap(), before);

    data.json(&["erase", "session", "s"]);
    let copy = backups.join(&file);
    let restored = data.json(&["restore", copy.to_str().unwrap(), "--replace"]);
    assert_eq!(restored["erasures"], 1, "{restored}");
    let found = data.json(&["recall", "What opens the safe?"]);
    assert!(!found.to_string().contains("marigold"), "{found}");
    assert!(data.json(&["recall", "Which locker has Ana?"]).to_string().contains("44"));

    let off = Throughline::new();
    let service = Service::start_with(&off, &["--set", "backup.days=0"]);
    service.get("/healthz").await.ok();
    assert!(!off.data_dir().join("backups").exists());
}
