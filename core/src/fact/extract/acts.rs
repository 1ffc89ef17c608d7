//! Decisions, tasks, links and named things.

use std::ops::Range;

use super::Hit;
use super::person::first_person;
use super::phrase::{PROJECT, USER, noun_within, subject, value};
use super::sentence::{Sentence, Stop};
use super::statement::{changed, statement};
use super::words::Class;
use crate::fact::FactKind;

/// A decision that the clause states; with the slot of what was decided, where it has one.
pub(super) fn decision(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    if let Some(hit) = settled(s, range) {
        return Some(hit);
    }
    if matches!(s.lower(start), "decision" | "decided" | "agreed" | "settled")
        && s.stop(start) == Stop::Colon
    {
        return Some(decided(s, start + 1, end));
    }
    let we = matches!(s.lower(start), "we" | "we've" | "we're" | "we'll");
    let user = matches!(s.lower(start), "i" | "i've" | "i'm");
    let others = s.phrase(start, &["the team", "our team", "everyone", "it's", "it was", "it is"]);
    let lets = s.phrase(start, &["let's", "let us"]);
    if let Some(words) = lets {
        let verb = start + words;
        let choice = s.phrase(
            verb,
            &[
                "go with", "stick with", "stick to", "settle on", "use", "keep", "call", "name",
                "pick", "choose",
            ],
        );
        if let Some(words) = choice {
            let object = verb + words;
            let real = object < end
                && !s.is(object, Class::PronounValues)
                && !matches!(s.lower(object), "going" | "in");
            return real.then(|| Hit::open(FactKind::Decision, PROJECT, None));
        }
        let order = changed(s, verb, end)?;
        return Some(Hit { kind: FactKind::Decision, ..order });
    }
    if !(we || user || others.is_some()) {
        return None;
    }
    let mut verb = start + others.unwrap_or(1);
    let auxiliary = |at: usize| {
        ["have", "has", "are", "am", "will", "all", "been", "jointly"].contains(&s.lower(at))
    };
    while s.is(verb, Class::Adverbs) || auxiliary(verb) {
        verb += 1;
    }
    match (s.lower(verb), s.lower(verb + 1)) {
        ("agreed", "to") if s.lower(verb + 2) == "disagree" => None,
        ("agreed" | "settled", "with" | "down" | "in" | "into") => None,
        ("decided" | "chose" | "settled" | "opted", _) if verb + 1 < end => {
            Some(decided(s, verb + 1, end))
        }
        ("agreed" | "concluded" | "committed", _) if !user && verb + 1 < end => {
            Some(decided(s, verb + 1, end))
        }
        ("going" | "go" | "went" | "sticking", "with") if verb + 2 < end => (!s
            .is(verb + 2, Class::PronounValues))
        .then(|| Hit::open(FactKind::Decision, PROJECT, None)),
        ("picked" | "selected", _) if we && verb + 1 < end => Some(decided(s, verb + 1, end)),
        _ => None,
    }
}

/// "We renamed the service, it's called ledger-sync now".
pub(super) fn renamed(
    s: &Sentence<'_>,
    before: Option<&Range<usize>>,
    range: &Range<usize>,
) -> Option<Hit> {
    let before = before?;
    let words =
        s.phrase(range.start, &["it's called", "it's now called", "it is called", "it's named"])?;
    let verb =
        before.clone().find(|at| matches!(s.lower(*at), "renamed" | "changed" | "rebranded"))?;
    let noun = noun_within(s, verb + 1, before.end)?;
    let name = value(s, range.start + words, range.end, false);
    (!name.is_empty())
        .then(|| Hit::slot(FactKind::Fact, &subject(s, noun.words.clone()), "name", s.slice(name)))
}

/// Further forms of decisions, with what was decided as the value.
fn settled(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    let hit = |from: usize, to: usize| {
        let said = from..to.min(s.len());
        (!said.is_empty()).then(|| Hit::open(FactKind::Decision, PROJECT, Some(s.slice(said))))
    };
    // "Final call: no dessert", "so it's settled: the Tudors first", "decision from standup: ...".
    let lead = s.phrase(
        s.skip_words(start, &["ok", "okay", "so", "right", "well", "then"]),
        &[
            "final call",
            "final decision",
            "final answer",
            "decision from",
            "decision of",
            "decision made",
            "the decision is",
            "the verdict is",
            "verdict",
            "it's settled",
            "it's decided",
            "that's settled",
            "that's decided",
            "it's official",
            "conclusion from",
            "outcome",
            "i've made up my mind",
            "we've made up our minds",
            "my mind is made up",
            "i made up my mind",
            "we've reached a decision",
            "we've made a decision",
            "i've made a decision",
            "i've decided",
            "we've decided",
        ],
    );
    if lead.is_some() {
        let colon = (start..s.len().min(start + 8))
            .find(|at| s.stop(*at) == Stop::Colon || s.stop(*at) == Stop::Break)?;
        let end = (colon + 1..s.len())
            .find(|at| {
                s.lower(*at) == "instead" || s.lower(*at) == "not" && s.stop(at - 1) == Stop::Comma
            })
            .unwrap_or(s.len());
        return hit(colon + 1, end);
    }
    let sure = || {
        (0..s.len()).any(|at| {
            matches!(s.lower(at), "decided" | "settled") && at + 1 == s.len()
                || s.phrase(at, &["in the end", "it is then", "final decision", "that's final"])
                    .is_some()
        })
    };
    let person =
        ["i", "we", "i've", "we've", "i'm", "we're", "we'll", "i'll"].contains(&s.lower(start));
    let verb = s.skip_words(
        start + usize::from(person),
        &["have", "am", "are", "finally", "now", "just", "definitely", "will", "not"],
    );
    let denied = person && (start..verb).any(|at| s.lower(at) == "not");
    if denied
        && s.has(verb, "going to")
        && verb + 3 < end
        && !matches!(s.lower(verb + 2), "lie" | "be" | "make")
        && s.lower(start).starts_with("we")
    {
        return hit(start + 1, end);
    }
    // "We opted for the oak floor", "we ended up choosing Hetzner as our host".
    if person
        && let Some(words) = s.phrase(
            verb,
            &[
                "opted for", "ended up choosing", "ended up picking", "ended up going with",
                "ended up buying", "ended up booking", "settled on", "plumped for",
                "decided in favour of", "decided in favor of", "signed off on",
            ],
        )
    {
        let from = s.skip_words(verb + words, &["the", "a", "an"]);
        let last = (from + 1..end)
            .find(|at| {
                matches!(s.lower(*at), "for" | "in" | "over" | "as") || s.stop(at - 1) != Stop::None
            })
            .unwrap_or(end);
        let real = from < end && !s.is(verb + words, Class::PronounValues);
        return if real { hit(from, last).map(|hit| Hit { refers: true, ..hit }) } else { None };
    }
    match (s.lower(verb), s.lower(verb + 1)) {
        ("chosen" | "picked" | "selected", _)
            if person
                && verb + 1 < end
                && (sure() || !matches!(s.lower(verb + 1), "it" | "this" | "that" | "up")) =>
        {
            let last = (verb + 2..end)
                .find(|at| matches!(s.lower(*at), "for" | "in" | "over" | "as"))
                .unwrap_or(end);
            hit(verb + 1, last)
        }
        ("going", "with") if start == 0 || person => {
            let from = s.skip_words(verb + 2, &["the", "name", "a"]);
            if s.is(verb + 2, Class::PronounValues) || from >= end {
                return None;
            }
            let last = (from + 1..end)
                .find(|at| {
                    matches!(s.lower(*at), "for" | "in" | "over" | "as")
                        || s.stop(at - 1) != Stop::None
                })
                .unwrap_or(end);
            hit(from, last)
        }
        _ if person && sure() && verb + 1 < end => {
            // "We'll do the honeymoon in Slovenia, decided".
            let last = (verb + 1..end).find(|at| s.stop(at - 1) != Stop::None).unwrap_or(end);
            let place =
                (verb + 1..last).find(|at| s.lower(*at) == "in").map_or(verb + 1, |at| at + 1);
            hit(place, last)
        }
        _ => None,
    }
}

/// Further forms of tasks, each with what is to be done.
fn duty(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    let hit = |from: usize| {
        let last = (from + 1..s.len())
            .find(|at| s.is(*at, Class::ValueEnds) && s.stop(at - 1) != Stop::None)
            .unwrap_or(end.max(from));
        (from < last).then(|| Hit::open(FactKind::Task, USER, Some(s.slice(from..last))))
    };
    let colon = (start..s.len().min(start + 10)).find(|at| s.stop(*at) == Stop::Colon);
    let listed = s.phrase(
        start,
        &[
            "on my list", "on our list", "on my plate", "my to-do", "my todo", "next on my list",
            "still to do", "left to do",
        ],
    );
    if listed.is_some() {
        return colon.and_then(|colon| hit(colon + 1));
    }
    if let Some(words) = s.phrase(
        start,
        &[
            "don't let me forget to",
            "don't let me forget",
            "do not let me forget to",
            "my next step is to",
            "next step is to",
            "my job is to",
            "my task is to",
            "my plan is to",
            "the plan is to",
            "our next step is to",
            "next up is to",
        ],
    ) {
        return hit(start + words);
    }
    let at = s.skip_words(
        start,
        &[
            "please", "also", "and", "tomorrow", "today", "tonight", "can", "could", "would",
            "will", "you", "pls",
        ],
    );
    if s.has(at, "remind me") {
        let link = (at + 2..s.len().min(at + 9))
            .find(|at| matches!(s.lower(*at), "to" | "that" | "about" | "of"))?;
        return if link + 1 < s.len() { hit(link + 1) } else { None };
    }
    // "I've got to pick it up", "we have to", after a time.
    let mut person = start;
    if ["tomorrow", "today", "tonight", "before", "after", "by", "on", "until", "next", "this"]
        .contains(&s.lower(start))
    {
        person = (start + 1..end.min(start + 6)).find(|at| {
            ["i", "we", "i've", "we've", "i'm", "we're", "i'll", "we'll"].contains(&s.lower(*at))
        })?;
    }
    let own =
        ["i", "we", "i've", "we've", "i'm", "we're", "i'd", "we'd"].contains(&s.lower(person));
    if !own {
        return None;
    }
    let verb =
        s.skip_words(person + 1, &["still", "also", "really", "just", "am", "are", "was", "then"]);
    if let Some(words) =
        s.phrase(verb, &["supposed to", "meant to", "due to", "expected to", "scheduled to"])
    {
        return hit(verb + words);
    }
    if person > start
        && let Some(words) =
            s.phrase(verb, &["have to", "need to", "must", "got to", "gotta", "have got to"])
    {
        return hit(verb + words);
    }
    if matches!(s.lower(verb), "promised" | "offered") {
        let would = (verb + 1..end.min(verb + 6))
            .find(|at| matches!(s.lower(*at), "i'd" | "we'd" | "to" | "i'll"))?;
        return hit(would + 1);
    }
    None
}

fn decided(s: &Sentence<'_>, at: usize, end: usize) -> Hit {
    let at = s.skip_words(at, &["that", "to", "on", "upon", "for"]);
    let inner = changed(s, at, end)
        .or_else(|| statement(s, &(at..end)))
        .filter(|hit| hit.attribute.is_some());
    match inner {
        Some(hit) => Hit { kind: FactKind::Decision, ..hit },
        None => Hit::open(FactKind::Decision, PROJECT, None),
    }
}

/// A task that the clause states.
pub(super) fn task(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    if let Some(hit) = duty(s, range) {
        return Some(hit);
    }
    let hit = || Some(Hit::open(FactKind::Task, USER, None));
    if matches!(s.lower(start), "todo" | "to-do" | "todos")
        || s.lower(start) == "to" && s.lower(start + 1) == "do" && s.stop(start + 1) == Stop::Colon
        || s.phrase(start, &["action item", "note to self"]).is_some()
    {
        if let Some(colon) = (start..s.len().min(start + 4)).find(|at| s.stop(*at) == Stop::Colon)
            && colon + 1 < end
        {
            return Some(Hit::open(FactKind::Task, USER, Some(s.slice(colon + 1..end))));
        }
        return if start + 1 < s.len() { hit() } else { None };
    }
    let mut at = s.skip_words(start, &["please", "also", "and", "just"]);
    if matches!(s.lower(at), "can" | "could" | "will" | "would") && s.lower(at + 1) == "you" {
        at = s.skip_words(at + 2, &["please", "also"]);
        if !s.has(at, "remind me to") {
            return None;
        }
    }
    let asked = s.phrase(
        at,
        &[
            "remind me to", "remind me that", "remind me about", "remind me of", "remember to",
            "don't forget", "dont forget", "do not forget",
        ],
    );
    if let Some(words) = asked {
        return if at + words < end { hit() } else { None };
    }
    let person =
        ["i", "we", "i'll", "we'll", "i've", "we've", "i'm", "we're"].contains(&s.lower(at));
    if person && s.is(s.skip(at + 1, Class::Adverbs), Class::Hedges) {
        return None;
    }
    if person {
        let verb = s.skip(at + 1, Class::Adverbs);
        let need = s.phrase(verb, &["need to", "have to", "must", "got to", "gotta", "ought to"]);
        if let Some(words) = need {
            let duty = s.skip(verb + words, Class::Adverbs);
            let epistemic =
                s.lower(verb) == "must" && matches!(s.lower(duty), "have" | "be" | "not");
            let soft = s.lower(duty) == "be"
                && ["honest", "sure", "able", "clear", "careful", "more", "less", "better"]
                    .contains(&s.lower(duty + 1));
            let bare = duty + 1 >= s.len();
            let talk = epistemic || soft || bare || s.is(duty, Class::TaskNot);
            return if talk { None } else { hit() };
        }
    }
    let planned = person
        && (s.lower(at).ends_with("'ll")
            || (at + 1..at + 4).any(|at| {
                ["will", "going", "need", "want", "plan", "should", "must"].contains(&s.lower(at))
            }));
    let order = planned
        || s.is(at, Class::Orders)
        || s.lower(at) == "need"
        || matches!(s.lower(at), "the" | "our" | "my")
            && (at..end).any(|at| matches!(s.lower(at), "due" | "must" | "needs" | "should"));
    let dated = (at + 1..s.len()).any(|by| {
        matches!(s.lower(by), "by" | "before")
            && (s.is(by + 1, Class::Deadlines) && s.word(by + 1) != "may"
                || s.has(by + 1, "end of")
                || s.has(by + 1, "the end of")
                || s.has(by + 1, "next")
                || s.word(by + 1).starts_with(|c: char| c.is_ascii_digit())
                || s.has(by + 1, "the weekend"))
            || s.has(by, "due by")
    });
    let state = s.is(s.skip(at + 1, Class::Adverbs), Class::Copulas);
    if order && dated && !(person && state && !s.has(at + 1, "will")) { hit() } else { None }
}

/// A URL with what it stands for.
pub(super) fn link(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let at = (range.start..s.len()).find(|at| is_url(s.lower(*at)))?;
    let url = s.word(at);
    let hit = |owner: Option<(String, String)>| {
        let (owner, attribute) = owner?;
        Some(Hit::slot(FactKind::Link, &owner, &attribute, url))
    };
    // "It's now https://example.org", "you'll find the recipe under https://example.org".
    let given = s.phrase(
        range.start,
        &[
            "it's now", "it's at", "it is now", "it moved to", "it lives at", "you'll find",
            "you can find", "i keep", "we keep", "see", "find",
        ],
    );
    let near = (range.start..at).all(|at| !s.is(at, Class::Edits) && !s.is(at, Class::Orders));
    if let Some(words) = given
        && near
        && at >= range.start + words
        && (at == range.start + words && s.lower(range.start).starts_with("it")
            || matches!(s.lower(at - 1), "under" | "at" | "on" | "here")
                && at > range.start + words)
    {
        let noun = s.slice(range.start + words..at - usize::from(at > range.start + words));
        return Some(Hit::open(
            FactKind::Link,
            if noun.is_empty() { PROJECT } else { noun },
            Some(url),
        ));
    }
    // "https://example.org is our wiki".
    if at == range.start {
        let article = at + 1 + usize::from(matches!(s.lower(at + 1), "is" | "="));
        if article == at + 1 {
            return None;
        }
        let end =
            (article..s.len()).find(|at| s.stop(*at) != Stop::None).map_or(s.len(), |at| at + 1);
        if !matches!(s.lower(article), "my" | "our" | "the") {
            return None;
        }
        return hit(noun_within(s, article, end).and_then(|noun| noun.slot(s)));
    }
    let lead =
        s.phrase(range.start, &["here's", "here is", "here are", "this is", "link to", "link for"]);
    let start = range.start + lead.unwrap_or(0);
    let start = s.skip_words(start, &["link", "to"]);
    let labelled = at > start && matches!(s.stop(at - 1), Stop::Colon | Stop::Break);
    let end = if labelled {
        at
    } else {
        (start..at).find(|at| {
            ["is", "are", "lives", "live", "runs", "can", "=", "was", "moved", "has", "sits"]
                .contains(&s.lower(*at))
        })?
    };
    let plain = (end..at).all(|at| {
        s.is(at, Class::Adverbs)
            || [
                "is", "are", "lives", "live", "sits", "now", "runs", "can", "be", "found", "at",
                "here", "on", "available", "located", "hosted", "under", "=", "moved", "to", "has",
                "been",
            ]
            .contains(&s.lower(at))
    });
    if !plain || s.is(start, Class::Edits) || s.is(start, Class::Orders) {
        return None;
    }
    let noun = noun_within(s, start, end)?;
    if noun.is_talk(s) || s.is(start, Class::Openers) {
        return None;
    }
    hit(noun.slot(s))
}

fn is_url(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://") || word.starts_with("www.")
}

/// "Alfred is our build server", "Maria and Ana are my sisters", "Maria, my sister, ...".
pub(super) fn entity(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    if let Some(hit) = named(s, range) {
        return Some(hit);
    }
    let mut at = start;
    while s.is_name(at) || at > start && s.lower(at) == "and" && s.is_name(at + 1) {
        at += 1;
    }
    let known = s.is(start, Class::NotNouns)
        || s.is(start, Class::MonthsDays)
        || s.is(start, Class::Openers);
    if at == start || at > start + 6 || known {
        return None;
    }
    let name = start..at;
    let verb = matches!(s.lower(at), "is" | "are");
    if !verb {
        // "Maria, my sister, lives here": the comma ends the name, and "my" begins a clause.
        let relation = s.stop(at - 1) == Stop::Comma && matches!(s.lower(at), "my" | "our");
        let named = relation && (s.is(at + 1, Class::Family) || s.is(at + 1, Class::Things));
        return named.then(|| entity_hit(s, name, at + 1..at + 2));
    }
    let article = s.skip(at + 1, Class::Adverbs);
    let what = value(s, article + 1, end, false);
    let opinion = what.clone().any(|at| s.is(at, Class::Opinions))
        || what.clone().any(|at| s.is(at, Class::Talk));
    let special = name.len() > 1
        || s.word(start).chars().skip(1).any(|c| c.is_uppercase() || c.is_ascii_digit());
    let possessive = s.slice(name.clone()).ends_with("'s");
    if what.is_empty() || possessive {
        return None;
    }
    match s.lower(article) {
        "my" | "our" if what.clone().any(|at| matches!(s.lower(at), "favourite" | "favorite")) => {
            let noun = noun_within(s, article, what.end)?;
            let (owner, attribute) = noun.slot(s)?;
            Some(Hit::slot(FactKind::Fact, &owner, &attribute, s.slice(name)))
        }
        "my" | "our" if !opinion => Some(entity_hit(s, name, what)),
        "the" if !opinion => Some(entity_hit(s, name, what)),
        "a" | "an"
            if !opinion
                && (special
                    || s.slice(article..end).contains(" of mine")
                    || s.slice(article..end).contains(" of ours")) =>
        {
            Some(entity_hit(s, name, article..end))
        }
        _ => None,
    }
}

/// "By the barn I mean our warehouse", "we call the old monolith Bertha", "Quillon = the vendor".
fn named(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    let Range { start, end } = *range;
    let hit = |name: Range<usize>, what: Range<usize>| {
        (!name.is_empty() && !what.is_empty())
            .then(|| Hit::open(FactKind::Entity, s.slice(name), Some(s.slice(what))))
    };
    if matches!(s.lower(start), "by" | "with") {
        let mean = (start + 2..end.min(start + 9))
            .find(|at| matches!(s.lower(*at), "mean") && s.lower(at - 1) == "i")?;
        return hit(start + 1..mean - 1, mean + 1..end);
    }
    if matches!(s.lower(start), "we" | "i")
        && matches!(s.lower(start + 1), "call" | "named" | "nicknamed" | "dubbed")
    {
        let name = (start + 3..end).find(|at| s.is_name(*at))?;
        let determined = matches!(s.lower(start + 2), "the" | "our" | "my" | "this");
        let last = (name..end).find(|at| !s.is_name(*at)).unwrap_or(end);
        return if determined && last >= end { hit(name..last, start + 2..name) } else { None };
    }
    let is = (start + 1..end.min(start + 5)).find(|at| matches!(s.lower(*at), "=" | "is"))?;
    let name = s.is_name(start) && (start..is).all(|at| s.is_name(at));
    if name && s.lower(is) == "=" && ["the", "our", "my", "a", "an"].contains(&s.lower(is + 1)) {
        return hit(start..is, is + 1..end);
    }
    let words = s.phrase(
        is + 1,
        &[
            "what we named", "what we call", "what we called", "what i call", "how we call",
            "our name for", "my name for", "our nickname for", "short for", "our codename for",
            "the codename for",
        ],
    );
    match words {
        Some(words) if name && s.lower(is) == "is" => hit(start..is, is + 1 + words..end),
        _ => None,
    }
}

fn entity_hit(s: &Sentence<'_>, name: Range<usize>, what: Range<usize>) -> Hit {
    Hit::open(FactKind::Entity, &subject(s, name), Some(s.slice(what)))
}

/// "... my sister Maria ..." anywhere in the sentence.
pub(super) fn apposition(s: &Sentence<'_>, end: usize) -> Option<Hit> {
    (0..end).find_map(|at| {
        if !matches!(s.lower(at), "my" | "our") || s.is_quoted(at) {
            return None;
        }
        let relation =
            (at + 1..at + 4).find(|at| s.is(*at, Class::Family) || s.is(*at, Class::Things))?;
        let mut last = relation + 1;
        while s.is_name(last)
            && !s.is(last, Class::MonthsDays)
            && last < relation + 4
            && !s.is_quoted(last)
        {
            last += 1;
            if s.stop(last - 1) != Stop::None {
                break;
            }
        }
        let joined = matches!(s.stop(relation), Stop::None | Stop::Comma);
        let plain =
            (at + 1..relation).all(|at| s.stop(at) == Stop::None && !s.is(at, Class::NotNouns));
        (last > relation + 1 && joined && plain)
            .then(|| entity_hit(s, relation + 1..last, at + 1..relation + 1))
            .filter(|hit| hit.value.as_deref().is_some_and(|what| !what.is_empty()))
    })
}

/// The statement of a clause, by what it begins with.
pub(super) fn plain(s: &Sentence<'_>, range: &Range<usize>) -> Option<Hit> {
    first_person(s, range).or_else(|| entity(s, range)).or_else(|| statement(s, range))
}
