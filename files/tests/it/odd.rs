//! What is no file that could be sent, and names that cannot be.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Duration;

use throughline_core::files::SkipReason;

use crate::support::{Disk, names, skipped};

fn make_pipe(path: &std::path::Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[tokio::test]
async fn pipes_and_sockets_are_named_and_not_waited_for() {
    let disk = Disk::new();
    disk.write("a.rs", "text");
    make_pipe(&disk.root().join("pipe"));
    let _socket = UnixListener::bind(disk.root().join("socket")).unwrap();
    let walk = disk.walk(&["."]).await;
    assert_eq!(names(&walk), ["a.rs"]);
    assert_eq!(skipped(&walk), [("pipe", SkipReason::Pipe), ("socket", SkipReason::Socket)]);
    assert_eq!(disk.read("pipe").await.unwrap_err(), SkipReason::Pipe);
    assert_eq!(disk.read("socket").await.unwrap_err(), SkipReason::Socket);
}

#[tokio::test]
async fn ignore_file_that_is_a_pipe_or_a_device_is_not_read() {
    let disk = Disk::new();
    disk.write("a.rs", "text");
    disk.write("sub/b.rs", "text");
    make_pipe(&disk.root().join(".gitignore"));
    symlink("/dev/zero", disk.root().join(".ignore")).unwrap();
    symlink("/dev/zero", disk.root().join("sub/.gitignore")).unwrap();
    let walk = tokio::time::timeout(Duration::from_secs(20), disk.walk(&["."])).await.unwrap();
    assert_eq!(names(&walk), ["a.rs", "sub/b.rs"]);
}

#[tokio::test]
async fn devices_are_refused() {
    let disk = Disk::with(|options| options.roots.push("/dev".into()));
    let walk = disk.walk(&["/dev/zero", "/dev/null"]).await;
    assert_eq!(names(&walk), [""; 0]);
    assert_eq!(skipped(&walk), ["/dev/null", "/dev/zero"].map(|name| (name, SkipReason::Device)));
    assert_eq!(disk.read("/dev/zero").await.unwrap_err(), SkipReason::Device);
    // A link within the first root to a device within the second.
    symlink("/dev/zero", disk.root().join("zero")).unwrap();
    assert_eq!(skipped(&disk.walk(&["."]).await), [("/dev/zero", SkipReason::Device)]);
}

#[tokio::test]
async fn names_that_cannot_be_sent_are_shown_escaped() {
    let disk = Disk::new();
    let names_on_disk: [&[u8]; 6] = [
        b"fine.rs",
        b"bad\xff.rs",
        b"two\nlines.rs",
        b"tab\t.rs",
        "turned\u{202e}sr.exe".as_bytes(),
        b"esc\x1b[2J.rs",
    ];
    for name in names_on_disk {
        File::create(disk.root().join(OsStr::from_bytes(name))).unwrap();
    }
    let folder = disk.root().join(OsStr::from_bytes(b"folder\xfe"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("in.rs"), "text").unwrap();
    symlink("fine.rs", disk.root().join(OsStr::from_bytes(b"link\xfe"))).unwrap();
    let walk = disk.walk(&["."]).await;
    assert_eq!(names(&walk), ["fine.rs"]);
    let expected = [
        "bad\\xff.rs", "esc\\u{1b}[2J.rs", "folder\\xfe", "link\\xfe", "tab\\t.rs",
        "turned\\u{202e}sr.exe", "two\\nlines.rs",
    ];
    assert_eq!(skipped(&walk), expected.map(|name| (name, SkipReason::BadName)));
    for name in ["two\nlines.rs", "nul\0"] {
        assert_eq!(disk.read(name).await.unwrap_err(), SkipReason::BadName, "{name:?}");
        assert_eq!(disk.walk(&[name]).await.skipped[0].reason, SkipReason::BadName, "{name:?}");
    }
}

#[tokio::test]
async fn folder_where_a_file_was_is_missing() {
    let disk = Disk::new();
    disk.write("a/b.rs", "text");
    assert_eq!(disk.read("a").await.unwrap_err(), SkipReason::Missing);
    assert_eq!(disk.read("a/b.rs/c").await.unwrap_err(), SkipReason::Missing);
    assert_eq!(disk.read(".").await.unwrap_err(), SkipReason::Missing);
}
