//! Files that a session refers to. Their contents are stored elsewhere.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::ids::{FileRefId, MAX_NAME_BYTES, MessageId, SessionId, is_forbidden};
use crate::time::Timestamp;

/// Most bytes of the metadata of a reference.
pub const MAX_METADATA_BYTES: usize = 64 << 10;

/// Where a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// Uploaded by the user; its metadata is what took the upload said.
    Uploaded,
    /// A document of the tenant's knowledge base.
    KnowledgeBase,
    /// Made in a conversation.
    Artifact,
}

impl FileKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Uploaded, Self::KnowledgeBase, Self::Artifact];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Uploaded => "uploaded",
            Self::KnowledgeBase => "knowledge_base",
            Self::Artifact => "artifact",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FileKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("unknown kind of file: use one of {allowed}"))
        })
    }
}

/// A reference of a session to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRef {
    /// Our id.
    pub id: FileRefId,
    /// The session that refers to it.
    pub session: SessionId,
    /// The message that it came with, where there is one.
    pub message: Option<MessageId>,
    /// Where the file is.
    pub kind: FileKind,
    /// A name for people.
    pub title: String,
    /// Its id there: of a document, a chunk, an artifact; or a URL.
    pub reference: Option<String>,
    /// A JSON object, kept and not interpreted.
    pub metadata: Option<String>,
    /// When it was referred to.
    pub created_at: Timestamp,
}

/// A reference that a caller adds to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFileRef {
    /// The message that it comes with, where there is one.
    pub message: Option<MessageId>,
    /// Where the file is.
    pub kind: FileKind,
    /// A name for people.
    pub title: String,
    /// Its id there, or a URL.
    pub reference: Option<String>,
    /// A JSON object, kept and not interpreted.
    pub metadata: Option<String>,
}

impl FileRef {
    /// The stored form of a new reference.
    #[must_use]
    pub fn of(id: FileRefId, session: &SessionId, new: NewFileRef, created_at: Timestamp) -> Self {
        let NewFileRef { message, kind, title, reference, metadata } = new;
        let session = session.clone();
        Self { id, session, message, kind, title, reference, metadata, created_at }
    }

    /// Whether it can be kept.
    ///
    /// # Errors
    /// `InvalidInput` that names the field.
    pub fn check(&self) -> Result<()> {
        let name = |field: &str, text: &str, most: usize| {
            if text.is_empty() || text.len() > most || text.chars().any(is_forbidden) {
                return Err(Error::invalid(format!(
                    "{field}: 1 to {most} bytes of text without control characters"
                )));
            }
            Ok(())
        };
        name("title", &self.title, MAX_NAME_BYTES)?;
        if let Some(reference) = &self.reference {
            name("reference", reference, 10 * MAX_NAME_BYTES)?;
        }
        if self.metadata.as_ref().is_some_and(|json| json.len() > MAX_METADATA_BYTES) {
            return Err(Error::invalid(format!(
                "metadata: at most {MAX_METADATA_BYTES} bytes of JSON are allowed"
            )));
        }
        Ok(())
    }
}
