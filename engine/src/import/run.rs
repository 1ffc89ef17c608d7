//! Writing what was read, in batches that are whole or not there.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use throughline_core::access::Actor;
use throughline_core::ids::{ExternalId, MessageId};
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::secret::{SecretPolicy, masked, masked_json};
use throughline_core::services::facts::ImportOutcome;
use throughline_core::services::sessions::AppendOptions;
use throughline_core::session::NewMessage;
use throughline_core::{Error, Result, Scope};

use super::records::ReadyRecords;
use super::{ImportFile, ImportSession};
use crate::app::is_reserved;
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
    /// Messages and other records that were there already.
    pub replayed: usize,
    /// Tokens of the messages added.
    pub tokens: u64,
    /// Messages and other records left out, because they were erased or rejected here before.
    pub held_back: usize,
    /// Facts added.
    pub facts: usize,
    /// Profiles set.
    pub profiles: usize,
    /// Documents added.
    pub documents: usize,
    /// Contexts added, with their conversations.
    pub contexts: usize,
    /// Records left out, because what is here is newer or was decided here.
    pub kept: usize,
}

impl ImportReport {
    /// Counts a record that was not added.
    pub(super) fn count(&mut self, outcome: ImportOutcome) {
        match outcome {
            ImportOutcome::Added => {}
            ImportOutcome::Replayed => self.replayed += 1,
            ImportOutcome::Kept => self.kept += 1,
            ImportOutcome::HeldBack => self.held_back += 1,
        }
    }
}

/// How to import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImportOptions {
    /// What becomes of secrets; without it what the configuration says, but those in logs of agents are dropped.
    pub secrets: Option<SecretPolicy>,
    /// Whether what was erased here before is imported, too.
    pub include_erased: bool,
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
    options: ImportOptions,
    progress: impl Fn(u64),
) -> Result<ImportReport> {
    let records = ReadyRecords::default();
    import_all(engine, scope, (sessions, records), options, progress).await
}

/// As [`import`], with what an export has beside messages.
///
/// # Errors
/// As [`import`], and `InvalidInput`, before anything is written, that names file, line and field.
pub async fn import_file(
    engine: &Engine,
    scope: &Scope,
    file: &ImportFile,
    options: ImportOptions,
    progress: impl Fn(u64),
) -> Result<ImportReport> {
    let records = ReadyRecords::of(engine, file)?;
    import_all(engine, scope, (&file.sessions, records), options, progress).await
}

async fn import_all(
    engine: &Engine,
    scope: &Scope,
    (sessions, records): (&[ImportSession], ReadyRecords),
    options: ImportOptions,
    progress: impl Fn(u64),
) -> Result<ImportReport> {
    let erased = match options.include_erased {
        true => None,
        false => Some(engine.erase.erased_before().await?),
    };
    let (mut held_back, mut here) = (0, 0);
    let mut taken: Vec<Cow<'_, ImportSession>> = Vec::with_capacity(sessions.len());
    for session in sessions {
        if is_reserved(session.id.as_str()) {
            return Err(Error::invalid(format!(
                "session `{}`: a file cannot be imported into a shared session: name another \
                 session with --session",
                session.id
            )));
        }
        let is_erased = |message: &NewMessage| {
            erased.as_ref().is_some_and(|erased| erased.holds(scope, &session.id, message))
        };
        let held = held_here(engine, scope, session).await?;
        let is_here =
            |message: &NewMessage| message.origin.is_some_and(|origin| held.contains(&origin));
        let mut rest = Vec::new();
        for message in &session.messages {
            match () {
                () if is_erased(message) => held_back += 1,
                () if is_here(message) => here += 1,
                () => rest.push(message),
            }
        }
        taken.push(match rest.len() == session.messages.len() {
            true => Cow::Borrowed(session),
            false => Cow::Owned(ImportSession {
                id: session.id.clone(),
                messages: rest.into_iter().cloned().collect(),
            }),
        });
    }
    let sessions = taken;
    for session in &sessions {
        check_conflicts(engine, scope, session).await?;
    }
    let written = sessions.iter().filter(|session| !session.messages.is_empty()).count();
    let mut report =
        ImportReport { sessions: written, held_back, replayed: here, ..ImportReport::default() };
    records.write(engine, scope, erased.as_ref(), &mut report).await?;
    let options = AppendOptions {
        actor: Actor::Import,
        secrets: options.secrets,
        ..AppendOptions::default()
    };
    let total: u64 = sessions.iter().map(|session| session.messages.len() as u64).sum();
    let mut done = 0;
    for session in &sessions {
        for batch in session.messages.chunks(BATCH) {
            let messages = batch.to_vec();
            let appended =
                engine.sessions.append_with(scope, &session.id, messages, options.clone()).await;
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

/// Our ids of the messages of a session that an export of ours would bring again.
async fn held_here(
    engine: &Engine,
    scope: &Scope,
    session: &ImportSession,
) -> Result<HashSet<MessageId>> {
    let mut held = HashSet::new();
    if session.messages.iter().all(|message| message.origin.is_none()) {
        return Ok(held);
    }
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let messages = engine.store.messages(scope, &session.id, &page).await?;
        held.extend(messages.items.iter().map(|message| message.id));
        match messages.next_cursor {
            Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
            None => return Ok(held),
        }
    }
}

/// Committed messages stay: importing again continues from there.
fn stopped(error: &Error, done: u64, total: u64) -> Error {
    let how_far = format!(
        "{}; {done} of {total} messages were imported: import the file again to continue",
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
            let same = |new: &str, held: &str| new == held || masked(new) == masked(held);
            let same_json = |new: &Option<String>, held: &Option<String>| match (new, held) {
                (Some(new), Some(held)) => new == held || masked_json(new) == masked_json(held),
                (new, held) => new == held,
            };
            let equal = again.role == message.role
                && same(&again.content, message.said())
                && again.name.as_deref().filter(|name| !name.is_empty()) == message.name.as_deref()
                && same_json(&again.parts, &message.parts)
                && same_json(&again.attachments, &message.attachments);
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
