//! The one error type: what happened, what the caller can do, and where it came from.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// Result of every fallible call in the domain and its ports.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of a failure. One table per interface maps a kind to an exit code or a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong; the message says what is allowed.
    InvalidInput,
    /// Something that must exist does not.
    NotFound,
    /// The id is already used for other content, or a precondition no longer holds.
    Conflict,
    /// The caller's condition does not hold, such as the version of a document.
    PreconditionFailed,
    /// The caller is unknown: the credential is missing or not valid.
    Unauthenticated,
    /// The caller is known and may not do this.
    Forbidden,
    /// The caller exceeded its rate; [`Error::retry_after`] says how long to wait.
    RateLimited,
    /// The token budget cannot hold the critical header and the user's turn.
    BudgetTooSmall,
    /// The model, or whoever decides for it, refused to answer.
    Declined,
    /// The backend cannot be reached or is overloaded; retrying later may work.
    Unavailable,
    /// The backend is read-only.
    ReadOnly,
    /// The backend is full.
    StorageFull,
    /// The stored schema is newer than this program understands.
    SchemaTooNew,
    /// Stored data is damaged.
    Corrupt,
    /// A bug in this program.
    Internal,
}

impl ErrorKind {
    /// Stable machine-readable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid_input",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::PreconditionFailed => "precondition_failed",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::RateLimited => "rate_limited",
            Self::BudgetTooSmall => "budget_too_small",
            Self::Declined => "declined",
            Self::Unavailable => "unavailable",
            Self::ReadOnly => "read_only",
            Self::StorageFull => "storage_full",
            Self::SchemaTooNew => "schema_too_new",
            Self::Corrupt => "corrupt",
            Self::Internal => "internal",
        }
    }

    /// Whether the same call may succeed later without any change by the caller.
    #[must_use]
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Unavailable | Self::RateLimited)
    }
}

/// A failure: a kind, one sentence for the caller, the operation, and the source if there is one.
///
/// `Display` prints the sentence only; sources (driver errors) are for logs and never for a
/// public error body.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    operation: Option<&'static str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    lost_race: bool,
    retry_after: Option<Duration>,
}

impl Error {
    /// An error of `kind` whose message tells the caller what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            operation: None,
            source: None,
            lost_race: false,
            retry_after: None,
        }
    }

    /// Shorthand for [`ErrorKind::InvalidInput`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, message)
    }

    /// Shorthand for [`ErrorKind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Shorthand for [`ErrorKind::Conflict`].
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// A precondition of a batch no longer holds: rebuild the batch from fresh reads.
    pub fn lost_race(message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorKind::Conflict, message);
        error.lost_race = true;
        error
    }

    /// Whether rebuilding the batch may succeed: another writer came first.
    #[must_use]
    pub fn is_lost_race(&self) -> bool {
        self.lost_race
    }

    /// Sets how long the caller should wait before a retry.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// How long the caller should wait before a retry, if known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Shorthand for [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Names the operation that failed, for logs.
    #[must_use]
    pub fn during(mut self, operation: &'static str) -> Self {
        self.operation.get_or_insert(operation);
        self
    }

    /// Keeps the underlying error, for logs.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind, which decides what callers do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The sentence for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The operation that failed, if it was named.
    #[must_use]
    pub fn operation(&self) -> Option<&'static str> {
        self.operation
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
