//! Links: those that lead round, out, or nowhere.

use std::fs::hard_link;
use std::os::unix::fs::symlink;

use throughline_core::files::SkipReason;

use crate::support::{Disk, names, skipped};

#[tokio::test]
async fn file_has_one_name_whatever_leads_to_it() {
    let disk = Disk::new();
    disk.write("src/a.rs", "text");
    symlink("src/a.rs", disk.root().join("link.rs")).unwrap();
    symlink(disk.root().join("src"), disk.root().join("folder")).unwrap();
    let walk = disk.walk(&["."]).await;
    assert_eq!((names(&walk), skipped(&walk)), (vec!["src/a.rs"], vec![]));
    for path in ["link.rs", "folder", "folder/a.rs"] {
        assert_eq!(names(&disk.walk(&[path]).await), ["src/a.rs"], "{path}");
    }
    assert_eq!(disk.walk(&["link.rs", "folder"]).await.given, ["src", "src/a.rs"]);
    assert_eq!(disk.read("link.rs").await.unwrap().stat.path, "src/a.rs");
}

#[tokio::test]
async fn links_that_go_round_end() {
    let disk = Disk::new();
    disk.write("a/b/file.rs", "text");
    symlink(disk.root(), disk.root().join("a/b/up")).unwrap();
    symlink("..", disk.root().join("a/b/parent")).unwrap();
    symlink("self", disk.root().join("self")).unwrap();
    symlink("two", disk.root().join("one")).unwrap();
    symlink("one", disk.root().join("two")).unwrap();
    let walk = disk.walk(&[".", "a/b/up/a/b/up"]).await;
    assert_eq!(names(&walk), ["a/b/file.rs"]);
    let nowhere = ["one", "self", "two"].map(|name| (name, SkipReason::Missing));
    assert_eq!(skipped(&walk), nowhere);
}

#[tokio::test]
async fn links_out_of_the_roots_are_refused_and_named() {
    let disk = Disk::new();
    disk.write("a.rs", "text");
    for (target, name) in [
        (disk.outside().join("secret.txt"), "secret.txt"),
        (disk.outside(), "folder"),
        ("/dev/zero".into(), "zero"),
        ("/dev".into(), "devices"),
    ] {
        symlink(target, disk.root().join(name)).unwrap();
    }
    let walk = disk.walk(&["."]).await;
    assert_eq!(names(&walk), ["a.rs"]);
    let expected =
        ["devices", "folder", "secret.txt", "zero"].map(|name| (name, SkipReason::LinkOutside));
    assert_eq!(skipped(&walk), expected);
    for path in ["secret.txt", "folder/secret.txt", "folder/not-there.txt", "zero", "devices/zero"]
    {
        assert_eq!(disk.read(path).await.unwrap_err(), SkipReason::LinkOutside, "{path}");
        assert_eq!(skipped(&disk.walk(&[path]).await), [(path, SkipReason::LinkOutside)], "{path}");
    }
}

#[tokio::test]
async fn hard_links_count_once() {
    let disk = Disk::new();
    disk.write("z.rs", "text");
    hard_link(disk.root().join("z.rs"), disk.root().join("a.rs")).unwrap();
    for paths in [&["."][..], &["z.rs", "a.rs"][..]] {
        let walk = disk.walk(paths).await;
        assert_eq!(names(&walk), ["a.rs"]);
        assert_eq!(skipped(&walk), [("z.rs", SkipReason::SameFile)]);
    }
    assert_eq!(names(&disk.walk(&["z.rs"]).await), ["z.rs"]);
}
