//! What a correction or a retraction speaks of, where it does not say so itself: "Actually, make it
//! the 21st of May", "scratch that", "ignore my earlier rule". Told by the type of the value, by
//! words that both share, and by what was stated last. Where nothing fits clearly, the statement
//! stays open and replaces nothing.

use std::collections::{HashMap, HashSet};

use super::extract::topics;
use super::{Fact, FactKind, NewFact, SlotKey};
use crate::ids::FactId;
use crate::text::query_terms;
use crate::time::Timestamp;

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
        let attribute = self.attribute.as_deref().unwrap_or_default().replace('_', " ");
        let mut terms: HashSet<String> = query_terms(&self.text).into_iter().collect();
        terms.extend(query_terms(&attribute));
        terms.extend(topics(&self.text).into_iter().map(|topic| format!("topic {topic}")));
        terms.extend(topics(&attribute).into_iter().map(|topic| format!("topic {topic}")));
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

/// Resolves the facts of one message against what is `known`, the newest last, and adds them to it.
/// `id` gives ids to retractions that a correction needs beside it.
pub fn resolve(facts: &mut Vec<NewFact>, known: &mut Vec<Known>, mut id: impl FnMut() -> FactId) {
    let mut resolved = Vec::with_capacity(facts.len());
    for mut fact in std::mem::take(facts) {
        if fact.refers {
            let found = if fact.kind == FactKind::Retraction {
                taken_back(&fact, known)
            } else {
                corrected(&fact, known)
            };
            match found {
                Some(at) => resolved.extend(apply(&mut fact, &known[at], &mut id)),
                None => leave_open(&mut fact, known),
            }
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

/// Gives the fact the slot of what it refers to. What has no slot is taken back by its statement.
fn apply(fact: &mut NewFact, target: &Known, id: &mut impl FnMut() -> FactId) -> Option<NewFact> {
    if target.slot().is_some() {
        fact.subject.clone_from(&target.subject);
        fact.attribute.clone_from(&target.attribute);
        if fact.kind != FactKind::Retraction {
            fact.kind = target.kind;
        }
        return None;
    }
    if fact.kind == FactKind::Retraction {
        fact.attribute = None;
        fact.value = Some(target.text.clone());
        return None;
    }
    if fact.text == target.text {
        return None;
    }
    Some(NewFact {
        id: id(),
        kind: FactKind::Retraction,
        attribute: None,
        value: Some(target.text.clone()),
        refers: false,
        ..fact.clone()
    })
}

/// A retraction of one value does not take back another that fills the slot.
fn leave_open(fact: &mut NewFact, known: &[Known]) {
    let slot = fact.slot();
    if fact.kind == FactKind::Retraction
        && slot.is_some()
        && known.iter().any(|held| held.slot() == slot)
    {
        fact.attribute = None;
    }
}

/// What a retraction takes back.
fn taken_back(fact: &NewFact, known: &[Known]) -> Option<usize> {
    let value = fact.value.as_deref().unwrap_or_default();
    let before = |held: &Known| held.observed_at <= fact.observed_at;
    let lower = value.to_lowercase();
    let bare = ["that", "it", "this", "that one", "that's", "it's"].contains(&lower.as_str())
        || lower.split(' ').all(|word| KIND_WORDS.contains(&word) || POINTERS.contains(&word));
    if let Some(slot) = fact.slot()
        && let Some(at) = known.iter().position(|held| held.slot() == Some(slot) && before(held))
    {
        let held = &known[at];
        let words: HashSet<String> = held.terms();
        // "Work at Orbit" does not take back that the user works at Nordlys.
        let mut telling = query_terms(value);
        telling.retain(|term| !IDLE.contains(&term.as_str()));
        let shares = telling.is_empty() || telling.iter().any(|term| near(term, &words));
        if held.kind.is_standing() || shares {
            return Some(at);
        }
    }
    let words = if bare { fact.text.as_str() } else { value };
    let mut wanted: Vec<String> = query_terms(words);
    wanted.extend(topics(words).into_iter().map(|topic| format!("topic {topic}")));
    wanted.retain(|term| !IDLE.contains(&term.as_str()));
    let allowed = |held: &Known| before(held) && held.text != fact.text;
    if let Some(at) = best_match(&wanted, known, allowed) {
        return Some(at);
    }
    if !bare {
        // "Scratch the sayings": the one rule that there is, where a rule is meant.
        let rules: Vec<usize> = (0..known.len())
            .filter(|at| known[*at].kind == FactKind::Instruction && allowed(&known[*at]))
            .collect();
        let scraps = ["scratch", "scrap", "strike"];
        let order = fact.text.to_lowercase();
        let scrapped = scraps.iter().any(|verb| order.contains(verb));
        return (scrapped && rules.len() == 1).then(|| rules[0]);
    }
    let text = fact.text.to_lowercase();
    let of_rule = text.split(|c: char| !c.is_alphanumeric()).any(|word| KIND_WORDS.contains(&word));
    let types = hinted(&text);
    (0..known.len()).rev().find(|at| {
        let held = &known[*at];
        allowed(held)
            && match (of_rule, types) {
                (true, _) => held.kind == FactKind::Instruction,
                (false, 0) => *at + 1 == known.len(),
                (false, types) => types_of(held) & types != 0,
            }
    })
}

/// What a correction corrects.
fn corrected(fact: &NewFact, known: &[Known]) -> Option<usize> {
    if fact.kind.is_standing() {
        return restated(fact, known);
    }
    let slot = fact.slot();
    let before = |held: &Known| held.observed_at <= fact.observed_at && held.text != fact.text;
    if slot.is_some() && known.iter().any(|held| held.slot() == slot) {
        return None;
    }
    let value = fact.value.as_deref().unwrap_or_default();
    let types = types_of_text(value);
    // "Make it three hundred words": of the rule about length.
    let told: HashSet<&str> = topics(value).into_iter().collect();
    let ruled = known.iter().rposition(|held| {
        before(held)
            && held.kind.is_standing()
            && held.attribute.as_deref().is_some_and(|attribute| told.contains(attribute))
    });
    if slot.is_none() && ruled.is_some() {
        return ruled;
    }
    let named = query_terms(fact.attribute.as_deref().unwrap_or_default());
    let fits = |held: &Known| {
        before(held)
            && (slot.is_none() || named.iter().all(|term| held.terms().contains(term)))
            && !held.kind.is_standing()
            && matches!(held.kind, FactKind::Fact | FactKind::Metric | FactKind::Decision)
            && types_of(held) & types != 0
            && same_unit(value, held)
    };
    let said: HashSet<String> = query_terms(value).into_iter().collect();
    let mut wanted: Vec<String> =
        query_terms(&fact.text).into_iter().filter(|term| !said.contains(term)).collect();
    wanted.retain(|term| !IDLE.contains(&term.as_str()));
    if let Some(at) = best_match(&wanted, known, fits) {
        return Some(at);
    }
    // A value that names its own slot says of what it is.
    if slot.is_some() {
        return None;
    }
    // "Make workouts forty-five minutes": of a rule about them.
    let ruled = |held: &Known| before(held) && held.kind == FactKind::Instruction;
    if let Some(at) = best_match(&wanted, known, ruled) {
        return Some(at);
    }
    let telling = types & (DATE | TIME | MONEY | AMOUNT) != 0;
    if !telling {
        return None;
    }
    (0..known.len()).rev().find(|at| fits(&known[*at]))
}

/// What an instruction that says that something changes replaces: one about the same things.
fn restated(fact: &NewFact, known: &[Known]) -> Option<usize> {
    let slot = fact.slot();
    if slot.is_some() && known.iter().any(|held| held.slot() == slot) {
        return None;
    }
    let mut wanted: Vec<String> = query_terms(&fact.text);
    wanted.extend(topics(&fact.text).into_iter().map(|topic| format!("topic {topic}")));
    wanted.retain(|term| !IDLE.contains(&term.as_str()) && !TALK.contains(&term.as_str()));
    best_match(&wanted, known, |held| {
        held.kind == fact.kind
            && held.text != fact.text
            && held.observed_at <= fact.observed_at
            && (forbids(&fact.text) || !forbids(&held.text))
    })
}

/// Whether an instruction is about what must not be: how something is done does not replace it.
fn forbids(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric() && c != '\'').any(|word| {
        ["never", "no", "don't", "avoid", "without", "leave", "omit", "skip", "stop", "not"]
            .contains(&word)
    })
}

/// The fact that shares the most telling words; of two that share as much, the newer one.
fn best_match(
    wanted: &[String],
    known: &[Known],
    allowed: impl Fn(&Known) -> bool,
) -> Option<usize> {
    if wanted.is_empty() {
        return None;
    }
    let terms: Vec<HashSet<String>> = known.iter().map(Known::terms).collect();
    let mut frequency: HashMap<&str, f32> = HashMap::new();
    for term in wanted {
        let held = terms.iter().filter(|terms| near(term, terms)).count();
        frequency.insert(term, held as f32);
    }
    let mut best: Option<(usize, f32)> = None;
    for (at, terms) in terms.iter().enumerate() {
        if !allowed(&known[at]) {
            continue;
        }
        let shared: f32 = wanted
            .iter()
            .filter(|term| near(term, terms))
            .map(|term| 1.0 / frequency[term.as_str()].max(1.0))
            .sum();
        if shared >= 0.34 && best.is_none_or(|(_, most)| shared >= most) {
            best = Some((at, shared));
        }
    }
    best.map(|(at, _)| at)
}

/// Whether a set holds a word, or a form of it: "allergic" and "allergy".
fn near(term: &str, terms: &HashSet<String>) -> bool {
    terms.contains(term)
        || term.len() >= 6
            && terms.iter().any(|other| {
                other.len() >= 6
                    && other
                        .as_bytes()
                        .iter()
                        .zip(term.as_bytes())
                        .take_while(|(a, b)| a == b)
                        .count()
                        >= 6
            })
}

/// Words of kinds of statements, which name none.
const KIND_WORDS: &[&str] = &[
    "rule", "rules", "instruction", "instructions", "restriction", "restrictions", "request",
    "requirement", "preference", "constraint", "order", "limit", "guideline",
];

/// Words that point at something said.
const POINTERS: &[&str] = &[
    "my", "the", "that", "this", "earlier", "previous", "last", "old", "i", "said", "gave", "you",
    "asked", "for", "what", "told", "about", "thing", "it", "one", "all", "those", "these",
];

/// Stemmed words that are in most sentences and tell nothing.
const IDLE: &[&str] = &[
    "actual", "again", "anymor", "chang", "everyth", "forget", "get", "good", "ignor", "instead",
    "make", "misspok", "need", "new", "rule", "said", "say", "scratch", "thing", "time", "today",
    "told", "true", "turn", "updat", "use", "want", "wrong", "longer", "one", "last", "day", "go",
    "like", "work", "live", "like", "earlier", "sorri", "correct", "mistak", "now", "move",
    "night", "week",
];

/// Stemmed words that most instructions share.
const TALK: &[&str] = &[
    "answer", "repli", "reply", "respons", "respond", "write", "give", "pleas", "everi", "alway",
    "never", "whenev", "messag", "call", "keep", "show", "tell", "ask", "includ", "add", "end",
    "start", "put", "everyth", "anyth", "stop", "let", "help", "short", "long", "plan", "know",
];

const DATE: u8 = 1;
const TIME: u8 = 2;
const MONEY: u8 = 4;
const NUMBER: u8 = 8;
const NAME: u8 = 16;
const LINK: u8 = 32;
/// A number with a unit.
const AMOUNT: u8 = 64;

fn types_of(held: &Known) -> u8 {
    types_of_text(held.value.as_deref().unwrap_or(&held.text)) | hinted_slot(held)
}

fn hinted_slot(held: &Known) -> u8 {
    match held.attribute.as_deref() {
        Some("deadline" | "birthday" | "date") => DATE,
        _ => 0,
    }
}

/// The types of a value that its words speak of.
fn hinted(text: &str) -> u8 {
    let mut types = 0;
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        types |= match word {
            "date" | "dates" | "deadline" | "day" => DATE,
            "hour" | "appointment" => TIME,
            "budget" | "price" | "cost" | "money" | "rent" => MONEY,
            _ => 0,
        };
    }
    types
}

/// What types of values a text holds.
fn types_of_text(text: &str) -> u8 {
    let mut types = 0;
    let mut digits = false;
    for (at, word) in text.split_whitespace().enumerate() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && !"€$£¥".contains(c));
        let lower = bare.to_lowercase();
        let number = bare
            .trim_start_matches(['€', '$', '£', '¥', '~', '+', '-'])
            .starts_with(|c: char| c.is_ascii_digit());
        if is_date_word(&lower)
            || number
                && (lower.ends_with("st")
                    || lower.ends_with("nd")
                    || lower.ends_with("rd")
                    || lower.ends_with("th"))
            || number && lower.matches(['/', '-']).count() == 2
        {
            types |= DATE;
        } else if number && lower.contains(':')
            || matches!(lower.as_str(), "noon" | "midnight" | "am" | "pm")
        {
            types |= TIME;
        } else if word.contains(['€', '$', '£', '¥'])
            || ["eur", "usd", "euros", "dollars", "pounds"].contains(&lower.as_str())
        {
            types |= MONEY | NUMBER;
        } else if number {
            types |= NUMBER;
            digits = true;
        } else if lower.contains("://") {
            types |= LINK;
        } else if digits && at > 0 {
            types |= AMOUNT;
        }
        if bare.starts_with(char::is_uppercase) && !is_date_word(&lower) {
            types |= NAME;
        }
    }
    types
}

fn is_date_word(word: &str) -> bool {
    [
        "january", "february", "march", "april", "june", "july", "august", "september", "october",
        "november", "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
        "sunday", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "sept", "oct",
        "nov", "dec", "tomorrow", "weekend",
    ]
    .contains(&word)
}

/// Whether two amounts have the same unit; what has none fits any.
fn same_unit(value: &str, held: &Known) -> bool {
    let unit = |text: &str| -> Option<String> {
        let mut words = text
            .split_whitespace()
            .skip_while(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
        words.next()?;
        let word = words.next()?.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        (word.len() <= 12 && !is_date_word(&word)).then_some(word)
    };
    match (unit(value), unit(held.value.as_deref().unwrap_or(&held.text))) {
        (Some(new), Some(old)) => new == old || types_of_text(value) & (DATE | TIME | MONEY) != 0,
        _ => true,
    }
}
