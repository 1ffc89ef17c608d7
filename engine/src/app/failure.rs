//! What a failure reports to the caller and what it writes to the log.

use throughline_core::{Error, ErrorKind};

/// Whether the cause is on the server's side.
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

/// Counts a failure, logs its causes for the operator, and returns the sentence for the caller.
pub fn tell(error: &Error) -> String {
    let kind = error.kind();
    if is_ours(kind) {
        let mut source = std::error::Error::source(error);
        let mut causes = Vec::new();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        // Causes go only to the log, because they may name servers, tables and files.
        tracing::error!(
            code = kind.code(),
            operation = error.operation(),
            causes = causes.join(": "),
            "request failed"
        );
    }
    metrics::counter!("throughline_refusals_total", "code" => kind.code()).increment(1);
    match kind {
        // Internal messages may name data of others, so callers get a fixed sentence.
        ErrorKind::Internal | ErrorKind::Corrupt => {
            "internal error; the server log has the cause".to_owned()
        }
        _ => error.message().to_owned(),
    }
}
