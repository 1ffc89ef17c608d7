//! The conversation of a persona: reading, searching, tagging, and erasing parts of it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::{ControlFlow, Range};

use futures_util::try_join;

use super::PersonaService;
use crate::error::{Error, Result};
use crate::ids::{MessageId, PersonaId, SessionId};
use crate::page::{MAX_PAGE, MAX_PAGE_BYTES, PageRequest};
use crate::persona::{Listed, Persona, Rating, Slice, tags as checked_tags};
use crate::ports::{Erased, HeadLimits, Write, WriteBatch};
use crate::scope::Scope;
use crate::services::contexts::Found;
use crate::session::{MAX_CONTENT_BYTES, Message};
use crate::time::Timestamp;

/// Messages that are named by id at once.
const MAX_IDS: usize = 500;

/// A message of a persona's conversation, with its tags and ratings.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// The message.
    pub message: Message,
    /// Its tags, in order of the alphabet.
    pub tags: Vec<String>,
    /// Its ratings, by user.
    pub ratings: Vec<Rating>,
}

impl Conversation {
    /// A message without tags and ratings.
    pub(super) fn untagged(message: Message) -> Self {
        Self { message, tags: Vec::new(), ratings: Vec::new() }
    }
}

/// The tags and ratings of a conversation.
#[derive(Default)]
struct Annotations {
    tags: BTreeMap<MessageId, Vec<String>>,
    ratings: BTreeMap<MessageId, Vec<Rating>>,
}

impl Annotations {
    fn annotate(&self, message: Message) -> Conversation {
        let tags = self.tags.get(&message.id).cloned().unwrap_or_default();
        let ratings = self.ratings.get(&message.id).cloned().unwrap_or_default();
        Conversation { message, tags, ratings }
    }
}

/// Which messages to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationFilter {
    /// The newest first.
    pub newest_first: bool,
    /// Those with this tag.
    pub tag: Option<String>,
}

impl Default for ConversationFilter {
    fn default() -> Self {
        Self { newest_first: true, tag: None }
    }
}

/// A message that has words of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The persona.
    pub persona: PersonaId,
    /// Its name.
    pub persona_name: String,
    /// The message.
    pub conversation: Conversation,
    /// Its passage that matches best.
    pub passage: String,
    /// How well; comparable within one search only.
    pub score: f32,
}

fn check_query(query: &str) -> Result<()> {
    match query.trim().is_empty() || query.len() > MAX_CONTENT_BYTES {
        true => Err(Error::invalid("query: 1 byte to 1 MiB of text")),
        false => Ok(()),
    }
}

impl PersonaService {
    /// The messages of a persona, expired or not. A page whose messages are large ends early. What is said between two
    /// pages of the oldest moves none of them.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn conversation(
        &self,
        scope: &Scope,
        id: PersonaId,
        filter: &ConversationFilter,
        slice: Slice,
    ) -> Result<Listed<Conversation>> {
        let persona = self.get(scope, id).await?;
        let annotations = self.annotations(scope, &persona).await?;
        let is_wanted = |message: &Message| match &filter.tag {
            None => true,
            Some(tag) => annotations.tags.get(&message.id).is_some_and(|tags| tags.contains(tag)),
        };
        let end = slice.offset.saturating_add(slice.limit);
        let (mut total, mut items) = (0, Vec::new());
        if filter.tag.is_some() {
            self.walk(scope, &persona, |message| {
                total += u64::from(is_wanted(&message));
                ControlFlow::Continue(())
            })
            .await?;
        } else if filter.newest_first {
            // The last messages of a conversation are what is mostly asked for.
            let limits = HeadLimits { messages: end, entities: 0 };
            if let Some(head) = self.ports.store.head(scope, &persona.session, limits).await? {
                total = head.session.messages;
                items.extend(head.recent.into_iter().rev().skip(slice.offset).take(slice.limit));
            }
        } else {
            let session = self.ports.store.session(scope, &persona.session).await?;
            total = session.map_or(0, |session| session.messages);
        }
        let (offset, end) = (slice.offset as u64, (end as u64).min(total));
        if items.is_empty() && offset < end {
            // Where every message is wanted, none is read after the last one of the page.
            let at_once = if filter.tag.is_some() { u64::MAX } else { end };
            items = match filter.newest_first {
                true => {
                    let numbers = total - end..total - offset;
                    self.last_of(scope, &persona, (is_wanted, u64::MAX), numbers).await?
                }
                false => self.first_of(scope, &persona, (is_wanted, at_once), offset..end).await?,
            };
        }
        let end = slice.offset + items.len();
        let next = (!items.is_empty() && (end as u64) < total).then_some(end);
        Ok(Listed { items, total, next }.map(|message| annotations.annotate(message)))
    }

    /// Of the wanted messages those with these numbers, the oldest first: as many as fit in a page.
    async fn first_of(
        &self,
        scope: &Scope,
        persona: &Persona,
        wanted: (impl Fn(&Message) -> bool, u64),
        numbers: Range<u64>,
    ) -> Result<Vec<Message>> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        self.walk_wanted(scope, persona, wanted, numbers, |message| {
            bytes += message.bytes();
            found.push(message);
            match bytes < MAX_PAGE_BYTES {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })
        .await?;
        Ok(found)
    }

    /// The same, the newest first.
    async fn last_of(
        &self,
        scope: &Scope,
        persona: &Persona,
        wanted: (impl Fn(&Message) -> bool, u64),
        numbers: Range<u64>,
    ) -> Result<Vec<Message>> {
        let (mut found, mut bytes) = (VecDeque::new(), 0);
        self.walk_wanted(scope, persona, wanted, numbers, |message| {
            bytes += message.bytes();
            found.push_front(message);
            while bytes > MAX_PAGE_BYTES
                && found.len() > 1
                && let Some(oldest) = found.pop_back()
            {
                bytes -= oldest.bytes();
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok(found.into())
    }

    /// Walks the wanted messages that have these numbers among them; so many messages are read at once.
    async fn walk_wanted(
        &self,
        scope: &Scope,
        persona: &Persona,
        (is_wanted, at_once): (impl Fn(&Message) -> bool, u64),
        numbers: Range<u64>,
        mut see: impl FnMut(Message) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut number = 0;
        self.walk_by(scope, persona, at_once, |message| {
            if !is_wanted(&message) {
                return ControlFlow::Continue(());
            }
            number += 1;
            if numbers.contains(&(number - 1)) {
                see(message)?;
            }
            match number < numbers.end {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })
        .await
    }

    /// Reads the messages of a persona, the oldest first, until `see` has seen enough: those said meanwhile are among
    /// them or not, those before are.
    pub(super) async fn walk(
        &self,
        scope: &Scope,
        persona: &Persona,
        see: impl FnMut(Message) -> ControlFlow<()>,
    ) -> Result<()> {
        self.walk_by(scope, persona, u64::MAX, see).await
    }

    /// The same, so many at once.
    async fn walk_by(
        &self,
        scope: &Scope,
        persona: &Persona,
        at_once: u64,
        mut see: impl FnMut(Message) -> ControlFlow<()>,
    ) -> Result<()> {
        let at_once = usize::try_from(at_once).unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
        let mut page = PageRequest::first(at_once)?;
        loop {
            let found = self.ports.store.messages(scope, &persona.session, &page).await?;
            for message in found.items {
                if see(message).is_break() {
                    return Ok(());
                }
            }
            match found.next_cursor {
                Some(cursor) => page = PageRequest::first(at_once)?.after(&cursor)?,
                None => return Ok(()),
            }
        }
    }

    /// The messages of a persona that have words of `query`, the best first.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for an empty or over-long query, or a limit that is not 1 to
    /// [`MAX_PAGE`]; those of the store.
    pub async fn search(
        &self,
        scope: &Scope,
        id: PersonaId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>> {
        check_query(query)?;
        let limit = Slice::new(0, limit)?.limit;
        let persona = self.get(scope, id).await?;
        self.search_among(scope, &[persona], query, limit).await
    }

    /// The messages of all personas that have words of `query`, the best first; those of deleted personas are left out.
    ///
    /// # Errors
    /// As [`Self::search`], but for `NotFound`.
    pub async fn search_all(&self, scope: &Scope, query: &str, limit: usize) -> Result<Vec<Hit>> {
        check_query(query)?;
        let limit = Slice::new(0, limit)?.limit;
        let mut all = self.ports.store.personas(scope).await?;
        all.retain(Persona::is_active);
        self.search_among(scope, &all, query, limit).await
    }

    async fn search_among(
        &self,
        scope: &Scope,
        personas: &[Persona],
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>> {
        let sessions: Vec<SessionId> = personas.iter().map(|held| held.session.clone()).collect();
        let contexts = &self.ports.contexts;
        let found = contexts.search_sessions(scope, &sessions, query, limit).await?;
        let mut annotations = HashMap::<SessionId, (&Persona, Annotations)>::new();
        let mut hits = Vec::with_capacity(found.len());
        for Found { message, passage, score } in found {
            if !annotations.contains_key(&message.session) {
                let of = personas.iter().find(|held| held.session == message.session);
                let Some(of) = of else { continue };
                annotations
                    .insert(message.session.clone(), (of, self.annotations(scope, of).await?));
            }
            let Some((of, annotations)) = annotations.get(&message.session) else { continue };
            hits.push(Hit {
                persona: of.id,
                persona_name: of.name.clone(),
                conversation: annotations.annotate(message),
                passage,
                score,
            });
        }
        Ok(hits)
    }

    /// Gives a message other tags in place of those that it has.
    ///
    /// # Errors
    /// As [`Self::tag_messages`].
    pub async fn tag_message(
        &self,
        scope: &Scope,
        id: PersonaId,
        message: MessageId,
        tags: &[String],
    ) -> Result<Vec<String>> {
        self.tag_messages(scope, id, &[message], tags).await
    }

    /// Gives each of some messages the same tags in place of those that it has. Returns the tags as they are
    /// kept.
    ///
    /// # Errors
    /// `NotFound` for the persona, and for an id that is not one of its messages: nothing is tagged then;
    /// `InvalidInput` for none or too many, and for the tags; those of the store.
    pub async fn tag_messages(
        &self,
        scope: &Scope,
        id: PersonaId,
        ids: &[MessageId],
        tags: &[String],
    ) -> Result<Vec<String>> {
        let tags = checked_tags(tags)?;
        let session = self.holding(scope, id, ids, "tagged").await?.session;
        let writes = ids.iter().map(|message| Write::TagMessage {
            session: session.clone(),
            message: *message,
            tags: tags.clone(),
        });
        let mut batch = WriteBatch::new(scope.clone(), self.now());
        batch.writes.extend(writes);
        self.ports.store.apply(batch).await?;
        Ok(tags)
    }

    /// The persona that has all of these messages; where it lacks one, nothing is `done`.
    pub(super) async fn holding(
        &self,
        scope: &Scope,
        id: PersonaId,
        ids: &[MessageId],
        done: &str,
    ) -> Result<Persona> {
        if ids.is_empty() || ids.len() > MAX_IDS {
            return Err(Error::invalid(format!("ids: give 1 to {MAX_IDS} ids")));
        }
        let persona = self.get(scope, id).await?;
        let held = self.ports.store.held_messages(scope, &persona.session, ids).await?;
        let held: HashSet<MessageId> = held.into_iter().map(|(id, _)| id).collect();
        let unknown: Vec<String> =
            ids.iter().filter(|id| !held.contains(id)).map(ToString::to_string).collect();
        if !unknown.is_empty() {
            return Err(Error::not_found(format!(
                "this conversation has no such message: {}; nothing was {done}",
                unknown.join(", ")
            )));
        }
        Ok(persona)
    }

    /// Erases messages of a persona by id, with everything that was made from them. Returns how many.
    ///
    /// # Errors
    /// `NotFound` for the persona, and for an id that is not one of its messages: nothing is erased then;
    /// `InvalidInput` for none or too many; those of erasure.
    pub async fn delete_messages(
        &self,
        scope: &Scope,
        id: PersonaId,
        ids: &[MessageId],
    ) -> Result<Erased> {
        let persona = self.holding(scope, id, ids, "deleted").await?;
        self.ports.erase.messages(scope, &persona.session, ids).await
    }

    /// Erases the messages of a persona that were said before an instant.
    ///
    /// # Errors
    /// `NotFound`; those of erasure.
    pub async fn delete_older_than(
        &self,
        scope: &Scope,
        id: PersonaId,
        before: Timestamp,
    ) -> Result<Erased> {
        let persona = self.get(scope, id).await?;
        self.ports.erase.messages_before(scope, &persona.session, before).await
    }

    /// Erases all messages of a persona, which stays.
    ///
    /// # Errors
    /// `NotFound`; those of erasure.
    pub async fn clear(&self, scope: &Scope, id: PersonaId) -> Result<Erased> {
        let persona = self.get(scope, id).await?;
        let mut ids = Vec::new();
        self.walk(scope, &persona, |message| {
            ids.push(message.id);
            ControlFlow::Continue(())
        })
        .await?;
        if ids.is_empty() {
            return Ok(Erased::default());
        }
        self.ports.erase.messages(scope, &persona.session, &ids).await
    }

    async fn annotations(&self, scope: &Scope, persona: &Persona) -> Result<Annotations> {
        let (tags, ratings) =
            try_join!(self.tags_of(scope, persona), self.ratings_of(scope, persona))?;
        Ok(Annotations { tags, ratings })
    }

    pub(super) async fn tags_of(
        &self,
        scope: &Scope,
        persona: &Persona,
    ) -> Result<BTreeMap<MessageId, Vec<String>>> {
        let tagged = self.ports.store.message_tags(scope, &persona.session).await?;
        Ok(tagged.into_iter().collect())
    }
}
