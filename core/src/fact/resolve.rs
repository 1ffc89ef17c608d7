//! What a correction or a retraction speaks of: "Actually it is 8:15, not 7:40", "make it the 21st", "forget what
//! I said about the budget". It is found by the old value, by what it is a value of, or by the type of the new one,
//! among the user's statements and facts. Where nothing fits clearly, nothing is replaced.

use std::collections::{HashMap, HashSet};

use super::forms::{own_sentences, topic};
use super::values::{TypedValue, ValueType, alike, typed_values};
use super::{Fact, FactKind, MAX_FACT_CHARS, NewFact, PREFERRED, Reference, SlotKey, index_unit};
use crate::ids::{FactId, MessageId};
use crate::text::{clip, fold_spaces, query_terms, value_key};
use crate::time::Timestamp;

/// Statements of the session that a correction without a name may mean, counted in messages of the user.
const NEAR: usize = 20;
/// Longest description of what a value stands in.
const MAX_GAP_CHARS: usize = 120;

/// A message of the user that was said before.
#[derive(Debug, Clone, Copy)]
pub struct Said<'m> {
    /// Which.
    pub message: MessageId,
    /// Whether it is of the same session.
    pub here: bool,
    /// When it was said.
    pub at: Timestamp,
    /// What it says.
    pub content: &'m str,
}

/// A fact that a statement may refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    kind: FactKind,
    text: String,
    subject: Option<String>,
    attribute: Option<String>,
    value: Option<String>,
    observed_at: Timestamp,
}

impl Known {
    fn slot(&self) -> Option<SlotKey> {
        Some(SlotKey::of(self.subject.as_deref()?, self.attribute.as_deref()?))
    }

    /// Its words, and those of what it is about.
    fn terms(&self) -> HashSet<String> {
        let mut terms: HashSet<String> = query_terms(&self.text).into_iter().collect();
        terms.extend(query_terms(self.attribute.as_deref().unwrap_or_default()));
        terms
    }
}

impl From<&Fact> for Known {
    fn from(fact: &Fact) -> Self {
        Self {
            kind: fact.kind,
            text: fact.text.clone(),
            subject: fact.subject.clone(),
            attribute: fact.attribute.clone(),
            value: fact.value.clone(),
            observed_at: fact.observed_at,
        }
    }
}

impl From<&NewFact> for Known {
    fn from(fact: &NewFact) -> Self {
        Self {
            kind: fact.kind,
            text: fact.text.clone(),
            subject: fact.subject.clone(),
            attribute: fact.attribute.clone(),
            value: fact.value.clone(),
            observed_at: fact.observed_at,
        }
    }
}

/// A sentence that a correction means, and the value in it.
struct Statement<'m> {
    said: Said<'m>,
    sentence: String,
    old: String,
}

/// Resolves the facts of one message against what is `known` and what was `said`, each with the newest last, and
/// adds them to what is known. What a correction replaces becomes a fact of the message that states it, before the
/// correction. A correction of which nothing is found is no fact. `id` gives ids.
pub fn resolve(
    facts: &mut Vec<NewFact>,
    known: &mut Vec<Known>,
    said: &[Said<'_>],
    mut id: impl FnMut() -> FactId,
) {
    let mut resolved = Vec::with_capacity(facts.len());
    for mut fact in std::mem::take(facts) {
        if let Some(reference) = fact.refers.take() {
            let replaced = if fact.kind == FactKind::Retraction {
                take_back(&mut fact, &reference, known, said, &mut id)
            } else {
                correct(&mut fact, &reference, known, said, &mut id)
            };
            let Some(replaced) = replaced else { continue };
            resolved.extend(replaced);
            // Of two facts of one time, the one with the later id holds.
            fact.id = id();
        }
        let retracts = fact.kind == FactKind::Retraction;
        let slot = fact.slot();
        known.retain(|held| match slot {
            Some(slot) => held.slot() != Some(slot),
            None => !retracts || fact.value.as_deref() != Some(&held.text) || held.slot().is_some(),
        });
        if !retracts {
            known.push(Known::from(&fact));
        }
        resolved.push(fact);
    }
    *facts = resolved;
}

/// Whether what was stated at some time comes before a fact: all that is there does, where the fact is stated now.
fn precedes(at: Timestamp, fact: &NewFact) -> bool {
    fact.stated_now || at <= fact.observed_at
}

/// Gives a correction the slot of what it corrects; what has to be stored before it, or `None` where nothing is
/// found.
fn correct(
    fact: &mut NewFact,
    reference: &Reference,
    known: &[Known],
    said: &[Said<'_>],
    id: &mut impl FnMut() -> FactId,
) -> Option<Option<NewFact>> {
    let new = fact.value.clone()?;
    let before =
        |held: &&Known| precedes(held.observed_at, fact) && held.kind != FactKind::Retraction;
    let statement = stated(fact, &new, reference, said);
    // A fact that has the old value, of the same sentence if there is one.
    let held =
        known.iter().rev().filter(before).filter(|held| held.slot().is_some()).find(|held| {
            let value = held.value.as_deref().unwrap_or_default();
            match (&statement, reference) {
                (Some(found), _) => {
                    held.text == clip(&found.sentence, MAX_FACT_CHARS)
                        && value_key(value) == value_key(&found.old)
                }
                (None, Reference { old: Some(old), .. }) => value_key(value) == value_key(old),
                (None, Reference { noun: Some(noun), .. }) => {
                    let attribute: HashSet<String> =
                        query_terms(held.attribute.as_deref().unwrap_or_default())
                            .into_iter()
                            .collect();
                    let noun = query_terms(noun);
                    !attribute.is_empty()
                        && !noun.is_empty()
                        && noun.iter().all(|term| attribute.contains(term))
                }
                _ => false,
            }
        });
    if let Some(held) = held {
        fact.subject.clone_from(&held.subject);
        fact.attribute.clone_from(&held.attribute);
        fact.kind = held.kind;
        return (held.value.as_deref() != Some(&new)).then_some(None);
    }
    let Statement { said, sentence, old } = statement?;
    let gap = clip(&sentence.replacen(&old, "…", 1), MAX_GAP_CHARS);
    (fact.subject, fact.attribute) = (Some("project".to_owned()), Some(gap));
    let text = clip(&sentence, MAX_FACT_CHARS);
    Some(Some(NewFact {
        id: id(),
        unit: index_unit(&text, &[]),
        text,
        value: Some(old),
        tags: Vec::new(),
        observed_at: said.at.min(fact.observed_at),
        stated_now: false,
        stated_in: Some(said.message),
        ..fact.clone()
    }))
}

/// The statement that a correction means: by the old value, by what it is a value of, or by its type.
fn stated<'m>(
    fact: &NewFact,
    new: &str,
    reference: &Reference,
    said: &[Said<'m>],
) -> Option<Statement<'m>> {
    let values = typed_values(&fact.text);
    let wanted = values.iter().find(|value| new.starts_with(&fact.text[value.range.clone()]));
    // What has the type of the new value in a sentence.
    let fitting = |sentence: &str| -> Vec<TypedValue> {
        let Some(wanted) = wanted else { return Vec::new() };
        let like = |value: &TypedValue| {
            alike(sentence, value, &fact.text, wanted) && sentence[value.range.clone()] != *new
        };
        typed_values(sentence).into_iter().filter(like).collect()
    };
    let mut noun: Vec<String> = reference.noun.as_deref().map(query_terms).unwrap_or_default();
    noun.retain(|term| !IDLE.contains(&term.as_str()));
    // Of a long description, half is enough.
    let needed = if noun.len() <= 2 { noun.len() } else { noun.len().div_ceil(2) };
    let old = reference.old.as_deref();
    let near = said.iter().filter(|said| said.here).count().saturating_sub(NEAR);
    let near: HashSet<MessageId> =
        said.iter().filter(|said| said.here).skip(near).map(|said| said.message).collect();
    let mut ordered: Vec<&Said<'m>> = said.iter().filter(|said| precedes(said.at, fact)).collect();
    ordered.sort_by_key(|said| (said.here, said.at.min(fact.observed_at)));
    for said in ordered.into_iter().rev() {
        if old.is_some_and(|old| !said.content.contains(old)) {
            continue;
        }
        for sentence in own_sentences(said.content).into_iter().rev().filter(|own| !own.asks) {
            let text = fold_spaces(&sentence.text);
            let found = match old {
                Some(old) => place(&text, old).map(|_| old.to_owned()),
                None if !noun.is_empty() => {
                    let terms: HashSet<String> = query_terms(&text).into_iter().collect();
                    let shared = noun.iter().filter(|term| terms.contains(*term)).count();
                    let fits = if shared >= needed { fitting(&text) } else { Vec::new() };
                    let clear = noun.len() <= 2 || fits.len() == 1;
                    fits.first().filter(|_| clear).map(|value| text[value.range.clone()].to_owned())
                }
                None => {
                    let fits =
                        if near.contains(&said.message) { fitting(&text) } else { Vec::new() };
                    let telling = fits.first().is_some_and(|value| {
                        value.kind != ValueType::Name
                            && (value.kind != ValueType::Number || value.range.len() >= 4)
                    });
                    (fits.len() == 1 && telling).then(|| text[fits[0].range.clone()].to_owned())
                }
            };
            if let Some(old) = found.filter(|old| value_key(old) != value_key(new)) {
                return Some(Statement { said: *said, sentence: text, old });
            }
        }
    }
    None
}

/// Where a value stands in a text as a whole: no part of a longer word or number.
#[must_use]
pub(crate) fn place(text: &str, value: &str) -> Option<usize> {
    if value.is_empty() {
        return None;
    }
    text.match_indices(value).map(|(at, _)| at).find(|at| {
        let (before, after) = (&text[..*at], &text[at + value.len()..]);
        let mut next = after.chars();
        let (first, second) = (next.next(), next.next());
        let joins = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        // "1.3" is no part of "1.38", and neither is "40" of "7:40".
        let goes_on = matches!(first, Some('.' | ':' | ',' | '-'))
            && second.is_some_and(|c| c.is_ascii_digit());
        let mut last = before.chars().rev();
        let (end, previous) = (last.next(), last.next());
        let came =
            matches!(end, Some('.' | ':' | ',')) && previous.is_some_and(|c| c.is_ascii_digit());
        !joins(first) && !joins(end) && !goes_on && !came
    })
}

/// Gives a retraction what it takes back; what has to be stored before it, or `None` where nothing is found.
fn take_back(
    fact: &mut NewFact,
    reference: &Reference,
    known: &[Known],
    said: &[Said<'_>],
    id: &mut impl FnMut() -> FactId,
) -> Option<Option<NewFact>> {
    let value = fact.value.clone().unwrap_or_default();
    let bare = value == "that";
    let preferred = reference.noun.as_deref() == Some(PREFERRED);
    let before = |held: &Known| {
        let fits = !preferred || held.kind == FactKind::Preference;
        fits && precedes(held.observed_at, fact) && held.text != fact.text
    };
    let mut wanted: Vec<String> = query_terms(&value);
    wanted.retain(|term| !IDLE.contains(&term.as_str()));
    let about = topic(&value.to_lowercase());
    let target = (0..known.len()).rev().find(|at| {
        let held = &known[*at];
        let standing = about.is_some() && held.attribute.as_deref() == about && before(held);
        standing && best_match(&wanted, &known[*at..=*at], |_| true).is_some()
    });
    let target = target.or_else(|| if bare { None } else { best_match(&wanted, known, before) });
    if let Some(held) = target.map(|at| &known[at]) {
        if held.slot().is_some() {
            fact.subject.clone_from(&held.subject);
            fact.attribute.clone_from(&held.attribute);
        } else {
            fact.attribute = None;
            fact.value = Some(held.text.clone());
        }
        return Some(None);
    }
    if preferred {
        return None;
    }
    // A statement that no extractor found.
    let mut ordered: Vec<&Said<'_>> = said.iter().filter(|said| precedes(said.at, fact)).collect();
    ordered.sort_by_key(|said| (said.here, said.at.min(fact.observed_at)));
    if bare {
        ordered =
            ordered.last().filter(|said| said.here).map(|said| vec![*said]).unwrap_or_default();
    }
    let (said, text) = ordered.into_iter().rev().find_map(|said| {
        let own = own_sentences(said.content).into_iter().rev();
        let mut texts = own.filter(|own| !own.asks).map(|own| fold_spaces(&own.text));
        let text = texts.find(|text| {
            let terms: HashSet<String> = query_terms(text).into_iter().collect();
            bare || !wanted.is_empty() && wanted.iter().all(|term| terms.contains(term))
        });
        Some((said, text?))
    })?;
    let text = clip(&text, MAX_FACT_CHARS);
    (fact.attribute, fact.value) = (None, Some(text.clone()));
    Some(Some(NewFact {
        id: id(),
        kind: FactKind::Fact,
        unit: index_unit(&text, &[]),
        text,
        value: None,
        tags: Vec::new(),
        observed_at: said.at.min(fact.observed_at),
        stated_now: false,
        stated_in: Some(said.message),
        ..fact.clone()
    }))
}

/// The fact that shares the most telling words, half of them at least; of two that share as much, the newer one.
fn best_match(
    wanted: &[String],
    known: &[Known],
    allowed: impl Fn(&Known) -> bool,
) -> Option<usize> {
    let terms: Vec<HashSet<String>> = known.iter().map(Known::terms).collect();
    let mut frequency: HashMap<&str, f32> = HashMap::new();
    for term in wanted {
        let held = terms.iter().filter(|terms| near(term, terms)).count();
        frequency.insert(term, held as f32);
    }
    let mut best: Option<(usize, f32)> = None;
    for (at, terms) in terms.iter().enumerate().filter(|(at, _)| allowed(&known[*at])) {
        let shared: Vec<&String> = wanted.iter().filter(|term| near(term, terms)).collect();
        let score: f32 = shared.iter().map(|term| 1.0 / frequency[term.as_str()].max(1.0)).sum();
        if 2 * shared.len() >= wanted.len().max(1) && best.is_none_or(|(_, most)| score >= most) {
            best = Some((at, score));
        }
    }
    best.map(|(at, _)| at)
}

/// Whether a set holds a word, or a form of it: "allergic" and "allergy".
fn near(term: &str, terms: &HashSet<String>) -> bool {
    let alike = |other: &String| {
        let same = other.bytes().zip(term.bytes()).take_while(|(a, b)| a == b).count();
        other.len() >= 6 && same >= 6
    };
    terms.contains(term) || term.len() >= 6 && terms.iter().any(alike)
}

/// Stemmed words that are in most sentences and tell nothing.
const IDLE: &[&str] = &[
    "correct", "sorri", "extend", "postpon", "push", "misrememb", "yesterday", "upgrad", "been",
    "actual", "again", "anymor", "chang", "everyth", "forget", "get", "good", "ignor", "instead",
    "make", "new", "rule", "instruct", "request", "prefer", "said", "say", "scratch", "thing",
    "time", "today", "told", "true", "turn", "updat", "use", "want", "longer", "one", "day", "go",
    "like", "work", "live", "earlier", "now", "move", "bit", "write", "answer", "repli", "reply",
    "respons", "respond", "give", "call", "keep", "show", "tell", "ask", "includ", "add", "end",
    "put", "stop", "let", "help", "know", "have", "eat", "own",
];
