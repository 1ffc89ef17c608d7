//! Further statements, each of a form that many sentences share: what happens regularly or at a time
//! ("the key rotates every 30 days", "we're flying out of Porto on 3 September"), what there is
//! ("there are 26 kids in my class") and labels ("blood type O negative").

use std::ops::Range;

use super::Hit;
use super::changes;
use super::phrase::{Determiner, USER, is_specific, is_value, noun, quantity, value};
use super::sentence::{Sentence, Stop};
use super::words::Class;
use crate::fact::FactKind;

/// Verbs of the third person that say something lasting, and the property that they tell where it
/// has one value at a time. Sorted.
const LASTING_VERBS: &[(&str, &str)] = &[
    ("arrives", "arrival"),
    ("begins", "start"),
    ("belongs", ""),
    ("closes", "closing"),
    ("contains", ""),
    ("departs", "departure"),
    ("depends", ""),
    ("earns", "income"),
    ("eats", ""),
    ("ends", "end"),
    ("expires", "expiry"),
    ("goes", ""),
    ("happens", "time"),
    ("has", ""),
    ("hates", ""),
    ("holds", ""),
    ("is", ""),
    ("keeps", ""),
    ("leaves", "departure"),
    ("likes", ""),
    ("listens", "port"),
    ("lives", "lives_in"),
    ("loves", ""),
    ("needs", ""),
    ("opens", "opening"),
    ("owns", ""),
    ("pays", ""),
    ("plays", ""),
    ("reads", ""),
    ("renews", "renewal"),
    ("requires", ""),
    ("rotates", "rotation"),
    ("runs", "runs_on"),
    ("ships", "shipping"),
    ("sits", "place"),
    ("sleeps", ""),
    ("speaks", ""),
    ("stands", "place"),
    ("starts", "start"),
    ("stays", ""),
    ("studies", ""),
    ("supports", ""),
    ("takes", ""),
    ("uses", ""),
    ("wears", ""),
    ("weighs", "weight"),
    ("works", ""),
];

fn lasting_verb(word: &str) -> Option<&'static str> {
    let at = LASTING_VERBS.binary_search_by_key(&word, |(verb, _)| verb).ok()?;
    Some(LASTING_VERBS[at].1)
}

/// The statement of a further form that the clause `range` makes.
pub(super) fn form(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    changes::new_value(s, range)
        .or_else(|| first(s, range))
        .or_else(|| finding(s, range))
        .or_else(|| there(s, range))
        .or_else(|| regular(s, range))
        .or_else(|| label(s, range))
}

/// "X runs in eu-west-1", "my husband works shifts", "my flight leaves on Wednesday at 19:40".
fn regular(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    let subject = noun(s, start, |at| lasting_verb(s.lower(at)).is_some())?;
    let verb = subject.words.end;
    let owned = matches!(subject.determiner, Determiner::My | Determiner::Our);
    if verb >= end || subject.is_talk(s) || s.stop(verb - 1) != Stop::None {
        return None;
    }
    let property = lasting_verb(s.lower(verb))?;
    if matches!(s.lower(verb), "has" | "is") {
        return None;
    }
    let at = s.skip_words(
        verb + 1,
        &["on", "at", "in", "about", "only", "port", "always", "usually", "to", "for"],
    );
    let said = value(s, at, end, false);
    let specific = is_specific(s, said.clone());
    if s.is_quoted(at) || s.lower(verb) == "reads" && s.stop(verb) != Stop::None {
        return None;
    }
    let known = owned
        || subject.determiner == Determiner::The && specific
        || specific && (s.is_name(start) || subject.words.len() <= 2 && digits(s, &said));
    if !known || !is_value(s, &said) || s.lower(said.end) == "if" {
        return None;
    }
    let owner = subject_text(s, &subject.words);
    if let Some(amount) = quantity(s, at, end)
        .filter(|amount| amount.end >= said.end && matches!(property, "place" | ""))
    {
        return Some(Hit::open(FactKind::Metric, &owner, Some(s.slice(amount))));
    }
    // Only what is said with a preposition or a number is of the property.
    let precise = at > verb + 1 || digits(s, &said) || s.lower(at) == "every";
    if property == "weight"
        && let Some(amount) = quantity(s, at, end)
    {
        return Some(Hit::slot(FactKind::Fact, &owner, property, s.slice(amount)));
    }
    Some(
        if !property.is_empty()
            && precise
            && (digits(s, &said) || specific || s.lower(at) == "every")
        {
            Hit::slot(FactKind::Fact, &owner, property, s.slice(said))
        } else {
            Hit::open(
                FactKind::Fact,
                &owner,
                Some(s.slice(if at > verb + 1 && s.lower(verb + 1) != "on" {
                    verb..said.end
                } else {
                    said
                })),
            )
        },
    )
}

pub(super) fn digits(s: &Sentence<'_>, words: &Range<usize>) -> bool {
    words.clone().any(|at| s.word(at).contains(|c: char| c.is_ascii_digit()))
}

fn subject_text(s: &Sentence<'_>, words: &Range<usize>) -> String {
    let text = s.slice(words.clone());
    text.strip_suffix("'s").unwrap_or(text).to_owned()
}

/// "My allergist confirmed it's kiwi": a finding about the user.
fn finding(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    let by = (start + 1..end.min(start + 4))
        .find(|at| matches!(s.lower(*at), "confirmed" | "diagnosed" | "found"))?;
    let known = matches!(s.lower(start), "my" | "our" | "the");
    let from = s.phrase(
        by + 1,
        &["it's", "that it's", "it is", "i have", "that i have", "me with", "i'm", "out it's"],
    )?;
    let said = value(s, s.skip_words(by + 1 + from, &["a", "an", "the"]), end, false);
    (known && is_value(s, &said)).then(|| Hit::open(FactKind::Fact, USER, Some(s.slice(said))))
}

/// "There are 26 kids in my class".
fn there(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    let words = s.phrase(start, &["there are", "there's", "there is", "there're"])?;
    let amount = start + words;
    let number = s.word(s.skip(amount, Class::Abouts)).starts_with(|c: char| c.is_ascii_digit());
    let of = (amount..end).find(|at| matches!(s.lower(*at), "my" | "our"))?;
    let value = s.skip(amount, Class::Abouts)..(amount + 2).min(of);
    let owner = s.slice(of + 1..(of + 2).min(end));
    (number && value.len() == 2).then(|| Hit::open(FactKind::Fact, owner, Some(s.slice(value))))
}

/// "Blood type O negative", "blood sugar two hours after lunch: 9.1 mmol/l".
fn label(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    if s.has(start, "blood type") || s.has(start, "blood group") {
        let said = value(s, s.skip_words(start + 2, &["is"]), end, false);
        return (!said.is_empty())
            .then(|| Hit::slot(FactKind::Fact, USER, "blood type", s.slice(said)));
    }
    if s.lower(start) == "born" && digits(s, &(start..end)) {
        let at = s.skip_words(start + 1, &["on", "in"]);
        return Some(Hit::slot(FactKind::Fact, USER, "born_on", s.slice(value(s, at, end, true))));
    }
    let colon = (start..end.min(start + 8)).find(|at| s.stop(*at) == Stop::Colon)?;
    let lower = (start..=colon).all(|at| {
        !s.is(at, Class::Edits)
            && !s.is(at, Class::Orders)
            && !["i", "you", "me", "here", "this", "quiz", "is", "are", "was", "example"]
                .contains(&s.lower(at))
    });
    let amount = quantity_or_rate(s, colon + 1, end)?;
    let only = amount.end >= end;
    (lower && only && colon > start)
        .then(|| Hit::open(FactKind::Metric, USER, Some(s.slice(amount))))
}

/// A number with anything like a unit.
fn quantity_or_rate(s: &Sentence<'_>, at: usize, end: usize) -> Option<Range<usize>> {
    quantity(s, at, end).or_else(|| {
        let number = s.word(at).starts_with(|c: char| c.is_ascii_digit());
        let unit = s.lower(at + 1);
        let unit_like = unit.contains(['/', '%', '°']) || s.is(at + 1, Class::Units);
        (number && unit_like && at + 1 < end).then_some(at..at + 2)
    })
}

/// What users say of themselves, in further forms.
fn first(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    let open = |from: usize| {
        let said = value(s, from, end, false);
        is_value(s, &said).then(|| Hit::open(FactKind::Fact, USER, Some(s.slice(said))))
    };
    // "My partner and I are getting married".
    let start = if matches!(s.lower(start), "my" | "our") {
        (start..end.min(start + 5))
            .find(|at| s.lower(*at) == "i" && s.lower(at - 1) == "and")
            .unwrap_or(start)
    } else {
        start
    };
    if s.lower(start) == "being" && s.stop(start + 1) != Stop::None
        || s.lower(start) == "being" && s.stop(start + 2) != Stop::None
    {
        let last = if s.stop(start + 1) == Stop::None { start + 3 } else { start + 2 };
        return Some(Hit::open(
            FactKind::Fact,
            USER,
            Some(s.slice(s.skip_words(start + 1, &["a", "an"])..last)),
        ));
    }
    if let Some(words) = s.phrase(
        start,
        &[
            "as someone who's been", "as somebody who's been", "as someone who is",
            "as someone who's", "as a person who's been", "speaking as",
        ],
    ) {
        return open(s.skip_words(start + words, &["a", "an"])).map(|hit| {
            let short = hit.value.as_deref().and_then(|v| v.split(' ').next()).map(str::to_owned);
            Hit { value: short, ..hit }
        });
    }
    if matches!(s.lower(start), "her" | "his" | "their")
        && (s.has(start + 1, "name is spelled") || s.has(start + 1, "name is spelt"))
    {
        let said = value(s, start + 4, end, false);
        return Some(Hit::slot(FactKind::Fact, s.lower(start), "name", s.slice(said)));
    }
    let contracted = ["i'm", "im", "we're", "i've", "we've"].contains(&s.lower(start));
    if !contracted && !matches!(s.lower(start), "i" | "we") {
        return None;
    }
    let verb = s.skip_words(
        start + 1,
        &[
            "am", "are", "have", "only", "just", "now", "still", "also", "currently", "both", "do",
            "already", "always",
        ],
    );
    let next = verb + 1;
    match s.lower(verb) {
        "flying" | "travelling" | "traveling" | "leaving" | "staying" | "getting" | "going"
        | "moving" | "taking" | "meeting" | "arriving" | "launching" | "hosting" | "driving"
        | "sailing" | "marrying" | "starting" | "renting" | "expecting" | "running" | "having"
            if is_specific(s, next..end) && (digits(s, &(next..end)) || dated(s, next..end)) =>
        {
            // Of "out of Porto on 3 September", the time.
            let time = (next..end).rev().find(|at| {
                ["on", "at", "in", "the", "until", "from", "by"].contains(&s.lower(*at))
                    && (s.word(at + 1).starts_with(|c: char| c.is_ascii_digit())
                        || s.is(at + 1, Class::MonthsDays))
            })?;
            let mut last = end;
            // "In June next year in Oaxaca".
            if let Some(place) = (time + 2..end).find(|at| s.lower(*at) == "in") {
                last = place;
            }
            open_range(s, time + 1..last)
        }
        "take" if s.word(next).starts_with(|c: char| c.is_ascii_digit()) => {
            let last = (next..end)
                .find(|at| {
                    [
                        "each", "every", "a", "twice", "once", "daily", "in", "at", "before",
                        "after", "with",
                    ]
                    .contains(&s.lower(*at))
                })
                .unwrap_or(end);
            open_range(s, next..last)
        }
        "sold" | "made" | "baked" | "served" | "shipped" | "hit" | "reached" | "earned"
        | "raised" | "logged" | "walked" | "ran" | "burned" | "spent" | "used" => {
            let amount = quantity(s, next, end)?;
            Some(Hit::open(FactKind::Metric, USER, Some(s.slice(amount))))
        }
        "get" | "wake" | "go"
            if matches!(s.lower(next), "up" | "to") && digits(s, &(next..end)) =>
        {
            let at = (next..end).find(|at| s.lower(*at) == "at")?;
            let last = (at + 1..end).find(|at| s.lower(*at) == "every").unwrap_or(end);
            open_range(s, at + 1..last)
        }
        "close" | "open" | "start" | "finish" | "leave" | "wake"
            if recurring(s, 0..end) || (0..start).any(|at| s.lower(at).ends_with("days")) =>
        {
            let at = (next..end).find(|at| {
                s.lower(*at) == "at" && s.word(at + 1).starts_with(|c: char| c.is_ascii_digit())
            })?;
            open_range(s, at + 1..end)
        }
        "on" | "using"
            if contracted
                && (matches!(s.lower(next), "a" | "an" | "my") || s.lower(verb) == "using") =>
        {
            let from = s.skip_words(next, &["a", "an", "my"]);
            open_range(s, from..end)
        }
        "with"
            if contracted && s.is_name(next) && range_has(s, range, &["now", "since", "days"]) =>
        {
            let said = value(s, next, end, true);
            Some(Hit::slot(
                FactKind::Fact,
                USER,
                "works_at",
                s.slice(said.start..said.end - usize::from(s.lower(said.end - 1) == "these")),
            ))
        }
        "been" if !s.lower(next).ends_with("ing") => {
            let said = value(s, s.skip_words(next, &["a", "an"]), end, true);
            let state = said.clone().any(|at| {
                s.is(at, Class::States)
                    || s.is(at, Class::Diets)
                    || s.is(at, Class::Marital)
                    || super::person::is_occupation(s, at)
            });
            (state && said.len() <= 4).then(|| Hit::open(FactKind::Fact, USER, Some(s.slice(said))))
        }
        _ => {
            // "We only have an induction hob".
            let only = (start + 1..verb).any(|at| s.lower(at) == "only")
                && (start + 1..verb).any(|at| s.lower(at) == "have");
            let have = (start + 1..verb).any(|at| s.lower(at) == "have");
            if have && matches!(s.lower(verb), "a" | "an") && recurring(s, verb..end) {
                return open_range(s, verb + 1..end);
            }
            if only && matches!(s.lower(verb), "a" | "an" | "one") {
                return open_range(s, s.skip_words(verb, &["a", "an"])..end);
            }
            // "We're 12 people for dinner".
            if contracted
                && !matches!(s.lower(start), "i've" | "we've")
                && let Some(amount) = quantity(s, verb, end)
                && ["people", "persons", "adults", "guests", "kids", "students"]
                    .contains(&s.lower(amount.end - 1))
            {
                return open_range(s, amount);
            }
            // "We have 3 bedrooms to paint".
            let has = (start + 1..verb).any(|at| s.lower(at) == "have")
                || matches!(s.lower(start), "i've" | "we've");
            let amount = quantity(s, verb, end).filter(|_| has)?;
            (s.stop(amount.end - 1) == Stop::Comma
                || s.lower(amount.end) == "to"
                || s.lower(amount.end) == "in")
                .then(|| Hit::open(FactKind::Fact, USER, Some(s.slice(amount))))
        }
    }
}

pub(super) fn range_has(s: &Sentence<'_>, range: &Range<usize>, words: &[&str]) -> bool {
    (0..range.end).any(|at| words.contains(&s.lower(at)))
}

/// Up to a comma after which another thought begins.
fn open_range(s: &Sentence<'_>, said: Range<usize>) -> Option<Hit> {
    let over = said.clone().skip(1).find(|at| {
        s.stop(at - 1) != Stop::None
            && (["so", "and", "but", "which", "because", "that", "please", "if", "who"]
                .contains(&s.lower(*at))
                || s.is(*at, Class::ClauseStarts))
    });
    let said = said.start..over.unwrap_or(said.end);
    is_value(s, &said).then(|| Hit::open(FactKind::Fact, USER, Some(s.slice(said))))
}

pub(super) fn dated(s: &Sentence<'_>, words: Range<usize>) -> bool {
    words.into_iter().any(|at| s.is(at, Class::MonthsDays) && s.lower(at) != "may")
}

fn recurring(s: &Sentence<'_>, words: Range<usize>) -> bool {
    words.into_iter().any(|at| matches!(s.lower(at), "every" | "each" | "weekly" | "monthly"))
}

pub(super) fn is_number_word(word: &str) -> bool {
    [
        "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
        "fifteen", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
        "hundred", "thousand", "dozen",
    ]
    .contains(&word)
}
