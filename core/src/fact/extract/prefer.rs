//! What the user likes better: "I prefer window seats", "my fave topping is artichoke", "dark mode
//! suits me better", "not keen on phone calls".

use std::ops::Range;

use super::Hit;
use super::phrase::{USER, noun_within};
use super::sentence::{Sentence, Stop};
use super::topic;
use super::words::Class;
use crate::fact::FactKind;

/// The preference that the clause `range` states.
pub(super) fn preference(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    rather(s, start, end)
        .or_else(|| favourite(s, start, end))
        .or_else(|| suits(s, start, end))
        .or_else(|| averse(s, start, end))
        .or_else(|| compared(s, start, end))
}

/// "I prefer tea over coffee", "I'd rather read a table than a wall of text".
fn rather(s: &Sentence<'_>, start: usize, end: usize) -> Option<Hit> {
    let person =
        ["i", "we", "i'd", "we'd", "i've", "we've", "and", "personally"].contains(&s.lower(start));
    let verb = s.skip_words(
        start + usize::from(person),
        &[
            "i", "we", "really", "still", "much", "actually", "generally", "usually", "now",
            "always", "would", "tend", "to", "do", "strongly", "definitely", "very", "far", "also",
            "personally", "come", "have", "mostly", "normally", "typically", "honestly", "and",
        ],
    );
    let joined = s.lower(start) == "prefer" && start > 0;
    if !person && !joined || verb >= end {
        return None;
    }
    let first = s.lower(verb);
    let words = match first {
        "prefer" | "preferred" => 1,
        "rather" | "sooner" if verb > start => 1,
        "favour" | "favor" => 1,
        _ => return None,
    };
    let from = s.skip_words(verb + words, &["to", "having", "using", "have"]);
    let object = from..ended(s, from, end);
    // "I prefer it that way", "I'd rather you did", "I prefer not to say".
    let idle =
        ["it", "that", "this", "you", "not", "them", "him", "her", "if", "these", "those", "one"]
            .contains(&s.lower(from))
            || s.is(from, Class::RejectedObjects)
                && !["all", "reading", "talking", "everything", "working"].contains(&s.lower(from))
            || matches!(s.lower(from), "what" | "which" | "no");
    if object.is_empty() || idle {
        return None;
    }
    let than = (object.end..end).find(|at| matches!(s.lower(*at), "over" | "to" | "than"));
    let other = than.map(|at| at + 1..ended(s, at + 1, end));
    Some(hit(s, object, other, start..end))
}

/// Where an object of liking ends.
fn ended(s: &Sentence<'_>, from: usize, end: usize) -> usize {
    (from..end)
        .find(|at| {
            *at > from && s.stop(at - 1) != Stop::None
                || [
                    "over", "than", "rather", "instead", "when", "whenever", "because", "since",
                    "if", "though", "but", "so", "while", "as", "for", "now", "and", "these",
                    "any", "tbh", "to", "anyway", "more", "where", "on", "unless", "nowadays",
                    "lately", "ever", "too",
                ]
                .contains(&s.lower(*at))
                    && *at > from
                    && !(s.lower(*at) == "to"
                        && matches!(s.lower(at - 1), "close" | "next" | "near"))
        })
        .unwrap_or(end)
}

/// "My favourite colour is green", "my preferred editor is Helix", "Assam is my favourite tea".
fn favourite(s: &Sentence<'_>, start: usize, end: usize) -> Option<Hit> {
    let liked = (start..end.min(start + 8)).find(|at| {
        ["favourite", "favorite", "fave", "fav", "preferred", "go-to"].contains(&s.lower(*at))
    })?;
    let mine = |at: usize| matches!(s.lower(at), "my" | "our");
    let near = liked > start && (mine(liked - 1) || s.lower(liked - 1) == "all-time");
    let near = near || liked > start + 1 && mine(liked - 2);
    if !near {
        return None;
    }
    let begins = matches!(s.lower(start), "my" | "our");
    let verb = (liked + 1..end.min(liked + 6)).find(|at| {
        ["is", "are", "has", "was", "would", "=", ":"].contains(&s.lower(*at))
            || s.stop(at - 1) == Stop::Colon
    });
    let kind = FactKind::Preference;
    if let Some(verb) = verb.filter(|_| begins) {
        let from = s.skip_words(
            verb,
            &[
                "is", "are", "has", "been", "would", "be", "always", "still", "probably",
                "definitely", "now", "has", "the", "was",
            ],
        );
        let object = from..ended(s, from, end);
        if object.is_empty()
            || ["what", "when", "that", "this", "it", "how", "not"].contains(&s.lower(from))
            || s.lower(verb) == "was"
        {
            return None;
        }
        let noun =
            if liked + 1 < verb { s.slice(liked + 1..verb).to_lowercase() } else { String::new() };
        let attribute = if noun.is_empty() { None } else { Some(format!("favourite {noun}")) };
        let value = s.slice(object);
        return Some(match attribute {
            Some(attribute) => Hit::slot(kind, USER, &attribute, value),
            None => Hit::open(kind, USER, Some(value)),
        });
    }
    // "Assam is my favourite tea".
    let is = (start + 1..liked).find(|at| matches!(s.lower(*at), "is" | "are"))?;
    if ["what", "which", "that", "this", "it", "who", "where"].contains(&s.lower(start)) {
        return None;
    }
    let noun = noun_within(s, liked + 1, ended(s, liked + 1, end))?;
    let attribute = format!("favourite {}", s.slice(noun.words).to_lowercase());
    Some(Hit::slot(kind, USER, &attribute, s.slice(start..is)))
}

/// "Functional style suits me more than classes", "email works best for me".
fn suits(s: &Sentence<'_>, start: usize, end: usize) -> Option<Hit> {
    let verb = (start + 1..end).find(|at| {
        matches!(s.lower(*at), "suit" | "suits") && matches!(s.lower(at + 1), "me" | "us")
            || matches!(s.lower(*at), "work" | "works")
                && matches!(s.lower(at + 1), "best" | "better")
                && matches!(s.lower(at + 2), "for")
                && matches!(s.lower(at + 3), "me" | "us")
            || matches!(s.lower(*at), "is" | "are" | "feels" | "feel")
                && (at + 1..end.min(at + 6))
                    .any(|to| matches!(s.lower(to), "nicer" | "better" | "easier"))
                && (at + 1..end.min(at + 7)).any(|to| {
                    matches!(s.lower(to), "to" | "for") && matches!(s.lower(to + 1), "me" | "us")
                })
            || matches!(s.lower(*at), "is" | "are")
                && s.has(at + 1, "what i")
                && ["reach", "go", "use", "like", "pick", "prefer"].contains(&s.lower(at + 3))
            || matches!(s.lower(*at), "is" | "are")
                && matches!(s.lower(at + 1), "my" | "our")
                && ["thing", "jam", "preference", "favourite", "favorite"]
                    .contains(&s.lower(at + 2))
    })?;
    let from = s.skip_words(start, &["the", "honestly", "a", "an"]);
    let pronoun = [
        "it", "that", "this", "these", "those", "what", "which", "they", "i", "everything",
        "nothing",
    ]
    .contains(&s.lower(start));
    (!pronoun && from < verb).then(|| hit(s, from..verb, None, start..end))
}

/// "I can't stand deep nesting", "I'm not a fan of guided tours", "not keen on phone calls".
fn averse(s: &Sentence<'_>, start: usize, end: usize) -> Option<Hit> {
    let at = s.skip_words(
        start,
        &[
            "i", "we", "i'm", "we're", "i've", "really", "am", "do", "also", "always", "still",
            "just", "absolutely", "are", "have", "grown", "become", "quite", "rather", "very",
            "become", "pretty", "so",
        ],
    );
    let person =
        at > start && ["i", "we", "i'm", "we're", "i've", "we've"].contains(&s.lower(start));
    let bare = at == start && s.lower(at) == "not";
    if !person && !bare {
        return None;
    }
    let words = s.phrase(
        at,
        &[
            "not keen on", "not a fan of", "not a big fan of", "not a huge fan of", "no fan of",
            "no fans of", "not fans of", "big fans of", "fans of", "not fond of", "not into",
            "not much of a fan of", "a big fan of", "a huge fan of", "a fan of", "fond of",
            "keen on", "partial to", "more of a", "don't care for", "dislike", "detest", "loathe",
            "can't stand", "cannot stand", "can't bear", "don't like", "do not like",
            "never liked", "never cared for", "hate", "despise",
        ],
    )?;
    let object = at + words..ended(s, at + words, end);
    let idle = s.is(object.start, Class::RejectedObjects)
        || ["it", "that", "this", "to", "what", "you", "the", "how"]
            .contains(&s.lower(object.start))
            && !(s.lower(object.start) == "the" && object.len() > 2);
    if object.is_empty() || idle || bare && s.lower(at + 1) == "a" && words < 3 {
        return None;
    }
    Some(hit(s, at..object.end, None, start..end))
}

/// "I like postgres better than mysql", "dark mode > light mode for me", "I'll pick trains".
fn compared(s: &Sentence<'_>, start: usize, end: usize) -> Option<Hit> {
    if matches!(s.lower(start), "i" | "we") {
        let verb = s.skip_words(start + 1, &["really", "do", "just", "also", "generally", "would"]);
        if matches!(s.lower(verb), "like" | "love" | "enjoy" | "find") {
            let than = (verb + 2..end).find(|at| {
                matches!(s.lower(*at), "better" | "more" | "best" | "most")
                    && (matches!(s.lower(at + 1), "than" | "")
                        || at + 1 >= end
                        || matches!(s.lower(*at), "best" | "most"))
            })?;
            let other = (s.lower(than + 1) == "than").then(|| than + 2..ended(s, than + 2, end));
            return Some(hit(s, verb + 1..than, other, start..end));
        }
    }
    // "Between trains and planes I'll pick trains".
    let picks = (start..end).filter(|_| s.lower(start) == "between").find(|at| {
        matches!(s.lower(*at), "i'll" | "i'd" | "i")
            && (s
                .phrase(
                    at + 1,
                    &[
                        "always pick", "always choose", "always go for", "usually pick",
                        "usually go for", "pick", "go for", "choose", "take",
                    ],
                )
                .is_some())
    });
    if let Some(at) = picks
        && s.lower(start) == "between"
    {
        let words = s.phrase(
            at + 1,
            &[
                "always pick", "always choose", "always go for", "usually pick", "usually go for",
                "pick", "go for", "choose", "take",
            ],
        )?;
        let from = at + 1 + words;
        return Some(hit(s, from..ended(s, from, end), None, start..end));
    }
    // "We're more tea than coffee people".
    let sign =
        (start + 1..end).find(|at| s.lower(*at) == ">" || s.has(*at, "over") && at + 1 < end)?;
    let tail = (sign + 1..s.len())
        .any(|at| s.phrase(at, &["for me", "any day", "every time", "all the way"]).is_some());
    let short = sign - start <= 4
        && (start..sign).all(|at| s.stop(at) == Stop::None && !s.is(at, Class::Copulas));
    if !tail || !short || s.is(start, Class::NotNouns) {
        return None;
    }
    let from = s.skip_words(start, &["tbh", "honestly", "imo"]);
    Some(hit(s, from..sign, Some(sign + 1..ended(s, sign + 1, end)), start..end))
}

/// A preference under its topic; without one, under the thing that it is preferred to, so that a
/// change of mind supersedes it; else under the last noun of what is liked.
fn hit(
    s: &Sentence<'_>,
    object: Range<usize>,
    other: Option<Range<usize>>,
    whole: Range<usize>,
) -> Hit {
    let kind = FactKind::Preference;
    let value = s.slice(object.clone());
    let told = topic::topic(s, object.clone())
        .or_else(|| other.clone().and_then(|other| topic::topic(s, other)))
        .or_else(|| topic::topic(s, whole));
    let attribute = told.or_else(|| {
        let other = s.slice(other.filter(|other| !other.is_empty())?);
        let mut pair = [topic::words_of(value)?, topic::words_of(other)?];
        pair.sort();
        Some(pair.join(" or "))
    });
    match attribute {
        Some(attribute) => Hit::slot(kind, USER, &attribute, value),
        None => Hit::open(kind, USER, Some(value)),
    }
}
