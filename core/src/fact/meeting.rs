//! What becomes of a fact when it meets the one that holds its place. Pure: a store reads what holds
//! and writes what is decided here, inside one transaction, so that writers in any order end in the
//! same state.

use std::time::Duration;

use super::{FactKind, NewFact, SlotKey, StatementKey};
use crate::access::Actor;
use crate::error::{Error, Result};
use crate::ids::FactId;
use crate::text::value_key;
use crate::time::Timestamp;

/// How far the clocks of writers that write at once may be apart.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Where at most one fact is active at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A slot: a subject's attribute.
    Slot(SlotKey),
    /// A statement outside any slot.
    Statement(StatementKey),
}

impl Place {
    /// The place of a fact with these keys.
    #[must_use]
    pub fn of(slot: Option<SlotKey>, statement: StatementKey) -> Self {
        slot.map_or(Self::Statement(statement), Self::Slot)
    }
}

/// What a new fact has to know of the active fact of its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveFact {
    /// Its id.
    pub id: FactId,
    /// Its kind.
    pub kind: FactKind,
    /// Its key of restatement.
    pub statement: StatementKey,
    /// When it was last stated.
    pub observed_at: Timestamp,
    /// On whose word it was stated first.
    pub actor: Actor,
    /// Its value; of a retraction what it takes back.
    pub value: Option<String>,
    /// Whether it took the place of another one.
    pub corrects: bool,
    /// Whether the one whose place it took was settled by the user.
    pub of_settled: bool,
}

/// What a store writes for a fact that a message states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meeting {
    /// Nothing: its value was rejected or taken back.
    Ignored,
    /// The holder was stated once more: its weight grows by 1, this message becomes a source of it,
    /// and it was last stated at this time.
    Restated {
        /// The later of both times.
        observed_at: Timestamp,
    },
    /// A fact of its own.
    Added(Added),
}

/// How a new fact is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// When it was stated.
    pub observed_at: Timestamp,
    /// Whether the holder is superseded by it.
    pub supersedes: bool,
    /// The holder, where that one stays active.
    pub superseded_by: Option<FactId>,
}

impl ActiveFact {
    /// Whether only who decides for the user may replace it: what they told, corrected or took back, and a slot of
    /// theirs that a model forgot.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let retracts = self.kind == FactKind::Retraction;
        if !self.actor.decides() {
            return retracts && self.of_settled;
        }
        self.actor == Actor::Api || self.corrects || retracts
    }

    /// Whether it only forgets what the other states: who forgot it for the user may tell it again.
    fn forgets(&self, value: Option<&str>, in_slot: bool) -> bool {
        let own = self.value.as_deref().map(value_key);
        !self.actor.decides()
            && self.kind == FactKind::Retraction
            && (!in_slot || own == value.map(value_key))
    }

    /// The error for a model that tells what its user has settled otherwise.
    pub(crate) fn overruled(&self) -> Error {
        let retracted = self.kind == FactKind::Retraction && self.actor.decides();
        let what = if retracted { "took this back" } else { "stated or corrected this" };
        Error::conflict(format!(
            "the user {what} (fact {}), and a tool cannot override that: ask the user to correct \
             it",
            self.id
        ))
    }

    /// Whether the user takes back by it what the other states on the word of somebody else.
    fn takes_back(&self, other: &Self, in_slot: bool) -> bool {
        let retracts = |fact: &Self| fact.kind == FactKind::Retraction;
        let value = |fact: &Self| fact.value.as_deref().map(value_key);
        // Of statements without a slot, one place is one statement.
        let same = !in_slot || value(self) == value(other);
        let by_user = self.actor.decides() && !other.actor.decides();
        retracts(self) && !retracts(other) && by_user && same
    }

    /// Whether a model chose and labelled it, where the user's own words hold its place or what they settled does.
    fn is_inferred_beside(&self, other: &Self) -> bool {
        self.actor == Actor::Extractor && (other.actor.decides() || other.is_settled())
    }

    /// Which of two that say different things of one place holds, where this is the new one.
    pub(crate) fn against(&self, holder: &Self, in_slot: bool) -> Precedence {
        if holder.takes_back(self, in_slot) || self.is_inferred_beside(holder) {
            return Precedence::Ignored;
        }
        let forgotten = holder.forgets(self.value.as_deref(), in_slot);
        let settled = holder.is_settled() && !forgotten && self.actor == Actor::Model;
        let later = (self.observed_at, self.id) >= (holder.observed_at, holder.id);
        // The user says what a model told.
        let confirms = self.statement == holder.statement && self.actor.outranks(holder.actor);
        let stronger =
            confirms || self.takes_back(holder, in_slot) || holder.is_inferred_beside(self);
        if stronger || !settled && later { Precedence::Supersedes } else { Precedence::Superseded }
    }
}

/// What becomes of a new fact beside the holder of its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precedence {
    /// It holds, and the holder does no more.
    Supersedes,
    /// It was so once: the holder holds.
    Superseded,
    /// It is not kept.
    Ignored,
}

impl NewFact {
    /// The place that it takes or meets the holder of.
    #[must_use]
    pub fn place(&self) -> Place {
        Place::of(self.slot(), self.statement())
    }

    /// Decides about a fact that a message states. Of two with different values, the one that was
    /// observed later holds; of two at the same time, the one with the later id. A `rejected` one
    /// never holds, and what the user took back holds again only on the user's own word. What a model
    /// told is the user's where they say the same.
    #[must_use]
    pub fn meet(&self, holder: Option<&ActiveFact>, rejected: bool) -> Meeting {
        if rejected {
            return Meeting::Ignored;
        }
        let observed_at = self.stated_after(holder);
        let added = Added { observed_at, supersedes: false, superseded_by: None };
        let Some(holder) = holder else { return Meeting::Added(added) };
        if self.restates(holder.kind, holder.statement) {
            let observed_at = observed_at.max(holder.observed_at);
            if self.actor.outranks(holder.actor) {
                return Meeting::Added(Added { observed_at, supersedes: true, ..added });
            }
            return Meeting::Restated { observed_at };
        }
        let own = ActiveFact { observed_at, ..self.active() };
        match own.against(holder, self.slot().is_some()) {
            Precedence::Supersedes => Meeting::Added(Added { supersedes: true, ..added }),
            Precedence::Superseded => {
                Meeting::Added(Added { superseded_by: Some(holder.id), ..added })
            }
            Precedence::Ignored => Meeting::Ignored,
        }
    }

    /// When it counts as stated. What is stated now comes after everything that is there: where the holder is from the
    /// future, the clock went back. Of two that are stated at once, clocks decide.
    fn stated_after(&self, holder: Option<&ActiveFact>) -> Timestamp {
        match holder.filter(|_| self.stated_now).map(|holder| holder.observed_at) {
            Some(held_at) if held_at > self.observed_at.plus(AT_ONCE) => {
                held_at.plus(Duration::from_micros(1))
            }
            _ => self.observed_at,
        }
    }

    /// Itself as a holder of its place.
    fn active(&self) -> ActiveFact {
        ActiveFact {
            id: self.id,
            kind: self.kind,
            statement: self.statement(),
            observed_at: self.observed_at,
            actor: self.actor,
            value: self.value.clone(),
            corrects: false,
            of_settled: false,
        }
    }

    /// Decides about a fact that is told directly: it takes the place of the holder, and counts as
    /// observed no earlier than that.
    ///
    /// # Errors
    /// `Conflict` for a model, where the holder is what the user told, corrected or took back.
    pub fn replace(&self, holder: Option<&ActiveFact>) -> Result<Added> {
        let settled = holder.filter(|holder| {
            // To forget what was settled is the user's decision, whoever carries it out.
            self.kind != FactKind::Retraction
                && holder.is_settled()
                && !holder.forgets(self.value.as_deref(), self.slot().is_some())
                && !self.restates(holder.kind, holder.statement)
        });
        if let Some(holder) = settled.filter(|_| self.actor == Actor::Model) {
            return Err(holder.overruled());
        }
        let held_at = holder.map_or(self.observed_at, |holder| holder.observed_at);
        Ok(Added {
            observed_at: self.observed_at.max(held_at),
            supersedes: holder.is_some(),
            superseded_by: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::fact::{Extracted, Forms};

    fn fact(id: u128, value: &str, at: i64) -> NewFact {
        let found = Extracted {
            kind: FactKind::Fact,
            text: format!("The port is {value}."),
            subject: Some("project".to_owned()),
            attribute: Some("port".to_owned()),
            value: Some(value.to_owned()),
            tags: Vec::new(),
            refers: None,
        };
        let id = FactId::from_uuid(Uuid::from_u128(id));
        NewFact::of(found, &Forms, (Actor::User, Timestamp::from_micros(at)), id)
    }

    #[test]
    fn later_statement_holds_whatever_the_order_of_arrival() {
        let (old, new) = (fact(1, "80", 10), fact(2, "81", 20));
        let added = |supersedes, superseded_by, at: &NewFact| {
            Meeting::Added(Added { observed_at: at.observed_at, supersedes, superseded_by })
        };
        assert_eq!(old.meet(None, false), added(false, None, &old));
        assert_eq!(new.meet(Some(&old.active()), false), added(true, None, &new));
        assert_eq!(old.meet(Some(&new.active()), false), added(false, Some(new.id), &old));
        // At the same time, the later id holds.
        let same = fact(3, "82", 20);
        assert_eq!(same.meet(Some(&new.active()), false), added(true, None, &same));
        assert_eq!(new.meet(Some(&same.active()), false), added(false, Some(same.id), &new));
    }

    #[test]
    fn restatement_keeps_the_later_time() {
        let (first, again) = (fact(1, "80", 10), fact(2, "80", 20));
        let later = Meeting::Restated { observed_at: Timestamp::from_micros(20) };
        assert_eq!(again.meet(Some(&first.active()), false), later);
        assert_eq!(first.meet(Some(&again.active()), false), later);
    }

    #[test]
    fn rejected_value_never_holds() {
        let (held, rejected) = (fact(1, "80", 10), fact(2, "81", 20));
        assert_eq!(rejected.meet(None, true), Meeting::Ignored);
        assert_eq!(rejected.meet(Some(&held.active()), true), Meeting::Ignored);
    }

    #[test]
    fn value_that_was_taken_back_holds_again_only_on_the_users_word() {
        let mut retraction = fact(1, "80", 10).active();
        retraction.kind = FactKind::Retraction;
        let said = |actor, value| NewFact { actor, ..fact(2, value, 20) };
        for actor in [Actor::Import, Actor::Model, Actor::Extractor] {
            let again = said(actor, "80").meet(Some(&retraction), false);
            assert_eq!(again, Meeting::Ignored, "{actor}");
        }
        for (actor, value) in [(Actor::User, "80"), (Actor::Import, "81")] {
            let other = said(actor, value).meet(Some(&retraction), false);
            assert!(matches!(other, Meeting::Added(Added { supersedes: true, .. })), "{actor}");
        }
        // A retraction that arrives late.
        let imported = said(Actor::Import, "80").active();
        let late = NewFact { kind: FactKind::Retraction, ..fact(3, "80", 10) };
        let met = late.meet(Some(&imported), false);
        assert!(matches!(met, Meeting::Added(Added { supersedes: true, .. })), "{met:?}");
    }

    #[test]
    fn model_overrides_no_decision_of_its_user() {
        let said = fact(1, "80", 10).active();
        let told = ActiveFact { actor: Actor::Api, ..said.clone() };
        let corrected = ActiveFact { corrects: true, ..said.clone() };
        let retracted = ActiveFact { kind: FactKind::Retraction, ..said.clone() };
        let by_model = NewFact { actor: Actor::Model, ..fact(2, "81", 20) };
        for holder in [&told, &corrected, &retracted] {
            let error = by_model.replace(Some(holder)).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Conflict);
            let met = by_model.meet(Some(holder), false);
            let Meeting::Added(added) = met else { panic!("{met:?}") };
            assert_eq!((added.supersedes, added.superseded_by), (false, Some(holder.id)));
        }
        let free = [said, ActiveFact { actor: Actor::Model, ..corrected }];
        assert!(free.iter().all(|holder| by_model.replace(Some(holder)).is_ok()));
        // To say the same is no override.
        let same = NewFact { actor: Actor::Model, ..fact(3, "80", 20) };
        assert!(same.replace(Some(&told)).is_ok());
    }

    #[test]
    fn forgotten_slot_of_the_user_stays_settled() {
        let forgotten = ActiveFact {
            kind: FactKind::Retraction,
            actor: Actor::Model,
            of_settled: true,
            ..fact(1, "80", 10).active()
        };
        let by_model = |value| NewFact { actor: Actor::Model, ..fact(2, value, 20) };
        assert!(by_model("81").replace(Some(&forgotten)).is_err());
        let met = by_model("81").meet(Some(&forgotten), false);
        assert!(matches!(met, Meeting::Added(Added { supersedes: false, .. })), "{met:?}");
        // The same value it may tell again, and the user any.
        assert!(by_model("80").replace(Some(&forgotten)).is_ok());
        let met = fact(2, "81", 20).meet(Some(&forgotten), false);
        assert!(matches!(met, Meeting::Added(Added { supersedes: true, .. })), "{met:?}");
    }

    #[test]
    fn users_own_statement_replaces_a_models() {
        let by_model = NewFact { actor: Actor::Model, ..fact(1, "80", 20) };
        let met = fact(2, "80", 10).meet(Some(&by_model.active()), false);
        let Meeting::Added(added) = met else { panic!("{met:?}") };
        assert_eq!((added.supersedes, added.observed_at), (true, by_model.observed_at));
        let again = by_model.meet(Some(&fact(2, "80", 10).active()), false);
        assert!(matches!(again, Meeting::Restated { .. }), "{again:?}");
    }

    #[test]
    fn inferred_fact_ends_nothing_that_the_user_said() {
        let said = fact(1, "80", 10);
        let inferred = |id, at| NewFact { actor: Actor::Extractor, ..fact(id, "81", at) };
        let retracted = ActiveFact { kind: FactKind::Retraction, ..said.active() };
        let told = ActiveFact { actor: Actor::Api, ..said.active() };
        let forgotten = ActiveFact { actor: Actor::Model, of_settled: true, ..retracted.clone() };
        for holder in [said.active(), told, retracted, forgotten] {
            assert_eq!(inferred(2, 20).meet(Some(&holder), false), Meeting::Ignored, "{holder:?}");
        }
        // In the other order, the end is the same, whichever was said later.
        for at in [5, 20] {
            let met = said.meet(Some(&inferred(2, at).active()), false);
            assert!(matches!(met, Meeting::Added(Added { supersedes: true, .. })), "{met:?}");
        }
        // Of two that are inferred, and beside what a file or a tool says, the later one holds.
        let other =
            ActiveFact { statement: fact(3, "79", 10).statement(), ..inferred(3, 10).active() };
        for holder in [other.clone(), ActiveFact { actor: Actor::Model, ..other }] {
            let met = inferred(2, 20).meet(Some(&holder), false);
            assert!(matches!(met, Meeting::Added(Added { supersedes: true, .. })), "{met:?}");
        }
        // What the user said already is stated once more.
        let same = NewFact { actor: Actor::Extractor, ..fact(4, "80", 20) };
        let met = same.meet(Some(&said.active()), false);
        assert!(matches!(met, Meeting::Restated { .. }), "{met:?}");
    }

    #[test]
    fn told_fact_replaces_a_later_holder() {
        let (held, told) = (fact(1, "80", 30), fact(2, "81", 20));
        let added = told.replace(Some(&held.active())).unwrap();
        assert!(added.supersedes && added.superseded_by.is_none());
        assert_eq!(added.observed_at, held.observed_at);
        assert!(!told.replace(None).unwrap().supersedes);
    }
}
