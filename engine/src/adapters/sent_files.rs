//! Files whose texts a client sends with a request, because they are on its machine.

use std::collections::BTreeMap;

use async_trait::async_trait;
use throughline_core::files::{ContentHash, FileStat, FileText, SkipReason, is_plain_path};
use throughline_core::ports::{FileRead, FileSource, FileWalk};
use throughline_core::{Error, Result};

/// Files by name.
#[derive(Debug, Clone, Default)]
pub struct SentFiles {
    files: BTreeMap<String, FileText>,
}

impl SentFiles {
    /// Adds a file.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is empty, too long, or holds what cannot stand in a prompt, and for a name that is there
    /// with another text.
    pub fn add(&mut self, path: &str, text: String) -> Result<()> {
        if path.is_empty() || !is_plain_path(path) {
            return Err(Error::invalid(
                "the path of a file must have 1 to 4,096 bytes, without line breaks and control characters",
            ));
        }
        let hash = ContentHash::of(&text);
        let size = text.len() as u64;
        // There is no time, so that the content decides what has changed.
        let (half, _) = hash.as_bytes().split_at(8);
        let modified_ns = half.iter().fold(0_i64, |sum, byte| sum << 8 | i64::from(*byte));
        let stat = FileStat { path: path.to_owned(), size, modified_ns };
        let file = FileText { stat, text, hash };
        match self.files.insert(path.to_owned(), file) {
            Some(before) if before.hash != hash => Err(Error::invalid(format!(
                "the file `{path}` is there twice, with two texts: name it once"
            ))),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl FileSource for SentFiles {
    async fn walk(&self, paths: &[String]) -> Result<FileWalk> {
        let named = |path: &String| paths.contains(path);
        let files = self.files.values().filter(|file| named(&file.stat.path));
        // What is not sent any more is gone.
        Ok(FileWalk {
            given: if paths.is_empty() { Vec::new() } else { vec![".".to_owned(), "/".to_owned()] },
            files: files.map(|file| file.stat.clone()).collect(),
            skipped: Vec::new(),
        })
    }

    async fn read(&self, name: &str) -> Result<FileRead> {
        let file = self.files.get(name).cloned();
        Ok(file.map_or(FileRead::Skipped(SkipReason::Missing), FileRead::Text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn content_decides_what_has_changed() {
        let stat = async |text: &str| {
            let mut sent = SentFiles::default();
            sent.add("src/a.rs", text.to_owned()).unwrap();
            let walk = sent.walk(&["src/a.rs".to_owned()]).await.unwrap();
            walk.files[0].clone()
        };
        assert_eq!(stat("one").await, stat("one").await);
        assert_ne!(stat("one").await, stat("two").await);
    }

    #[test]
    fn names_are_checked() {
        let mut sent = SentFiles::default();
        for bad in ["", "a\nb", "a\u{202e}b"] {
            assert!(sent.add(bad, String::new()).is_err(), "{bad:?}");
        }
        sent.add("a", "text".to_owned()).unwrap();
        sent.add("a", "text".to_owned()).unwrap();
        assert!(sent.add("a", "other".to_owned()).unwrap_err().message().contains("twice"));
    }
}
