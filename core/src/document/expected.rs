//! What a writer expects of the latest snapshot.

use super::{Etag, Snapshot};
use crate::error::{Error, ErrorKind, Result};

/// What the latest snapshot has to be for a put to count: what keeps one writer from undoing the work of
/// another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expected {
    /// Anything, or nothing.
    #[default]
    Anything,
    /// There is none yet.
    Absent,
    /// There is one, whichever it is.
    Present,
    /// It has one of these etags.
    OneOf(Vec<Etag>),
}

/// The error for a document that does not exist or belongs to somebody else.
pub(crate) fn no_document() -> Error {
    Error::not_found("there is no document for this vault and memory: putting one creates both")
}

/// Whether the latest snapshot is what a caller expected it to be.
pub(crate) fn check_expected(expected: &Expected, latest: Option<&Snapshot>) -> Result<()> {
    let holds = match (expected, latest) {
        (Expected::Anything, _) | (Expected::Absent, None) | (Expected::Present, Some(_)) => true,
        (Expected::OneOf(etags), Some(latest)) => etags.contains(&latest.info.etag),
        _ => false,
    };
    if holds {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::PreconditionFailed,
        match latest {
            Some(latest) => format!(
                "the document has changed (its etag is now \"{}\"): read it again, apply your \
                 change to it, and put the result",
                latest.info.etag
            ),
            None => "there is no document yet: put it without If-Match".to_owned(),
        },
    ))
}
