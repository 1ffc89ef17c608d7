//! What does not hold any more does not come back: sentences that state a superseded or retracted
//! value are cut out of what is recalled, with the assistant's echo of them. A question about the
//! past gets everything.

use std::collections::HashSet;
use std::ops::Range;

use super::account::{Item, ItemKind, Outcome, Reason, Section};
use super::recall::{Candidates, FactCandidate, MessageCandidate};
use crate::entity::Entity;
use crate::fact::{Fact, FactKind, SupersededFact, borrowed};
use crate::ids::{MessageId, SessionId};
use crate::session::{Message, Role};
use crate::summary::SummaryLine;
use crate::text::{fold_spaces, query_terms, sentences};

/// Superseded facts read for one turn: those of the newest changes.
pub(super) const SUPERSEDED_READ: usize = 96;
/// Messages after a statement that may echo it.
const ECHO: u64 = 2;
/// A rest of a passage that is shorter is not worth a line.
const LEAST_REST: usize = 12;

/// Words that ask about what was before.
const PAST: &[&str] = &[
    "before", "previously", "originally", "original", "formerly", "former", "earlier", "initially",
    "initial", "history", "past", "old", "changed", "change", "used", "first", "was", "were",
    "did", "previous", "ago", "once", "had", "back", "until",
];

/// What a turn must not be told as if it held.
pub(super) struct Stale<'a> {
    rows: Vec<Row<'a>>,
    turn: HashSet<String>,
}

struct Row<'a> {
    old: &'a SupersededFact,
    text: String,
    /// What the old value says and the new one does not.
    value: HashSet<String>,
    /// The same of the whole sentence.
    whole: HashSet<String>,
    /// What it is a value of.
    slot: HashSet<String>,
    /// The longest word of the value: what does not have it does not state the value.
    longest: String,
}

/// A sentence of a message that gives what is not the user's own.
struct Lent {
    message: MessageId,
    seq: u64,
    session: SessionId,
    range: Range<usize>,
    terms: HashSet<String>,
}

impl Lent {
    fn concerns(&self, message: &Message) -> bool {
        self.message == message.id
            || message.role == Role::Assistant
                && message.session == self.session
                && message.seq > self.seq
                && message.seq <= self.seq + ECHO
    }

    fn is_said_by(&self, message: &Message, place: &Range<usize>, sentence: &str) -> bool {
        if self.message == message.id {
            return place.start < self.range.end && self.range.start < place.end;
        }
        // An answer to it that repeats a word of it says little by itself.
        terms(sentence).iter().any(|term| term.len() > 4 && self.terms.contains(term))
    }
}

fn terms(text: &str) -> HashSet<String> {
    query_terms(text).into_iter().collect()
}

impl<'a> Stale<'a> {
    pub(super) fn of(turn: &str, superseded: &'a [SupersededFact]) -> Self {
        let rows = if asks_about_the_past(turn) { &[] } else { superseded };
        let rows = rows.iter().map(|old| {
            let retracted = old.by.kind == FactKind::Retraction;
            let new = if retracted { HashSet::new() } else { terms(&old.by.text) };
            let value = old.fact.value.as_deref().unwrap_or(&old.fact.text);
            let minus = |text: &str| {
                let mut found = terms(text);
                found.retain(|term| !new.contains(term));
                found
            };
            let attribute = old.fact.attribute.as_deref().unwrap_or_default();
            let subject = old.fact.subject.as_deref().filter(|s| *s != "user").unwrap_or_default();
            let value = minus(value);
            Row {
                old,
                text: fold_spaces(&old.fact.text),
                longest: longest(&value),
                value,
                whole: minus(&old.fact.text),
                slot: terms(&format!("{attribute} {subject}")),
            }
        });
        Self { rows: rows.collect(), turn: terms(turn) }
    }

    /// The candidates without what is stale, and the account of what was left out whole.
    pub(super) fn without(&self, candidates: &Candidates) -> (Candidates, Vec<Item>) {
        let mut kept = Candidates::default();
        let mut dropped = Vec::new();
        let lent = self.lent(candidates);
        for candidate in &candidates.messages {
            match self.cut(&candidate.message, candidate.range.clone(), &lent) {
                None => kept.messages.push(candidate.clone()),
                Some(rest) => {
                    if rest.is_empty() {
                        dropped.push(message_item(candidate));
                    }
                    kept.messages.extend(
                        rest.into_iter()
                            .map(|range| MessageCandidate { range, ..candidate.clone() }),
                    );
                }
            }
        }
        for candidate in &candidates.facts {
            if self.is_mixed(&candidate.fact) {
                dropped.push(fact_item(candidate));
            } else {
                kept.facts.push(candidate.clone());
            }
        }
        // A document is what its keeper says now: it is brought up to date, not talked over.
        kept.documents.clone_from(&candidates.documents);
        (kept, dropped)
    }

    /// What others' orders and values the user gave that the turn does not speak of.
    fn lent(&self, candidates: &Candidates) -> Vec<Lent> {
        let mut seen: HashSet<MessageId> = HashSet::new();
        let mut lent = Vec::new();
        for candidate in &candidates.messages {
            let message = &candidate.message;
            if message.role != Role::User || !seen.insert(message.id) {
                continue;
            }
            for range in borrowed(&message.content) {
                let terms = terms(message.content.get(range.clone()).unwrap_or_default());
                if !self.is_spoken_of(&terms) {
                    let (seq, session) = (message.seq, message.session.clone());
                    lent.push(Lent { message: message.id, seq, session, range, terms });
                }
            }
        }
        lent
    }

    /// Whether the turn speaks of a sentence: by two of its words, or by its only one.
    fn is_spoken_of(&self, terms: &HashSet<String>) -> bool {
        terms.intersection(&self.turn).count() >= self.turn.len().clamp(1, 2)
    }

    /// What is left of a passage, or nothing where none of it is stale.
    fn cut(
        &self,
        message: &Message,
        range: Range<usize>,
        lent: &[Lent],
    ) -> Option<Vec<Range<usize>>> {
        // Words are taken apart only of messages that a row may concern: there are many of both.
        let lower =
            if self.rows.is_empty() { String::new() } else { message.content.to_lowercase() };
        let concerns = |row: &&Row<'_>| row.may_concern(message, &lower) && row.precedes(message);
        let rows: Vec<&Row<'_>> = self.rows.iter().filter(concerns).collect();
        let lent: Vec<&Lent> = lent.iter().filter(|lent| lent.concerns(message)).collect();
        if rows.is_empty() && lent.is_empty() {
            return None;
        }
        let passage = message.content.get(range.clone())?;
        let mut rest: Vec<Range<usize>> = Vec::new();
        let mut found = false;
        let mut at = 0;
        for sentence in sentences(passage) {
            let Some(offset) = passage[at..].find(sentence.trim_end()) else { continue };
            let (start, end) = (at + offset, at + offset + sentence.trim_end().len());
            at = end;
            let place = range.start + start..range.start + end;
            let said = if rows.is_empty() { HashSet::new() } else { terms(sentence) };
            if rows.iter().any(|row| row.is_stated_by(message, sentence, &said))
                || lent.iter().any(|lent| lent.is_said_by(message, &place, sentence))
                    && !self.is_spoken_of(&terms(sentence))
            {
                found = true;
                continue;
            }
            match rest.last_mut() {
                Some(last) if passage[last.end..start].trim().is_empty() => last.end = end,
                _ => rest.push(start..end),
            }
        }
        if !found {
            return None;
        }
        // However short, a word that the turn asks about is worth it.
        let asked = |part: &Range<usize>| !terms(&passage[part.clone()]).is_disjoint(&self.turn);
        rest.retain(|part| part.len() >= LEAST_REST || asked(part));
        Some(rest.into_iter().map(|p| range.start + p.start..range.start + p.end).collect())
    }

    /// Whether the sentence of a fact also states what does not hold any more.
    pub(super) fn is_mixed(&self, fact: &Fact) -> bool {
        self.rows.iter().any(|row| row.old.fact.text == fact.text)
    }

    /// Whether a line of a summary is stale.
    pub(super) fn is_stale_line(&self, line: &SummaryLine) -> bool {
        let (speaker, said) = line.text.split_once(": ").unwrap_or(("", &line.text));
        let assistant = speaker == Role::Assistant.as_str();
        let lent = !assistant && !borrowed(said).is_empty() && !self.is_spoken_of(&terms(said));
        let words = terms(said);
        lent || self.rows.iter().any(|row| {
            if row.old.by.sources.contains(&line.source) || !row.is_before(&line.source) {
                return false;
            }
            if row.old.fact.sources.contains(&line.source) {
                return row.repeats(said, &words);
            }
            let after = row.old.fact.sources.last().is_some_and(|last| line.source > *last);
            row.states(&words) || assistant && after && row.echoes(&words)
        })
    }

    /// Whether a typed value is of what does not hold any more.
    pub(super) fn is_stale_value(&self, entity: &Entity) -> bool {
        let value = entity.value.to_lowercase();
        self.rows.iter().any(|row| {
            let retracted = row.old.by.kind == FactKind::Retraction;
            row.text.to_lowercase().contains(&value)
                && (retracted || !row.old.by.text.to_lowercase().contains(&value))
                && entity.sources.iter().all(|source| row.is_before(source))
        })
    }
}

impl Row<'_> {
    /// Whether a message is older than what holds now, which it does not say itself.
    fn precedes(&self, message: &Message) -> bool {
        let by = &self.old.by;
        (message.created_at, message.seq) < (by.observed_at, self.old.by_said)
            && !by.sources.contains(&message.id)
    }

    /// The same by ids, which are made in order of time, where a message is not at hand.
    fn is_before(&self, message: &MessageId) -> bool {
        self.old.by.sources.first().is_none_or(|first| message < first)
    }

    /// Whether a message can state the old value at all: told without taking its words apart.
    fn may_concern(&self, message: &Message, lower: &str) -> bool {
        self.old.fact.sources.contains(&message.id)
            || self.is_answered_by(message)
            || !self.longest.is_empty() && lower.contains(&self.longest)
    }

    /// Whether a message is the assistant's, right after the statement.
    fn is_answered_by(&self, message: &Message) -> bool {
        let near = |said: &u64| message.seq > *said && message.seq <= *said + ECHO;
        message.role == Role::Assistant
            && Some(&message.session) == self.old.fact.session.as_ref()
            && self.old.said.iter().any(near)
    }

    fn is_stated_by(&self, message: &Message, sentence: &str, said: &HashSet<String>) -> bool {
        if self.old.fact.sources.contains(&message.id) {
            return self.repeats(sentence, said);
        }
        self.states(said) || self.is_answered_by(message) && self.echoes(said)
    }

    /// Whether a sentence of the statement's own message is the statement.
    fn repeats(&self, sentence: &str, words: &HashSet<String>) -> bool {
        let said = fold_spaces(sentence);
        said.contains(&self.text) || self.text.contains(&said) || self.states(words)
    }

    /// Whether a sentence states the old value as such: all of it, and what it is a value of.
    fn states(&self, said: &HashSet<String>) -> bool {
        if self.value.is_empty() {
            return false;
        }
        let standing = self.old.fact.kind.is_standing();
        let telling = self.value.len() > 1
            || self.value.iter().any(|term| term.contains(|c: char| c.is_ascii_digit()));
        self.value.is_subset(said) && (standing && telling || !self.slot.is_disjoint(said))
    }

    /// Whether an answer repeats what it was just told.
    fn echoes(&self, said: &HashSet<String>) -> bool {
        let shared = said.iter().filter(|term| self.whole.contains(*term)).count();
        // One telling word of the old value is enough: what else the answer says is courtesy.
        let telling =
            |term: &String| term.chars().count() > 3 || term.contains(|c: char| c.is_ascii_digit());
        let specific = said.iter().any(|term| self.value.contains(term) && telling(term));
        let all = !self.value.is_empty() && self.value.is_subset(said);
        shared > 0 && (specific || all || 2 * shared >= said.len())
    }
}

/// The longest of some words, of equal ones the first by order.
fn longest(words: &HashSet<String>) -> String {
    let best = words.iter().max_by(|a, b| a.len().cmp(&b.len()).then_with(|| b.cmp(a)));
    best.cloned().unwrap_or_default()
}

/// Whether a turn asks for what was so once.
fn asks_about_the_past(turn: &str) -> bool {
    let lower = turn.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| match *word {
        "used" => words.get(at + 1) == Some(&"to"),
        // "What was the deadline first?", "what did I say?": of what the user said or had.
        "was" | "were" | "did" | "had" => {
            words[at + 1..].iter().take(3).any(|word| matches!(*word, "i" | "we" | "my" | "our"))
                && words.iter().any(|word| {
                    matches!(*word, "say" | "said" | "tell" | "ask" | "want" | "first" | "mention")
                })
        }
        "first" | "change" | "back" | "once" | "old" | "past" | "until" | "ago" => false,
        word => PAST.contains(&word),
    }) || [
        "at first", "in the past", "first say", "used to", "first tell", "last year", "back then",
        "did it change", "has it changed", "my old", "our old", "the old", "long ago",
    ]
    .iter()
    .any(|phrase| lower.contains(phrase))
}

fn item(kind: ItemKind, source: String, tokens: u32, score: f32) -> Item {
    Item {
        section: Section::Recall,
        kind,
        source,
        external_id: None,
        tokens,
        score: Some(score),
        outcome: Outcome::Dropped,
        reason: Reason::Superseded,
        span: None,
    }
}

fn message_item(candidate: &MessageCandidate) -> Item {
    let message = &candidate.message;
    let whole = candidate.range.len() == message.content.len();
    let kind = if whole { ItemKind::Message } else { ItemKind::Passage };
    let mut item = item(kind, format!("msg:{}", message.id), message.tokens, candidate.score);
    item.external_id.clone_from(&message.external_id);
    item
}

fn fact_item(candidate: &FactCandidate) -> Item {
    item(ItemKind::Fact, format!("fact:{}", candidate.fact.id), 0, candidate.score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_the_past_are_told() {
        for (turn, past) in [
            ("What was my budget before the change?", true),
            ("Which port did we use originally?", true),
            ("What did I say first about the venue?", true),
            ("Where did I live previously?", true),
            ("Where did we use to meet? I used to know.", true),
            ("What is the history of the deadline?", true),
            ("When is the deadline?", false),
            ("How did they build the pyramids?", false),
            ("Write a note before lunch", true),
            ("What used oil can I recycle?", false),
        ] {
            assert_eq!(asks_about_the_past(turn), past, "{turn}");
        }
    }
}
