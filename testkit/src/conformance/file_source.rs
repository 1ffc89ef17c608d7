//! The table of the `FileSource` port.

use std::sync::Arc;

use throughline_core::files::{ContentHash, FileText, SkipReason};
use throughline_core::ports::{FileRead, FileSource, FileWalk};

use super::runner::{Scenario, scenarios};

pub(super) const TABLE: &[Scenario<dyn DirectedFiles>] = scenarios!["file_source":
    finds_files_at_and_below_paths_by_name,
    finds_file_once_for_several_paths,
    no_paths_find_nothing,
    names_paths_where_nothing_is,
    paths_outside_the_root_are_skipped,
    walk_gives_size_and_time_of_what_is_read,
    reads_text_byte_by_byte,
    reads_empty_file_as_empty_text,
    skips_what_is_not_text,
    skips_what_is_too_large,
    changes_show_in_size_time_and_hash,
    removed_files_are_missing,
    names_are_read_as_they_are_found,
];

/// Files of which a test says what is there. Names are relative to the only root.
pub trait DirectedFiles: FileSource {
    /// Writes a file, with the folders that it is in.
    fn write(&self, name: &str, bytes: &[u8]);

    /// Removes a file.
    fn remove(&self, name: &str);

    /// Most bytes of a file that is read.
    fn max_bytes(&self) -> u64;
}

type Port = Arc<dyn DirectedFiles>;

async fn walk(files: &Port, paths: &[&str]) -> FileWalk {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    files.walk(&paths).await.unwrap()
}

fn names(walk: &FileWalk) -> Vec<&str> {
    walk.files.iter().map(|file| file.path.as_str()).collect()
}

fn skipped(walk: &FileWalk) -> Vec<(&str, SkipReason)> {
    walk.skipped.iter().map(|file| (file.path.as_str(), file.reason)).collect()
}

async fn text(files: &Port, name: &str) -> FileText {
    let read = files.read(name).await.unwrap();
    let FileRead::Text(text) = read else { unreachable!("{name}: {read:?}") };
    text
}

fn tree(files: &Port) {
    files.write("src/main.rs", b"fn main() {}\n");
    files.write("src/deep/er/lib.rs", b"// lib\n");
    files.write("src-other/a.rs", b"// a\n");
    files.write("README.md", b"# Read me\n");
}

async fn finds_files_at_and_below_paths_by_name(files: Port) {
    tree(&files);
    assert_eq!(names(&walk(&files, &["src"]).await), ["src/deep/er/lib.rs", "src/main.rs"]);
    assert_eq!(names(&walk(&files, &["README.md"]).await), ["README.md"]);
    let all = walk(&files, &["."]).await;
    let expected = ["README.md", "src-other/a.rs", "src/deep/er/lib.rs", "src/main.rs"];
    assert_eq!(names(&all), expected);
    assert_eq!((all.given, all.skipped), (vec![".".to_owned()], vec![]));
}

async fn finds_file_once_for_several_paths(files: Port) {
    tree(&files);
    let paths = ["src", "./src/", "src/deep/../main.rs", "src/main.rs", "src/deep"];
    let walk = walk(&files, &paths).await;
    assert_eq!(names(&walk), ["src/deep/er/lib.rs", "src/main.rs"]);
    assert_eq!(walk.given, ["src", "src/deep", "src/main.rs"]);
}

async fn no_paths_find_nothing(files: Port) {
    tree(&files);
    assert_eq!(walk(&files, &[]).await, FileWalk::default());
}

async fn names_paths_where_nothing_is(files: Port) {
    tree(&files);
    let walk = walk(&files, &["src", "gone/a.rs"]).await;
    assert_eq!(names(&walk).len(), 2);
    assert_eq!(skipped(&walk), [("gone/a.rs", SkipReason::Missing)]);
    assert_eq!(walk.given, ["gone/a.rs", "src"]);
}

async fn paths_outside_the_root_are_skipped(files: Port) {
    tree(&files);
    for path in ["../outside.txt", "/etc/hostname", "src/../../outside.txt", ".."] {
        let walk = walk(&files, &[path]).await;
        let reasons: Vec<_> = walk.skipped.iter().map(|file| file.reason).collect();
        assert_eq!((names(&walk).len(), reasons), (0, vec![SkipReason::Outside]), "{path}");
        assert!(walk.given.is_empty(), "{path}: {walk:?}");
        let read = files.read(path).await.unwrap();
        assert_eq!(read, FileRead::Skipped(SkipReason::Outside), "{path}");
    }
}

async fn walk_gives_size_and_time_of_what_is_read(files: Port) {
    tree(&files);
    for stat in walk(&files, &["."]).await.files {
        assert_eq!(text(&files, &stat.path).await.stat, stat);
    }
}

async fn reads_text_byte_by_byte(files: Port) {
    let content = "\u{feff}tab\tcarriage\r\n\r\nno end ünï 😀";
    files.write("a.txt", content.as_bytes());
    let file = text(&files, "a.txt").await;
    assert_eq!((file.text.as_str(), file.stat.size), (content, content.len() as u64));
    assert_eq!(file.hash, ContentHash::of(content));
}

async fn reads_empty_file_as_empty_text(files: Port) {
    files.write("empty", b"");
    assert_eq!(walk(&files, &["empty"]).await.files[0].size, 0);
    let file = text(&files, "empty").await;
    assert_eq!((file.text.as_str(), file.hash), ("", ContentHash::of("")));
}

async fn skips_what_is_not_text(files: Port) {
    let table: [(&str, &[u8], SkipReason); 3] = [
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", SkipReason::Binary),
        ("latin1.txt", b"caf\xe9\n", SkipReason::NotUtf8),
        ("cut.txt", b"cut \xf0\x9f\x98", SkipReason::NotUtf8),
    ];
    for (name, bytes, reason) in table {
        files.write(name, bytes);
        assert_eq!(files.read(name).await.unwrap(), FileRead::Skipped(reason), "{name}");
    }
}

async fn skips_what_is_too_large(files: Port) {
    let limit = files.max_bytes();
    files.write("fits.txt", &vec![b'a'; limit as usize]);
    files.write("large.txt", &vec![b'a'; limit as usize + 1]);
    let walk = walk(&files, &["."]).await;
    assert_eq!(names(&walk), ["fits.txt"]);
    let reason = SkipReason::TooLarge { limit };
    assert_eq!(skipped(&walk), [("large.txt", reason)]);
    assert_eq!(text(&files, "fits.txt").await.text.len() as u64, limit);
    assert_eq!(files.read("large.txt").await.unwrap(), FileRead::Skipped(reason));
}

async fn changes_show_in_size_time_and_hash(files: Port) {
    files.write("a.rs", b"one");
    let (before, read) = (walk(&files, &["a.rs"]).await.files, text(&files, "a.rs").await);
    files.write("a.rs", b"three");
    let after = walk(&files, &["a.rs"]).await.files;
    assert_ne!(before, after);
    let again = text(&files, "a.rs").await;
    assert_eq!((again.text.as_str(), &again.stat), ("three", &after[0]));
    assert_ne!(again.hash, read.hash);
    files.write("a.rs", b"one");
    assert_eq!(text(&files, "a.rs").await.hash, read.hash);
}

async fn removed_files_are_missing(files: Port) {
    tree(&files);
    files.remove("src/main.rs");
    assert_eq!(names(&walk(&files, &["src"]).await), ["src/deep/er/lib.rs"]);
    let read = files.read("src/main.rs").await.unwrap();
    assert_eq!(read, FileRead::Skipped(SkipReason::Missing));
}

async fn names_are_read_as_they_are_found(files: Port) {
    let odd = ["a b/c d.txt", "docs/it's \"odd\" & <b>.md", "ünï/日本語.rs", "x/-rf", "x/[a]*?.rs"];
    for name in odd {
        files.write(name, name.as_bytes());
    }
    let walk = walk(&files, &["."]).await;
    assert_eq!(walk.skipped, []);
    assert_eq!(names(&walk).len(), odd.len());
    for stat in walk.files {
        assert_eq!(text(&files, &stat.path).await.text, stat.path);
    }
}
