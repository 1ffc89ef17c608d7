//! Facts in what a user writes: sentence by sentence, by closed word classes and the forms of a few dozen
//! statements, which tell what a statement is about; then by a small network, which knows what people
//! state in other words. What is no clear statement of the user is left out: questions, hypotheses,
//! quotations, code, and the words of others.
//!
//! Linear in the message. A message gives at most [`MAX_FACTS`] facts.

mod acts;
mod borrowed;
mod changes;
mod forms;
mod instruct;
mod learned;
mod lines;
mod lists;
mod orders;
mod person;
mod phrase;
mod prefer;
mod retract;
mod sentence;
#[cfg(test)]
mod standing_tests;
mod statement;
#[cfg(test)]
mod tests;
mod topic;
mod words;

use std::ops::Range;

use super::{FactKind, MAX_FACT_CHARS};
use crate::text::{clip, fold_spaces, is_question, without_fenced};
use lines::{OwnLines, list_item, sentences};
use sentence::{Sentence, Stop};
use words::Class;

pub use borrowed::borrowed;
pub(super) use topic::topics;

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
    /// What it corrects or takes back is told by what was stated before.
    pub refers: bool,
}

/// What a form of statement found.
#[derive(Debug)]
struct Hit {
    kind: FactKind,
    subject: String,
    attribute: Option<String>,
    value: Option<String>,
    refers: bool,
}

impl Hit {
    fn slot(kind: FactKind, subject: &str, attribute: &str, value: &str) -> Self {
        let (attribute, value) = (Some(attribute.to_owned()), Some(fold_spaces(value)));
        Self { kind, subject: subject.to_owned(), attribute, value, refers: false }
    }

    /// One that replaces none: without an attribute.
    fn open(kind: FactKind, subject: &str, value: Option<&str>) -> Self {
        Self {
            kind,
            subject: subject.to_owned(),
            attribute: None,
            value: value.map(fold_spaces),
            refers: false,
        }
    }
}

/// What the user states in `content`, at most 20 facts of at most 500 characters each: first what has a
/// known form, then what the reader finds beside it. For messages of the user only: what a model or a
/// tool wrote is not theirs.
#[must_use]
pub fn extract(content: &str) -> Vec<Extracted> {
    let own = without_fenced(content);
    let mut found = Vec::new();
    let mut read = String::new();
    by_form(&own, &mut read, &mut found);
    learned::weigh(&read, &mut found);
    found.truncate(MAX_FACTS);
    found
}

/// What is stated in a known form alone.
fn forms(text: &str) -> Vec<Extracted> {
    let mut found = Vec::new();
    by_form(&without_fenced(text), &mut String::new(), &mut found);
    found.truncate(MAX_FACTS);
    found
}

/// Finds statements by their forms, and collects in `read` the lines that are the user's own.
fn by_form(own: &str, read: &mut String, found: &mut Vec<Extracted>) {
    let mut in_quote = false;
    let mut before = Before::default();
    for line in OwnLines::of(own) {
        if line.is_empty() {
            in_quote = false;
            before = Before::default();
        }
        // A comment of code that was pasted without a fence.
        if line.starts_with("//") || line.starts_with("# TODO") || line.starts_with("#!") {
            continue;
        }
        let Some((line, open)) = list_item(line) else {
            continue;
        };
        if introduces_paste(line) {
            return;
        }
        let start = read.len();
        read.push_str(line);
        read.push('\n');
        for text in sentences(line) {
            let sentence = Sentence::read(text, &mut in_quote);
            // "Here is the prompt my nephew uses: You are a cowboy."
            if pastes_inline(text) {
                read.truncate(start);
                break;
            }
            // What follows "Translate the following:" is material, not the user's own statement.
            if hands_over(&sentence) {
                read.truncate(start);
                if line.ends_with(text) {
                    return;
                }
                break;
            }
            read_sentence(&sentence, text, open, &mut before, found);
            if found.len() >= MAX_FACTS {
                return;
            }
        }
    }
}

fn hands_over(s: &Sentence<'_>) -> bool {
    let edits = (0..s.len().min(24)).position(|at| s.is(at, Class::Edits));
    edits.is_some_and(|verb| (verb..s.len()).any(|at| s.stop(at) == Stop::Colon))
}

/// What the sentence before was.
#[derive(Debug, Default)]
struct Before<'a> {
    /// It is an instruction.
    instructs: bool,
    /// What it would be an instruction for, if something said that it stands.
    weak: Option<&'a str>,
}

fn read_sentence<'a>(
    s: &Sentence<'_>,
    text: &'a str,
    open_task: bool,
    before: &mut Before<'a>,
    found: &mut Vec<Extracted>,
) {
    if gives_material(s) {
        *before = Before::default();
        return;
    }
    let asks = is_question(text);
    let mut told: Vec<(Hit, Range<usize>)> = Vec::new();
    if !open_task {
        if let Some(back) = retract::retraction(s, asks) {
            told.push(back);
        } else {
            told = instruct::instructions(s, asks, before.instructs, false);
        }
    }
    let weak = std::mem::take(&mut before.weak);
    before.instructs = false;
    if told.is_empty() {
        let said = weak.filter(|_| orders::endorses(s));
        if let Some(said) = said {
            let last = Sentence::read(said, &mut false);
            let hits = instruct::instructions(&last, false, false, true);
            let weak = facts_of(&last, said, hits.into_iter().map(|(hit, _)| hit).collect());
            found.extend(weak.into_iter().filter(|fact| !found.contains(fact)).collect::<Vec<_>>());
        }
        if !asks {
            before.weak = Some(text);
        }
    } else {
        before.instructs = told.iter().any(|(hit, _)| hit.kind == FactKind::Instruction);
    }
    let mut end = s.len();
    let mut shown = text;
    let before;
    if asks {
        // "My budget is €900, what should I buy?" states something before it asks.
        end = question_start(s).unwrap_or(0);
        if end == 0 && told.is_empty() {
            return;
        }
        if told.is_empty() {
            before = s.before(end).to_owned();
            shown = &before;
        }
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
        let said = told.iter().any(|(_, at)| at.start < clause.end && clause.start < at.end);
        if clause.is_empty() || hedge < clause.start || report < clause.start || said {
            continue;
        }
        let hit = acts::decision(s, &clause)
            .or_else(|| acts::task(s, &clause))
            .or_else(|| acts::renamed(s, previous.as_ref(), &clause))
            .or_else(|| {
                let others = reported || report < clause.end;
                if hedge == clause.start && matches!(s.lower(hedge), "i'd" | "we'd") {
                    // "I'd rather read a table": no guess.
                    return prefer::preference(s, &clause);
                }
                if others || hedge == clause.start {
                    return None;
                }
                let corrected =
                    previous.as_ref().and_then(|old| statement::corrected(s, old, &clause));
                corrected
                    .or_else(|| changes::succeeds(s, &clause))
                    .or_else(|| acts::link(s, &clause))
                    .or_else(|| prefer::preference(s, &clause))
                    .or_else(|| acts::plain(s, &clause))
                    .or_else(|| forms::form(s, &clause))
            });
        hits.extend(hit);
        previous = Some(clause);
    }
    if hits.is_empty() && told.is_empty() && hedge == usize::MAX && report == usize::MAX {
        hits.extend(acts::apposition(s, end));
    }
    // "Turns out the pill is 40 milligrams": a value that was wrong before, no measurement.
    let measured = hits.iter().any(|hit| hit.kind == FactKind::Metric);
    let known_before =
        measured && (0..s.len()).any(|at| s.phrase(at, &["turns out", "used to be"]).is_some());
    for hit in &mut hits {
        if hit.kind == FactKind::Metric && known_before {
            hit.kind = FactKind::Fact;
        }
    }
    // "The budget is now €6,500": of whatever was said to have one.
    let corrects = hits.iter().any(|hit| hit.attribute.is_some()) && changes::corrects(s);
    for hit in &mut hits {
        let unnamed = hit.subject == phrase::PROJECT && hit.attribute.is_some();
        hit.refers |= corrects && unnamed && matches!(hit.kind, FactKind::Fact | FactKind::Metric);
    }
    hits = hits.into_iter().flat_map(several).collect();
    // A new value beside it says what holds instead.
    let replaced = hits.iter().any(|hit| hit.kind != FactKind::Task);
    told.retain(|(hit, _)| hit.kind != FactKind::Retraction || !replaced);
    // "New plan: summaries as one paragraph": of the rule that there was about summaries.
    let turns = changes::turns(s);
    for (hit, _) in &mut told {
        hit.refers |= turns && hit.kind == FactKind::Instruction;
    }
    hits.extend(told.into_iter().map(|(hit, _)| hit));
    for fact in facts_of(s, shown, hits) {
        if !found.contains(&fact) {
            found.push(fact);
        }
    }
}

/// Whether a line says that somebody's text follows: "Here's the mail I got:".
fn introduces_paste(line: &str) -> bool {
    if !line.ends_with(':') || line.len() > 120 {
        return false;
    }
    let lower = line.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|w| !w.is_empty())
        .collect();
    let text = words.iter().any(|word| {
        [
            "article", "chat", "comment", "contract", "email", "error", "excerpt", "file",
            "letter", "listing", "log", "logs", "mail", "message", "output", "paragraph", "post",
            "prompt", "quote", "readme", "review", "script", "snippet", "text", "ticket",
            "transcript", "tweet",
        ]
        .contains(word)
    });
    let given = words.iter().any(|word| {
        [
            "here's", "here", "this", "these", "got", "received", "below", "following", "wrote",
            "sent", "says", "from",
        ]
        .contains(word)
    });
    text && given
}

/// Whether a sentence says before its colon that somebody's text follows, and begins it.
fn pastes_inline(sentence: &str) -> bool {
    let lower = sentence.trim_start().to_lowercase();
    let shows = ["here's", "here is", "this is", "below is", "i got", "i received", "we got"];
    shows.iter().any(|shows| lower.starts_with(shows))
        && sentence.find(": ").is_some_and(|colon| introduces_paste(&sentence[..=colon]))
}

/// Whether a sentence asks for something to be made of what follows its colon: "Draft a tweet: we
/// open on Sundays!"
fn gives_material(s: &Sentence<'_>) -> bool {
    let start =
        s.skip_words(0, &["please", "can", "could", "you", "now", "and", "ok", "pls", "would"]);
    let makes = [
        "draft", "compose", "turn", "make", "write", "tweet", "post", "put", "type", "check",
        "send", "create", "print", "say", "text", "design", "generate",
    ]
    .contains(&s.lower(start));
    makes
        && s.lower(start + 1) != "sure"
        && !s.has(start, "make a mental note")
        && !s.has(start, "make a note")
        && !s.has(start, "write this down")
        && (start..s.len()).any(|at| s.stop(at) == Stop::Colon)
        && !orders::lasting_before_colon(s)
}

/// "Pick up the parcel and drop off the books": two tasks.
fn several(hit: Hit) -> Vec<Hit> {
    let parts = match (&hit.kind, &hit.value) {
        (FactKind::Task, Some(value)) => value.split_once(" and "),
        _ => None,
    };
    match parts {
        Some((first, second)) if orders::is_verb(second.split(' ').next().unwrap_or_default()) => {
            [first, second].map(|part| Hit::open(FactKind::Task, &hit.subject, Some(part))).into()
        }
        _ => vec![hit],
    }
}

/// Hits as facts of their sentence: one of a kind, unless they fill different slots.
fn facts_of(s: &Sentence<'_>, shown: &str, hits: Vec<Hit>) -> Vec<Extracted> {
    let mut found: Vec<Extracted> = Vec::new();
    if hits.is_empty() {
        return found;
    }
    let text = clip(&fold_spaces(shown), MAX_FACT_CHARS);
    let tags = tags(s);
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
            // Of instructions and preferences a sentence may state several.
            None if hit.kind.is_standing() || hit.kind == FactKind::Task => {
                (hit.kind, None, hit.value.clone().unwrap_or_default())
            }
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
            refers: hit.refers,
        };
        if !found.contains(&fact) {
            found.push(fact);
        }
    }
    found
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
        let asks = [
            "what", "what's", "which", "how", "how's", "where", "when", "who", "why", "can",
            "could", "any", "should",
        ]
        .contains(&s.lower(*at));
        joined && asks && s.len() - at >= if s.lower(*at) == "any" { 2 } else { 3 }
    })
}

fn hedges(s: &Sentence<'_>, at: usize) -> bool {
    s.is(at, Class::Hedges)
        || s.phrase(at, &["let's say", "for example", "for instance", "in case"]).is_some()
}

fn reports(s: &Sentence<'_>, at: usize) -> bool {
    // "On second thought" is nobody's.
    if !s.is(at, Class::Reports) || s.is_quoted(at) || at > 0 && s.lower(at - 1) == "second" {
        return false;
    }
    let own = at > 0 && ["i", "i've", "we", "i'd", "to"].contains(&s.lower(at - 1));
    !(own && s.is(at, Class::OwnReports))
}

const OPENING_PHRASES: &[&str] = &[
    "by the way", "just so you know", "for the record", "to be clear", "as i said", "like i said",
    "as i mentioned", "in fact", "as of today", "for context", "please note that",
    "please remember that", "remember that", "note that", "keep in mind that", "scratch that",
    "i meant", "my mistake", "my bad", "first of all", "good morning", "about me",
    "to correct myself", "small correction", "quick correction", "one correction", "quick update",
    "you should know that", "fun fact", "for your information", "not anymore", "i'm sorry",
    "excuse me", "of course", "turns out", "it turns out", "small update", "for the form",
    "good news", "bad news", "quick question", "change of plan", "change of plans", "new plan",
    "on second thought", "on second thoughts", "on reflection", "you know what", "plot twist",
    "strike that", "new idea", "come to think of it", "thinking about it",
];

/// The first word of a clause that is part of what it states.
fn without_openers(s: &Sentence<'_>, mut at: usize) -> usize {
    loop {
        if let Some(words) = time_lead(s, at) {
            at += words;
            continue;
        }
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

/// "Since last week", "as of this morning", "Wednesdays": when what follows holds.
fn time_lead(s: &Sentence<'_>, at: usize) -> Option<usize> {
    let lead = s.phrase(at, &["since", "as of", "from", "starting", "until"]).unwrap_or(0);
    let end = (at + lead..at + lead + 3).find(|at| {
        [
            "week", "month", "year", "weekend", "morning", "today", "now", "yesterday", "night",
            "summer", "spring",
        ]
        .contains(&s.lower(*at))
            || s.is(*at, Class::MonthsDays)
            || s.lower(*at)
                .strip_suffix('s')
                .is_some_and(|day| day.ends_with("day") && day.len() >= 6)
    })?;
    let plural = s.lower(end).ends_with("days") && lead == 0;
    let next = s.lower(end + 1);
    ((lead > 0 || plural)
        && ["i", "i'm", "we", "we're", "my", "our", "the", "i've", "we've"].contains(&next))
    .then_some(end + 1 - at)
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
