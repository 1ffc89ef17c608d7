//! Reads the texts that the table is fitted to.
//!
//! They decide what the table is good at: sentences as they are said and asked, from as many
//! subjects as can be had. Hundreds of thousands are needed, so that most tokens occur.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use throughline_core::{Error, ErrorKind, Result};
use unicode_segmentation::UnicodeSegmentation;

/// Characters of a sentence out of a document: shorter ones say little, longer ones are lists.
const LENGTH: std::ops::RangeInclusive<usize> = 12..=400;
/// Of the shuffle of sentences.
const SEED: u64 = 7;

/// The texts of a file, one a line in its order; or all sentences of the `.txt` and `.md` files
/// under a folder, each once, in random order that is the same each time.
///
/// # Errors
/// `NotFound` or `Unavailable` for what cannot be read, `InvalidInput` when no text is there.
pub fn read(path: &Path) -> Result<Vec<String>> {
    let texts = if path.is_dir() { sentences_of(path)? } else { lines(&text(path)?) };
    if texts.is_empty() {
        return Err(Error::invalid(format!("{} has no texts", path.display())));
    }
    Ok(texts)
}

/// What identifies texts in their order.
#[must_use]
pub fn hash(texts: &[String]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(text.as_bytes());
        hasher.update(b"\n");
    }
    hasher.finalize()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn sentences_of(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    // The order of a folder's files is not the same everywhere.
    files.sort_unstable();
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for file in files {
        for sentence in sentences(&text(&file)?) {
            if seen.insert(sentence.clone()) {
                found.push(sentence);
            }
        }
    }
    fastrand::Rng::with_seed(SEED).shuffle(&mut found);
    Ok(found)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(|error| told(&error, folder))? {
        let entry = entry.map_err(|error| told(&error, folder))?;
        // Links are not followed: they may lead in circles.
        let kind = entry.file_type().map_err(|error| told(&error, folder))?;
        let path = entry.path();
        if kind.is_dir() {
            find(&path, files)?;
        } else if kind.is_file()
            && path.extension().is_some_and(|extension| extension == "txt" || extension == "md")
        {
            files.push(path);
        }
    }
    Ok(())
}

/// The sentences of a document that are worth reading: not code, tables or rows of numbers.
fn sentences(document: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for paragraph in paragraphs(document) {
        let found = paragraph.unicode_sentences().map(str::trim);
        sentences.extend(found.filter(|sentence| is_prose(sentence)).map(str::to_owned));
    }
    sentences
}

/// Paragraphs and items of lists, each in one line, without the marks of Markdown before them.
fn paragraphs(document: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut code = false;
    for line in document.lines() {
        let bare = line.trim_start_matches(['#', '>', '*', '-', '+', ' ', '\t']).trim_end();
        let fence = bare.starts_with("```");
        code ^= fence;
        if bare.is_empty() || fence || code {
            paragraphs.push(String::new());
            continue;
        }
        let marked = bare.len() < line.trim().len();
        if marked {
            paragraphs.push(String::new());
        }
        if let Some(paragraph) = paragraphs.last_mut() {
            for word in bare.split_whitespace() {
                if !paragraph.is_empty() {
                    paragraph.push(' ');
                }
                paragraph.push_str(word);
            }
        }
        let heading = marked && line.trim_start().starts_with('#');
        if heading {
            paragraphs.push(String::new());
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

fn is_prose(sentence: &str) -> bool {
    let length = sentence.chars().count();
    let words = sentence.chars().filter(|char| char.is_alphabetic() || *char == ' ').count();
    LENGTH.contains(&length) && words * 4 >= length * 3
}

fn text(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|error| told(&error, file))
}

fn told(error: &std::io::Error, path: &Path) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("{} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_by_lines() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("texts");
        std::fs::write(&file, "One text.\n\n  another \r\n").unwrap();
        let texts = read(&file).unwrap();
        assert_eq!(texts, ["One text.", "another"]);
        assert_eq!(hash(&texts), blake3::hash(b"One text.\nanother\n"));
        std::fs::write(&file, " \n").unwrap();
        assert_eq!(read(&file).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(read(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_folder_is_read_by_sentences() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("a.md", "# A heading of it\nThis is a sentence\nof two lines. Short.\n");
        write("deep/b.txt", "This is a sentence of two lines. Is it one question?\n");
        write("deep/c.rs", "This is not a document at all.\n");
        let mut texts = read(folder.path()).unwrap();
        assert_eq!(texts, read(folder.path()).unwrap());
        texts.sort_unstable();
        let expected =
            ["A heading of it", "Is it one question?", "This is a sentence of two lines."];
        assert_eq!(texts, expected);
    }

    #[test]
    fn documents_are_cut_where_meaning_ends() {
        let document = "Some words go on\n  here as well.\n- An item of a list\n- Another one of it\n\
                        \n```\nlet code = is left out;\n```\n1 2 3 4 5 6 7 8 9 10 11 12\n";
        let expected = ["Some words go on here as well.", "An item of a list", "Another one of it"];
        assert_eq!(sentences(document), expected);
    }
}
