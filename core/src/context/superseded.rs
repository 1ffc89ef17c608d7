//! Superseded values in what is recalled. A sentence that states one stays, with what replaced it beside the value:
//! `7:40 (corrected on 3 March: 8:15)`. It is left out where the value is all that it says, and where the value was
//! taken back; a question about the past gets it then, too. What was rejected directly is left out of everything,
//! whenever and by whom it is said again.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

use super::account::{Item, ItemKind, Outcome, Reason, Section};
use super::recall::{Candidates, FactCandidate, Mark, MessageCandidate};
use super::source::Source;
use crate::access::Actor;
use crate::entity::Entity;
use crate::fact::{Fact, FactKind, SlotKey, SupersededFact, looks, place};
use crate::ids::MessageId;
use crate::session::{Message, Role};
use crate::summary::SummaryLine;
use crate::text::{clip, fold_spaces, query_terms, sentence_ranges, sentences};
use crate::time::Timestamp;

/// Superseded facts read for one turn: those of the newest changes.
pub(crate) const SUPERSEDED_READ: usize = 96;
/// As many whose value was rejected, beside them.
pub(crate) const REJECTED_READ: usize = 512;
/// Messages after a statement that may echo it.
const ECHO: u64 = 2;
/// A rest of a passage that is shorter is not worth a line.
const LEAST_REST: usize = 12;
/// A shorter statement is found in other words by chance, where nothing but its letters is compared.
const LEAST_DISGUISED: usize = 8;
/// From here on most scripts have no spaces between words.
const UNSPACED: char = '\u{2e80}';
/// Most words that the letters of a rejected value are spread over.
const MOST_SPREAD: usize = 64;
/// Longest new value that is shown beside an old one.
const MAX_NEW_CHARS: usize = 80;

/// Stemmed words beside a value that say nothing more.
const IDLE: &[&str] = &[
    "live", "work", "name", "call", "move", "answer", "repli", "reply", "respond", "pleas",
    "alway", "never", "hi", "hello", "now", "futur", "write", "use", "prefer", "like", "favourit",
    "favorit", "actual", "note", "got", "ok", "okay", "thank", "noted", "forward", "go",
];

/// Words that ask about what was before.
const PAST: &[&str] = &[
    "before", "previously", "originally", "original", "formerly", "former", "earlier", "initially",
    "initial", "history", "past", "old", "changed", "change", "used", "first", "was", "were",
    "did", "previous", "ago", "once", "had", "back", "until",
];

const MONTHS: [&str; 12] = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
];

/// What a turn must not be told as if it held.
pub(crate) struct Superseded<'a> {
    rows: Vec<Row<'a>>,
    turn: HashSet<String>,
    /// Whether the turn asks about the past: then nothing is left out.
    of_the_past: bool,
}

struct Row<'a> {
    old: &'a SupersededFact,
    /// The old value, or the whole statement where it has none.
    value: String,
    /// What holds instead; `None` where it was taken back.
    new: Option<String>,
    /// Whether what states it is left out: it was taken back, or rejected directly.
    hides: bool,
    /// Whether it was rejected directly: nobody but its user brings it back, and only directly.
    rejected: bool,
    /// What the rejected value looks like, where that is enough to be compared by.
    looks: String,
    /// What the words look like that it is about: one of them has to stand beside its look-alike. A whole statement
    /// needs none.
    looks_about: HashSet<String>,
    /// Words of what holds instead.
    new_words: HashSet<String>,
    /// Words of the old value that the new one does not have.
    words: HashSet<String>,
    /// The longest of them: what does not have it does not state the value in other words.
    longest: String,
    /// Words of the rest of the statement and of what it is about.
    about: HashSet<String>,
    /// Words of the value and of its attribute: a sentence of nothing else says nothing else.
    idle: HashSet<String>,
    slot: OnceCell<Option<SlotKey>>,
}

/// A sentence, whose words are taken apart once however many rows look at it.
struct Sentence<'s> {
    text: &'s str,
    terms: OnceCell<HashSet<String>>,
    looks: OnceCell<Vec<String>>,
}

impl<'s> Sentence<'s> {
    fn of(text: &'s str) -> Self {
        Self { text, terms: OnceCell::new(), looks: OnceCell::new() }
    }

    fn terms(&self) -> &HashSet<String> {
        self.terms.get_or_init(|| terms(self.text))
    }

    /// What its words look like.
    fn looks(&self) -> &[String] {
        self.looks.get_or_init(|| looks_of_words(self.text))
    }
}

/// What becomes of a sentence.
enum Fate {
    Stays,
    Marked(Mark),
    LeftOut,
}

fn looks_of_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.map(looks).filter(|word| !word.is_empty()).collect()
}

/// Whether a value stands among words, however it is spaced: neighbours that together look like it.
fn is_spread_over(words: &[String], value: &str) -> bool {
    if value.chars().any(|c| c >= UNSPACED) {
        return words.concat().contains(value);
    }
    (0..words.len()).any(|from| {
        let mut rest = value;
        for word in words[from..].iter().take(MOST_SPREAD) {
            match rest.strip_prefix(word.as_str()) {
                Some("") => return true,
                Some(left) => rest = left,
                None => return false,
            }
        }
        false
    })
}

fn terms(text: &str) -> HashSet<String> {
    query_terms(text).into_iter().collect()
}

impl<'a> Superseded<'a> {
    pub(crate) fn of(turn: &str, superseded: &'a [SupersededFact]) -> Self {
        // What a model inferred marks nothing that was said, unless the user rejected it.
        let said = |old: &&SupersededFact| {
            let inferred = [old.fact.actor, old.by.actor].contains(&Actor::Extractor);
            old.fact.rejected || !inferred
        };
        let rows = superseded.iter().filter(said).map(Row::of).collect();
        Self { rows, turn: terms(turn), of_the_past: asks_about_the_past(turn) }
    }

    /// The candidates with their marks and without what is left out, and the account of what was left out whole.
    pub(crate) fn without(&self, candidates: &Candidates) -> (Candidates, Vec<Item>) {
        let mut kept = Candidates::default();
        let mut dropped = Vec::new();
        for candidate in &candidates.messages {
            match self.marked(candidate) {
                None => kept.messages.push(candidate.clone()),
                Some(rest) => {
                    if rest.is_empty() {
                        dropped.push(message_item(candidate));
                    }
                    kept.messages.extend(rest);
                }
            }
        }
        for candidate in &candidates.facts {
            match self.marked_fact(&candidate.fact) {
                Some(fact) => {
                    let fact = fact.into_owned();
                    kept.facts.push(FactCandidate { fact, score: candidate.score });
                }
                None => dropped.push(fact_item(candidate)),
            }
        }
        // A document is what its keeper says now: it is brought up to date, not talked over.
        kept.documents.clone_from(&candidates.documents);
        (kept, dropped)
    }

    /// What stays of a passage, with its marks, or `None` where it stays as it is.
    fn marked(&self, candidate: &MessageCandidate) -> Option<Vec<MessageCandidate>> {
        let (message, range) = (&candidate.message, candidate.range.clone());
        let passage = message.content.get(range.clone())?;
        // Words are taken apart only of passages that a row may concern: there are many of both.
        let hides = self.rows.iter().any(|row| row.hides);
        let lower = if hides { passage.to_lowercase() } else { String::new() };
        let whole = Sentence::of(passage);
        let concerns =
            |row: &&Row<'_>| row.applies(message) && row.may_concern(message, &whole, &lower);
        let rows: Vec<&Row<'_>> = self.rows.iter().filter(concerns).collect();
        if rows.is_empty() {
            return None;
        }
        let mut rest: Vec<Range<usize>> = Vec::new();
        let mut marks: Vec<Mark> = Vec::new();
        let mut left_out = false;
        for Range { start, end } in sentence_ranges(passage) {
            let sentence = Sentence::of(&passage[start..end]);
            let mut fate = Fate::Stays;
            for row in &rows {
                match row.fate(message, &sentence, &rows, self.of_the_past) {
                    Fate::Stays => {}
                    Fate::Marked(mark) => {
                        let at = range.start + start + mark.at;
                        if marks.iter().all(|held| held.at != at) {
                            marks.push(Mark { at, text: mark.text });
                        }
                    }
                    Fate::LeftOut => {
                        fate = Fate::LeftOut;
                        break;
                    }
                }
            }
            if matches!(fate, Fate::LeftOut) {
                left_out = true;
                continue;
            }
            match rest.last_mut() {
                Some(last) if passage[last.end..start].trim().is_empty() => last.end = end,
                _ => rest.push(start..end),
            }
        }
        marks.sort_by_key(|mark| mark.at);
        if !left_out {
            let candidate = MessageCandidate { marks, ..candidate.clone() };
            return Some(vec![candidate]);
        }
        // However short, a word that the turn asks about is worth it.
        let asked = |part: &Range<usize>| !terms(&passage[part.clone()]).is_disjoint(&self.turn);
        rest.retain(|part| part.len() >= LEAST_REST || asked(part));
        let part = |part: Range<usize>| {
            let range = range.start + part.start..range.start + part.end;
            let within = |mark: &&Mark| range.start < mark.at && mark.at <= range.end;
            let marks = marks.iter().filter(within).cloned().collect();
            MessageCandidate { range: range.clone(), marks, ..candidate.clone() }
        };
        Some(rest.into_iter().map(part).collect())
    }

    /// A fact whose sentence may also state what does not hold any more: marked, or `None` where it is left out.
    pub(super) fn marked_fact<'f>(&self, fact: &'f Fact) -> Option<Cow<'f, Fact>> {
        let mut marked = Cow::Borrowed(fact);
        let sentence = Sentence::of(&fact.text);
        let restates = |row: &&Row<'_>| {
            row.old.fact.text == fact.text || row.rejected && row.is_rejected_in(&sentence)
        };
        for row in self.rows.iter().filter(restates) {
            if row.rejected || row.hides && !self.of_the_past {
                return None;
            }
            if let Some(at) = place(&marked.text, &row.value) {
                let mark = row.mark(fact.observed_at);
                marked.to_mut().text.insert_str(at + row.value.len(), &mark);
            }
        }
        Some(marked)
    }

    /// A line of a summary: marked, or `None` where it is left out.
    pub(super) fn marked_line<'l>(&self, line: &'l SummaryLine) -> Option<Cow<'l, str>> {
        let (speaker, said) = line.text.split_once(": ").unwrap_or(("", &line.text));
        let words = terms(said);
        let sentence = Sentence::of(said);
        let mut text = Cow::Borrowed(line.text.as_str());
        for row in &self.rows {
            let by = &row.old.by.sources;
            if by.contains(&line.source) || !row.rejected && !row.is_before(&line.source) {
                continue;
            }
            let own = row.old.fact.sources.contains(&line.source);
            let after = row.old.fact.sources.last().is_some_and(|last| line.source > *last);
            let echo = speaker == Role::Assistant.as_str() && after && row.echoes(&words);
            if !own && !echo && !row.states(&words) && !row.is_disguised_in(&sentence) {
                continue;
            }
            if row.rejected || !self.of_the_past && (row.hides || row.is_all_of(&words)) {
                return None;
            }
            if let Some(at) = place(&text, &row.value) {
                let at = at + row.value.len();
                text.to_mut().insert_str(at, &row.mark(row.old.fact.observed_at));
            }
        }
        Some(text)
    }

    /// Whether a typed value does not hold any more: it says nothing else.
    pub(super) fn is_superseded_value(&self, entity: &Entity) -> bool {
        let value = entity.value.to_lowercase();
        self.rows.iter().any(|row| {
            let old = row.value.to_lowercase();
            let new = row.new.as_deref().unwrap_or_default().to_lowercase();
            (old == value || row.hides && old.contains(&value))
                && !new.contains(&value)
                && entity.sources.iter().all(|source| row.is_before(source))
        })
    }
}

impl<'a> Row<'a> {
    fn of(old: &'a SupersededFact) -> Self {
        let by = &old.by;
        let retracted = by.kind == FactKind::Retraction;
        let new = by.value.as_deref().unwrap_or(&by.text);
        let new = (!retracted).then(|| clip(&fold_spaces(new), MAX_NEW_CHARS));
        let value = old.fact.value.clone().unwrap_or_else(|| old.fact.text.clone());
        let fact = &old.fact;
        let rejected = fact.rejected;
        let hides = retracted || by.is_told_directly();
        let new_words = new.as_deref().map(terms).unwrap_or_default();
        let mut alike = if rejected { looks(&value) } else { String::new() };
        let mut looks_about = HashSet::new();
        if fact.value.is_some() && rejected {
            let attribute = fact.attribute.as_deref().unwrap_or_default();
            let subject = fact.subject.as_deref().filter(|subject| *subject != "user");
            let rest = fact.text.replace(&value, " ");
            for part in [&rest, attribute, subject.unwrap_or_default()] {
                let words = part.split(|c: char| !c.is_alphanumeric());
                looks_about.extend(words.filter(|word| !terms(word).is_empty()).map(looks));
            }
        } else if alike.len() < LEAST_DISGUISED {
            alike.clear();
        }
        let mut words = terms(&value);
        words.retain(|term| !new_words.contains(term));
        if fact.value.is_none() {
            // Of a whole statement, what it is told with says nothing.
            words.retain(|term| !IDLE.contains(&term.as_str()));
        }
        let subject = fact.subject.as_deref().filter(|subject| *subject != "user");
        let mut about = terms(&fact.text);
        about.extend(terms(fact.attribute.as_deref().unwrap_or_default()));
        about.extend(terms(subject.unwrap_or_default()));
        about.retain(|term| !words.contains(term) && !IDLE.contains(&term.as_str()));
        let longest = words.iter().max_by_key(|word| (word.len(), word.as_str()));
        let longest = longest.cloned().unwrap_or_default();
        let attribute = fact.attribute.as_deref().filter(|attribute| !attribute.contains('…'));
        let mut idle = terms(&value);
        idle.extend(terms(attribute.unwrap_or_default()));
        let slot = OnceCell::new();
        Self {
            old,
            value,
            new,
            hides,
            rejected,
            looks: alike,
            looks_about,
            new_words,
            words,
            longest,
            about,
            idle,
            slot,
        }
    }

    fn slot(&self) -> Option<SlotKey> {
        *self.slot.get_or_init(|| self.old.fact.slot())
    }

    /// Whether what a message states of it is not so: it is the statement that was superseded, or older than what holds
    /// now, or no word of the user, and does not say itself what holds. What was rejected directly is not so whoever
    /// says it.
    fn applies(&self, message: &Message) -> bool {
        let by = &self.old.by;
        let older = self.old.fact.sources.contains(&message.id)
            || (message.stated_at(), message.seq) < (by.observed_at, self.old.by_said);
        let outranked = by.actor.decides() && !message.actor.decides();
        let repeated = outranked || self.hides && message.role != Role::User;
        (older || repeated || self.rejected) && !by.sources.contains(&message.id)
    }

    /// The same by ids, which are made in order of time, where a message is not at hand.
    fn is_before(&self, message: &MessageId) -> bool {
        self.old.by.sources.first().is_none_or(|first| message < first)
    }

    /// Whether a passage can state the old value at all; `lower` is the passage in small letters, where a row
    /// hides.
    fn may_concern(&self, message: &Message, passage: &Sentence<'_>, lower: &str) -> bool {
        self.old.fact.sources.contains(&message.id)
            || self.is_answered_by(message)
            || place(passage.text, &self.value).is_some()
            || self.hides && !self.longest.is_empty() && lower.contains(&self.longest)
            || self.is_disguised_in(passage)
    }

    /// Whether the rejected value stands there in other case, spacing, punctuation or look-alike letters.
    fn is_disguised_in(&self, passage: &Sentence<'_>) -> bool {
        !self.looks.is_empty()
            && is_spread_over(passage.looks(), &self.looks)
            && (self.old.fact.value.is_none()
                || passage.looks().iter().any(|word| self.looks_about.contains(word))
                || !self.about.is_disjoint(passage.terms()))
    }

    /// Whether a text states the rejected value, and does not also say what holds instead.
    fn is_rejected_in(&self, sentence: &Sentence<'_>) -> bool {
        let stated = self.states(sentence.terms()) || self.is_disguised_in(sentence);
        stated && !self.says_new(sentence.terms())
    }

    fn says_new(&self, said: &HashSet<String>) -> bool {
        !self.new_words.is_empty() && self.new_words.is_subset(said)
    }

    /// Whether a message is the assistant's, right after the statement.
    fn is_answered_by(&self, message: &Message) -> bool {
        let near = |said: &u64| message.seq > *said && message.seq <= *said + ECHO;
        message.role == Role::Assistant
            && Some(&message.session) == self.old.fact.session.as_ref()
            && self.old.said.iter().any(near)
    }

    fn fate(
        &self,
        message: &Message,
        sentence: &Sentence<'_>,
        rows: &[&Row<'_>],
        of_the_past: bool,
    ) -> Fate {
        let own = self.old.fact.sources.contains(&message.id);
        let stated = place(sentence.text, &self.value);
        if !self.hides && stated.is_none() && !self.old.fact.kind.is_standing() {
            return Fate::Stays;
        }
        let said = sentence.terms();
        let states = if own {
            stated.is_some() || self.repeats(sentence.text, said)
        } else {
            // A correction that was corrected names the first value to say that it does not hold.
            let corrects = rows.iter().any(|row| {
                row.slot() == self.slot()
                    && row.slot().is_some()
                    && row.old.fact.sources.contains(&message.id)
            });
            !corrects
                && (self.states(said)
                    || self.is_disguised_in(sentence)
                    || self.is_answered_by(message) && self.echoes(said))
        };
        if !states {
            return Fate::Stays;
        }
        let hides = self.hides || stated.is_none() || self.is_all_of(said);
        match stated {
            // Who says both says which of them holds.
            Some(_) if self.hides && !own && self.says_new(said) => Fate::Stays,
            _ if hides && (self.rejected || !of_the_past) => Fate::LeftOut,
            Some(at) => {
                let text = self.mark(message.stated_at());
                Fate::Marked(Mark { at: at + self.value.len(), text })
            }
            None => Fate::Stays,
        }
    }

    /// What is shown behind the old value, stated at `said_at`.
    fn mark(&self, said_at: Timestamp) -> String {
        let at = self.old.by.observed_at;
        let how = if self.new.is_some() { "corrected" } else { "taken back" };
        let new = self.new.as_ref().map_or_else(String::new, |new| format!(": {new}"));
        let day = at.day_in_words();
        if day == said_at.day_in_words() {
            return format!(" (said at {}, {how} at {}{new})", clock(said_at), clock(at));
        }
        let same_year = at.date().0 == said_at.date().0;
        let day = if same_year { day.rsplit_once(' ').map_or(&*day, |(day, _)| day) } else { &day };
        format!(" ({how} on {day}{new})")
    }

    /// Whether a sentence of the statement's own message is the statement.
    fn repeats(&self, sentence: &str, words: &HashSet<String>) -> bool {
        let said = fold_spaces(sentence);
        let text = fold_spaces(&self.old.fact.text);
        said.contains(&text) || text.contains(&said) || self.states(words)
    }

    /// Whether a sentence states the old value as such: all of it, and something that it is about.
    fn states(&self, said: &HashSet<String>) -> bool {
        let telling = self.words.len() > 1
            || self.words.iter().any(|term| term.contains(|c: char| c.is_ascii_digit()));
        let standing = self.old.fact.kind.is_standing() || self.old.fact.value.is_none();
        !self.words.is_empty()
            && self.words.is_subset(said)
            && (standing && telling || !self.about.is_disjoint(said))
    }

    /// Whether a sentence says nothing but the value.
    fn is_all_of(&self, said: &HashSet<String>) -> bool {
        said.iter().all(|term| self.idle.contains(term) || IDLE.contains(&term.as_str()))
    }

    /// Whether an answer repeats what it was just told.
    fn echoes(&self, said: &HashSet<String>) -> bool {
        let telling =
            |term: &String| term.chars().count() > 3 || term.contains(|c: char| c.is_ascii_digit());
        let specific = said.iter().any(|term| self.words.contains(term) && telling(term));
        let all = !self.words.is_empty() && self.words.is_subset(said);
        specific || all
    }
}

/// The time of day, to the minute.
fn clock(at: Timestamp) -> String {
    let text = at.to_rfc3339();
    text.get(11..16).unwrap_or_default().to_owned()
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
        "use" => words.get(at + 1) == Some(&"to") && words.contains(&"did"),
        // "Did I ever live in Oslo?", "where was I in January?"
        "ever" => words[..at].iter().any(|word| matches!(*word, "did" | "have" | "had")),
        "in" => {
            let of_then = |word: &&str| {
                MONTHS.contains(word) || word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit())
            };
            words.get(at + 1).is_some_and(of_then)
                && words.iter().any(|word| matches!(*word, "did" | "was" | "were" | "had"))
        }
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

/// What a text states of which the user rejected it, and which does not hold again.
pub(crate) fn states_rejected<'s>(
    text: &str,
    superseded: &'s [SupersededFact],
) -> Option<&'s Fact> {
    states(text, superseded, |old| {
        old.fact.rejected || old.by.actor.decides() && old.by.kind == FactKind::Retraction
    })
}

/// The same, also of what the user corrected in a message, unless it is told of the past. What a model forgot is not
/// the user's word.
pub(crate) fn states_corrected<'s>(
    text: &str,
    superseded: &'s [SupersededFact],
) -> Option<&'s Fact> {
    states(text, superseded, |old| {
        old.ended_by != Actor::Model && (old.fact.rejected || old.ended_by.decides())
    })
}

fn states<'s>(
    text: &str,
    superseded: &'s [SupersededFact],
    counts: impl Fn(&SupersededFact) -> bool,
) -> Option<&'s Fact> {
    let rows: Vec<Row<'s>> = superseded.iter().filter(|old| counts(old)).map(Row::of).collect();
    sentences(text).into_iter().find_map(|sentence| {
        let of_the_past = asks_about_the_past(sentence);
        let sentence = Sentence::of(sentence);
        let stated = rows.iter().find(|row| {
            if of_the_past && !row.rejected && !row.hides {
                return false;
            }
            let exact = row.old.fact.value.is_some() && place(sentence.text, &row.value).is_some();
            let about = !row.about.is_disjoint(sentence.terms());
            row.is_rejected_in(&sentence) || exact && about && !row.says_new(sentence.terms())
        });
        stated.map(|row| &row.old.fact)
    })
}

fn item(kind: ItemKind, source: Source, tokens: u32, score: f32) -> Item {
    Item {
        section: Section::Recall,
        kind,
        source,
        external_id: None,
        session: None,
        at: None,
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
    let mut item = item(kind, Source::Message(message.id), message.tokens, candidate.score);
    item.external_id.clone_from(&message.external_id);
    item.at = Some(message.created_at);
    item.session = Some(message.session.clone());
    item
}

fn fact_item(candidate: &FactCandidate) -> Item {
    let mut item = item(ItemKind::Fact, Source::Fact(candidate.fact.id), 0, candidate.score);
    item.at = Some(candidate.fact.observed_at);
    item.session.clone_from(&candidate.fact.session);
    item
}

#[cfg(test)]
#[path = "superseded_tests.rs"]
mod tests;
