//! What becomes of a fact when it meets the one that holds its place. Pure: a store reads what holds
//! and writes what is decided here, inside one transaction, so that writers in any order end in the
//! same state.

use super::{FactKind, NewFact, SlotKey, StatementKey};
use crate::ids::FactId;
use crate::time::Timestamp;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveFact {
    /// Its id.
    pub id: FactId,
    /// Its kind.
    pub kind: FactKind,
    /// Its key of restatement.
    pub statement: StatementKey,
    /// When it was last stated.
    pub observed_at: Timestamp,
}

/// What a store writes for a fact that a message states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meeting {
    /// Nothing: its value was rejected, and no other fact holds its place.
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
    /// Whether its value had been rejected.
    pub rejected: bool,
}

impl NewFact {
    /// The place that it takes or meets the holder of.
    #[must_use]
    pub fn place(&self) -> Place {
        Place::of(self.slot(), self.statement())
    }

    /// Decides about a fact that a message states. Of two with different values, the one that was
    /// observed later holds; of two at the same time, the one with the later id. A `rejected` one
    /// never holds.
    #[must_use]
    pub fn meet(&self, holder: Option<&ActiveFact>, rejected: bool) -> Meeting {
        let added = Added {
            observed_at: self.observed_at,
            supersedes: false,
            superseded_by: None,
            rejected,
        };
        match holder {
            None if rejected => Meeting::Ignored,
            None => Meeting::Added(added),
            Some(holder) if rejected => {
                Meeting::Added(Added { superseded_by: Some(holder.id), ..added })
            }
            Some(holder) if self.restates(holder.kind, holder.statement) => {
                Meeting::Restated { observed_at: holder.observed_at.max(self.observed_at) }
            }
            Some(holder) if (self.observed_at, self.id) >= (holder.observed_at, holder.id) => {
                Meeting::Added(Added { supersedes: true, ..added })
            }
            Some(holder) => Meeting::Added(Added { superseded_by: Some(holder.id), ..added }),
        }
    }

    /// Decides about a fact that is told directly: it takes the place of the holder, and counts as
    /// observed no earlier than that.
    #[must_use]
    pub fn replace(&self, holder: Option<&ActiveFact>) -> Added {
        let held_at = holder.map_or(self.observed_at, |holder| holder.observed_at);
        Added {
            observed_at: self.observed_at.max(held_at),
            supersedes: holder.is_some(),
            superseded_by: None,
            rejected: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::fact::Extracted;

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
        NewFact::of(found, "test/1", Timestamp::from_micros(at), id)
    }

    fn holder(of: &NewFact) -> ActiveFact {
        let (id, kind) = (of.id, of.kind);
        ActiveFact { id, kind, statement: of.statement(), observed_at: of.observed_at }
    }

    #[test]
    fn later_statement_holds_whatever_the_order_of_arrival() {
        let (old, new) = (fact(1, "80", 10), fact(2, "81", 20));
        let added = |supersedes, superseded_by, at: &NewFact| {
            let rejected = false;
            Meeting::Added(Added {
                observed_at: at.observed_at,
                supersedes,
                superseded_by,
                rejected,
            })
        };
        assert_eq!(old.meet(None, false), added(false, None, &old));
        assert_eq!(new.meet(Some(&holder(&old)), false), added(true, None, &new));
        assert_eq!(old.meet(Some(&holder(&new)), false), added(false, Some(new.id), &old));
        // At the same time, the later id holds.
        let same = fact(3, "82", 20);
        assert_eq!(same.meet(Some(&holder(&new)), false), added(true, None, &same));
        assert_eq!(new.meet(Some(&holder(&same)), false), added(false, Some(same.id), &new));
    }

    #[test]
    fn restatement_keeps_the_later_time() {
        let (first, again) = (fact(1, "80", 10), fact(2, "80", 20));
        let later = Meeting::Restated { observed_at: Timestamp::from_micros(20) };
        assert_eq!(again.meet(Some(&holder(&first)), false), later);
        assert_eq!(first.meet(Some(&holder(&again)), false), later);
    }

    #[test]
    fn rejected_value_never_holds() {
        let (held, rejected) = (fact(1, "80", 10), fact(2, "81", 20));
        assert_eq!(rejected.meet(None, true), Meeting::Ignored);
        let Meeting::Added(added) = rejected.meet(Some(&holder(&held)), true) else { panic!() };
        assert_eq!((added.supersedes, added.superseded_by), (false, Some(held.id)));
        assert!(added.rejected);
    }

    #[test]
    fn told_fact_replaces_a_later_holder() {
        let (held, told) = (fact(1, "80", 30), fact(2, "81", 20));
        let added = told.replace(Some(&holder(&held)));
        assert!(added.supersedes && added.superseded_by.is_none());
        assert_eq!(added.observed_at, held.observed_at);
        assert!(!told.replace(None).supersedes);
    }
}
