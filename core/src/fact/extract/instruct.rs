//! How the assistant should act from now on: "always use tabs", "call me Priya", "no emojis in your
//! replies", "remember that my mum can't climb stairs".
//!
//! An order is an instruction only where something says that it stands: "from now on", "whenever
//! you", "every answer", "in your replies". One that is for this once is none, and neither is one
//! that the user reports or quotes.

use std::ops::Range;

use super::Hit;
use super::changes;
use super::orders::{
    ASKING, BEFORE, LASTING, LEADS, MADE, ONCE, REMEMBER, is_kindness, is_verb, lasting, reported,
};
use super::phrase::USER;
use super::sentence::{Sentence, Stop};
use super::topic;
use super::words::Class;
use crate::fact::FactKind;

/// The subject of what is to be remembered, until the sentence is read.
const MEMORY: &str = "memory";

/// An instruction with the words that state it.
pub(super) type Found = (Hit, Range<usize>);

/// The instructions of a sentence. `asks` says that it is a question, `after` says that the sentence before is an instruction, `weak`
/// that something else than the sentence says that it stands.
pub(super) fn instructions(s: &Sentence<'_>, asks: bool, after: bool, weak: bool) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    if s.len() < 2 || s.len() > 60 || weak && s.is_quoted(0) {
        return found;
    }
    let remembers = (0..s.len()).any(|at| s.among(at, &REMEMBER).is_some());
    let replans = changes::replans(s);
    let lasting = weak || remembers || lasting(s) || replans && made(s);
    // Without anything that says that it stands, few forms are left.
    let named = (0..s.len()).any(|at| {
        matches!(
            s.lower(at),
            "call"
                | "address"
                | "refer"
                | "greet"
                | "calling"
                | "addressing"
                | "speak"
                | "stop"
                | "all"
                | "any"
                | "every"
                | "each"
                | "your"
                | "never"
        ) || MADE.contains(&s.lower(at))
            || topic::of_word(s.lower(at)).is_some()
    });
    if !lasting && !after && !named {
        return found;
    }
    if (0..s.len()).any(|at| !s.is_quoted(at) && s.among(at, &ONCE).is_some() && !long_while(s, at))
    {
        return found;
    }
    let mut previous_orders = false;
    for Range { start, end } in segments(s) {
        if s.is_quoted(start) || is_kindness(s, start) || continues(s, start, previous_orders) {
            previous_orders = false;
            continue;
        }
        let segment = start..end;
        let idle = s.among(start, &LASTING).is_some_and(|words| start + words >= end);
        if idle || found.last().is_some_and(|(_, at)| start < at.end) {
            continue;
        }
        let told = remember(s, &segment)
            .filter(|_| !asks)
            .or_else(|| naming(s, &segment))
            .or_else(|| order(s, &segment, lasting, after, previous_orders))
            .or_else(|| wanted(s, &segment, lasting))
            .or_else(|| bare(s, &segment, lasting, weak || remembers || replans));
        let told = told.filter(|_| weak || !reported(s, start));
        previous_orders = told.is_some();
        found.extend(told);
    }
    // "Bear in mind that they are twelve, so nothing violent": the order is what is to be kept.
    if remembers && found.iter().any(|(hit, _)| hit.subject != MEMORY) {
        found.retain(|(hit, _)| hit.subject != MEMORY);
    }
    for (hit, _) in &mut found {
        if hit.subject == MEMORY {
            USER.clone_into(&mut hit.subject);
        }
    }
    found
}

/// Whether a sentence speaks of what an assistant makes.
fn made(s: &Sentence<'_>) -> bool {
    (0..s.len()).any(|at| !s.is_quoted(at) && MADE.contains(&s.lower(at)))
}

/// Stretches between stops and conjunctions, each from its first word that may be an order's.
fn segments(s: &Sentence<'_>) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    for at in 1..s.len() {
        let stop = s.stop(at - 1);
        let joined = ["so", "and", "but", "because", "then", "instead"].contains(&s.lower(at))
            && stop == Stop::None;
        if stop != Stop::None || joined && !s.is_quoted(at) {
            starts.push(at);
        }
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([s.len()]).collect();
    let bounds = starts.into_iter().zip(ends);
    bounds
        .filter_map(|(start, end)| {
            let mut at = start;
            loop {
                let skipped = usize::from(BEFORE.contains(&s.lower(at)))
                    .max(s.among(at, &LEADS).unwrap_or(0));
                if skipped == 0 || at + skipped > end {
                    break;
                }
                at += skipped;
            }
            (at < end).then_some(at..end)
        })
        .collect()
}

/// "You never shy away and always try something new": the verb has a subject before it.
fn continues(s: &Sentence<'_>, start: usize, previous_orders: bool) -> bool {
    let joined =
        (1..=start).rev().take(3).find(|at| matches!(s.lower(*at), "and" | "but" | "then"));
    let Some(at) = joined.filter(|at| s.stop(at - 1) == Stop::None) else { return false };
    // "Would you do me a favour and put the answer first each time?"
    if matches!(s.lower(at - 1), "favour" | "favor" | "kindness" | "habit") {
        return false;
    }
    let subject = (0..at).any(|at| {
        let word = s.lower(at).split('\'').next().unwrap_or_default();
        matches!(word, "i" | "you" | "we" | "they" | "he" | "she" | "it" | "that" | "which" | "who")
    });
    // "Our neighbour makes everyone take off their shoes and always speak German".
    let of_others = at > 1
        && (["my", "our", "the", "his", "her", "their", "everyone"].contains(&s.lower(0))
            || s.is_name(0) && s.is_name(1))
        && !matches!(s.lower(at + 1), "please" | "pls" | "kindly" | "so" | "from");
    !previous_orders && (subject || of_others)
}

/// "Remember that ...": what is to be remembered.
fn remember(s: &Sentence<'_>, segment: &Range<usize>) -> Option<Found> {
    let words = s.among(segment.start, &REMEMBER)?;
    let at = segment.start + words;
    // "Remember when phones had buttons?", "keep in mind for now".
    if at >= s.len() || ["when", "that", "this", "it", "to"].contains(&s.lower(at)) {
        return None;
    }
    let end = (at + 1..s.len())
        .find(|next| {
            s.stop(next - 1) != Stop::None
                && matches!(s.lower(*next), "so" | "and" | "but" | "please")
        })
        .unwrap_or(s.len());
    let end = cut(s, at, end).max(at + 1);
    let hit = Hit::open(FactKind::Instruction, MEMORY, Some(s.slice(at..end)));
    Some((hit, segment.start..s.len().min(end)))
}

/// "Call me Priya", "address me as Dr. Okafor".
fn naming(s: &Sentence<'_>, segment: &Range<usize>) -> Option<Found> {
    let mut start = segment.start;
    if let Some(words) = s.among(start, &ASKING) {
        start += words;
    }
    start = s.skip_words(start, &["always", "please", "just"]);
    let named = s.phrase(
        start,
        &[
            "call me", "address me as", "address me by", "refer to me as", "greet me as",
            "speak to me as", "calling me", "addressing me as",
        ],
    )?;
    let name = start + named;
    let negated = segment.start < start
        && (segment.start..start)
            .any(|at| ["stop", "not", "don't", "never", "mind"].contains(&s.lower(at)));
    let is_name = s.is_name(name) || s.is_quoted(name) || s.lower(name) == "by" || named > 2;
    // "Call me Monday", "call me when it is done".
    let no_name = s.is(name, Class::MonthsDays)
        || [
            "when", "if", "back", "at", "later", "on", "a", "once", "before", "after", "maybe",
            "tomorrow",
        ]
        .contains(&s.lower(name));
    if !is_name || no_name || negated || name >= segment.end.max(name + 1) {
        return None;
    }
    let mut end = name + 1;
    while end < segment.end && (s.is_name(end) || s.is_quoted(end)) && s.stop(end - 1) == Stop::None
    {
        end += 1;
    }
    let hit = Hit::slot(FactKind::Instruction, USER, "called", s.slice(start..end));
    Some((hit, segment.start..segment.end))
}

/// An order: an imperative, or one of the forms that stand before a verb.
fn order(
    s: &Sentence<'_>,
    segment: &Range<usize>,
    lasting: bool,
    after: bool,
    previous: bool,
) -> Option<Found> {
    let Range { start, end } = segment.clone();
    let mut at = start;
    // "In code you write, ..." and "when you ..." are no orders themselves.
    if ["when", "whenever", "if", "while", "unless", "for", "every", "each", "any", "all", "with"]
        .contains(&s.lower(at))
    {
        let inner = main_clause(s, segment)?;
        at = inner;
    }
    let lets = lasting
        && s.lower(at) == "let's"
        && [
            "keep", "stick", "use", "write", "speak", "switch", "stay", "make", "change", "move",
            "drop", "stop", "skip", "avoid", "try", "call", "not",
        ]
        .contains(&s.lower(at + 1));
    let asking = s.among(at, &ASKING).or_else(|| lets.then_some(1));
    let allows = asking.is_some() && matches!(s.lower(at + 1), "can" | "may");
    if let Some(words) = asking {
        at += words;
    }
    let ruled = at > 0 && s.stop(at - 1) == Stop::Colon && s.lower(at) == "you";
    at += usize::from(ruled);
    let told = at;
    at = s.skip_words(
        at,
        &[
            "please", "always", "kindly", "just", "also", "maybe", "at", "least", "really",
            "consistently", "pls",
        ],
    );
    let from = at;
    at = s.skip_words(
        at,
        &[
            "never", "don't", "dont", "do", "not", "only", "ever", "even", "refrain", "from",
            "stop", "avoid", "no",
        ],
    );
    let negated = at > from;
    let verb = s.lower(at);
    let gerund = negated && verb.ends_with("ing") && verb.len() > 4;
    let base = if gerund { "" } else { verb };
    let stopping = negated && matches!(s.lower(at - 1), "avoid" | "no" | "stop" | "from");
    // "Can you always trust a forecast?" asks; "let's go" is nothing that stands.
    let general =
        matches!(s.lower(told.saturating_sub(2)), "can" | "could") && !is_verb(base) && !gerund;
    if asking.is_some() && general {
        return None;
    }
    let is_order = is_verb(base)
        || lasting
            && leads_with_when(s)
            && at == start
            && !s.is(at, Class::NotNouns)
            && verb.len() > 2
        || gerund
        || asking.is_some() && !s.is(at, Class::NotNouns) && verb.len() > 2
        || stopping && at < end
        || ruled;
    if !is_order || at >= end || s.is_quoted(at) {
        return None;
    }
    if s.has(from, "never say never") || s.lower(at + 1).is_empty() && verb == "say" {
        return None;
    }
    if matches!(verb, "be" | "being") && s.lower(at + 1).is_empty()
        || s.lower(from) == "never" && verb == "mind"
    {
        return None;
    }
    // "Use of", "show is": a noun.
    if asking.is_none()
        && !negated
        && (["of", "is", "are", "was", "were", "has", "'s"].contains(&s.lower(at + 1))
            || s.stop(at) == Stop::Colon)
    {
        return None;
    }
    if allows
        && !["drop", "skip", "stop", "leave", "omit", "assume", "ignore", "use"].contains(&verb)
    {
        return None;
    }
    // "Write dates day first": of all of them.
    let every = [
        "dates", "times", "prices", "temperatures", "distances", "weights", "measurements",
        "units", "lists", "headings", "citations", "references", "names", "numbers", "metric",
        "imperial", "british", "american",
    ]
    .contains(&s.lower(at + 1));
    let ceasing = s.lower(from) == "stop" && gerund && verb_of(verb);
    let stands = lasting
        || ceasing
        || every && asking.is_some_and(|_| s.lower(told.saturating_sub(1)) != "can")
        || previous
        || after && (s.lower(0) == "just" || s.lower(0) == "instead")
        || s.lower(from) == "never" && negated && !matches!(verb, "mind" | "say" | "give");
    if !stands {
        return None;
    }
    // "So keep that in mind when we talk": says nothing by itself.
    if s.phrase(at, &["keep that in", "keep it in", "keep this in", "bear that in", "bear it in"])
        .is_some()
    {
        return None;
    }
    let value = from..cut(s, at, extend(s, at, end));
    if value.len() < 2 && !gerund && !negated {
        return None;
    }
    Some((hit(s, value.clone(), segment), start..end.max(value.end)))
}

/// "When I paste code, review it": the comma ends the condition.
fn leads_with_when(s: &Sentence<'_>) -> bool {
    matches!(s.lower(0), "when" | "whenever" | "if")
        || s.has(0, "every time")
        || s.has(0, "each time")
}

/// "Calling", "using", "apologising": of a verb of orders.
fn verb_of(gerund: &str) -> bool {
    let Some(stem) = gerund.strip_suffix("ing") else { return false };
    let doubled =
        stem.len() > 2 && stem.as_bytes()[stem.len() - 1] == stem.as_bytes()[stem.len() - 2];
    is_verb(stem)
        || is_verb(&format!("{stem}e"))
        || doubled && is_verb(stem.get(..stem.len() - 1).unwrap_or_default())
}

/// Where the main clause begins in a segment that opens with a subordinate one without a comma:
/// "when you talk about Robin use they/them".
fn main_clause(s: &Sentence<'_>, segment: &Range<usize>) -> Option<usize> {
    // "If you ever write python use ...": the first verb is the subordinate clause's.
    let mut from = segment.start + 1;
    if matches!(s.lower(from), "you" | "i" | "we") {
        from = s
            .skip_words(from + 1, &["ever", "do", "have", "to", "are", "am", "always", "never"])
            + 1;
    }
    (from.max(segment.start + 2)..segment.end).find(|at| {
        let before = s.lower(at - 1);
        let object = [
            "to", "i", "you", "we", "and", "the", "a", "an", "my", "your", "of", "for", "please",
            "that", "should", "they", "he", "she", "it", "people",
        ]
        .contains(&before);
        let marker = ["never", "always", "please", "don't", "only"].contains(&s.lower(*at));
        (marker || is_verb(s.lower(*at))) && !object
    })
}

/// "I want all lists numbered", "all times you mention should be in Lisbon time", "prices were given
/// in francs whenever you quote any".
fn wanted(s: &Sentence<'_>, segment: &Range<usize>, lasting: bool) -> Option<Found> {
    let Range { start, end } = segment.clone();
    let wants = s.phrase(
        start,
        &[
            "i want",
            "i need",
            "i'd like",
            "i would like",
            "i'd love",
            "i expect",
            "i like",
            "i prefer",
            "i'd prefer",
            "i'd appreciate it if",
            "i would appreciate it if",
            "it'd be great if",
            "it would be great if",
            "make sure",
            "make sure that",
            "i'd be grateful if",
        ],
    );
    let object = start + wants.unwrap_or(0);
    let of_output = ["all", "any", "every", "each", "your", "no"].contains(&s.lower(object))
        || MADE.contains(&s.lower(object))
        || topic::of_word(s.lower(object)).is_some();
    if !of_output || matches!(s.lower(object + 1), "the" | "of") {
        return None;
    }
    let modal = (object + 1..end).find(|at| match s.lower(*at) {
        "should" | "must" | "shall" | "ought" => true,
        "need" | "needs" | "has" | "have" | "are" => s.lower(at + 1) == "to",
        // "Lists get em dashes now".
        "get" | "gets" | "go" | "goes" | "belong" => *at == object + 1 && !quantifies(s, object),
        _ => false,
    });
    let quantified = ["all", "any", "every", "each", "your"].contains(&s.lower(object));
    if wants.is_none() {
        // "Lists get em dashes now": of a topic, and not of somebody's.
        let modal = modal?;
        let other = MADE.contains(&s.lower(object)) && changes::turns(s);
        if !(lasting || other || quantified && s.lower(object + 1) != "people")
            || modal > object + 6
            || s.is(object, Class::Reports)
        {
            return None;
        }
        let rest = s.skip_words(modal + 1, &["be", "to", "always", "only", "never", "have"]);
        let from = if rest < end { rest } else { object };
        let value = from..cut(s, from, extend(s, from, end));
        let told = topic::topic(s, object..end);
        let attribute = told.or_else(|| topic::words_of(s.slice(object..end)))?;
        return Some((
            Hit::slot(FactKind::Instruction, USER, &attribute, s.slice(value)),
            segment.clone(),
        ));
    }
    if !quantified && !lasting || end - object < 3 {
        return None;
    }
    let value = object..cut(s, object, extend(s, object, end));
    Some((hit(s, value, segment), segment.clone()))
}

fn quantifies(s: &Sentence<'_>, at: usize) -> bool {
    matches!(s.lower(at), "all" | "any" | "every" | "each" | "your")
}

/// "Temperatures in celsius", "no emojis in your replies": without a verb, where something else
/// says that it stands.
fn bare(s: &Sentence<'_>, segment: &Range<usize>, lasting: bool, weak: bool) -> Option<Found> {
    let Range { mut start, end } = segment.clone();
    if !lasting {
        return None;
    }
    start = s.skip_words(start, &["it's", "and", "is"]);
    if s.among(start, &LASTING).is_some() || s.among(start, &ONCE).is_some() {
        return None;
    }
    // "Whenever I paint" alone says too little about what has no verb.
    let strong = (0..s.len()).any(|at| !s.is_quoted(at) && s.among(at, &LASTING).is_some());
    let titled = start > 0 && s.stop(start - 1) == Stop::Colon;
    let of_all = quantifies(s, start)
        && (MADE.contains(&s.lower(start + 1)) || topic::of_word(s.lower(start + 1)).is_some());
    if !strong && !titled && !weak && !of_all && !s.has(start + 2, "at a time") {
        return None;
    }
    let verbs = (start..end).any(|at| {
        s.is(at, Class::Copulas)
            || [
                "i", "i'm", "i've", "i'll", "i'd", "we", "he", "she", "they", "it", "that's",
                "it's", "do", "does", "did", "can", "could", "would", "what", "how", "why", "who",
                "got", "means", "nobody", "holds", "goes", "looks",
            ]
            .contains(&s.lower(at))
    });
    let you = s.lower(start) == "you";
    let first = s.lower(start);
    let none =
        ["no", "nothing", "not", "only", "max", "maximum", "one", "without"].contains(&first);
    // "Recipes in cups and ounces".
    let form = MADE.contains(&first)
        && matches!(s.lower(start + 1), "in" | "as" | "with" | "on" | "without" | "only" | "under");
    let known = form
        || (start..end).any(|at| !s.is_quoted(at) && topic::of_word(s.lower(at)).is_some())
        || topic::topic(s, start..end).is_some();
    let named = s.stop(start.saturating_sub(1)) == Stop::Colon && start > 0;
    // "Two standing rules: ..." names what follows.
    let title = s.stop(end - 1) == Stop::Colon;
    if verbs || you || title || end - start < 2 || !(none || known || named) {
        return None;
    }
    let subordinate = [
        "when", "whenever", "if", "for", "in", "from", "as", "every", "each", "since", "after",
        "before", "because", "to", "with", "at", "between", "thanks", "thx", "without",
    ]
    .contains(&first);
    let idle = first == "no"
        && ["exceptions", "matter", "worries", "problem", "idea"].contains(&s.lower(start + 1));
    if subordinate || idle {
        return None;
    }
    let mut end = if named { extend(s, start, end) } else { end };
    // What "and" adds to it without a verb.
    if form && end < s.len() && s.lower(end) == "and" && s.stop(end - 1) == Stop::None {
        let next = (end + 1..s.len()).find(|at| s.stop(at - 1) != Stop::None).unwrap_or(s.len());
        if next <= end + 4 && !(end + 1..next).any(|at| is_verb(s.lower(at))) {
            end = next;
        }
    }
    let value = start..cut(s, start, end);
    (value.len() >= 2 || none || s.is_name(start))
        .then(|| (hit(s, value.clone(), segment), segment.start..value.end.max(segment.end)))
}

/// An instruction under its topic; for a named person where it is about one.
fn hit(s: &Sentence<'_>, value: Range<usize>, segment: &Range<usize>) -> Hit {
    let topic = topic::topic(s, value.clone()).or_else(|| {
        topic::topic(s, segment.clone())
            .filter(|topic| topic != "language" && topic != "code language")
    });
    let text = s.slice(value.clone());
    let subject = match &topic {
        // "They/them for Robin": of that person.
        Some(topic) if topic == "pronouns" => (0..s.len())
            .rev()
            .find(|at| *at > 0 && s.is_name(*at) && !s.is_quoted(*at))
            .map(|at| s.word(at)),
        _ => None,
    };
    match topic.or_else(|| topic::words_of(text)) {
        Some(attribute) => {
            Hit::slot(FactKind::Instruction, subject.unwrap_or(USER), &attribute, text)
        }
        None => Hit::open(FactKind::Instruction, USER, Some(text)),
    }
}

/// What follows a comma may belong to the order: "hints, not the solution".
fn extend(s: &Sentence<'_>, at: usize, mut end: usize) -> usize {
    let mut look = end;
    while look < s.len()
        && ["not", "nothing", "max", "at", "or", "no", "never"].contains(&s.lower(look))
        && s.stop(look - 1) == Stop::Comma
        && look > at
    {
        let next = (look + 1..s.len()).find(|at| s.stop(*at - 1) != Stop::None).unwrap_or(s.len());
        end = next;
        look = next;
    }
    end
}

/// Where the words of an order end: what says when it holds, or why, is no part of them.
fn cut(s: &Sentence<'_>, at: usize, end: usize) -> usize {
    let over = |next: &usize| {
        let word = s.lower(*next);
        [
            "when", "whenever", "while", "because", "since", "unless", "until", "please", "pls",
            "if", "instead", "afterwards", "ok", "anymore", "always", "so",
        ]
        .contains(&word)
            || s.phrase(
                *next,
                &[
                    "from now", "from here", "from today", "from this", "in future",
                    "in the future", "going forward", "every time", "each time", "in everything",
                    "in all", "for all", "for everything", "any time", "at all times",
                    "for the lot", "in your", "for the rest", "in our", "by default", "as a habit",
                    "as a rule", "for as long", "as long as", "for the whole", "then", "any more",
                    "now and", "for anything", "for any", "for every",
                ],
            )
            .is_some()
    };
    // "Speak to me in Polish" goes on.
    let whom = |next: &usize| {
        s.phrase(*next, &["for me", "for us", "to me", "to us", "with me"])
            .is_some_and(|words| next + words >= end || over(&(next + words)))
    };
    let before = |next: &usize| *next >= at + 3 && s.has(*next, "before you");
    (at + 1..end).find(|next| over(next) || whom(next) || before(next)).unwrap_or(end)
}

/// "For the next months", "for the next two years": as long as a standing order lasts.
fn long_while(s: &Sentence<'_>, at: usize) -> bool {
    s.has(at, "for the next")
        && (at + 3..at + 6).any(|at| {
            matches!(
                s.lower(at),
                "weeks" | "month" | "months" | "year" | "years" | "semester" | "term" | "quarter"
            )
        })
}
