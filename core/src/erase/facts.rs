//! What becomes of the facts of a slot, or of a statement outside any slot, when messages that state some
//! of them are erased: what would be there if these had never been said.
//!
//! Statements are taken up again in the order of their commits, without the erased ones, by the rules of
//! the ledger. A fact whose first statement is left keeps its row. One whose words were erased is read
//! anew from the next message that states it, if that states it by itself.

use std::collections::HashSet;

use uuid::Uuid;

use crate::access::Actor;
use crate::fact::{
    ActiveFact, FactExtractor, FactKind, Forms, NewFact, Precedence, SlotKey, StatementKey,
};
use crate::ids::{FactId, MessageId};
use crate::time::Timestamp;

/// A message that states a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactSource {
    /// Which.
    pub message: MessageId,
    /// Its order of commit.
    pub seq: u64,
    /// Number of its session.
    pub session_number: u32,
    /// When it was said.
    pub created_at: Timestamp,
    /// Its content.
    pub content: String,
    /// On whose word.
    pub actor: Actor,
}

/// A fact as a store holds it, with all of its sources in order of their commits.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldFact {
    /// Its number.
    pub number: u32,
    /// Its id.
    pub id: FactId,
    /// Its sort.
    pub kind: FactKind,
    /// Its slot.
    pub slot: Option<SlotKey>,
    /// What it states.
    pub statement: StatementKey,
    /// When it was last stated.
    pub observed_at: Timestamp,
    /// How often it was stated.
    pub weight: f64,
    /// What holds instead.
    pub superseded_by: Option<FactId>,
    /// On whose word it was stated first.
    pub actor: Actor,
    /// Its value; of a retraction what it takes back.
    pub value: Option<String>,
    /// Where it was stated. The source of one that was told directly bears its own id.
    pub sources: Vec<FactSource>,
}

/// A fact that stays, with what of it changes.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptFact {
    /// Its number.
    pub number: u32,
    /// How often it was stated.
    pub weight: f64,
    /// When it was last stated.
    pub observed_at: Timestamp,
    /// What holds instead.
    pub superseded_by: Option<FactId>,
    /// Where it was stated: in place of what it has.
    pub sources: Vec<(u64, MessageId)>,
}

/// A fact that is read anew from a message that stays.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedFact {
    /// What it states; `observed_at` is when it was last stated.
    pub fact: NewFact,
    /// Number of the session of its first source.
    pub session_number: u32,
    /// How often it was stated.
    pub weight: f64,
    /// What holds instead.
    pub superseded_by: Option<FactId>,
    /// Where it was stated.
    pub sources: Vec<(u64, MessageId)>,
}

/// What a store does to the facts of a slot or statement: in this order, and of those that stay first
/// what is superseded, so that one at most holds at any time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FactChanges {
    /// Numbers of facts that go.
    pub removed: Vec<u32>,
    /// Facts that stay and change.
    pub kept: Vec<KeptFact>,
    /// Facts that are read anew, in the order of their numbers.
    pub derived: Vec<DerivedFact>,
}

/// Ids of facts that are read anew in one erasure.
#[derive(Debug)]
pub struct DerivedIds {
    seed: u128,
    next: u128,
}

impl DerivedIds {
    /// Ids that begin like `seed` and count up. The rest is a hash of it, so that they are none that the
    /// maker of `seed` gives.
    #[must_use]
    pub fn new(seed: Uuid) -> Self {
        let hash = blake3::hash(seed.as_bytes());
        let low =
            hash.as_bytes().iter().take(7).fold(0_u128, |low, byte| low << 8 | u128::from(*byte));
        Self { seed: seed.as_u128() >> 64 << 64, next: 0x8000_0000_0000_0000 | low << 5 }
    }

    fn take(&mut self) -> FactId {
        self.next += 1;
        FactId::from_uuid(Uuid::from_u128(self.seed | self.next))
    }
}

/// One statement that is left.
#[derive(Debug, Clone, Copy)]
struct Said<'f> {
    fact: &'f HeldFact,
    source: &'f FactSource,
    is_first: bool,
    weight: f64,
    observed_at: Timestamp,
}

impl Said<'_> {
    /// On whose word: of what a model read in a message, that model's.
    fn actor(&self) -> Actor {
        match self.fact.actor {
            Actor::Extractor => Actor::Extractor,
            _ => self.source.actor,
        }
    }

    /// What orders statements of one time: ids are made in the order in which things are said.
    fn tie(&self) -> Uuid {
        if self.is_first { self.fact.id.as_uuid() } else { self.source.message.as_uuid() }
    }

    /// As the holder of its place.
    fn active(&self, observed_at: Timestamp, (corrects, of_settled): (bool, bool)) -> ActiveFact {
        ActiveFact {
            id: FactId::from_uuid(self.tie()),
            kind: self.fact.kind,
            statement: self.fact.statement,
            observed_at,
            actor: self.actor(),
            value: self.fact.value.clone(),
            corrects,
            of_settled,
        }
    }

    fn restates(&self, other: &Self) -> bool {
        let retracts = |said: &Self| said.fact.kind == FactKind::Retraction;
        self.fact.statement == other.fact.statement
            && retracts(self) == retracts(other)
            && !self.is_direct()
            && !self.actor().outranks(other.actor())
    }

    /// Whether it was told directly, not in a message: then it is a fact of its own.
    fn is_direct(&self) -> bool {
        self.source.message.as_uuid() == self.fact.id.as_uuid()
    }

    /// The fact as its own message gives it.
    fn extracted(&self, id: FactId) -> Option<NewFact> {
        let found = Forms.extract(&self.source.content).into_iter();
        let by = (self.source.actor, self.observed_at);
        let mut facts = found.map(|found| NewFact::of(found, &Forms, by, id));
        facts.find(|fact| {
            fact.slot() == self.fact.slot && fact.restates(self.fact.kind, self.fact.statement)
        })
    }

    /// Whether it took what it is about from something that was stated before.
    fn is_borrowed(&self) -> bool {
        self.actor() != Actor::Extractor
            && Forms.extract(&self.source.content).iter().any(|found| found.refers.is_some())
            && self.extracted(self.fact.id).is_none()
    }
}

/// A fact that results: its statements, the first of which gives its words.
struct Group<'f> {
    said: Vec<Said<'f>>,
    observed_at: Timestamp,
    superseded_by: Option<usize>,
    /// Whether it took the place of another one, and of one that the user had settled.
    took: (bool, bool),
}

/// What becomes of all facts of one slot, or of one statement outside any slot.
#[must_use]
pub fn heal(held: &[HeldFact], erased: &HashSet<MessageId>, ids: &mut DerivedIds) -> FactChanges {
    let mut said = left(held, erased);
    let (groups, facts) = loop {
        let groups = group(&said);
        let mut facts: Vec<Option<NewFact>> = Vec::with_capacity(groups.len());
        let mut fails = None;
        for first in groups.iter().filter_map(|group| group.said.first()) {
            let fact = if first.is_first { None } else { first.extracted(ids.take()) };
            if fact.is_none() && !first.is_first {
                fails = Some((first.source.seq, first.fact.number));
                break;
            }
            facts.push(fact);
        }
        match fails {
            // Its words were erased, and its own message does not say it alone.
            Some(fails) => said.retain(|s| (s.source.seq, s.fact.number) != fails),
            None => break (groups, facts),
        }
    };
    changes(held, &groups, facts)
}

/// The statements that are left, in the order in which they were made.
fn left<'f>(held: &'f [HeldFact], erased: &HashSet<MessageId>) -> Vec<Said<'f>> {
    let mut said: Vec<Said<'f>> = Vec::new();
    let mut gone: Option<u64> = None;
    for fact in held {
        // A message that states one thing twice is one source.
        let twice = (fact.weight - fact.sources.len() as f64).max(0.0);
        for (nth, source) in fact.sources.iter().enumerate() {
            if erased.contains(&source.message) {
                gone = Some(gone.map_or(source.seq, |seq| seq.min(source.seq)));
                continue;
            }
            // Where its clock went back, a fact counts as stated later than any of its messages.
            let is_later = fact.sources.iter().all(|source| source.created_at < fact.observed_at);
            let counted = fact.sources.len() == 1 || nth == 0 && is_later;
            let observed_at = match counted {
                true => fact.observed_at,
                false => source.created_at.min(fact.observed_at),
            };
            said.push(Said {
                fact,
                source,
                is_first: nth == 0,
                weight: if nth == 0 { 1.0 + twice } else { 1.0 },
                observed_at,
            });
        }
    }
    said.sort_by_key(|said| (said.source.seq, said.fact.number));
    // What only corrected or took back what was erased was not said without it.
    while let (Some(gone), Some(first)) = (gone, said.first()) {
        if gone < first.source.seq && first.is_borrowed() {
            said.remove(0);
        } else {
            break;
        }
    }
    said
}

/// The rules of the ledger over statements in order.
fn group<'f>(said: &[Said<'f>]) -> Vec<Group<'f>> {
    let mut groups: Vec<Group<'f>> = Vec::new();
    let mut active: Option<usize> = None;
    for said in said {
        let new = groups.len();
        let mut superseded_by = None;
        let mut of_settled = false;
        if let Some(at) = active
            && let Some(held) = groups.get_mut(at)
            && let Some(first) = held.said.first()
        {
            if said.restates(first) {
                held.observed_at = held.observed_at.max(said.observed_at);
                held.said.push(*said);
                continue;
            }
            let holder = first.active(held.observed_at, held.took);
            let in_slot = said.fact.slot.is_some();
            of_settled = holder.is_settled();
            match said.active(said.observed_at, (false, false)).against(&holder, in_slot) {
                Precedence::Supersedes => held.superseded_by = Some(new),
                Precedence::Superseded => superseded_by = Some(at),
                Precedence::Ignored => continue,
            }
        }
        let corrects = active.is_some() && superseded_by.is_none();
        let took = (corrects, corrects && of_settled);
        if superseded_by.is_none() {
            active = Some(new);
        }
        let observed_at = said.observed_at;
        groups.push(Group { said: vec![*said], observed_at, superseded_by, took });
    }
    groups
}

fn changes(held: &[HeldFact], groups: &[Group<'_>], facts: Vec<Option<NewFact>>) -> FactChanges {
    let ids: Vec<Option<FactId>> = groups
        .iter()
        .zip(&facts)
        .map(|(group, fact)| match fact {
            Some(fact) => Some(fact.id),
            None => group.said.first().map(|first| first.fact.id),
        })
        .collect();
    let mut changes = FactChanges::default();
    let mut stays = HashSet::new();
    for (group, fact) in groups.iter().zip(facts) {
        let Some(first) = group.said.first() else { continue };
        let mut sources: Vec<(u64, MessageId)> =
            group.said.iter().map(|said| (said.source.seq, said.source.message)).collect();
        sources.dedup();
        let weight: f64 = group.said.iter().map(|said| said.weight).sum();
        let superseded_by = group.superseded_by.and_then(|at| ids.get(at).copied().flatten());
        let observed_at = group.observed_at;
        if let Some(fact) = fact {
            changes.derived.push(DerivedFact {
                fact: NewFact { observed_at, ..fact },
                session_number: first.source.session_number,
                weight,
                superseded_by,
                sources,
            });
            continue;
        }
        let old = first.fact;
        stays.insert(old.number);
        let had = old.sources.iter().map(|source| (source.seq, source.message));
        let same = (old.superseded_by, old.observed_at) == (superseded_by, observed_at)
            && had.eq(sources.iter().copied());
        if !same {
            let number = old.number;
            changes.kept.push(KeptFact { number, weight, observed_at, superseded_by, sources });
        }
    }
    // What is superseded makes room for what holds.
    changes.kept.sort_by_key(|kept| (kept.superseded_by.is_none(), kept.number));
    let gone = held.iter().map(|fact| fact.number).filter(|number| !stays.contains(number));
    changes.removed = gone.collect();
    changes
}
