//! What users say of themselves: "I live in Porto", "I'm a nurse", "we have 12,000 customers".

use std::ops::Range;

use super::Hit;
use super::phrase::{PROJECT, USER, is_specific, is_value, quantity, value};
use super::sentence::{Sentence, Stop};
use super::statement::changed;
use super::words::Class;
use crate::fact::FactKind;

/// The statement of the first person that the clause `range` makes.
pub(super) fn first_person(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    match s.lower(start) {
        "i" | "we" => {
            let verb = s.skip(start + 1, Class::Adverbs);
            match s.lower(verb) {
                "am" | "are" => being(s, verb + 1, end),
                "was" | "were" => past(s, verb, end),
                "have" | "had" => perfect(s, s.skip(verb + 1, Class::Adverbs), end)
                    .or_else(|| (s.lower(verb) == "have").then(|| having(s, verb + 1, end))?),
                _ => acting(s, verb, end),
            }
        }
        "i'm" | "im" | "we're" => being(s, start + 1, end),
        "i've" | "we've" => {
            let verb = s.skip(start + 1, Class::Adverbs);
            if s.lower(verb) == "got" { having(s, verb + 1, end) } else { perfect(s, verb, end) }
        }
        "my" if s.lower(start + 1) == "name's" => slot("name", s, names(s, start + 2, end)),
        "work" | "live"
            if matches!(s.lower(0), "i" | "i'm" | "i've") && s.lower(start - 1) == "and" =>
        {
            acting(s, start, end)
        }
        _ => None,
    }
}

fn slot(attribute: &str, s: &Sentence<'_>, value: Range<usize>) -> Option<Hit> {
    is_value(s, &value).then(|| Hit::slot(FactKind::Fact, USER, attribute, s.slice(value)))
}

/// A statement that may hold beside others of its sort, so it replaces none.
fn open(s: &Sentence<'_>, value: Range<usize>) -> Option<Hit> {
    is_value(s, &value).then(|| Hit::open(FactKind::Fact, USER, Some(s.slice(value))))
}

fn names(s: &Sentence<'_>, start: usize, end: usize) -> Range<usize> {
    let last = (start..end.min(start + 4)).find(|at| !s.is_name(*at)).unwrap_or(end.min(start + 4));
    start..last
}

fn acting(s: &Sentence<'_>, verb: usize, end: usize) -> Option<Hit> {
    let next = verb + 1;
    let place = |at: usize| value(s, at, end, true);
    match (s.lower(verb), s.lower(next)) {
        ("live" | "reside", "in" | "at" | "on" | "near") => slot("lives_in", s, place(next + 1)),
        ("live", "with" | "alone") => open(s, value(s, next, end, false)),
        ("moved" | "relocated", "to") => slot("lives_in", s, place(next + 1))
            .filter(|_| is_specific(s, place(next + 1)))
            .filter(|_| s.lower(verb - 1) != "we" || !s.is(next + 1, Class::NotNouns)),
        ("work", "at" | "for") => slot("works_at", s, place(next + 1)),
        ("work", "as") => slot("works_as", s, occupation(s, next + 1, end)),
        (
            "work",
            "in" | "on" | "with" | "from" | "remotely" | "part-time" | "full-time" | "nights",
        ) => open(s, value(s, next, end, false)),
        ("weigh", _) => {
            let amount = quantity(s, next, end)?;
            Some(Hit::slot(FactKind::Metric, USER, "weight", s.slice(amount)))
        }
        ("turned", _) if s.word(next).starts_with(|c: char| c.is_ascii_digit()) => {
            slot("age", s, next..next + 1)
        }
        ("grew", "up") if matches!(s.lower(next + 1), "in" | "on") => {
            slot("grew_up_in", s, place(next + 2))
        }
        ("graduated", "from") | ("majored", "in") => open(s, value(s, next + 1, end, false)),
        ("study", "at") => slot("studies_at", s, place(next + 1)),
        ("started", "working") if matches!(s.lower(next + 1), "at" | "for") => {
            slot("works_at", s, place(next + 2))
        }
        ("started", "a") if s.has(next, "a new job at") => slot("works_at", s, place(next + 4)),
        ("used", "to") => open(s, value(s, next + 1, end, false)),
        ("have" | "own", _) => having(s, next, end),
        ("got" | "adopted" | "bought", "a" | "an" | "two" | "our" | "my") => {
            having(s, next, end).filter(|hit| hit.kind == FactKind::Fact)
        }
        (
            "don't" | "never" | "can't" | "cannot",
            "like" | "eat" | "drink" | "smoke" | "drive" | "stand",
        ) => taste(s, next + 1, end)
            .map(|hit| Hit {
                value: Some(s.slice(verb..value(s, next + 1, end, false).end).to_owned()),
                ..hit
            })
            .or_else(|| (next + 1 == end).then(|| Hit::open(FactKind::Fact, USER, None))),
        ("always" | "usually" | "never" | "normally" | "typically", _) => {
            let idle = matches!(
                s.lower(next),
                "said" | "knew" | "thought" | "mind" | "asked" | "told" | "think"
            );
            (!idle && next + 1 < end && !s.lower(next).ends_with("ed"))
                .then(|| Hit::open(FactKind::Fact, USER, None))
        }
        ("use" | "run" | "deploy" | "host" | "store" | "switched", _) => {
            let used =
                value(s, s.skip_words(next, &["to", "on", "our", "my", "all", "the"]), end, false);
            let owner = if s.lower(verb - 1).starts_with("we") { PROJECT } else { USER };
            (is_specific(s, used.clone()) && is_value(s, &used))
                .then(|| Hit::open(FactKind::Fact, owner, Some(s.slice(used))))
        }
        _ if s.is(verb, Class::Habits) => taste(s, next, end),
        _ => changed(s, verb, end),
    }
}

/// The object of liking or habit, unless it is the talk at hand.
fn taste(s: &Sentence<'_>, at: usize, end: usize) -> Option<Hit> {
    // "I love it", "I like the idea".
    let object = at + usize::from(s.lower(at) == "the");
    if s.is(object, Class::RejectedObjects) || s.lower(object) == "way" {
        return None;
    }
    open(s, value(s, at, end, false))
}

fn perfect(s: &Sentence<'_>, verb: usize, end: usize) -> Option<Hit> {
    let next = verb + 1;
    match (s.lower(verb), s.lower(next)) {
        ("been", "living") if matches!(s.lower(next + 1), "in") => {
            slot("lives_in", s, value(s, next + 2, end, true))
        }
        ("been", "working") if matches!(s.lower(next + 1), "at" | "for") => {
            slot("works_at", s, value(s, next + 2, end, true))
                .filter(|_| !s.word(next + 2).starts_with(|c: char| c.is_ascii_digit()))
        }
        ("been", "to") | ("visited", _) => {
            open(s, value(s, next + usize::from(s.lower(next) == "to"), end, false))
                .filter(|_| is_specific(s, next..end))
        }
        ("been", "working") if s.lower(next + 1) == "as" => {
            slot("works_as", s, occupation(s, next + 2, end))
        }
        ("been", "a") => open(s, value(s, next, end, false)),
        ("lived", "in") if s.is_name(next + 1) => {
            slot("lives_in", s, value(s, next + 1, end, true))
        }
        ("moved" | "relocated", "to") => acting(s, verb, end),
        _ => changed(s, verb, end),
    }
}

/// "I have a daughter", "we have 12,000 customers".
fn having(s: &Sentence<'_>, at: usize, end: usize) -> Option<Hit> {
    let owned = value(s, at, end.min(at + 8), false);
    let lasting = owned.clone().any(|at| s.is(at, Class::Owned) || s.is(at, Class::Animals));
    if lasting {
        let future = s.is(at, Class::TaskNot) || s.lower(at) == "to";
        return (!future).then(|| Hit::open(FactKind::Fact, USER, Some(s.slice(owned))));
    }
    // "I have a budget of €900".
    if matches!(s.lower(at), "a" | "an")
        && let Some(of) = (at + 2..at + 5).find(|of| s.lower(*of) == "of")
        && s.is(of - 1, Class::Properties)
    {
        return slot(s.lower(of - 1), s, value(s, of + 1, end, true));
    }
    let amount = quantity(s, at, end)?;
    let ours = s.lower(0) != "i" && !s.lower(0).starts_with("i'");
    let counted = s.is(amount.end - 1, Class::Units) && ours;
    counted.then(|| Hit::open(FactKind::Metric, PROJECT, Some(s.slice(amount))))
}

fn past(s: &Sentence<'_>, verb: usize, end: usize) -> Option<Hit> {
    let at = verb + 3;
    if s.has(verb + 1, "born in") {
        let year = s.word(at).starts_with(|c: char| c.is_ascii_digit());
        slot(if year { "born_on" } else { "born_in" }, s, value(s, at, end, true))
    } else if s.has(verb + 1, "born on") {
        slot("born_on", s, value(s, at, end, true))
    } else if s.has(verb + 1, "raised in") {
        slot("grew_up_in", s, value(s, at, end, true))
    } else {
        None
    }
}

/// What follows "I am".
fn being(s: &Sentence<'_>, at: usize, end: usize) -> Option<Hit> {
    let at = s.skip(at, Class::Adverbs);
    let next = at + 1;
    let ends = next >= end
        || s.is(next, Class::PlaceEnds)
        || s.is(next, Class::Conjunctions)
        || s.stop(at) != Stop::None
        || s.is(next, Class::ValueEnds);
    let place = |at: usize| value(s, at, end, true);
    match (s.lower(at), s.lower(next)) {
        ("from", _) if s.is_capital(next) || next + 1 == end => slot("comes_from", s, place(next)),
        ("based" | "living", "in" | "out" | "near") => {
            slot("lives_in", s, place(s.skip_words(next + 1, &["of"])))
        }
        ("working", "at" | "for") => slot("works_at", s, place(next + 1)),
        ("working", "as") => slot("works_as", s, occupation(s, next + 1, end)),
        ("working", "on")
        | ("studying" | "learning", _)
        | ("training" | "responsible", "for")
        | ("fluent" | "interested", "in")
        | ("allergic" | "intolerant" | "addicted" | "sensitive", "to")
        | ("afraid" | "scared" | "terrified", "of")
        | ("moving" | "relocating", "to") => {
            let from = if matches!(s.lower(at), "studying" | "learning") { next } else { next + 1 };
            open(s, value(s, from, end, false))
        }
        ("in", "charge") => open(s, value(s, next + 2, end, false)),
        ("called" | "named", _) if s.is_capital(next) => slot("name", s, names(s, next, end)),
        ("a" | "an", _) => role(s, at, end),
        ("the", _) => {
            let rest = value(s, next, end, false);
            let titled = rest.clone().any(|at| matches!(s.lower(at), "of" | "at" | "for"));
            let work = rest.clone().any(|at| is_occupation(s, at)) || s.is(next, Class::Owned);
            (titled && work).then(|| {
                Hit::slot(FactKind::Fact, USER, "works_as", s.slice(occupation(s, next, end)))
            })
        }
        (number, after) if number.starts_with(|c: char| c.is_ascii_digit()) => {
            let years = number.len() <= 3 && number.bytes().all(|b| b.is_ascii_digit());
            if years
                && (next == end
                    || s.stop(at) == Stop::Comma
                    || after == "years"
                    || after == "and"
                    || after == "yo")
            {
                return slot("age", s, at..next);
            }
            let tall = quantity(s, at, end).filter(|amount| s.lower(amount.end) == "tall")?;
            Some(Hit::slot(FactKind::Metric, USER, "height", s.slice(tall)))
        }
        _ if s.is(at, Class::Marital) && (ends || matches!(s.lower(next), "to")) => {
            slot("marital_status", s, at..next)
        }
        _ if s.is(at, Class::Diets) && ends => slot("diet", s, at..next),
        _ if s.is(at, Class::Nations) && s.is_capital(at) && ends => {
            slot("nationality", s, at..next)
        }
        _ if s.is(at, Class::States) && (ends || s.lower(next) == "intolerant") => {
            Some(Hit::open(FactKind::Fact, USER, None))
        }
        _ if introduces(s, at, end) => slot("name", s, names(s, at, end)),
        _ => None,
    }
}

/// "I'm Maria", but not "I'm Happy to".
fn introduces(s: &Sentence<'_>, at: usize, end: usize) -> bool {
    let name = names(s, at, end);
    let next = name.end;
    let usual = name.clone().any(|at| {
        s.is(at, Class::PronounValues)
            || s.is(at, Class::Nations)
            || s.is(at, Class::MonthsDays)
            || s.is(at, Class::NotNouns)
            || s.lower(at).ends_with("ing")
            || matches!(s.lower(at), "sorry" | "happy" | "glad" | "sure" | "tired" | "afraid")
    });
    let ended = next >= end
        || matches!(s.lower(next), "from" | "and" | "the" | "a" | "an" | "at")
        || s.stop(next - 1) != Stop::None;
    !name.is_empty() && !usual && ended
}

/// "I'm a senior nurse at St. John": what the user works as; "I'm a night owl": a mere fact.
fn role(s: &Sentence<'_>, article: usize, end: usize) -> Option<Hit> {
    let named = occupation(s, article + 1, end);
    let head = named.end.checked_sub(1).filter(|head| *head > article)?;
    if s.is(head, Class::Diets) {
        return slot("diet", s, named);
    }
    if is_occupation(s, head) {
        return slot("works_as", s, named);
    }
    let person = s.is(head, Class::NotOccupations) || s.is(head, Class::Diets);
    let huge = s.has(article + 1, "big fan") || s.lower(article + 1) == "fan";
    let about = (head + 1..end).any(|at| matches!(s.lower(at), "this" | "that" | "it" | "your"));
    ((person || huge) && !about)
        .then(|| Hit::open(FactKind::Fact, USER, Some(s.slice(article..end))))
}

/// The words of an occupation: up to a preposition or a comma.
fn occupation(s: &Sentence<'_>, start: usize, end: usize) -> Range<usize> {
    let start = s.skip_words(start, &["a", "an", "the"]);
    let all = value(s, start, end.min(start + 6), true);
    let cut = all.clone().find(|at| {
        matches!(
            s.lower(*at),
            "of" | "at"
                | "in"
                | "who"
                | "on"
                | "by"
                | "working"
                | "based"
                | "living"
                | "here"
                | "specializing"
        )
    });
    let comma = all.clone().find(|at| s.stop(*at) != Stop::None).map(|at| at + 1);
    all.start..cut.unwrap_or(all.end).min(comma.unwrap_or(all.end))
}

pub(super) fn is_occupation(s: &Sentence<'_>, at: usize) -> bool {
    let word = s.lower(at);
    let ending =
        ["er", "or", "ist", "ian", "yst", "eer"].iter().any(|ending| word.ends_with(ending));
    s.is(at, Class::Occupations) || ending && word.len() > 4 && !s.is(at, Class::NotOccupations)
}
