//! What corrections and retractions speak of: facts and messages of the user that were stored before.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::SessionService;
use crate::access::Actor;
use crate::error::Result;
use crate::fact::{Known, Said, resolve};
use crate::ids::{FactId, SessionId};
use crate::index::{Namespace, TermId, UnitKey};
use crate::ports::{HeadLimits, LedgerLimits};
use crate::scope::Scope;
use crate::session::{Message, PreparedMessage, Role};
use crate::text::query_terms;

/// Postings of facts that are read to find what a statement refers to, from the rarest word on.
const MOST_POSTINGS: usize = 16_384;
/// Facts of each sort that corrections and retractions of one append are matched with.
const KNOWN_FACTS: usize = 64;
/// Messages that corrections and retractions are matched with, of the session and beyond it.
const SAID_BEFORE: usize = 64;
/// Most words by which they are looked up.
const MAX_WORDS: usize = 64;

impl SessionService {
    /// Finds what corrections and retractions speak of, and returns the erasures of the scope before it
    /// was read. They are rare: any other append reads nothing for it.
    pub(super) async fn resolve_facts(
        &self,
        scope: &Scope,
        session: &SessionId,
        prepared: &mut [PreparedMessage],
    ) -> Result<Option<u64>> {
        let Some(last) = prepared.iter().rposition(refers) else {
            return Ok(None);
        };
        let erasures = self.store.erasures(scope).await?;
        let (mut known, stored) = match erasures {
            Some(_) => {
                let terms = referring_terms(&prepared[..=last]);
                let known = self.known_facts(scope, &terms).await?;
                (known, self.said_before(scope, session, &terms).await?)
            }
            None => (Vec::new(), Vec::new()),
        };
        for at in 0..=last {
            let (before, rest) = prepared.split_at_mut(at);
            let Some(message) = rest.first_mut().filter(|message| !message.facts.is_empty()) else {
                continue;
            };
            let own =
                |said: &&PreparedMessage| said.role == Role::User && said.actor != Actor::Guest;
            let earlier = before.iter().rev().filter(own);
            let earlier = earlier.take(SAID_BEFORE).map(|said| Said {
                message: said.id,
                here: true,
                at: said.created_at,
                content: &said.content,
            });
            let stored = stored.iter().map(|said| Said {
                message: said.id,
                here: said.session == *session,
                at: said.stated_at(),
                content: &said.content,
            });
            let mut said: Vec<Said<'_>> = stored.collect();
            said.extend(earlier.collect::<Vec<_>>().into_iter().rev());
            resolve(&mut message.facts, &mut known, &said, || FactId::from_uuid(self.ids.next()));
        }
        Ok(erasures)
    }

    /// Messages of the user that corrections may mean, the newest last: the last ones of the session, and those of
    /// the scope that share the most telling words with a correction.
    async fn said_before(
        &self,
        scope: &Scope,
        session: &SessionId,
        terms: &[TermId],
    ) -> Result<Vec<Arc<Message>>> {
        let found = self.store.postings(scope, Namespace::Message, terms, MOST_POSTINGS).await?;
        let mut shared: BTreeMap<UnitKey, f32> = BTreeMap::new();
        for list in &found.lists {
            for posting in list {
                *shared.entry(posting.key).or_default() += 1.0 / (list.len() as f32).sqrt();
            }
        }
        let mut keys: Vec<(UnitKey, f32)> = shared.into_iter().collect();
        keys.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
        keys.truncate(SAID_BEFORE);
        let keys: Vec<UnitKey> = keys.into_iter().map(|(key, _)| key).collect();
        let found = self.store.messages_at(scope, &keys).await?;
        let mut said: Vec<Arc<Message>> = found.into_iter().map(|(_, message)| message).collect();
        let limits = HeadLimits { messages: SAID_BEFORE, entities: 0 };
        let head = self.store.head(scope, session, limits).await?;
        said.extend(head.into_iter().flat_map(|head| head.recent).map(Arc::new));
        said.retain(|message| message.role == Role::User && message.actor != Actor::Guest);
        said.sort_by_key(|message| message.seq);
        said.dedup_by_key(|message| message.seq);
        Ok(said)
    }

    /// The facts of the ledger that statements may refer to, the newest last: the newest ones, those
    /// that belong to every context, and those that share words with the statements.
    async fn known_facts(&self, scope: &Scope, terms: &[TermId]) -> Result<Vec<Known>> {
        let found = self.store.postings(scope, Namespace::Fact, terms, MOST_POSTINGS).await?;
        let mut shared: BTreeMap<u32, usize> = BTreeMap::new();
        for posting in found.lists.iter().flatten() {
            *shared.entry(posting.key.position()).or_default() += 1;
        }
        let mut numbers: Vec<(usize, u32)> =
            shared.into_iter().map(|(number, words)| (words, number)).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.truncate(KNOWN_FACTS);
        let numbers: Vec<u32> = numbers.into_iter().map(|(_, number)| number).collect();
        let mut facts = self.store.active_facts(scope, &numbers).await?;
        let limits =
            LedgerLimits { standing: KNOWN_FACTS, newest: KNOWN_FACTS, ..LedgerLimits::default() };
        let ledger = self.store.ledger(scope, limits).await?;
        facts.extend(ledger.newest.into_iter().chain(ledger.standing));
        facts.sort_by_key(|fact| fact.number);
        facts.dedup_by_key(|fact| fact.number);
        Ok(facts.iter().map(Known::from).collect())
    }
}

/// Whether a message states something that only has a meaning by an earlier statement.
pub(super) fn refers(message: &PreparedMessage) -> bool {
    message.facts.iter().any(|fact| fact.refers.is_some())
}

/// The words of facts that refer to something, as an index knows them.
fn referring_terms(prepared: &[PreparedMessage]) -> Vec<TermId> {
    prepared
        .iter()
        .flat_map(|message| &message.facts)
        .filter(|fact| fact.refers.is_some())
        .flat_map(|fact| query_terms(&fact.text))
        .take(MAX_WORDS)
        .map(|word| TermId::of(&word))
        .collect()
}
