//! What a failure reports to the caller and what it writes to the log.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use throughline_core::ports::{RefusalCount, Store};
use throughline_core::{Error, ErrorKind, Result};

/// Refusals of this process that no store has. One that serves metrics leaves them here.
static REFUSED: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

fn refused() -> MutexGuard<'static, BTreeMap<&'static str, u64>> {
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a refusal in the metrics of this process, and for [`hand_over`].
pub fn count(kind: ErrorKind) {
    count_for("http", kind.code().to_owned(), 1);
    *refused().entry(kind.code()).or_default() += 1;
}

fn count_for(interface: &str, code: String, count: u64) {
    let interface = interface.to_owned();
    metrics::counter!("throughline_refusals_total", "interface" => interface, "code" => code)
        .increment(count);
}

/// Leaves the refusals of a process without metrics in the store, where a service finds them.
pub async fn hand_over(store: &dyn Store, interface: &str) {
    let waiting = std::mem::take(&mut *refused());
    if waiting.is_empty() {
        return;
    }
    let refusal = |(code, count): (&&'static str, &u64)| RefusalCount {
        interface: interface.to_owned(),
        code: (*code).to_owned(),
        count: *count,
    };
    let refusals: Vec<RefusalCount> = waiting.iter().map(refusal).collect();
    // They wait for the next time: metrics are worth no second failure.
    if let Err(error) = store.add_refusals(&refusals).await {
        tracing::debug!(code = error.kind().code(), "refusals could not be counted yet");
        let mut refused = refused();
        for (code, count) in waiting {
            *refused.entry(code).or_default() += count;
        }
    }
}

/// Counts the refusals that other processes left in the store. Each is counted by one service.
///
/// # Errors
/// Those of the store.
pub async fn take_over(store: &dyn Store) -> Result<()> {
    for RefusalCount { interface, code, count } in store.take_refusals().await? {
        count_for(&interface, code, count);
    }
    Ok(())
}

/// Whether the cause is on the server's side.
#[must_use]
pub fn is_ours(kind: ErrorKind) -> bool {
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
    count(kind);
    match kind {
        // Internal messages may name data of others, so callers get a fixed sentence.
        ErrorKind::Internal | ErrorKind::Corrupt => {
            "internal error; the server log has the cause".to_owned()
        }
        _ => error.message().to_owned(),
    }
}
