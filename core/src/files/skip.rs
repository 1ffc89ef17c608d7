//! Why files are left out.

use std::fmt;

use super::MAX_SEARCHED_PATH_BYTES;

/// Why a file is neither sent nor searched. `Display` has the sentence for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// It holds a NUL byte.
    Binary,
    /// It is text in another encoding than UTF-8.
    NotUtf8,
    /// It has no content.
    Empty,
    /// It is larger than allowed.
    TooLarge {
        /// Most bytes.
        limit: u64,
    },
    /// A device, such as a disk or a terminal.
    Device,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// The operating system refuses to open or read it.
    Unreadable,
    /// Nothing is there, or not any more.
    Missing,
    /// It changed while it was read, twice.
    Changing,
    /// It is outside the allowed roots.
    Outside,
    /// A link that leads out of the allowed roots.
    LinkOutside,
    /// Its name is not UTF-8, or holds line breaks, control or reordering characters, or is too long.
    BadName,
    /// It would be searched, and its name is longer than [`MAX_SEARCHED_PATH_BYTES`].
    LongName,
    /// The same file as another one of the walk, under another name (a hard link).
    SameFile,
    /// Within the folder of a version control system.
    VersionControl,
    /// The walk ended before it: there are more files than allowed. What the walk did not reach is unknown.
    TooMany {
        /// Most files.
        limit: u64,
    },
    /// A PDF that is damaged, or has what the reader does not know.
    BrokenPdf,
    /// A PDF that needs a password.
    LockedPdf,
    /// A PDF without text, such as a scan.
    NoPdfText,
    /// A PDF that takes too long to read.
    SlowPdf,
    /// PDF files are not supported in this build.
    PdfUnsupported,
}

impl SkipReason {
    /// Stable machine-readable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::NotUtf8 => "not_utf8",
            Self::Empty => "empty",
            Self::TooLarge { .. } => "too_large",
            Self::Device => "device",
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Unreadable => "unreadable",
            Self::Missing => "missing",
            Self::Changing => "changing",
            Self::Outside => "outside",
            Self::LinkOutside => "link_outside",
            Self::BadName => "bad_name",
            Self::LongName => "long_name",
            Self::SameFile => "same_file",
            Self::VersionControl => "version_control",
            Self::TooMany { .. } => "too_many",
            Self::BrokenPdf => "broken_pdf",
            Self::LockedPdf => "locked_pdf",
            Self::NoPdfText => "no_pdf_text",
            Self::SlowPdf => "slow_pdf",
            Self::PdfUnsupported => "pdf_unsupported",
        }
    }

    /// The number of a reason that follows from the content alone, so that an unchanged file need not be read again.
    pub(super) fn content_number(self) -> Option<u8> {
        match self {
            Self::Binary => Some(1),
            Self::NotUtf8 => Some(2),
            Self::BrokenPdf => Some(3),
            Self::LockedPdf => Some(4),
            Self::NoPdfText => Some(5),
            _ => None,
        }
    }

    /// The reason of a number.
    pub(super) fn of_content_number(number: u64) -> Option<Self> {
        let all = [Self::Binary, Self::NotUtf8, Self::BrokenPdf, Self::LockedPdf, Self::NoPdfText];
        all.into_iter().find(|reason| reason.content_number().map(u64::from) == Some(number))
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary: it holds a NUL byte",
            Self::NotUtf8 => "not UTF-8 text",
            Self::Empty => "empty",
            Self::TooLarge { limit } => return write!(f, "larger than {limit} bytes"),
            Self::Device => "a device",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Unreadable => "not readable: check its permissions",
            Self::Missing => "not found",
            Self::Changing => "changed while it was read: try again",
            Self::Outside => "outside the allowed roots",
            Self::LinkOutside => "a link that leads out of the allowed roots",
            Self::BadName => {
                "its name is not UTF-8, holds line breaks or control characters, or is too long"
            }
            Self::LongName => {
                return write!(
                    f,
                    "not inline, and its name has more than {MAX_SEARCHED_PATH_BYTES} bytes: it cannot be searched"
                );
            }
            Self::SameFile => "the same file as another one (a hard link)",
            Self::VersionControl => "within a folder of version control",
            Self::TooMany { limit } => {
                return write!(f, "more than {limit} files: name fewer files or folders");
            }
            Self::BrokenPdf => "a PDF that cannot be read: it is damaged or not supported",
            Self::LockedPdf => "a PDF that needs a password",
            Self::NoPdfText => "a PDF without text, such as a scan",
            Self::SlowPdf => "a PDF that takes too long to read",
            Self::PdfUnsupported => "a PDF, which this build cannot read",
        })
    }
}
