//! Files and folders that change while they are read.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use throughline_core::files::{ContentHash, SkipReason};

use crate::support::Disk;

/// Runs work over and over on a thread while a test reads.
struct Meanwhile(Arc<AtomicBool>, Option<thread::JoinHandle<()>>);

impl Meanwhile {
    fn run(mut work: impl FnMut(usize) + Send + 'static) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&end);
        let thread = thread::spawn(move || {
            let mut nth = 0;
            while !ended.load(Ordering::Relaxed) {
                work(nth);
                nth += 1;
            }
        });
        Self(end, Some(thread))
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap();
    }
}

#[tokio::test]
async fn folder_that_is_exchanged_for_a_link_never_leads_out() {
    let disk = Disk::new();
    disk.write("folder/secret.txt", "mine");
    let (root, outside) = (disk.root(), disk.outside());
    let exchange = Meanwhile::run(move |_| {
        std::fs::rename(root.join("folder"), root.join("away")).unwrap();
        symlink(&outside, root.join("folder")).unwrap();
        std::fs::remove_file(root.join("folder")).unwrap();
        std::fs::rename(root.join("away"), root.join("folder")).unwrap();
        thread::yield_now();
    });
    for _ in 0..2_000 {
        match disk.read("folder/secret.txt").await {
            Ok(file) => assert_eq!(file.text, "mine"),
            Err(reason) => assert!(
                [SkipReason::Missing, SkipReason::LinkOutside, SkipReason::Changing]
                    .contains(&reason),
                "{reason}"
            ),
        }
    }
    drop(exchange);
    assert_eq!(disk.read("folder/secret.txt").await.unwrap().text, "mine");
}

#[tokio::test]
async fn what_is_said_of_a_file_is_true_of_its_bytes() {
    let disk = Disk::new();
    disk.write("a.rs", "0");
    let path = disk.root().join("a.rs");
    let writer = Meanwhile::run(move |nth| {
        std::fs::write(&path, format!("{nth}\n").repeat(1 + nth % 5_000)).unwrap();
    });
    let mut outcomes = [0, 0];
    for _ in 0..500 {
        match disk.read("a.rs").await {
            Ok(file) => {
                outcomes[0] += 1;
                assert_eq!(file.stat.size, file.text.len() as u64);
                assert_eq!(file.hash, ContentHash::of(&file.text));
            }
            Err(reason) => {
                outcomes[1] += 1;
                assert_eq!(reason, SkipReason::Changing);
            }
        }
    }
    drop(writer);
    let file = disk.read("a.rs").await.unwrap();
    assert_eq!(disk.walk(&["a.rs"]).await.files, [file.stat], "{outcomes:?}");
}
