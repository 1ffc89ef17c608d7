//! Reads one file, so that what is said of it is true of the bytes that were read.

use throughline_core::files::{FileStat, FileText, SkipReason};
use throughline_core::ports::FileRead;

use crate::open::{modified_ns, open_regular};
use crate::options::is_pdf_name;
use crate::roots::Resolved;
use crate::source::Disk;

/// How often a file that changes while it is read is read.
const ATTEMPTS: usize = 2;

pub(crate) fn read(disk: &Disk, name: &str) -> FileRead {
    match read_text(disk, name) {
        Ok(text) => FileRead::Text(text),
        Err(reason) => FileRead::Skipped(reason),
    }
}

fn read_text(disk: &Disk, name: &str) -> Result<FileText, SkipReason> {
    for _ in 0..ATTEMPTS {
        if let Some((stat, bytes)) = read_once(disk, name)? {
            let text = text_of(bytes, &stat.path, disk.options.max_pdf_bytes)?;
            return Ok(FileText::new(stat, text));
        }
    }
    Err(SkipReason::Changing)
}

/// The bytes of a file; `None` where they changed on the way.
fn read_once(disk: &Disk, name: &str) -> Result<Option<(FileStat, Vec<u8>)>, SkipReason> {
    let real = match disk.roots.resolve(name) {
        Resolved::Found(real) => real,
        Resolved::Skipped(_, reason) => return Err(reason),
    };
    let (path, true) = disk.roots.name(&real) else { return Err(SkipReason::BadName) };
    let opened = open_regular(&real)?;
    if !opened.is_at(&real) {
        return Ok(None);
    }
    let bytes = opened.read(disk.options.limit(&path))?;
    let size = opened.metadata().len();
    if !opened.is_unchanged() || bytes.len() as u64 != size {
        return Ok(None);
    }
    let stat = FileStat { path, size, modified_ns: modified_ns(opened.metadata()) };
    Ok(Some((stat, bytes)))
}

/// What is sent of a file.
fn text_of(bytes: Vec<u8>, path: &str, max_pdf_text: u64) -> Result<String, SkipReason> {
    if bytes.starts_with(b"%PDF-") || (is_pdf_name(path) && !bytes.is_empty()) {
        return pdf_text(bytes, max_pdf_text);
    }
    if bytes.contains(&0) {
        return Err(SkipReason::Binary);
    }
    String::from_utf8(bytes).map_err(|_| SkipReason::NotUtf8)
}

#[cfg(feature = "pdf")]
fn pdf_text(bytes: Vec<u8>, limit: u64) -> Result<String, SkipReason> {
    crate::pdf::text(bytes, limit)
}

#[cfg(not(feature = "pdf"))]
fn pdf_text(_: Vec<u8>, _: u64) -> Result<String, SkipReason> {
    Err(SkipReason::PdfUnsupported)
}
