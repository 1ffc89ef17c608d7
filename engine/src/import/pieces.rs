//! Reading in pieces: of a file, however large it is or becomes when it is unpacked, no more than a piece is in memory beside
//! the texts that are kept.

use std::cell::RefCell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use super::{Problem, line_of};
use crate::json_limits::JsonLimits;

/// Most bytes of what is read at once: a line, or a conversation of an export.
pub(super) const LARGEST_PIECE: u64 = 32 << 20;
/// Most bytes of a file that is one JSON value, and is read whole.
const LARGEST_VALUE: u64 = 64 << 20;

/// Most memory that the values of a piece take, beside their text.
const MOST_VALUES: usize = 256 << 20;

/// The text of a source that is one JSON value.
pub(super) fn whole(source: impl Read) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    let read = source.take(LARGEST_VALUE + 1).read_to_end(&mut bytes);
    read.map_err(|error| Problem::new(None, "", format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > LARGEST_VALUE {
        let most = LARGEST_VALUE >> 20;
        let message =
            format!("has more than {most} MiB, the most of one JSON value: use JSON lines");
        return Err(Problem::new(None, "", message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        Problem::new(Some(line), "", "not UTF-8: save the file as UTF-8")
    })
}

/// That a piece whose JSON begins at this line has no more values than can be read at once.
pub(super) fn check_values(json: &[u8], line: usize) -> Result<(), Problem> {
    let mut values = JsonLimits::default();
    let problem = |message: String| Problem::new(Some(line), "", message);
    values.read(json).map_err(|error| problem(error.message().to_owned()))?;
    match values.values() > MOST_VALUES {
        true => Err(problem(TOO_MANY.to_owned())),
        false => Ok(()),
    }
}

/// The lines of a source, one at a time.
pub(super) struct Lines<R> {
    source: R,
    line: Vec<u8>,
    number: usize,
}

/// A line, with its end if it has one.
pub(super) struct Line<'l> {
    pub(super) bytes: &'l [u8],
    /// From 1.
    pub(super) number: usize,
}

impl Line<'_> {
    /// Whether its end was written, too.
    pub(super) fn has_ended(&self) -> bool {
        self.bytes.ends_with(b"\n")
    }

    /// Its text without white space at the end; `else_what` says what to do where it is not UTF-8.
    pub(super) fn text(&self, else_what: &str) -> Result<&str, Problem> {
        let text = std::str::from_utf8(self.bytes)
            .map_err(|_| Problem::new(Some(self.number), "", format!("not UTF-8: {else_what}")))?;
        Ok(text.trim_end())
    }
}

impl<R: BufRead> Lines<R> {
    pub(super) fn of(source: R) -> Self {
        Self { source, line: Vec::new(), number: 0 }
    }

    /// The next line, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, Problem> {
        self.line.clear();
        self.number += 1;
        let number = self.number;
        let read = self.source.by_ref().take(LARGEST_PIECE + 1).read_until(b'\n', &mut self.line);
        read.map_err(|error| Problem::new(Some(number), "", format!("cannot be read: {error}")))?;
        if self.line.len() as u64 > LARGEST_PIECE {
            return Err(Problem::new(Some(number), "", too_long("line")));
        }
        check_values(&self.line, number)?;
        Ok((!self.line.is_empty()).then_some(Line { bytes: &self.line, number }))
    }
}

/// A source that gives no more than [`LARGEST_PIECE`], and no more than [`MOST_VALUES`], before its [`Allowance`] is renewed.
pub(super) struct Pieces<R> {
    source: R,
    what: &'static str,
    piece: Rc<RefCell<Piece>>,
}

/// What was read of a piece.
#[derive(Default)]
struct Piece {
    bytes: u64,
    values: JsonLimits,
}

impl Piece {
    fn read(&mut self, bytes: &[u8], what: &str) -> Result<(), String> {
        self.bytes += bytes.len() as u64;
        if self.bytes > LARGEST_PIECE {
            return Err(too_long(what));
        }
        self.values.read(bytes).map_err(|error| error.message().to_owned())?;
        (self.values.values() <= MOST_VALUES).then_some(()).ok_or_else(|| TOO_MANY.to_owned())
    }
}

/// What may still be read of a piece.
pub(super) struct Allowance(Rc<RefCell<Piece>>);

impl Allowance {
    /// Lets the next piece begin.
    pub(super) fn renew(&self) {
        let mut piece = self.0.borrow_mut();
        piece.bytes = 0;
        piece.values.forget();
    }
}

impl<R: Read> Pieces<R> {
    /// The pieces of a source, which are each a `what`.
    pub(super) fn of(source: R, what: &'static str) -> (Self, Allowance) {
        let piece = Rc::<RefCell<Piece>>::default();
        (Self { source, what, piece: Rc::clone(&piece) }, Allowance(piece))
    }
}

impl<R: Read> Read for Pieces<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.piece.borrow_mut().read(&buffer[..read], self.what).map_err(io::Error::other)?;
        Ok(read)
    }
}

const TOO_MANY: &str = "has too many values to be read at once, which cannot be imported";

fn too_long(what: &str) -> String {
    format!("a {what} of more than {} MiB, which cannot be imported", LARGEST_PIECE >> 20)
}
