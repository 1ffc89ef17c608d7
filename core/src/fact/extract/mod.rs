//! Facts in what a user writes, found without a model: sentence by sentence, by closed word classes
//! and the forms of a few dozen statements. What is no clear statement of the user is left out:
//! questions, hypotheses, quotations, code, and the words of others.
//!
//! Linear in the message. A message gives at most [`MAX_FACTS`] facts.

mod acts;
mod lines;
mod lists;
mod person;
mod phrase;
mod sentence;
mod statement;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;

use super::{FactKind, MAX_FACT_CHARS};
use crate::text::{clip, fold_spaces, is_question, without_fenced};
use lines::{OwnLines, list_item, sentences};
use sentence::{Sentence, Stop};
use words::Class;

/// Facts of one message at most; what states more is data.
const MAX_FACTS: usize = 20;

/// A nugget found in a message, before it has an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// Its sort.
    pub kind: FactKind,
    /// The sentence that states it, white space folded, at most [`MAX_FACT_CHARS`] characters.
    pub text: String,
    /// Whom or what it is about; `user` is the speaking user, `project` what they work on.
    pub subject: Option<String>,
    /// Which property of the subject. Only a property that has one value at a time is named, since
    /// another value of the same subject and attribute supersedes this one.
    pub attribute: Option<String>,
    /// The property's value.
    pub value: Option<String>,
    /// Tags such as `project:alfred` and `#travel`, lower case, sorted and unique.
    pub tags: Vec<String>,
}

/// What a form of statement found.
#[derive(Debug)]
struct Hit {
    kind: FactKind,
    subject: String,
    attribute: Option<String>,
    value: Option<String>,
}

impl Hit {
    fn slot(kind: FactKind, subject: &str, attribute: &str, value: &str) -> Self {
        let (attribute, value) = (Some(attribute.to_owned()), Some(fold_spaces(value)));
        Self { kind, subject: subject.to_owned(), attribute, value }
    }

    /// One that replaces none: without an attribute.
    fn open(kind: FactKind, subject: &str, value: Option<&str>) -> Self {
        Self { kind, subject: subject.to_owned(), attribute: None, value: value.map(fold_spaces) }
    }
}

/// What the user states in `content`, in order, at most 20 facts of at most 500 characters each.
/// For messages of the user only: what a model or a tool wrote is not theirs.
#[must_use]
pub fn extract(content: &str) -> Vec<Extracted> {
    let mut found = Vec::new();
    let mut in_quote = false;
    let own = without_fenced(content);
    for line in OwnLines::of(&own) {
        if line.is_empty() {
            in_quote = false;
        }
        let Some((line, open)) = list_item(line) else {
            continue;
        };
        for text in sentences(line) {
            let sentence = Sentence::read(text, &mut in_quote);
            // What follows "Translate the following:" is material, not the user's own statement.
            if hands_over(&sentence) {
                if line.ends_with(text) {
                    return found;
                }
                break;
            }
            read_sentence(&sentence, text, open, &mut found);
            if found.len() >= MAX_FACTS {
                found.truncate(MAX_FACTS);
                return found;
            }
        }
    }
    found
}

fn hands_over(s: &Sentence<'_>) -> bool {
    let edits = (0..s.len().min(24)).position(|at| s.is(at, Class::Edits));
    edits.is_some_and(|verb| (verb..s.len()).any(|at| s.stop(at) == Stop::Colon))
}

fn read_sentence(s: &Sentence<'_>, text: &str, open_task: bool, found: &mut Vec<Extracted>) {
    let mut end = s.len();
    let mut shown = text;
    let before;
    if is_question(text) {
        // "My budget is €900, what should I buy?" states something before it asks.
        let Some(question) = question_start(s) else {
            return;
        };
        end = question;
        before = s.before(question).to_owned();
        shown = &before;
    }
    let mut hits: Vec<Hit> = Vec::new();
    if open_task && end == s.len() && s.len() > 0 {
        hits.push(Hit::open(FactKind::Task, phrase::USER, None));
    }
    let hedge = (0..end).find(|at| !s.is_quoted(*at) && hedges(s, *at)).unwrap_or(usize::MAX);
    let report = (0..end).find(|at| reports(s, *at)).unwrap_or(usize::MAX);
    // "The port is 80, Tom said" is Tom's word throughout.
    let reported = report != usize::MAX && (report + 3 >= end || s.lower(report) == "according");
    let mut previous: Option<Range<usize>> = None;
    for clause in s.clauses() {
        let clause = without_openers(s, clause.start)..clause.end.min(end);
        if clause.is_empty() || hedge < clause.start || report < clause.start {
            continue;
        }
        let hit = acts::decision(s, &clause).or_else(|| acts::task(s, &clause)).or_else(|| {
            let others = reported || report < clause.end;
            if others || hedge == clause.start {
                return None;
            }
            let corrected = previous.as_ref().and_then(|old| statement::corrected(s, old, &clause));
            corrected.or_else(|| acts::link(s, &clause)).or_else(|| acts::plain(s, &clause))
        });
        hits.extend(hit);
        previous = Some(clause);
    }
    if hits.is_empty() && hedge == usize::MAX && report == usize::MAX {
        hits.extend(acts::apposition(s, end));
    }
    if hits.is_empty() {
        return;
    }
    let text = clip(&fold_spaces(shown), MAX_FACT_CHARS);
    let tags = tags(s);
    // A sentence is one fact of a kind, unless its clauses fill different slots.
    let mut seen: Vec<(FactKind, Option<String>, String)> = Vec::new();
    let mut projects = tags.iter().filter_map(|tag| tag.strip_prefix("project:"));
    let project = projects.next().filter(|_| projects.next().is_none());
    for mut hit in hits {
        // "For project Alfred, the deadline is 14 May".
        if let Some(project) = project
            && hit.attribute.is_some()
            && hit.subject == phrase::PROJECT
        {
            hit.subject = project.to_owned();
        }
        let key = match hit.attribute {
            Some(_) => (hit.kind, hit.attribute.clone(), hit.subject.clone()),
            None => (hit.kind, None, String::new()),
        };
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let fact = Extracted {
            kind: hit.kind,
            text: text.clone(),
            subject: Some(hit.subject).filter(|subject| !subject.is_empty()),
            attribute: hit.attribute,
            value: hit.value.filter(|value| !value.is_empty()),
            tags: tags.clone(),
        };
        if !found.contains(&fact) {
            found.push(fact);
        }
    }
}

/// Where a sentence that ends in a question mark begins to ask.
fn question_start(s: &Sentence<'_>) -> Option<usize> {
    if s.phrase(
        0,
        &[
            "can you remind",
            "could you remind",
            "will you remind",
            "can you please remind",
            "could you please remind",
        ],
    )
    .is_some()
    {
        return Some(s.len());
    }
    (2..s.len()).find(|at| {
        let joined = s.stop(at - 1) != Stop::None || s.is(at - 1, Class::Conjunctions);
        let asks = matches!(
            s.lower(*at),
            "what"
                | "what's"
                | "which"
                | "how"
                | "how's"
                | "where"
                | "when"
                | "who"
                | "why"
                | "can"
                | "could"
                | "any"
                | "should"
        );
        joined && asks && s.len() - at >= if s.lower(*at) == "any" { 2 } else { 3 }
    })
}

fn hedges(s: &Sentence<'_>, at: usize) -> bool {
    s.is(at, Class::Hedges)
        || s.phrase(at, &["let's say", "for example", "for instance", "in case"]).is_some()
}

fn reports(s: &Sentence<'_>, at: usize) -> bool {
    if !s.is(at, Class::Reports) || s.is_quoted(at) {
        return false;
    }
    let own = at > 0 && matches!(s.lower(at - 1), "i" | "i've" | "we" | "i'd" | "to");
    !(own && s.is(at, Class::OwnReports))
}

const OPENING_PHRASES: &[&str] = &[
    "by the way", "just so you know", "for the record", "to be clear", "as i said", "like i said",
    "as i mentioned", "in fact", "as of today", "for context", "please note that",
    "please remember that", "remember that", "note that", "keep in mind that", "scratch that",
    "i meant", "my mistake", "my bad", "first of all", "good morning", "about me",
    "to correct myself", "small correction", "quick correction", "one correction", "quick update",
    "you should know that", "fun fact", "for your information", "not anymore", "i'm sorry",
    "excuse me", "of course",
];

/// The first word of a clause that is part of what it states.
fn without_openers(s: &Sentence<'_>, mut at: usize) -> usize {
    loop {
        let comma = s.stop(at) != Stop::None;
        let single = s.is(at, Class::Openers)
            || comma && s.is(at, Class::SpokenOpeners)
            || comma && matches!(s.lower(at), "remember" | "reminder")
            || s.lower(at) == "now" && s.is(at + 1, Class::ClauseStarts);
        let skipped = if single { Some(1) } else { s.phrase(at, OPENING_PHRASES) };
        let Some(skipped) = skipped else { return at };
        at += skipped;
    }
}

/// Project and hash tags of a sentence.
fn tags(s: &Sentence<'_>) -> Vec<String> {
    let mut tags = Vec::new();
    for at in 0..s.len() {
        let word = s.lower(at);
        if let Some(tag) = word.strip_prefix('#')
            && tag.starts_with(char::is_alphabetic)
            && tag.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        {
            tags.push(format!("#{tag}"));
        }
        if word != "project" || s.is_quoted(at) {
            continue;
        }
        let name = if s.is_name(at + 1)
            && s.stop(at) == Stop::None
            && !s.is(at + 1, Class::ProjectNouns)
        {
            let end = (at + 1..at + 4).find(|at| !s.is_name(*at)).unwrap_or(at + 4);
            let comma = (at + 1..end).find(|at| s.stop(*at) != Stop::None).map_or(end, |at| at + 1);
            at + 1..comma
        } else {
            let start = (at.saturating_sub(3)..at)
                .rev()
                .take_while(|at| s.is_name(*at) && s.stop(*at) == Stop::None)
                .last();
            let Some(start) = start.filter(|start| {
                *start > 0 && matches!(s.lower(start - 1), "the" | "our" | "my" | "a")
            }) else {
                continue;
            };
            start..at
        };
        let name = s.slice(name).to_lowercase();
        let name = name.strip_suffix("'s").unwrap_or(&name);
        tags.push(format!("project:{}", fold_spaces(name)));
    }
    tags.sort_unstable();
    tags.dedup();
    tags
}
