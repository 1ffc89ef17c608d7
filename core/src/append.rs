//! From messages to one atomic write: checked, counted, indexed, and with everything that is
//! derived from them without a model. Pure. Extraction takes microseconds a message, so it is part of
//! the append and not a background job.

use std::borrow::Cow;

use crate::access::Actor;
use crate::entity::{self, NewEntity};
use crate::error::{Error, Result};
use crate::fact::{FactExtractor, NewFact};
use crate::ids::{EntityId, FactId, MessageId};
use crate::ports::IdGen;
use crate::secret::{SecretPolicy, masked, masked_json};
use crate::session::{Cuts, NewMessage, PreparedMessage, Role, index_passages, stated_at};
use crate::text::{PassageSizes, passages};
use crate::time::Timestamp;
use crate::tokens::Tokenizer;

/// On whose word a message is appended, and what becomes of the secrets in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Intake {
    /// On whose word.
    pub actor: Actor,
    /// What becomes of secrets.
    pub secrets: SecretPolicy,
}

/// Checks a message and derives what is stored with it. Nothing is derived from a secret that is masked.
///
/// # Errors
/// `InvalidInput` that names the field and what is allowed.
pub fn prepare(
    mut message: NewMessage,
    Intake { actor, secrets }: Intake,
    now: Timestamp,
    tokenizer: &dyn Tokenizer,
    extractor: &dyn FactExtractor,
    ids: &dyn IdGen,
) -> Result<PreparedMessage> {
    if let Some((field, what)) = message.problem() {
        return Err(Error::invalid(format!("{field} {what}")));
    }
    let actor = message.actor.unwrap_or(actor);
    let created_at = message.created_at.unwrap_or(now);
    let observed_at = stated_at(created_at, now);
    let stated_now = message.created_at != Some(observed_at);
    let name = message.name.take().filter(|name| !name.is_empty());
    let masked = match masked(&message.content) {
        Cow::Owned(masked) => Some(masked),
        Cow::Borrowed(_) => None,
    };
    let content_hash = message.hash(name.as_deref(), masked.as_deref());
    let original = message.guard(secrets, masked);
    let content = message.content.as_str();
    let cut = passages(content, PassageSizes::MESSAGE);
    let texts = cut.iter().map(|range| &content[range.clone()]);
    let units = index_passages(message.role, name.as_deref(), texts, created_at);
    // Facts come only from the user's own messages: what a model, a tool or a guest said is recalled, but no fact.
    let facts = if message.role == Role::User && actor != Actor::Guest {
        let id = || FactId::from_uuid(ids.next());
        let found = extractor.extract(content).into_iter();
        let fact = |found| NewFact::of(found, extractor, (actor, observed_at), id());
        found.map(|found| NewFact { stated_now, ..fact(found) }).collect()
    } else {
        Vec::new()
    };
    let entities = entity::extract(content)
        .into_iter()
        .map(|(kind, value)| NewEntity { id: EntityId::from_uuid(ids.next()), kind, value })
        .collect();
    Ok(PreparedMessage {
        id: MessageId::from_uuid(ids.next()),
        role: message.role,
        actor,
        content_hash,
        tokens: tokenizer.count(content),
        name,
        cuts: Cuts::at(&cut, content, tokenizer),
        content: message.content,
        original,
        external_id: message.external_id,
        created_at,
        parts: message.parts,
        attachments: message.attachments,
        units,
        facts,
        entities,
        unread: false,
    })
}

impl NewMessage {
    /// Leaves secrets out as the policy says, of which `masked` is the content without them; returns the text as it was
    /// said, where that is to be kept beside.
    fn guard(&mut self, secrets: SecretPolicy, masked: Option<String>) -> Option<String> {
        if secrets == SecretPolicy::Drop {
            for json in [&mut self.parts, &mut self.attachments].into_iter().flatten() {
                *json = masked_json(json).into_owned();
            }
        }
        let masked = masked.filter(|_| secrets != SecretPolicy::Keep)?;
        let original = std::mem::replace(&mut self.content, masked);
        (secrets == SecretPolicy::Mask).then_some(original)
    }

    /// Tells a repeat from another message. Secrets are not part of it, so that none can be guessed by it, and a
    /// message is the same whatever becomes of them.
    fn hash(&self, name: Option<&str>, masked: Option<&str>) -> [u8; 16] {
        let json =
            |json: &Option<String>| json.as_deref().map(|json| masked_json(json).into_owned());
        let (parts, attachments) = (json(&self.parts), json(&self.attachments));
        let content = masked.unwrap_or(&self.content);
        let role = self.role.as_str();
        let mut hasher = blake3::Hasher::new();
        for part in [Some(role), name, Some(content), parts.as_deref(), attachments.as_deref()] {
            // The length keeps neighbouring parts apart; absent differs from empty.
            hasher.update(&part.map_or(u64::MAX, |part| part.len() as u64).to_le_bytes());
            hasher.update(part.unwrap_or_default().as_bytes());
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        hash
    }
}
