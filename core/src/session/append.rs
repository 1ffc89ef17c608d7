//! From messages to one atomic write: checked, counted, indexed, and with everything that is
//! derived from them without a model. Pure. Extraction takes microseconds a message, so it is part of
//! the append and not a background job.

use std::ops::Range;

use crate::entity::{self, NewEntity};
use crate::error::{Error, Result};
use crate::fact::NewFact;
use crate::ids::{EntityId, FactId, MAX_NAME_BYTES, MessageId, is_forbidden};
use crate::ports::{FactExtractor, IdGen, Idempotency, IndexUnit, Tokenizer, VectorSpace, Write};
use crate::session::{Cuts, NewMessage, PreparedMessage, Role};
use crate::text::{
    PassageSizes, QUESTION_TERM, USER_TERM, analyze, date_terms, passages, speaker_terms,
};
use crate::time::Timestamp;

/// Largest content of a message, in bytes.
pub const MAX_CONTENT_BYTES: usize = 1 << 20;
/// Most messages of one append.
pub const MAX_BATCH: usize = 1_000;
/// Most bytes of contents of one append: it is one transaction, which others wait for.
pub const MAX_BATCH_BYTES: usize = 16 << 20;

/// Messages that are ready for a batch, with what it stores of them.
pub(crate) struct Ready {
    pub(crate) prepared: Vec<PreparedMessage>,
    /// They as they were before facts of the scope were read, if any were.
    pub(super) unresolved: Option<Vec<PreparedMessage>>,
    /// The records to write with them.
    pub(super) beside: Vec<Write>,
    /// The space of their vectors.
    pub(super) space: Option<VectorSpace>,
    /// The erasures of the scope before facts of it were read, if any were.
    pub(super) erasures: Option<u64>,
    pub(super) idempotency: Option<Idempotency>,
    pub(super) now: Timestamp,
}

/// Checks a message and derives what is stored with it.
///
/// # Errors
/// `InvalidInput` that names the field and what is allowed.
pub fn prepare(
    message: NewMessage,
    now: Timestamp,
    tokenizer: &dyn Tokenizer,
    extractor: &dyn FactExtractor,
    ids: &dyn IdGen,
) -> Result<PreparedMessage> {
    if let Some((field, what)) = message.problem() {
        return Err(Error::invalid(format!("{field} {what}")));
    }
    let created_at = message.created_at.unwrap_or(now);
    let units = index_units(message.role, message.name.as_deref(), &message.content, created_at);
    // Only the user's own words are theirs: what a model or a tool said is recalled, not believed.
    let facts = if message.role == Role::User {
        let id = || FactId::from_uuid(ids.next());
        let found = extractor.extract(&message.content).into_iter();
        found.map(|found| NewFact::of(found, extractor.name(), created_at, id())).collect()
    } else {
        Vec::new()
    };
    let entities = entity::extract(&message.content)
        .into_iter()
        .map(|(kind, value)| NewEntity { id: EntityId::from_uuid(ids.next()), kind, value })
        .collect();
    let name = message.name.filter(|name| !name.is_empty());
    Ok(PreparedMessage {
        id: MessageId::from_uuid(ids.next()),
        role: message.role,
        content_hash: content_hash(
            message.role,
            name.as_deref(),
            &message.content,
            message.parts.as_deref(),
            message.attachments.as_deref(),
        ),
        tokens: tokenizer.count(&message.content),
        name,
        cuts: Cuts::of(&message.content, tokenizer),
        content: message.content,
        external_id: message.external_id,
        created_at,
        parts: message.parts,
        attachments: message.attachments,
        units,
        facts,
        entities,
    })
}

impl NewMessage {
    /// The problem of the message: the field and the allowed values.
    #[must_use]
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let content = &self.content;
        let what = if content.trim().is_empty() {
            "is empty: 1 byte to 1 MiB of text is allowed".to_owned()
        } else if content.len() > MAX_CONTENT_BYTES {
            format!(
                "has {} bytes: at most 1 MiB ({MAX_CONTENT_BYTES}) is allowed; store larger texts \
                 as files and append a description",
                content.len()
            )
        } else if content.contains('\0') {
            "has a NUL character: only text is allowed".to_owned()
        } else {
            return self.problem_beside_content();
        };
        Some(("content", what))
    }

    fn problem_beside_content(&self) -> Option<(&'static str, String)> {
        if let Some(name) = &self.name
            && (name.len() > MAX_NAME_BYTES || name.chars().any(is_forbidden))
        {
            let what = format!(
                "is too long or has a control character: at most {MAX_NAME_BYTES} bytes of text are \
                 allowed"
            );
            return Some(("name", what));
        }
        let json = [("parts", &self.parts), ("attachments", &self.attachments)];
        json.into_iter()
            .find(|(_, json)| json.as_ref().is_some_and(|json| json.len() > MAX_CONTENT_BYTES))
            .map(|(field, _)| (field, "is over 1 MiB, the largest size allowed".to_owned()))
    }
}

/// One unit a passage. Role, speaker and date are marks of each, so that a question that names one
/// finds it; a passage that asks is marked, because answers follow questions. The same message gives
/// the same units, by which erasure finds its postings.
#[must_use]
pub fn index_units(role: Role, name: Option<&str>, content: &str, at: Timestamp) -> Vec<IndexUnit> {
    let mut marks = name.map(speaker_terms).unwrap_or_default();
    if role == Role::User {
        marks.push(USER_TERM.to_owned());
    }
    marks.extend(date_terms(at));
    let index = |range: Range<usize>| {
        let passage = &content[range];
        if passage.contains('?') {
            marks.push(QUESTION_TERM.to_owned());
        }
        let unit = analyze(passage, &marks);
        marks.retain(|mark| mark != QUESTION_TERM);
        unit
    };
    passages(content, PassageSizes::MESSAGE).into_iter().map(index).collect()
}

fn content_hash(
    role: Role,
    name: Option<&str>,
    content: &str,
    parts: Option<&str>,
    attachments: Option<&str>,
) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for part in [Some(role.as_str()), name, Some(content), parts, attachments] {
        // The length keeps neighbouring parts apart; absent differs from empty.
        hasher.update(&part.map_or(u64::MAX, |part| part.len() as u64).to_le_bytes());
        hasher.update(part.unwrap_or_default().as_bytes());
    }
    let mut hash = [0; 16];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    hash
}
