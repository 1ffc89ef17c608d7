//! The one place that maps the driver's errors. Sentences are constants: what a server or a
//! connection says stays in the source, for logs.

use std::error::Error as _;

use qdrant_client::QdrantError;
use throughline_core::{Error, ErrorKind, Result};

type Judged = (ErrorKind, &'static str);

const AWAY: Judged = (
    ErrorKind::Unavailable,
    "Qdrant does not respond: start it, or check `qdrant.url`, which names its gRPC port (6334 \
     unless configured otherwise)",
);
const STRANGER: Judged = (
    ErrorKind::Unavailable,
    "the server at `qdrant.url` is not a supported Qdrant: check the address, that the port is the \
     gRPC port (6334 unless configured otherwise), and the version",
);
const NO_ROOTS: Judged = (
    ErrorKind::Unavailable,
    "TLS to Qdrant cannot be set up: install the root certificates of this system, or name a file \
     of them in SSL_CERT_FILE",
);
const BUSY: Judged = (ErrorKind::Unavailable, "Qdrant is overloaded: try again later");
const KEY: Judged = (ErrorKind::Unavailable, "Qdrant refuses the key: check `qdrant.api_key`");
const MAY_NOT: Judged = (
    ErrorKind::ReadOnly,
    "the key in `qdrant.api_key` lacks permission: use one that may write and create collections",
);
const FULL: Judged =
    (ErrorKind::StorageFull, "the disk of Qdrant is full: free some space, then try again");
const MISSING: Judged = (ErrorKind::NotFound, "Qdrant has no such collection");
const FAILED: Judged = (ErrorKind::Unavailable, "Qdrant failed: check its log, then try again");
const REFUSED: Judged = (ErrorKind::Internal, "Qdrant refused a request");

/// The message of a server whose disk is full; its status is not specific.
const FULL_SAYS: &str = "no space left on device";

/// Maps a driver error to what a caller can act on.
pub(crate) fn driver_error(error: QdrantError, operation: &'static str) -> Error {
    let (kind, sentence) = match &error {
        QdrantError::ResponseError { status } => {
            // Only what failed on the way has a source: what a server answers is text.
            let on_the_way = status.source().is_some();
            judge(status.code().into(), status.message(), on_the_way)
        }
        QdrantError::ResourceExhaustedError { .. } => BUSY,
        QdrantError::Io(_) => AWAY,
        _ => REFUSED,
    };
    Error::new(kind, sentence).with_source(error).during(operation)
}

/// A call that did not end in time.
pub(crate) fn timed_out(operation: &'static str) -> Error {
    Error::new(AWAY.0, AWAY.1).during(operation)
}

/// `None` where the collection is not there.
pub(crate) fn if_there<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// By the number of a gRPC status, as its specification has them, and the text beside it.
fn judge(code: i32, text: &str, on_the_way: bool) -> Judged {
    let text = text.to_lowercase();
    if text.contains(FULL_SAYS) {
        return FULL;
    }
    match code {
        // An HTTP server, or a proxy before Qdrant, that speaks no gRPC; or too old a version.
        12 => STRANGER,
        2 | 13 if text.contains("grpc-status header missing") => STRANGER,
        // Cancelled, deadline exceeded, unavailable.
        1 | 4 | 14 => AWAY,
        5 => MISSING,
        7 => MAY_NOT,
        8 => BUSY,
        // The driver's own words: it gives no other sign that it did not get through.
        13 if text.starts_with("failed to connect") => AWAY,
        13 if text.starts_with("failed to create tls config") => NO_ROOTS,
        16 => KEY,
        _ if on_the_way => AWAY,
        // Unknown, internal, data loss: of the server, not of what was asked.
        2 | 13 | 15 => FAILED,
        _ => REFUSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_says_what_to_do() {
        use ErrorKind::{Internal, NotFound, ReadOnly, StorageFull, Unavailable};
        for (code, text, on_the_way, kind, part) in [
            (1, "Timeout expired", false, Unavailable, "qdrant.url"),
            (2, "transport error", true, Unavailable, "qdrant.url"),
            (2, "what", false, Unavailable, "its log"),
            (3, "Wrong input: Vector dimension error", false, Internal, "refused"),
            (4, "Operation timed out", false, Unavailable, "qdrant.url"),
            (5, "Collection `x` doesn't exist!", false, NotFound, "collection"),
            (7, "Global manage access is required", false, ReadOnly, "qdrant.api_key"),
            (8, "Rate limiting exceeded", false, Unavailable, "later"),
            (9, "what", false, Internal, "refused"),
            (12, "grpc-status header missing, 404", false, Unavailable, "port"),
            (13, "grpc-status header missing, 400", false, Unavailable, "port"),
            (13, "Failed to connect to http://x: refused", false, Unavailable, "start it"),
            (13, "Failed to create TLS config: none", false, Unavailable, "SSL_CERT_FILE"),
            (13, "h2 protocol error", true, Unavailable, "qdrant.url"),
            (13, "Service internal error: repair", false, Unavailable, "its log"),
            (13, "No space left on device: WAL buffer size", false, StorageFull, "free some space"),
            (14, "tcp connect error", false, Unavailable, "qdrant.url"),
            (16, "Invalid API key or JWT", false, Unavailable, "qdrant.api_key"),
        ] {
            let (judged, sentence) = judge(code, text, on_the_way);
            assert_eq!(judged, kind, "{code} {text}");
            assert!(sentence.contains(part), "{code} {text}: {sentence}");
            assert!(!sentence.contains(text), "no words of a server in a sentence");
        }
    }
}
