//! From messages to one atomic write: checked, counted, indexed, and with everything that is
//! derived from them without a model. Pure. Extraction takes microseconds a message, so it is part of
//! the append and not a background job.

use crate::entity::{self, NewEntity};
use crate::error::{Error, Result};
use crate::fact::{FactExtractor, NewFact};
use crate::ids::{EntityId, FactId, MessageId};
use crate::ports::IdGen;
use crate::session::{Cuts, NewMessage, PreparedMessage, Role, index_passages};
use crate::text::{PassageSizes, passages};
use crate::time::Timestamp;
use crate::tokens::Tokenizer;

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
    let content = message.content.as_str();
    let cut = passages(content, PassageSizes::MESSAGE);
    let texts = cut.iter().map(|range| &content[range.clone()]);
    let units = index_passages(message.role, message.name.as_deref(), texts, created_at);
    // Facts come only from the user's own messages: what a model or a tool said is recalled, but no fact.
    let facts = if message.role == Role::User {
        let id = || FactId::from_uuid(ids.next());
        let found = extractor.extract(content).into_iter();
        found.map(|found| NewFact::of(found, extractor.name(), created_at, id())).collect()
    } else {
        Vec::new()
    };
    let entities = entity::extract(content)
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
            content,
            message.parts.as_deref(),
            message.attachments.as_deref(),
        ),
        tokens: tokenizer.count(content),
        name,
        cuts: Cuts::at(&cut, content, tokenizer),
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
