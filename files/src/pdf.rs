//! The text of PDF files, and what becomes of those that are damaged or made to do harm.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use lopdf::{Document, Error, LoadOptions};
use throughline_core::files::SkipReason;

/// How long a file may take.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Most files that are still being read after that, which nothing can stop; with as many, no other is begun.
const MAX_ABANDONED: usize = 2;
/// Most bytes of one stream, which a few bytes may unpack to.
const MAX_STREAM: usize = 64 << 20;
/// The parser goes a hundred objects deep; in a debug build, each takes some kilobytes.
const STACK: usize = 16 << 20;

static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// The text of a PDF file, page by page, of at most `limit` bytes. A panic of the reader is a broken file.
pub(crate) fn text(bytes: Vec<u8>, limit: u64) -> Result<String, SkipReason> {
    within(TIMEOUT, move || extract(&bytes, limit))
}

/// Does work on a thread of its own, and gives it up after a while.
fn within(
    timeout: Duration,
    work: impl FnOnce() -> Result<String, SkipReason> + Send + 'static,
) -> Result<String, SkipReason> {
    if ABANDONED.load(Ordering::Relaxed) >= MAX_ABANDONED {
        return Err(SkipReason::SlowPdf);
    }
    // Without a buffer: sending fails exactly where nobody waits any more.
    let (done, result) = mpsc::sync_channel(0);
    let worker = thread::Builder::new().name("pdf".to_owned()).stack_size(STACK).spawn(move || {
        let text = catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(SkipReason::BrokenPdf));
        if done.send(text).is_err() {
            ABANDONED.fetch_sub(1, Ordering::Relaxed);
        }
    });
    if worker.is_err() {
        return Err(SkipReason::SlowPdf);
    }
    result.recv_timeout(timeout).unwrap_or_else(|_| {
        ABANDONED.fetch_add(1, Ordering::Relaxed);
        Err(SkipReason::SlowPdf)
    })
}

fn extract(bytes: &[u8], limit: u64) -> Result<String, SkipReason> {
    let options = LoadOptions { max_decompressed_size: Some(MAX_STREAM), ..LoadOptions::default() };
    let document =
        Document::load_mem_with_options(bytes, options).map_err(|error| reason(&error))?;
    if document.is_encrypted() {
        return Err(SkipReason::LockedPdf);
    }
    let mut text = String::new();
    let mut pages = 0;
    for page in document.get_pages().into_keys() {
        // A page that cannot be read does not hide the others.
        let Ok(page) = document.extract_text_with_limit(&[page], MAX_STREAM) else { continue };
        pages += 1;
        text.push_str(page.trim());
        text.push('\n');
        if text.len() as u64 > limit {
            return Err(SkipReason::TooLarge { limit });
        }
    }
    // What a font cannot say, and what would not be text in a prompt.
    text.retain(|c| c == '\n' || c == '\t' || !c.is_control());
    match (pages, text.trim().is_empty()) {
        (0, _) => Err(SkipReason::BrokenPdf),
        (_, true) => Err(SkipReason::NoPdfText),
        _ => Ok(text),
    }
}

fn reason(error: &Error) -> SkipReason {
    match error {
        Error::InvalidPassword | Error::Decryption(_) => SkipReason::LockedPdf,
        _ => SkipReason::BrokenPdf,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_a_broken_file() {
        let broken = within(TIMEOUT, || panic!("a defect of the reader"));
        assert_eq!(broken, Err(SkipReason::BrokenPdf));
    }

    #[test]
    fn slow_work_is_given_up_and_bounded() {
        let (end, ended) = mpsc::channel::<()>();
        let slow = within(Duration::from_millis(1), move || {
            let _ = ended.recv();
            Ok("late".to_owned())
        });
        assert_eq!(slow, Err(SkipReason::SlowPdf));
        assert_eq!(ABANDONED.load(Ordering::Relaxed), 1);
        end.send(()).unwrap();
        while ABANDONED.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
    }
}
