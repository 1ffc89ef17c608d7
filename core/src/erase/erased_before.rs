//! What the ledger says is erased, as far as it could come back in a file.

use std::collections::{HashMap, HashSet};

use crate::ids::{MemoryId, MessageId, SessionId, VaultId};
use crate::ports::{LedgerEntry, LedgerIdentity, NameHash, Recorded};
use crate::scope::Scope;
use crate::session::NewMessage;
use crate::time::Timestamp;

/// Tells of a message whether it was erased here before.
#[derive(Debug, Clone)]
pub struct ErasedBefore {
    names: LedgerIdentity,
    messages: HashSet<MessageId>,
    external: HashSet<NameHash>,
    /// When sessions and documents were erased, and scopes with their users.
    ended: HashMap<NameHash, Timestamp>,
}

impl ErasedBefore {
    /// Nothing yet, of the ledger with these names.
    #[must_use]
    pub fn new(names: LedgerIdentity) -> Self {
        let (messages, external, ended) = Default::default();
        Self { names, messages, external, ended }
    }

    /// Adds an entry of the ledger.
    pub fn add(&mut self, Recorded { at, entry, .. }: &Recorded) {
        let mut end = |of: NameHash| {
            self.ended.insert(of, *at);
        };
        match entry {
            LedgerEntry::Messages { ids, .. } => self.messages.extend(ids),
            LedgerEntry::Gone { messages, external, .. } => {
                self.messages.extend(messages);
                self.external.extend(external);
            }
            LedgerEntry::Session { session, .. } => end(*session),
            LedgerEntry::Document { document, .. } => end(*document),
            LedgerEntry::User { scopes, .. } => scopes.iter().for_each(|of| end(of.scope)),
            _ => {}
        }
    }

    /// Whether a message that is to be a session's was erased: by its id, here or where it comes from; or because it
    /// was said, or may have been, before its session or its user was erased.
    #[must_use]
    pub fn holds(&self, scope: &Scope, session: &SessionId, message: &NewMessage) -> bool {
        let own = message.external_id.as_ref().and_then(|id| id.as_str().parse().ok());
        let by_id =
            [message.origin, own].into_iter().flatten().any(|id| self.messages.contains(&id));
        let by_external = message
            .external_id
            .as_ref()
            .is_some_and(|id| self.external.contains(&self.names.external(scope, session, id)));
        let session = self.names.session(scope, session);
        by_id || by_external || self.ended_after(scope, Some(session), message.created_at)
    }

    /// Whether a memory's document of that time was erased, or its user.
    #[must_use]
    pub fn holds_document(
        &self,
        scope: &Scope,
        (vault, memory): (&VaultId, &MemoryId),
        at: Timestamp,
    ) -> bool {
        self.ended_after(scope, Some(self.names.document(scope, vault, memory)), Some(at))
    }

    /// Whether the user was erased after that time.
    #[must_use]
    pub fn holds_user(&self, scope: &Scope, at: Timestamp) -> bool {
        self.ended_after(scope, None, Some(at))
    }

    fn ended_after(&self, scope: &Scope, part: Option<NameHash>, at: Option<Timestamp>) -> bool {
        let of = [Some(self.names.scope(scope)), part];
        let ended = of.iter().flatten().filter_map(|of| self.ended.get(of)).max();
        ended.is_some_and(|ended| at.is_none_or(|at| at <= *ended))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::ExternalId;
    use crate::ports::ScopeEnd;
    use crate::session::Role;

    #[test]
    fn erased_messages_are_told_from_others() {
        let names = LedgerIdentity { id: Uuid::nil(), key: [7; 32] };
        let scope = Scope::new("acme", "ana", None).unwrap();
        let other = Scope::new("acme", "bo", None).unwrap();
        let session = |id: &str| SessionId::new(id).unwrap();
        let external = |id: &str| ExternalId::new(id).unwrap();
        let id = |n: u128| MessageId::from_uuid(Uuid::from_u128(n));
        let at = Timestamp::from_micros;
        let mut erased = ErasedBefore::new(names.clone());
        let gone = LedgerEntry::Gone {
            scope: names.scope(&scope),
            messages: vec![id(1)],
            external: vec![names.external(&scope, &session("s"), &external("m-2"))],
        };
        let ended = LedgerEntry::Session {
            scope: names.scope(&scope),
            session: names.session(&scope, &session("old")),
            through: 9,
        };
        for (number, entry) in [(1, gone), (2, ended)] {
            erased.add(&Recorded { number, at: at(50), entry });
        }
        let message = |external_id: Option<&str>, said: i64| NewMessage {
            external_id: external_id.map(external),
            created_at: Some(at(said)),
            ..NewMessage::new(Role::User, "x")
        };
        let copied = NewMessage { origin: Some(id(1)), ..message(Some("z"), 60) };
        let own_id = id(1).to_string();
        let untimed = NewMessage { created_at: None, ..message(None, 0) };
        let table = [
            (&scope, "s", message(Some("m-2"), 60), true),
            (&scope, "s", message(Some("m-3"), 10), false),
            (&scope, "t", message(Some("m-2"), 10), false),
            (&other, "s", message(Some("m-2"), 10), false),
            // Under our own id, whoever has it and wherever it is to go.
            (&other, "t", copied, true),
            (&other, "t", message(Some(&own_id), 60), true),
            (&scope, "old", message(None, 50), true),
            (&scope, "old", message(None, 51), false),
            (&scope, "old", untimed, true),
            (&other, "old", message(None, 10), false),
        ];
        for (nth, (scope, name, message, expected)) in table.into_iter().enumerate() {
            assert_eq!(erased.holds(scope, &session(name), &message), expected, "{nth}");
        }
        let (vault, memory) = (VaultId::new("v").unwrap(), MemoryId::new("m").unwrap());
        let document = names.document(&scope, &vault, &memory);
        let whole = ScopeEnd { scope: names.scope(&other), through: 9, documents: 9 };
        let user = names.user(&other.tenant, &other.user);
        for (number, entry) in [
            (3, LedgerEntry::Document { scope: names.scope(&scope), document, through: 3 }),
            (4, LedgerEntry::User { user, scopes: vec![whole] }),
        ] {
            erased.add(&Recorded { number, at: at(50), entry });
        }
        let holds = |scope, said| erased.holds_document(scope, (&vault, &memory), at(said));
        assert!(holds(&scope, 50) && !holds(&scope, 51) && holds(&other, 50));
        assert!(erased.holds_user(&other, at(50)) && !erased.holds_user(&other, at(51)));
        assert!(!erased.holds_user(&scope, at(10)));
    }
}
