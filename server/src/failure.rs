//! What a caller is told of a failure, and what the log is.

use throughline_core::{Error, ErrorKind};

/// Whether it is nothing that the caller did.
fn is_ours(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Internal
            | ErrorKind::Corrupt
            | ErrorKind::Unavailable
            | ErrorKind::ReadOnly
            | ErrorKind::SchemaTooNew
            | ErrorKind::StorageFull
    )
}

/// Counts a failure, writes to the log what only an operator may know, and gives the sentence for the caller.
pub(crate) fn tell(error: &Error) -> String {
    let kind = error.kind();
    if is_ours(kind) {
        let mut source = std::error::Error::source(error);
        let mut causes = Vec::new();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        // Causes are for the log alone: they may name servers, tables and files.
        tracing::error!(
            code = kind.code(),
            operation = error.operation(),
            causes = causes.join(": "),
            "request failed"
        );
    }
    metrics::counter!("throughline_refusals_total", "code" => kind.code()).increment(1);
    match kind {
        // What is wrong inside is no caller's business, and may name what is not theirs.
        ErrorKind::Internal | ErrorKind::Corrupt => {
            "internal error; the server log has the cause".to_owned()
        }
        _ => error.message().to_owned(),
    }
}
