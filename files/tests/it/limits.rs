//! Files that are too large, and too many of them.

use std::fs::File;

use throughline_core::files::SkipReason;

use crate::support::{Disk, names, skipped};

#[tokio::test]
async fn two_gigabytes_are_not_read() {
    let disk = Disk::new();
    let file = File::create(disk.root().join("huge.txt")).unwrap();
    file.set_len(2 << 30).unwrap();
    let reason = SkipReason::TooLarge { limit: 4 << 20 };
    let walk = disk.walk(&["."]).await;
    assert_eq!((names(&walk).len(), skipped(&walk)), (0, vec![("huge.txt", reason)]));
    assert_eq!(disk.read("huge.txt").await.unwrap_err(), reason);
}

#[tokio::test]
async fn pdf_files_have_a_limit_of_their_own() {
    let disk = Disk::with(|options| (options.max_file_bytes, options.max_pdf_bytes) = (10, 20));
    for name in ["a.txt", "a.PDF"] {
        disk.write(name, [b' '; 15]);
    }
    disk.write("b.pdf", [b' '; 21]);
    let walk = disk.walk(&["."]).await;
    assert_eq!(names(&walk), ["a.PDF"]);
    let too_large = |limit| SkipReason::TooLarge { limit };
    assert_eq!(skipped(&walk), [("a.txt", too_large(10)), ("b.pdf", too_large(20))]);
}

#[tokio::test]
async fn ten_thousand_files_are_found() {
    let disk = Disk::new();
    for folder in 0..100 {
        let folder = disk.root().join(format!("folder_{folder:02}"));
        std::fs::create_dir(&folder).unwrap();
        for file in 0..100 {
            File::create(folder.join(format!("file_{file:02}.rs"))).unwrap();
        }
    }
    let walk = disk.walk(&[".", "folder_07"]).await;
    assert_eq!((walk.files.len(), walk.skipped.len()), (10_000, 0));
    assert!(walk.files.is_sorted_by(|a, b| a.path < b.path));
}

#[tokio::test]
async fn walk_ends_at_most_files_and_says_where() {
    let disk = Disk::with(|options| options.max_files = 5);
    for folder in ["a", "b", "c"] {
        (0..3).for_each(|file| disk.write(&format!("{folder}/{file}.rs"), "text"));
    }
    let reason = SkipReason::TooMany { limit: 5 };
    let walk = disk.walk(&["."]).await;
    assert_eq!(names(&walk), ["a/0.rs", "a/1.rs", "a/2.rs", "b/0.rs", "b/1.rs"]);
    assert_eq!(skipped(&walk), [(".", reason)]);
    let walk = disk.walk(&["a", "c", "b"]).await;
    assert_eq!(names(&walk), ["a/0.rs", "a/1.rs", "a/2.rs", "c/0.rs", "c/1.rs"]);
    assert_eq!(skipped(&walk), [("b", reason), ("c", reason)], "what was not walked is named");
}
