//! Statements about things and other people: "the staging port is 8443", "my sister lives in
//! Porto", "we moved the deadline to 21 May".

use std::ops::Range;

use super::Hit;
use super::person::is_occupation;
use super::phrase::{
    Determiner, Noun, is_specific, is_value, noun, quantity, subject as subject_of, value,
};
use super::sentence::Sentence;
use super::words::Class;
use crate::fact::FactKind;

/// Verbs that a noun phrase may be followed by, for the fast way out.
const VERBS: &[&str] = &[
    "=", "are", "equals", "got", "had", "has", "have", "is", "listens", "live", "lives", "runs",
    "was", "were", "will", "work", "works",
];

fn is_verb(s: &Sentence<'_>, at: usize) -> bool {
    VERBS.binary_search(&s.lower(at)).is_ok()
        || s.is(at, Class::Changes)
        || s.is(at, Class::Trends)
        || s.is(at, Class::Measures)
}

/// The statement about something that the clause `range` makes.
pub(super) fn statement(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    let subject = noun(s, start, |at| is_verb(s, at))?;
    let verb = subject.words.end;
    if verb >= end || subject.is_talk(s) {
        return None;
    }
    match s.lower(verb) {
        "is" | "are" | "=" | "equals" => is_statement(s, &subject, verb, end),
        "was" | "were" | "has" | "have" | "will" | "got" => {
            let next = s.skip_words(
                verb + 1,
                &["been", "now", "just", "be", "since", "also", "to", "recently", "finally"],
            );
            if s.is(next, Class::Changes) {
                return change(s, &subject, next, end);
            }
            match s.lower(verb) {
                "was" | "were" if s.lower(next) == "born" => born(s, &subject, next, end),
                "was" | "were" => {
                    // "6.8 out of 10".
                    if s.has(next + 1, "out of")
                        && s.word(next).starts_with(|c: char| c.is_ascii_digit())
                    {
                        return Some(Hit::open(
                            FactKind::Metric,
                            &subject.owner(s),
                            Some(s.slice(next..next + 1)),
                        ));
                    }
                    let amount = quantity(s, next, end)?;
                    Some(Hit::open(FactKind::Metric, &subject.owner(s), Some(s.slice(amount))))
                }
                "will" if s.lower(verb + 1) == "be" => assign(s, &subject, verb + 2, end),
                "has" | "have" if matches!(s.lower(next), "a" | "an") => {
                    rate(s, &subject, next + 1, end)
                }
                "has" | "have" => measure(s, &subject, next, end),
                _ => None,
            }
        }
        "had" => rate(s, &subject, verb + 1, end).or_else(|| measure(s, &subject, verb + 1, end)),
        "lives" | "live" if s.lower(verb + 1) == "in" => {
            third(s, &subject, "lives_in", verb + 2, end)
        }
        "works" | "work" if matches!(s.lower(verb + 1), "at" | "for") => {
            third(s, &subject, "works_at", verb + 2, end)
        }
        "works" if s.lower(verb + 1) == "as" => third(s, &subject, "works_as", verb + 2, end),
        "runs" | "listens" if s.lower(verb + 2) == "port" => {
            let port = s.word(verb + 3);
            let number = port.starts_with(|c: char| c.is_ascii_digit());
            number.then(|| Hit::slot(FactKind::Fact, &subject.owner(s), "port", port))
        }
        "moved" if s.lower(verb + 1) == "to" && is_person(s, &subject) => {
            third(s, &subject, "lives_in", verb + 2, end)
        }
        _ if s.is(verb, Class::Changes) || s.is(verb, Class::Trends) => {
            change(s, &subject, verb, end)
        }
        _ => measure(s, &subject, verb + 1, end),
    }
}

/// What stands after "is": a change, a name, a measure or a value.
fn is_statement(s: &Sentence<'_>, subject: &Noun, verb: usize, end: usize) -> Option<Hit> {
    let at = s.skip(verb + 1, Class::Adverbs);
    match (s.lower(at), s.lower(at + 1)) {
        ("not" | "no", _) => None,
        ("called" | "named", _) => {
            let name = value(s, at + 1, end, false);
            let known = is_specific(s, name.clone()) || name.len() == 1;
            let plural = s.lower(verb) == "are";
            if !known || !is_value(s, &name) {
                return None;
            }
            let many =
                subject.determiner == Determiner::My && s.is(subject.words.end - 1, Class::Many);
            let owner = subject.owner(s);
            Some(if plural || many && subject.len() == 1 {
                Hit::open(FactKind::Fact, &owner, Some(s.slice(name)))
            } else {
                Hit::slot(FactKind::Fact, &owner, "name", s.slice(name))
            })
        }
        ("allergic", "to") | ("married", "to") => {
            let to = value(s, at + 2, end, false);
            is_value(s, &to)
                .then(|| Hit::open(FactKind::Fact, &subject.owner(s), Some(s.slice(to))))
        }
        ("from", year) if year.len() == 4 && year.bytes().all(|b| b.is_ascii_digit()) => {
            Some(Hit::slot(FactKind::Fact, &subject.owner(s), "year", s.slice(at + 1..at + 2)))
        }
        ("in", _)
            if !is_person(s, subject)
                && s.is_name(at + 1)
                && !s.is(at + 1, Class::MonthsDays)
                && subject.determiner != Determiner::None =>
        {
            third(s, subject, "located_in", at + 1, end)
        }
        ("spelled" | "spelt", _) if s.lower(subject.words.end - 1) == "name" => {
            let said = value(s, at + 1, end, false);
            let (owner, _) = subject.slot(s)?;
            is_value(s, &said).then(|| Hit::slot(FactKind::Fact, &owner, "name", s.slice(said)))
        }
        ("from", _) if is_person(s, subject) => third(s, subject, "comes_from", at + 1, end),
        ("based" | "located" | "hosted", "in") => third(
            s,
            subject,
            if is_person(s, subject) { "lives_in" } else { "located_in" },
            at + 2,
            end,
        ),
        ("a" | "an", _) if is_person(s, subject) => {
            let work = value(s, at + 1, end, true);
            let head = work.end.checked_sub(1)?;
            (is_occupation(s, head))
                .then(|| Hit::slot(FactKind::Fact, &subject.owner(s), "works_as", s.slice(work)))
        }
        (number, after)
            if is_person(s, subject)
                && number.bytes().all(|b| b.is_ascii_digit())
                && !number.is_empty()
                && (after == "years" || at + 1 == end || matches!(after, "and" | "now")) =>
        {
            Some(Hit::slot(FactKind::Fact, &subject.owner(s), "age", s.slice(at..at + 1)))
        }
        ("running" | "listening", "on") if s.lower(at + 2) == "port" => {
            let number = s.word(at + 3).starts_with(|c: char| c.is_ascii_digit());
            number.then(|| Hit::slot(FactKind::Fact, &subject.owner(s), "port", s.word(at + 3)))
        }
        ("on", "port") => {
            let number = s.word(at + 2).starts_with(|c: char| c.is_ascii_digit());
            number.then(|| Hit::slot(FactKind::Fact, &subject.owner(s), "port", s.word(at + 2)))
        }
        _ if s.is(at, Class::Changes) && (at + 1..at + 5).any(|to| s.lower(to) == "to") => {
            change(s, subject, at, end)
        }
        _ => assign(s, subject, s.skip_words(at, &["at", "running", "set", "to"]), end),
    }
}

/// "The deadline is 14 May": the slot and its value, where the value is worth remembering.
fn assign(s: &Sentence<'_>, subject: &Noun, at: usize, end: usize) -> Option<Hit> {
    let at = s.skip(at, Class::Adverbs);
    let dated = s.lower(at) == "on" && is_specific(s, at + 1..at + 2);
    let mut said = value(s, at + usize::from(dated), end, false);
    // "The port is 8443 if TLS is on" holds only sometimes.
    if !is_value(s, &said) || matches!(s.lower(said.end), "if" | "unless" | "until") {
        return None;
    }
    let amount = quantity(s, at, end);
    let property = s.is(subject.head(s), Class::Properties) || favourite(s, subject);
    // "is visiting", "is stored in" say what happens, not what something is.
    let verbal = (s.lower(at).ends_with("ing") || s.lower(at).ends_with("ed"))
        && !property
        && !s.is_capital(at);
    let specific = is_specific(s, said.clone());
    let article = matches!(s.lower(at), "a" | "an" | "the");
    let digits = said
        .clone()
        .any(|at| s.word(at).contains(|c: char| c.is_ascii_digit()) || s.word(at).contains("://"));
    let told = match subject.determiner {
        Determiner::My => {
            specific || property || article && s.is(subject.words.end - 1, Class::Owned)
        }
        Determiner::Our => specific || property,
        Determiner::The => specific || property && favourite(s, subject),
        Determiner::None => digits && (subject.len() <= 4) || specific && owned(s, subject),
    };
    if !told || verbal || s.lower(at) == "to" {
        return None;
    }
    // "The book is 300 pages" measures, "the deadline is 14 days after 3 May" does not.
    let kind = match amount {
        Some(amount) if amount.end + 4 >= said.end => {
            said = amount;
            FactKind::Metric
        }
        _ => FactKind::Fact,
    };
    if s.lower(said.start) == "port" {
        said.start += 1;
    }
    let (owner, attribute) = subject.slot(s)?;
    let many = matches!(subject.determiner, Determiner::My)
        && subject.len() == 1
        && s.is(subject.words.start, Class::Many);
    Some(if many {
        Hit::open(kind, &attribute, Some(s.slice(said)))
    } else {
        Hit::slot(kind, &owner, &attribute, s.slice(said))
    })
}

/// "The deadline moved from 14 May to 21 May", "revenue grew 12%".
fn change(s: &Sentence<'_>, subject: &Noun, verb: usize, end: usize) -> Option<Hit> {
    let to = (verb + 1..end.min(verb + 9)).find(|at| s.lower(*at) == "to");
    if let Some(to) = to {
        let between_is_plain = (verb + 1..to).all(|at| {
            matches!(
                s.lower(at),
                "up" | "down" | "back" | "forward" | "out" | "again" | "over" | "now" | "by"
            ) || (verb + 1..at + 1).any(|from| matches!(s.lower(from), "from" | "by"))
        });
        return if between_is_plain { assign(s, subject, to + 1, end) } else { None };
    }
    let by = s.skip_words(verb + 1, &["by", "up", "down", "from"]);
    let amount = quantity(s, by, end)?;
    Some(Hit::open(FactKind::Metric, &subject.owner(s), Some(s.slice(amount))))
}

/// "The table holds 3 million rows", "the plan costs €20 a month".
fn measure(s: &Sentence<'_>, subject: &Noun, at: usize, end: usize) -> Option<Hit> {
    let verb = s.lower(subject.words.end);
    if verb == "costs" {
        let price = value(s, at, end, false);
        let digits = s.word(at).contains(|c: char| c.is_ascii_digit());
        return digits
            .then(|| Hit::slot(FactKind::Metric, &subject.owner(s), "cost", s.slice(price)));
    }
    let amount = quantity(s, at, end)?;
    Some(Hit::open(FactKind::Metric, &subject.owner(s), Some(s.slice(amount))))
}

/// "Had an open rate of 37 percent".
fn rate(s: &Sentence<'_>, subject: &Noun, at: usize, end: usize) -> Option<Hit> {
    let of = (at + 1..end.min(at + 5)).find(|at| s.lower(*at) == "of")?;
    let amount = quantity(s, of + 1, end)?;
    Some(Hit::open(FactKind::Metric, &subject.owner(s), Some(s.slice(amount))))
}

/// "My sister lives in Porto".
fn third(s: &Sentence<'_>, subject: &Noun, attribute: &str, at: usize, end: usize) -> Option<Hit> {
    let said = value(s, s.skip_words(at, &["a", "an"]), end, true);
    let named = subject.determiner != Determiner::None || s.is_name(subject.words.start);
    (named && is_value(s, &said))
        .then(|| Hit::slot(FactKind::Fact, &subject.owner(s), attribute, s.slice(said)))
}

fn born(s: &Sentence<'_>, subject: &Noun, born: usize, end: usize) -> Option<Hit> {
    let year = s.word(born + 2).starts_with(|c: char| c.is_ascii_digit());
    match s.lower(born + 1) {
        "in" if !year => third(s, subject, "born_in", born + 2, end),
        "in" | "on" => third(s, subject, "born_on", born + 2, end),
        _ => None,
    }
}

/// "We moved the deadline to 21 May": `verb` and what follows it.
pub(super) fn changed(s: &Sentence<'_>, verb: usize, end: usize) -> Option<Hit> {
    let order = s.is(verb, Class::Changes) || s.is(verb, Class::ChangeOrders);
    if !order {
        return None;
    }
    let subject = noun(s, verb + 1, |at| {
        matches!(s.lower(at), "to" | "from" | "up" | "down" | "back" | "forward" | "at")
    })?;
    if subject.is_talk(s) {
        return None;
    }
    let to = (subject.words.end..end.min(subject.words.end + 8))
        .find(|at| matches!(s.lower(*at), "to" | "at"))?;
    let hit = assign(s, &subject, to + 1, end)?;
    Some(Hit { refers: true, ..hit })
}

/// "The deadline isn't 14 May, it's 21 May", "my budget was €900 but now it's €1,500": the slot of
/// the clause `before` with the value of the clause after it.
pub(super) fn corrected(
    s: &Sentence<'_>,
    before: &Range<usize>,
    now: &Range<usize>,
) -> Option<Hit> {
    let words = s.phrase(now.start, &["it's", "it is"])?;
    let subject = noun(s, before.start, |at| {
        matches!(s.lower(at), "isn't" | "wasn't" | "was" | "is" | "aren't")
            || s.has(at, "used to be")
    })?;
    let verb = subject.words.end;
    let denied = s.lower(verb) != "is" || matches!(s.lower(verb + 1), "not" | "no");
    if !denied || verb >= before.end || subject.is_talk(s) {
        return None;
    }
    assign(s, &subject, now.start + words, now.end)
}

fn favourite(s: &Sentence<'_>, subject: &Noun) -> bool {
    subject.words.clone().any(|at| matches!(s.lower(at), "favourite" | "favorite" | "preferred"))
}

/// A noun phrase with an owner: "Maria's birthday", "port of Alfred".
fn owned(s: &Sentence<'_>, subject: &Noun) -> bool {
    subject.words.clone().any(|at| s.lower(at).ends_with("'s"))
}

fn is_person(s: &Sentence<'_>, subject: &Noun) -> bool {
    let last = subject.words.end - 1;
    subject.words.clone().all(|at| s.is_name(at)) && subject.determiner == Determiner::None
        || s.is(last, Class::Family)
        || s.is_name(last) && last > subject.words.start && s.is(last - 1, Class::Family)
}

impl Noun {
    /// The whole phrase as a subject; of "my sister Maria" the name.
    fn owner(&self, s: &Sentence<'_>) -> String {
        let last = self.words.end - 1;
        let mut start = self.words.start;
        if self.determiner != Determiner::None {
            let name = (start + 1..=last).find(|at| s.is_name(*at) && s.is(*at - 1, Class::Family));
            start = name.unwrap_or(start);
        }
        subject_of(s, start..last + 1)
    }
}
