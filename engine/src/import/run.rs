//! Writing what was read, in batches that are whole or not there.

use std::collections::HashMap;

use throughline_core::ids::ExternalId;
use throughline_core::session::NewMessage;
use throughline_core::{Error, Result, Scope};

use super::ImportSession;
use crate::compose::Engine;

/// Messages of one append: one commit each, so that a killed import leaves whole batches.
const BATCH: usize = 200;

/// The result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct ImportReport {
    /// Sessions written to.
    pub sessions: usize,
    /// Messages added.
    pub messages: usize,
    /// Messages that were there already.
    pub replayed: usize,
    /// Tokens of the messages added.
    pub tokens: u64,
}

/// Appends sessions. Importing again adds nothing: every message has an id. `progress` gets the
/// messages done.
///
/// # Errors
/// `Conflict`, before anything is written, when an id already stands for other content; those of
/// the store.
pub async fn import(
    engine: &Engine,
    scope: &Scope,
    sessions: &[ImportSession],
    progress: impl Fn(u64),
) -> Result<ImportReport> {
    for session in sessions {
        check_conflicts(engine, scope, session).await?;
    }
    let mut report = ImportReport { sessions: sessions.len(), ..ImportReport::default() };
    let total: u64 = sessions.iter().map(|session| session.messages.len() as u64).sum();
    let mut done = 0;
    for session in sessions {
        for batch in session.messages.chunks(BATCH) {
            let appended = engine.sessions.append(scope, &session.id, batch.to_vec()).await;
            let applied = appended.map_err(|error| stopped(&error, done, total))?;
            for message in applied {
                if message.replayed {
                    report.replayed += 1;
                } else {
                    report.messages += 1;
                    report.tokens += u64::from(message.tokens);
                }
            }
            done += batch.len() as u64;
            progress(done);
        }
    }
    Ok(report)
}

/// Committed messages stay: importing again continues from there.
fn stopped(error: &Error, done: u64, total: u64) -> Error {
    let how_far = format!(
        "{}; {done} of {total} messages are imported: import the file again to continue",
        error.message()
    );
    Error::new(error.kind(), how_far)
}

/// A conflict found half-way would leave half a file: look before the first write. The store checks
/// again, against writers that come in between.
async fn check_conflicts(engine: &Engine, scope: &Scope, session: &ImportSession) -> Result<()> {
    for batch in session.messages.chunks(BATCH) {
        let new: HashMap<&ExternalId, &NewMessage> = batch
            .iter()
            .filter_map(|message| Some((message.external_id.as_ref()?, message)))
            .collect();
        let ids: Vec<ExternalId> = new.keys().map(|id| (*id).clone()).collect();
        let held = engine.store.messages_by_external_id(scope, &session.id, &ids).await?;
        for message in held {
            let Some(id) = &message.external_id else {
                continue;
            };
            let Some(again) = new.get(id) else { continue };
            let equal = again.role == message.role
                && again.content == message.content
                && again.name.as_deref().filter(|name| !name.is_empty()) == message.name.as_deref()
                && again.parts == message.parts
                && again.attachments == message.attachments;
            if !equal {
                return Err(Error::conflict(format!(
                    "session `{}`: external_id `{id}` already belongs to a message with different \
                     content; nothing of this file was imported",
                    session.id
                )));
            }
        }
    }
    Ok(())
}
