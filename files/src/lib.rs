//! Files on disk, below roots that are allowed.
//!
//! **What is walked.** Folders are walked with their `.gitignore` and `.ignore` files, whether they are in a repository or
//! not, and those of the folders above a root up to the repository that it is in; the user's own git settings play no part,
//! so that the same tree gives the same files on every machine. Names that begin with a dot are left out, unless a path
//! names one. Neither kind is reported. A path that names an ignored file or folder is taken. Folders of version control
//! are never entered.
//!
//! **What a link leads to** is taken under its own name where that is within the roots, once, so that links that go round
//! end. A link that leads out is skipped and named.
//!
//! **A path cannot be exchanged between check and use.** A file is opened first, without following a link in its last part
//! and without waiting for a pipe; then what was opened is checked: that it is a regular file, and that its path, as the
//! system tells it for the open file (`/proc/self/fd`), is the one that was checked. Where there is no such path, as on
//! systems other than Linux, the name is resolved once more and compared by device and file number; a name that is exchanged
//! and put back between these two is not noticed there. Off Unix, only the resolved name is compared. Walking gives names and
//! sizes alone, and follows the folders that are there when it comes by.

mod ignored;
mod open;
mod options;
#[cfg(feature = "pdf")]
mod pdf;
mod read;
mod roots;
mod source;
mod walk;

pub use options::DiskOptions;
pub use source::DiskFiles;
