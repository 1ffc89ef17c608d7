//! Corrections that name only the new value ("make that the 21st of May"), and what comes in the place
//! of something else ("we ended up with the red one", "change of plan: Friday at six").

use std::ops::Range;

use super::Hit;
use super::forms::{dated, digits, is_number_word, range_has};
use super::phrase::{PROJECT, USER, is_specific, is_value, quantity, value};
use super::sentence::{Sentence, Stop};
use super::words::Class;
use crate::fact::FactKind;

/// Says that a value replaces one, wherever it stands in the sentence.
pub(super) fn corrects(s: &Sentence<'_>) -> bool {
    (0..s.len()).any(|at| {
        [
            "actually", "instead", "misspoke", "miscounted", "misread", "misremembered",
            "mistyped", "correction", "wrong", "changed", "lowered", "raised", "increased",
            "reduced", "moved", "rescheduled", "typo", "meant", "upped", "cut", "switched",
            "update", "anymore", "renamed", "letter", "rather",
        ]
        .contains(&s.lower(at))
            || s.phrase(
                at,
                &[
                    "my mistake", "turns out", "these days", "as of", "my bad", "from now",
                    "from today", "from march", "from april", "from may", "from june", "from july",
                    "from august", "from september", "from october", "from november",
                    "from december", "from january", "from february", "from next", "since last",
                    "since the", "sorry it's", "not anymore", "no longer", "it's now", "is now",
                    "ended up", "taken over", "took over", "taking over", "will be taking",
                ],
            )
            .is_some()
            || s.phrase(at, NEW_PLANS).is_some()
    })
}

/// Says that another rule or value holds from now on than the one before.
pub(super) fn turns(s: &Sentence<'_>) -> bool {
    (0..s.len()).any(|at| {
        !s.is_quoted(at)
            && (matches!(
                s.lower(at),
                "instead"
                    | "correction"
                    | "switch"
                    | "switched"
                    | "switching"
                    | "changed"
                    | "change"
                    | "rather"
                    | "anymore"
                    | "revised"
            ) || s.phrase(at, NEW_PLANS).is_some()
                || s.phrase(at, &["you can", "you may"]).is_some()
                    && (at..s.len()).any(|at| s.lower(at) == "now"))
    })
}

/// Whether a sentence opens with another plan: "New plan: ...", "on second thought, ...".
pub(super) fn replans(s: &Sentence<'_>) -> bool {
    (0..s.len().min(4))
        .any(|at| s.phrase(at, NEW_PLANS).is_some_and(|words| s.stop(at + words - 1) != Stop::None))
}

/// Say that what follows is another plan than before.
const NEW_PLANS: &[&str] = &[
    "second thought",
    "second thoughts",
    "new plan",
    "change of plan",
    "change of plans",
    "changed my mind",
    "change of heart",
    "you know what",
    "on reflection",
    "come to think",
    "no longer",
    "any more",
    "any longer",
    "scratch that",
    "strike that",
    "let's make",
    "let's switch",
    "let's change",
    "plans changed",
    "new idea",
    "thinking about it",
    "having thought about it",
    "plot twist",
    "forget what i",
];

/// A correction that names the new value alone: what it is a value of is told by what was said.
pub(super) fn new_value(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { mut start, end } = *range;
    if start >= 2 && s.has(start - 2, "i meant") {
        start -= 2;
    }
    let refer = |said: Range<usize>| {
        let hit = Hit::open(FactKind::Fact, USER, Some(s.slice(said)));
        Some(Hit { subject: PROJECT.to_owned(), refers: true, ..hit })
    };
    if let Some(words) =
        s.phrase(start, &["make it", "make that", "make this", "let's make it", "let's make that"])
    {
        let from =
            s.skip_words(start + words, &["the", "a", "an", "around", "about", "on", "at", "for"]);
        let said = value(s, from, end, false);
        let counted = said.clone().any(|at| is_number_word(s.lower(at)));
        let precise = digits(s, &said) || dated(s, said.clone()) || counted && corrects(s);
        return if precise { refer(said) } else { None };
    }
    if let Some(hit) = altered(s, start, end) {
        return Some(hit);
    }
    if let Some(said) = remade(s, start, end)
        .or_else(|| swapped(s, start, end))
        .or_else(|| ended_up(s, start, end))
        .or_else(|| successor(s, start, end))
        .or_else(|| replanned(s, start, end))
    {
        return refer(said);
    }
    if let Some(words) = s.phrase(
        start,
        &["it's", "it is", "that's", "i meant", "should be", "it should be", "that should be"],
    ) {
        // "It's not a peanut allergy, it's cashews".
        let denied = (0..start).find(|at| {
            s.phrase(*at, &["it's not", "it isn't", "it is not", "that's not"]).is_some()
        });
        if let Some(at) = denied {
            let head = (at + 2..start).find(|at| s.is(*at, Class::Properties));
            let said = value(s, start + words, end, false);
            return match head {
                Some(head) if is_value(s, &said) => {
                    Some(Hit::slot(FactKind::Fact, USER, s.lower(head), s.slice(said)))
                }
                _ if is_specific(s, said.clone()) => refer(said),
                _ => None,
            };
        }
        if !corrects(s) || matches!(s.lower(start + words), "not" | "no") {
            return None;
        }
        let named = s
            .phrase(start + words, &["called", "named", "at", "in", "on", "now", "the", "actually"])
            .unwrap_or(0);
        let from =
            s.skip_words(start + words + named, &["the", "a", "an", "at", "on", "in", "now"]);
        let said = value(s, from, end, false);
        let mut last = said.end;
        // "The Tuesday one, 18:05".
        if s.stop(last.saturating_sub(1)) == Stop::Comma
            && s.word(last).starts_with(|c: char| c.is_ascii_digit())
        {
            last = value(s, last, s.len(), false).end;
        }
        let said = said.start..last;
        let precise = digits(s, &said)
            || dated(s, said.clone())
            || s.word(said.start).contains('.') && s.word(said.start).len() > 3
            || (named > 0 || s.lower(start) == "i") && is_specific(s, said.clone())
            // "I've switched gyms, it's Ironhouse now".
            || s.is_name(said.start)
                && (0..start).any(|at| {
                    ["switched", "changed", "swapped", "replaced", "moved"].contains(&s.lower(at))
                });
        return if precise && is_value(s, &said) { refer(said) } else { None };
    }
    // "He gets 50 mg from today", "we pay 845 from March".
    if ["he", "she", "they", "it", "we", "i"].contains(&s.lower(start)) {
        let verb = s.skip_words(start + 1, &["now", "only", "just", "actually"]);
        let takes = [
            "gets", "takes", "pays", "pay", "get", "take", "costs", "leaves", "starts", "runs",
            "listens", "need", "needs", "is", "are", "weighs",
        ]
        .contains(&s.lower(verb));
        if takes && corrects(s) {
            let from = s.skip_words(
                verb + 1,
                &["now", "about", "only", "just", "at", "on", "port", "the", "to"],
            );
            if s.word(from).starts_with(|c: char| c.is_ascii_digit() || "€$£".contains(c)) {
                let last = quantity(s, from, end).map_or(from + 1, |amount| amount.end);
                return refer(from..last.min(end));
            }
        }
        // "We've found the Corn Exchange instead", "we're taking the 7:52".
        return None;
    }
    if matches!(s.lower(start), "we've" | "i've" | "we're" | "i'm") {
        let verb = s.skip_words(
            start + 1,
            &[
                "now", "just", "found", "booked", "chosen", "picked", "got", "taking", "going",
                "with", "using",
            ],
        );
        let from = s.skip_words(verb, &["the", "a", "an"]);
        let clear = verb > start + 1
            && from > verb
            && (s.is_name(from) && range_has(s, &(start..s.len()), &["instead"])
                || s.word(from).starts_with(|c: char| c.is_ascii_digit())
                    && s.word(from).contains(':'));
        if clear {
            let last =
                (from..end).find(|at| matches!(s.lower(*at), "instead" | "now")).unwrap_or(end);
            return refer(from..last);
        }
    }
    None
}

/// "Make the party 7 pm", "let's make workouts forty-five minutes".
fn remade(s: &Sentence<'_>, start: usize, end: usize) -> Option<Range<usize>> {
    let words = s.phrase(start, &["make", "let's make", "let us make", "we'll make"])?;
    if !corrects(s) {
        return None;
    }
    let exact = |at: usize| {
        s.word(at).starts_with(|c: char| c.is_ascii_digit() || "€$£".contains(c))
            || s.is(at, Class::MonthsDays)
            || s.lower(at).split('-').any(is_number_word)
    };
    let from = start + words;
    let at = (from + 1..end.min(from + 6))
        .take_while(|at| s.stop(at - 1) == Stop::None)
        .find(|at| exact(*at))?;
    let last = at - 1;
    let noun = |at: usize| {
        !["it", "that", "this", "me", "you", "sure", "us", "them", "him", "her", "up"]
            .contains(&s.lower(at))
    };
    let noun = noun(from) && noun(last);
    let said = value(s, at, end, false);
    let said = said.start..before_link(s, said.clone(), &["for", "instead", "from"]);
    (noun && !said.is_empty()).then_some(said)
}

/// "I traded the Skoda in for a Toyota Yaris", "we replaced Jenkins with Buildkite".
fn swapped(s: &Sentence<'_>, start: usize, end: usize) -> Option<Range<usize>> {
    let person =
        ["i", "we", "i've", "we've", "they", "they've", "he", "she"].contains(&s.lower(start));
    let verb = s.skip_words(start + 1, &["have", "just", "finally", "now", "recently", "also"]);
    let links: &[&str] = match s.lower(verb) {
        "traded" | "swapped" | "exchanged" => &["for"],
        "replaced" => &["with", "by"],
        "switched" | "changed" | "moved" | "migrated" if s.lower(verb + 1) == "from" => &["to"],
        _ => return None,
    };
    let known = (verb + 1..verb + 3)
        .any(|at| matches!(s.lower(at), "the" | "my" | "our" | "that" | "from") || s.is_name(at));
    let link = (verb + 2..end.min(verb + 9)).find(|at| links.contains(&s.lower(*at)))?;
    let from = s.skip_words(link + 1, &["a", "an", "the", "our", "my", "new"]);
    let said = value(s, from, end, false);
    let said = said.start..before_link(s, said.clone(), &["last", "as", "for", "this"]);
    (person && known && from < end && is_specific(s, said.clone())).then_some(said)
}

/// "We ended up with the Velvet Herons as the band".
fn ended_up(s: &Sentence<'_>, start: usize, end: usize) -> Option<Range<usize>> {
    let person = ["i", "we", "i've", "we've"].contains(&s.lower(start));
    let verb = s.skip_words(start + usize::from(person), &["have", "finally", "now", "just"]);
    let words = s.phrase(
        verb,
        &[
            "ended up with", "ended up at", "ended up in", "landed on", "wound up with",
            "switched to", "moved over to", "changed over to", "got bumped to", "got moved to",
            "were moved to", "were bumped to", "been moved to", "been bumped to",
            "been reassigned to", "got reassigned to", "been transferred to", "got transferred to",
            "been switched to", "got switched to",
        ],
    )?;
    let from = s.skip_words(verb + words, &["a", "an", "the"]);
    let said = value(s, from, end, false);
    let said = said.start..before_link(s, said.clone(), &["as", "for", "instead", "after"]);
    (person && is_specific(s, said.clone())).then_some(said)
}

/// "Ms Adeyemi is my landlord now": who was it before is so no more.
pub(super) fn succeeds(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    let last = (start..end.min(start + 4)).take_while(|at| s.is_name(*at)).last()?;
    let owned = s.phrase(last + 1, &["is my", "is our", "is the"])?;
    let now = (last + 1 + owned..end).any(|at| s.lower(at) == "now");
    let hit = Hit::open(FactKind::Fact, PROJECT, Some(s.slice(start..last + 1)));
    now.then_some(Hit { refers: true, ..hit })
}

/// "Hana Ito has taken over as team lead", "our new accountant is ..." of who was it before.
fn successor(s: &Sentence<'_>, start: usize, end: usize) -> Option<Range<usize>> {
    let last = (start..end.min(start + 4)).take_while(|at| s.is_name(*at)).last()?;
    s.phrase(
        last + 1,
        &[
            "has taken over as", "took over as", "is taking over as", "has taken over",
            "took over", "is taking over", "takes over", "will take over", "replaces",
            "has replaced", "replaced", "succeeds", "steps in as", "is now our", "is now the",
            "is now my", "is our new", "is my new", "is the new", "will be our new",
        ],
    )?;
    Some(start..last + 1)
}

/// "Change of plan: standup at 10:30 as of Monday".
fn replanned(s: &Sentence<'_>, start: usize, end: usize) -> Option<Range<usize>> {
    let lead = (0..start.min(8)).any(|at| {
        s.phrase(at, NEW_PLANS).is_some()
            || ["correction", "update", "change", "changed"].contains(&s.lower(at))
    });
    if !lead {
        return None;
    }
    let link = (start + 1..end.min(start + 5))
        .take_while(|at| s.stop(at - 1) == Stop::None)
        .find(|at| matches!(s.lower(*at), "at" | "on" | "in" | "to" | "from" | "="))?;
    let plain = (start..link).all(|at| {
        !s.is(at, Class::NotNouns) && !s.is(at, Class::Copulas)
            || matches!(s.lower(at), "the" | "our" | "my" | "is")
    });
    let said = value(s, s.skip_words(link + 1, &["the"]), end, false);
    let exact = digits(s, &said) || dated(s, said.clone());
    let said = said.start..before_link(s, said.clone(), &["as", "from", "starting", "instead"]);
    (plain && exact && !said.is_empty()).then_some(said)
}

/// The end of a value before a word that goes on about something else.
fn before_link(s: &Sentence<'_>, said: Range<usize>, links: &[&str]) -> usize {
    said.clone().skip(1).find(|at| links.contains(&s.lower(*at))).unwrap_or(said.end)
}

/// "Security bumped the password policy up to 16 characters": whoever changed it.
fn altered(s: &Sentence<'_>, start: usize, end: usize) -> Option<Hit> {
    let verb = (start + 1..end.min(start + 5))
        .take_while(|at| s.stop(at - 1) == Stop::None)
        .find(|at| s.is(*at, Class::Changes))?;
    let plain = (start..verb).all(|at| {
        !s.is(at, Class::NotNouns)
            || ["they", "someone", "has", "have", "just"].contains(&s.lower(at))
    });
    let known = matches!(s.lower(verb + 1), "the" | "our" | "my");
    if !plain || !known {
        return None;
    }
    super::statement::changed(s, verb, end)
}
