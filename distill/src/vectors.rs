//! The teacher's vectors in a file, so that hours of computation survive an interruption and serve
//! more than one table.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `TLTV` |
//! | 4 | version, 1 |
//! | 4 | dimensions |
//! | 4 | bytes of a value: 2 for `f16`, 4 for `f32` |
//! | 32 | BLAKE3 of the texts, each followed by a newline |
//! | … | one vector a text, in the texts' order |
//!
//! Numbers are little endian. A file with fewer vectors than texts is one to be continued; what is
//! left of a vector that was cut off does not count.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use half::f16;
use throughline_core::{Error, ErrorKind, Result};

use crate::algebra::Columns;
use crate::bags::column_mut;

const MAGIC: &[u8; 4] = b"TLTV";
const VERSION: u32 = 1;
const HEADER: u64 = 48;
const MAX_DIMENSIONS: usize = 65_536;

/// A file of vectors for certain texts.
#[derive(Debug)]
pub struct VectorFile {
    path: PathBuf,
    file: File,
    dimensions: usize,
    /// Of a value: 2 or 4.
    bytes: usize,
    rows: usize,
}

impl VectorFile {
    /// Opens the file for texts with this hash, or begins it with values of two bytes.
    ///
    /// # Errors
    /// `Conflict` for a file of other texts or dimensions, `Corrupt` for another kind of file, and
    /// what the disk says.
    pub fn open(path: &Path, texts: blake3::Hash, dimensions: usize) -> Result<Self> {
        let told = |error: std::io::Error| {
            Error::new(ErrorKind::Unavailable, format!("{}: {error}", path.display()))
        };
        let mut options = File::options();
        let file =
            options.read(true).write(true).create(true).truncate(false).open(path).map_err(told)?;
        let mut new = Self { path: path.to_owned(), file, dimensions, bytes: 2, rows: 0 };
        let length = new.file.metadata().map_err(told)?.len();
        if length == 0 {
            new.begin(texts).map_err(told)?;
            return Ok(new);
        }
        let mut header = [0; HEADER as usize];
        new.file.read_exact(&mut header).map_err(told)?;
        new.check(&header, texts)?;
        let rows = (length - HEADER) / new.row() as u64;
        new.rows = rows as usize;
        Ok(new)
    }

    fn begin(&mut self, texts: blake3::Hash) -> std::io::Result<()> {
        let numbers = [VERSION, self.dimensions as u32, self.bytes as u32].map(u32::to_le_bytes);
        self.file.write_all(&[MAGIC, numbers.as_flattened(), texts.as_bytes()].concat())
    }

    fn check(&mut self, header: &[u8; HEADER as usize], texts: blake3::Hash) -> Result<()> {
        let damaged = |why: &str| {
            let message = format!("{} {why}: name another file", self.path.display());
            Error::new(ErrorKind::Corrupt, message)
        };
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if header[..4] != *MAGIC || number(4) != VERSION {
            return Err(damaged("is no file of vectors, or one of another version"));
        }
        let bytes = number(12) as usize;
        let dimensions = number(8) as usize;
        if !matches!(bytes, 2 | 4) || dimensions > MAX_DIMENSIONS {
            return Err(damaged("has values of an unknown kind"));
        }
        if dimensions != self.dimensions || header[16..] != *texts.as_bytes() {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "{} holds the vectors of other texts or another model: name another file",
                    self.path.display()
                ),
            ));
        }
        self.bytes = bytes;
        Ok(())
    }

    /// How many vectors are there.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds vectors of the next texts.
    ///
    /// # Errors
    /// `Internal` for a vector of another length, and what the disk says.
    pub fn append(&mut self, vectors: &[Vec<f32>]) -> Result<()> {
        if vectors.iter().any(|vector| vector.len() != self.dimensions) {
            return Err(Error::internal("a vector of another length"));
        }
        let end = HEADER + (self.rows * self.row()) as u64;
        let written = self.file.seek(SeekFrom::Start(end)).and_then(|_| {
            let mut writer = BufWriter::new(&self.file);
            for value in vectors.iter().flatten() {
                if self.bytes == 2 {
                    writer.write_all(&f16::from_f32(*value).to_le_bytes())?;
                } else {
                    writer.write_all(&value.to_le_bytes())?;
                }
            }
            writer.flush()
        });
        written.map_err(|error| self.told(&error))?;
        self.rows += vectors.len();
        Ok(())
    }

    /// Reads the first `count` vectors, one a column.
    ///
    /// # Errors
    /// `InvalidInput` when fewer are there, `Corrupt` when values are not finite, and what the disk
    /// says.
    pub fn read(&mut self, count: usize) -> Result<Columns> {
        if count > self.rows {
            let message = format!("{} holds {} of {count}", self.path.display(), self.rows);
            return Err(Error::invalid(message));
        }
        self.file.seek(SeekFrom::Start(HEADER)).map_err(|error| self.told(&error))?;
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        let mut row = vec![0; self.row()];
        let mut columns = Columns::zeros(self.dimensions, count);
        for at in 0..count {
            reader.read_exact(&mut row).map_err(|error| self.told(&error))?;
            let values = column_mut(&mut columns, at);
            if self.bytes == 2 {
                for (value, bytes) in values.iter_mut().zip(row.as_chunks().0) {
                    *value = f16::from_le_bytes(*bytes).to_f32();
                }
            } else {
                for (value, bytes) in values.iter_mut().zip(row.as_chunks().0) {
                    *value = f32::from_le_bytes(*bytes);
                }
            }
            if !values.iter().all(|value| value.is_finite()) {
                let message = format!("vector {at} of {} is damaged", self.path.display());
                return Err(Error::new(ErrorKind::Corrupt, message));
            }
        }
        Ok(columns)
    }

    /// Bytes of a vector.
    fn row(&self) -> usize {
        self.bytes * self.dimensions
    }

    fn told(&self, error: &std::io::Error) -> Error {
        Error::new(ErrorKind::Unavailable, format!("{}: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors");
        let texts = blake3::hash(b"texts");
        let mut file = VectorFile::open(&path, texts, 2).unwrap();
        file.append(&[vec![0.5, -1.0], vec![0.25, 2.0]]).unwrap();
        assert_eq!(file.read(2).unwrap().as_slice(), [0.5, -1.0, 0.25, 2.0]);
        drop(file);
        // Cut off within the second vector.
        File::options().write(true).open(&path).unwrap().set_len(HEADER + 7).unwrap();
        let mut file = VectorFile::open(&path, texts, 2).unwrap();
        assert_eq!(file.rows(), 1);
        assert!(file.read(2).is_err());
        file.append(&[vec![3.0, 4.0]]).unwrap();
        assert_eq!(file.read(2).unwrap().as_slice(), [0.5, -1.0, 3.0, 4.0]);
    }

    #[test]
    fn a_file_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors");
        let texts = blake3::hash(b"texts");
        VectorFile::open(&path, texts, 2).unwrap();
        let kind = |texts, dimensions| {
            VectorFile::open(&path, texts, dimensions).map(|file| file.rows()).map_err(|e| e.kind())
        };
        assert_eq!(kind(texts, 2), Ok(0));
        assert_eq!(kind(blake3::hash(b"others"), 2), Err(ErrorKind::Conflict));
        assert_eq!(kind(texts, 3), Err(ErrorKind::Conflict));
        std::fs::write(&path, [b'x'; 100]).unwrap();
        assert_eq!(kind(texts, 2), Err(ErrorKind::Corrupt));
    }

    #[test]
    fn values_of_four_bytes_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vectors");
        let texts = blake3::hash(b"texts");
        let mut bytes = [MAGIC.as_slice(), &[1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0]].concat();
        bytes.extend_from_slice(texts.as_bytes());
        bytes.extend_from_slice(&0.1_f32.to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        let mut file = VectorFile::open(&path, texts, 1).unwrap();
        file.append(&[vec![0.2]]).unwrap();
        assert_eq!(file.read(2).unwrap().as_slice(), [0.1, 0.2]);
    }
}
