//! Closed word classes: one lookup tells all classes of a word.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::lists::LISTS;

/// Longest word that is looked up, in bytes.
const MAX_WORD: usize = 16;

/// What a word may be. A word may be several of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Join clauses.
    Conjunctions,
    /// Begin a clause of the user's own after a comma or a conjunction.
    ClauseStarts,
    /// Join a subject and what is said of it.
    Copulas,
    /// Words before a statement that are no part of it.
    Openers,
    /// Openers only where a comma or colon follows: alone they begin other sentences.
    SpokenOpeners,
    /// Stand between a subject and its verb and change nothing.
    Adverbs,
    /// What follows them is not stated as so.
    Hedges,
    /// What follows them, or goes before, is somebody's word or guess.
    Reports,
    /// Reports that are statements when the user makes them.
    OwnReports,
    /// Words that no noun phrase of a statement holds.
    NotNouns,
    /// Things that statements speak about without saying something lasting.
    Talk,
    /// Nouns that take a lasting value, whatever the value looks like.
    Properties,
    /// Say that a value replaces another; no part of what it is a value of.
    Fresh,
    /// Heads that need the noun before them to mean anything.
    Generic,
    /// People and animals that a user names.
    Family,
    /// Of these a user may have several, so a second name replaces no first.
    Many,
    /// Pets.
    Animals,
    /// Things that a user names.
    Things,
    /// Occupations that no ending gives away.
    Occupations,
    /// Persons with the ending of an occupation.
    NotOccupations,
    /// Diets.
    Diets,
    /// Lasting states of a person that stand alone.
    States,
    /// Marital states.
    Marital,
    /// Nationalities.
    Nations,
    /// Begin no value that can be remembered.
    PronounValues,
    /// Words at which a value is over.
    ValueEnds,
    /// Words at which a place or an employer is over as well.
    PlaceEnds,
    /// Verbs of change; `to` and the new value follow.
    Changes,
    /// The same as orders.
    ChangeOrders,
    /// Verbs of change with the amount of it.
    Trends,
    /// Verbs with a measured or counted value.
    Measures,
    /// Verbs after `need to` that ask or chat instead of planning.
    TaskNot,
    /// Orders that are tasks when a date follows.
    Orders,
    /// What `by` needs for a date.
    Deadlines,
    /// Verbs of standing orders after `always` and `never`.
    Standing,
    /// Verbs of lasting taste or practice; `I` stands before.
    Habits,
    /// Objects of taste that belong to the talk at hand.
    RejectedObjects,
    /// What `I have` makes a lasting statement.
    Owned,
    /// Units of a measure, as written after the number.
    Units,
    /// Follow a number and belong to it.
    NumberWords,
    /// Stand before a number that is not exact.
    Abouts,
    /// Make a sentence about a thing an opinion.
    Opinions,
    /// Verbs that ask for work on a text that follows.
    Edits,
    /// Capitalized, and no name.
    MonthsDays,
    /// Follow `project` and are no name.
    ProjectNouns,
}

/// The classes of a word.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Classes(u64);

impl Classes {
    /// The classes of a word in lower case.
    pub(super) fn of(word: &str) -> Self {
        if word.len() > MAX_WORD {
            Self::default()
        } else {
            TABLE.get(word).copied().unwrap_or_default()
        }
    }

    pub(super) const fn has(self, class: Class) -> bool {
        self.0 & 1 << class as u64 != 0
    }
}

static TABLE: LazyLock<FxHashMap<&'static str, Classes>> = LazyLock::new(|| {
    let mut table: FxHashMap<&str, Classes> = FxHashMap::default();
    for (class, words) in LISTS {
        for word in words.split_ascii_whitespace() {
            table.entry(word).or_default().0 |= 1 << *class as u64;
        }
    }
    table
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_is_sorted_lower_case_and_fits() {
        for (at, (class, words)) in LISTS.iter().enumerate() {
            assert_eq!(*class as usize, at, "{class:?}");
            assert!(words.split_ascii_whitespace().is_sorted(), "{class:?}");
            assert_eq!(words.to_lowercase(), *words, "{class:?}");
            assert!(words.split_ascii_whitespace().all(|word| word.len() <= MAX_WORD), "{class:?}");
        }
        assert!(LISTS.len() <= 64);
    }
}
