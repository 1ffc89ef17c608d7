//! Which files are found, and under which names.

use throughline_core::files::SkipReason;
use throughline_core::ports::FileSource as _;
use throughline_core::{ErrorKind, Result};
use throughline_files::{DiskFiles, DiskOptions};

use crate::support::{Disk, names, skipped, write};

#[tokio::test]
async fn honours_ignore_files() {
    let disk = Disk::new();
    for name in [
        "keep.rs", "build/out.o", "notes.log", "sub/notes.log", "sub/important.log",
        "sub/deep/x.tmp", "other/x.tmp", "target/a.rs", "sub/target/b.rs",
    ] {
        disk.write(name, "text");
    }
    disk.write(".gitignore", "\u{feff}*.log\n/build/\n/target\n\\\n[bad\n");
    disk.write("sub/.gitignore", "!important.log\n");
    disk.write(".ignore", "*.tmp\n");
    disk.write("other/.ignore", "!x.tmp\n");
    let walk = disk.walk(&["."]).await;
    assert_eq!(names(&walk), ["keep.rs", "other/x.tmp", "sub/important.log", "sub/target/b.rs"]);
    assert_eq!(skipped(&walk), [], "what is ignored is not named");
    // The rules above a folder count as well, where the walk begins below them.
    assert_eq!(names(&disk.walk(&["sub"]).await), ["sub/important.log", "sub/target/b.rs"]);
}

#[tokio::test]
async fn gitignore_ends_at_a_repository_within() {
    let disk = Disk::new();
    disk.write(".gitignore", "*.gen\n");
    disk.write(".ignore", "*.tmp\n");
    disk.write("nested/.git/HEAD", "ref");
    for name in ["a.gen", "nested/a.gen", "nested/a.tmp"] {
        disk.write(name, "text");
    }
    assert_eq!(names(&disk.walk(&["."]).await), ["nested/a.gen"]);
}

#[tokio::test]
async fn ignored_and_hidden_paths_are_taken_where_they_are_named() {
    let disk = Disk::new();
    disk.write(".gitignore", "/target/\n*.log\n");
    for name in ["target/a.rs", "b.log", ".github/ci.yml", ".github/.hidden", ".env.example"] {
        disk.write(name, "text");
    }
    assert_eq!(names(&disk.walk(&["."]).await), [""; 0]);
    let walk = disk.walk(&["target", "b.log", ".github", ".env.example"]).await;
    assert_eq!(names(&walk), [".env.example", ".github/ci.yml", "b.log", "target/a.rs"]);
}

#[tokio::test]
async fn version_control_is_never_read() {
    let disk = Disk::new();
    disk.write(".git/config", "token");
    disk.write("sub/.svn/entries", "text");
    for path in [".git", ".git/config", "sub/.svn", "sub/../.git/config"] {
        let walk = disk.walk(&[path]).await;
        assert_eq!(names(&walk), [""; 0], "{path}");
        assert_eq!(walk.skipped[0].reason, SkipReason::VersionControl, "{path}");
        assert_eq!(disk.read(path).await.unwrap_err(), SkipReason::VersionControl, "{path}");
    }
}

#[tokio::test]
async fn ignore_files_above_the_root_play_no_part() {
    let disk = Disk::new();
    write(&disk.base().join(".gitignore"), "*\n");
    disk.write("a.rs", "text");
    assert_eq!(names(&disk.walk(&["."]).await), ["a.rs"]);
}

#[tokio::test]
async fn absolute_paths_have_the_same_names() {
    let disk = Disk::new();
    disk.write("src/a.rs", "text");
    let root = disk.root();
    let walk = disk.walk(&[root.to_str().unwrap(), root.join("src/a.rs").to_str().unwrap()]).await;
    assert_eq!(walk.given, [".", "src/a.rs"]);
    assert_eq!(names(&walk), ["src/a.rs"]);
}

#[tokio::test]
async fn files_of_other_roots_have_absolute_names() {
    let disk = Disk::with(|options| {
        let base = options.roots[0].parent().unwrap().to_owned();
        std::fs::create_dir(base.join("second")).unwrap();
        options.roots.push(base.join("second"));
    });
    disk.write("a.rs", "first");
    let second = disk.base().join("second");
    write(&second.join("a.rs"), "second");
    let second = second.to_str().unwrap();
    let walk = disk.walk(&[".", second]).await;
    let other = format!("{second}/a.rs");
    assert_eq!(names(&walk), [other.as_str(), "a.rs"]);
    assert_eq!(disk.read(&other).await.unwrap().text, "second");
    assert_eq!(disk.read("a.rs").await.unwrap().text, "first");
    assert_eq!(walk.given, [".", second]);
}

#[tokio::test]
async fn nothing_is_said_of_what_is_outside() {
    let disk = Disk::new();
    let outside = disk.outside();
    for name in ["secret.txt", "not-there.txt"] {
        let path = outside.join(name);
        let walk = disk.walk(&[path.to_str().unwrap()]).await;
        assert_eq!(walk.skipped[0].reason, SkipReason::Outside, "{name}");
    }
    // A root whose name begins like another folder's.
    write(&disk.base().join("root-not/a.rs"), "text");
    assert_eq!(disk.walk(&["../root-not"]).await.skipped[0].reason, SkipReason::Outside);
}

#[tokio::test]
async fn missing_root_is_unavailable() {
    let disk = Disk::new();
    disk.write("a.rs", "text");
    std::fs::remove_dir_all(disk.root()).unwrap();
    let error = disk.files.walk(&[".".to_owned()]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn roots_have_to_be_folders() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "text").unwrap();
    let kind = |roots| -> Result<()> { DiskFiles::open(DiskOptions::new(roots)).map(|_| ()) };
    for roots in [vec![], vec![folder.path().join("gone")], vec![folder.path().join("file")]] {
        let error = kind(roots).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
