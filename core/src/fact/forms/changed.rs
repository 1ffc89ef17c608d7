//! Corrections ("it is 8:15, not 7:40", "make it the 21st") and retractions ("forget what I said about the
//! budget"). What they speak of is found later, among what was stated before.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::own::{Sentence, pattern};
use super::{Found, USER, words};
use crate::fact::values::{TypedValue, ValueType, alike, typed_values};
use crate::fact::{FactKind, PREFERRED, Reference};
use crate::text::terms;

/// Says that something was wrong or has changed.
static CUE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:actually|correction|sorry|wait|oops|i meant|i mean|my mistake|my bad|typo|misspoke|mistyped|",
        r"wrong|turns out|turned out|changed|update|now|i said|no longer|anymore|these days)\b|^no,",
    ))
});

/// "NEW, not OLD".
static NOT_OLD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?P<lead>.*?[^,])(?:, (?:and )?not| rather than| instead of) (?P<old>(?:[^,;:!?]|[:,]\d)+?)",
        r"(?: as i (?:said|wrote|told you)(?: before| earlier)?| any ?more| any longer| like i said)?[.! ]*$",
    ))
});

/// Of it and of things with an article: an order begins with its verb.
static STATES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:(?:actually|correction|sorry|wait|oops|no|my mistake|my bad|update|small correction|and|but|so|oh|ah|",
        r"turns out|it turns out|hm+|ok|by the way|btw|small update|quick correction|apologies)[,:;.!]? )*",
        r"(?:it|it's|that|that's|this|the|my|our|his|her|their|its|he|he's|she|she's|they|they're|we|we're|",
        r"i|i'm|i've|i meant|there are|there is)\b",
    ))
});

/// "Correction: NEW, not OLD", "not OLD but NEW", "I meant NEW".
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:small |quick |one )?correction(?: to [^:]*)?[:,]|i meant|sorry, i meant|i mean) (?P<new>.+)$",
    )
});
static NOT_BUT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:actually|sorry|wait|no)[,:]? )?(?:it(?:'s| is| was) )?not (?P<old>(?:[^,;:!?]|[:,]\d)+?),? but (?P<new>(?:[^,;]|,\d)+)$",
    )
});
static SAID_BUT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:sorry, )?i (?:said|wrote|told you|typed) (?P<old>.+?),? but (?:it's|it is|it should be|i meant|that's|it was) (?P<new>.+)$",
    )
});
/// "We switched from OLD to NEW", "we replaced OLD with NEW".
static SWITCHED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:\w+, )?(?:we|i|they)(?:'ve| have)? (?:just |now |finally |recently )*(?:",
        r"(?:switched|migrated|moved|changed) (?:the \w+ |our \w+ |everything )?from (?P<old>[^,;]+?) to (?P<new>[^,;]+)",
        r"|(?:replaced|swapped|traded) (?P<old2>[^,;]+?) (?:with|for|by) (?P<new2>[^,;]+))$",
    ))
});
/// "It's not peanuts, it's cashews".
static NOT_IT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:actually|sorry|wait|no|correction)[,:]? )?(?:it's|it is|that's|that is|it isn't|it wasn't) (?:not )?(?P<old>[^,;]+?)(?: i'm allergic to| as i said| like i said)?, (?:but )?(?:it's|it is|it was) (?P<new>[^,;]+)$",
    )
});
/// An excuse before a value.
static EXCUSES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:no|wait|sorry|oops|correction|actually|i meant|no wait|my mistake|my bad)[,:!.] ")
});
/// "They extended the deadline to next Tuesday".
static CHANGED_IT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:[\w ]{1,18}[,:] )?(?:we|they|i|he|she|it|my \w+|our \w+|the \w+|[a-z]+)(?:'ve|'s| have| has| had)?(?: had to| have to| just| now| finally| will)*",
        r" (?:moved?|postponed?|extend(?:ed)?|push(?:ed)?|changed?|rescheduled?|shift(?:ed)?|raised?|lowered?|increased?|",
        r"reduced?|bump(?:ed)?|upgraded?|downgraded?|delay(?:ed)?|cut) (?:the |our |my |their |his |her )?",
        r"(?P<n>[a-z0-9' -]{2,40}?) (?:back |up |down |over |forward |out )?(?:to|until|till) (?P<new>.+)$",
    ))
});
/// Says that what is told was otherwise before.
static ANEW: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:actually|these days|turns out|misremembered|misspoke|my mistake|no longer|instead)\b",
        r"|^(?:correction|sorry|wait|update|scratch that|no|oops)[,:.!]? |\bnow[.!]?$| is now | are now | has now ",
    ))
});
/// A statement's verb.
static TELLS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:is|are|was|were|has|have|takes?|lasts?|costs?|leaves?|starts?|goes|runs?|needs?|uses?|weighs?|gets?|pays?|",
        r"arrives?|ends?|begins?|opens?|closes?|will|eats?|earns?|works?|meets?|flies|fly|live|lives)\b|\b(?:it|that|he|she)'s\b|(?:we|they)'re\b",
    ))
});
/// "Make it the 21st".
static MAKE_IT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:actually|sorry|wait|no|ok|hm+|and|but|on second thoughts?|change of plans?)[,:]? )*(?:please |let's |can we )?make (?:it|that|this) (?:on |at |for )?(?P<new>.+)$",
    )
});
/// "The workshop has moved to 19 June", "the rent went up to 890 euros".
static MOVED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:[\w ]{1,18}[,:] )?(?:the|my|our|his|her|their|that) (?P<n>[a-z0-9' -]{2,40}?)(?: has| have| was| were| got| is| are|'s|",
        r" will be)?(?: been| being)?(?: now| just)? (?:moved|changed|pushed|postponed|rescheduled|shifted|delayed|",
        r"extended|went|gone|increased|raised|lowered|reduced|bumped|brought|cut|dropped|upgraded|renamed|switched|",
        r"reassigned|transferred|relocated)(?: back| up| down| over| forward)? (?:to|until|till|as) (?P<new>.+)$",
    ))
});
/// "The budget is now €6,500", "our manager is Ngozi now".
static IS_NOW: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:[\w ]{1,18}[,:] )?(?:the|my|our|his|her|their) (?P<n>[a-z0-9' -]{2,40}?)(?:'s| is| are| starts?| leaves?| runs?| costs?| goes)",
        r" (?:(?:now|actually) (?:at |on |in )?(?P<new>.+?)|(?:at |on |in )?(?P<new2>.+?) (?:now|these days|from now on|as of (?:today|now|this \w+)))[.!]*$",
    ))
});
/// "It's 9443 now", "it is now called Pebble".
static IT_IS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:actually|sorry|wait|correction|no|update|oh)[,:]? )*(?:it's|it is|that's|it leaves|it starts) (?:(?:now|actually) (?:at |on |called )?(?P<new>.+?)|(?:at |on |called )?(?P<new2>.+?) (?:now|these days))[.!]*$",
    )
});
/// "Sorry, it's 8:15": a value alone after an excuse.
static EXCUSED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:actually|sorry|wait|oops|correction|my mistake|my bad)[,:!.]? (?:i misspoke[,:]? )?(?:it's|it is|that's|it leaves|it starts|it should be|it was) (?:at |on |in )?(?P<new>(?:[^,;]|,\d)+?)[.!]*$",
    )
});

/// Takes back what is named.
static TAKE_BACK: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"^(?:please |and |ok |actually,? |so |you can )*(?:forget|ignore|disregard|scratch|strike|drop|delete|scrap)(?: about)? (?:everything |all )?(?:what|that) i (?:said|told you|asked|mentioned|wrote)(?: before| earlier)?(?: about| on| regarding) (?P<v>.+)$",
        r"^(?:please |and |ok |actually,? |so )*(?:forget|ignore|disregard|scratch|strike|drop|cancel|scrap)(?: about)? (?:my|the|that) (?:earlier |previous |old )?(?P<v>.*(?:rule|instruction|request|preference|thing about .+|bit about .+))[^,]*$",
        r"^(?:please |and |ok |so )*you (?:no longer (?:have|need) to|don't (?:have|need) to|needn't|can stop) (?P<v>.+?)(?:,? any ?more| any longer|,? again)\b.*$",
        r"^(?:and |ok |so )*you no longer (?:have|need) to (?P<v>.+)$",
        r"^(?:and |ok |so )*(?:you can|you may|feel free to) (?P<v>.+?) again\b.*$",
        r"^(?:and |so )*i no longer (?P<v>(?:live|work|own|eat|use|have|need|drive|take|prefer|drink|smoke|play) .+)$",
        r"^(?:and |so )*i don't (?P<v>(?:live|work|own|eat|use|have|need|drive|take|prefer|drink|smoke|play|freelance) .+?) (?:any ?more|any longer)\b.*$",
        r"^(?:and |so |turns out |it turns out |actually,? )*i(?:'m| am) no longer (?P<v>[a-z].+)$",
        r"^(?:and |so |turns out |it turns out |actually,? )*i(?:'m| am) not (?P<v>[a-z].+?) (?:any ?more|any longer|after all)\b.*$",
        r"^(?:and |so )*(?:i|we)(?:'ve| have) cancel+ed (?:the|our|my) (?P<v>.+)$",
        r"^(?:ok |actually,? )*i take back what i said about (?P<v>.+)$",
        r"^(?:and |ok |so )*no need to (?:remind me about )?(?P<v>.+?) any ?more\b.*$",
        r"^(?:(?:actually|sorry|wait|no|oh|oops)[,:.!]? )*(?:i misspoke|i was wrong|my mistake|i made a mistake)(?:[,;:]| ?[-–—]{1,2}) ?(?:actually,? )?i (?:don't|do not|didn't|did not|never) (?P<v>(?:have|had|own|owned|live|lived|work|worked|eat|ate|use|used|need|drive|take|drink|smoke|play|say|said) .+)$",
    ]
    .iter()
    .map(|form| pattern(form))
    .collect()
});
/// Takes back what the user preferred: nothing else that was said of it.
static DISLIKES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:(?:and|but|so|actually|honestly)[,:]? )*i (?:can't|cannot|can not) stand (?P<v>.+?) (?:now|any ?more|any longer|these days)[.!]*$",
    )
});
/// Takes back what was said last.
static BARE_BACK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:ok |actually,? |wait,? |no,? )*(?:scratch that|strike that|i take (?:that|it) back|forget (?:that|it|that i said that|what i just said))[.!]*$",
    )
});

/// Whether a sentence begins by saying that something was wrong.
pub(super) fn is_excused(sentence: &Sentence) -> bool {
    static OPENERS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^(?:no|wait|no wait|sorry|oops|correction|i meant|i misspoke|i was wrong|my mistake|my bad)[,:!.] ",
        )
    });
    OPENERS.is_match(&sentence.lower)
}

/// A correction or a retraction of a sentence.
pub(super) fn changed(sentence: &Sentence) -> Option<Found> {
    if sentence.asks {
        return None;
    }
    taken_back(sentence).or_else(|| corrected(sentence))
}

fn taken_back(s: &Sentence) -> Option<Found> {
    let lower = s.lower.as_str();
    if BARE_BACK.is_match(lower) {
        let found = Found::open(FactKind::Retraction, USER, Some("that"));
        return Some(found.refers_to(Reference::default()));
    }
    if let Some(liked) = DISLIKES.captures(lower).and_then(|found| found.name("v")) {
        let value = s.slice(liked.range());
        let preferred = Reference { old: None, noun: Some(PREFERRED.to_owned()) };
        return Some(Found::open(FactKind::Retraction, USER, Some(value)).refers_to(preferred));
    }
    let range = TAKE_BACK.iter().find_map(|form| Some(form.captures(lower)?.name("v")?.range()))?;
    let end = words::value_end(
        lower,
        range.start,
        &[" because ", " since ", " when ", " it was ", " if you "],
    );
    let value = s.slice(range.start..end.min(range.end));
    let value = value.trim_end_matches([' ', '.', '!', ',']);
    let value = ["from your notes", "from your memory", "from before"]
        .iter()
        .find_map(|tail| value.strip_suffix(tail))
        .unwrap_or(value)
        .trim_end();
    // What holds instead is said beside it: that is recalled, and nothing else is known of it.
    if !typed_values(s.slice(end..lower.len())).is_empty() {
        return None;
    }
    let vague = value.is_empty() || value.contains('_') || value.split(' ').count() > 12;
    (!vague).then(|| {
        Found::open(FactKind::Retraction, USER, Some(value)).refers_to(Reference::default())
    })
}

fn corrected(s: &Sentence) -> Option<Found> {
    let lower = s.lower.as_str();
    if let Some(found) =
        NOT_IT.captures(lower).filter(|_| lower.contains("not ") || lower.contains("n't "))
    {
        let (old, new) = (found.name("old")?.range(), found.name("new")?.range());
        let words = |range: &Range<usize>| s.slice(range.clone()).split(' ').count();
        if words(&old) > 4 || words(&new) > 4 || lower[old.start..new.end].contains('_') {
            return None;
        }
        let (old, new) = (stripped(s.slice(old)), stripped(s.slice(new)));
        if !tells(old) || !tells(new) {
            return None;
        }
        let reference = Reference { old: Some(old.to_owned()), noun: None };
        return Some(Found::open(FactKind::Fact, "project", Some(new)).refers_to(reference));
    }
    for form in [&*NOT_BUT, &*SAID_BUT, &*SWITCHED] {
        let Some(found) = form.captures(lower) else { continue };
        let group = |name: &str, other: &str| found.name(name).or_else(|| found.name(other));
        let (old, new) = (group("old", "old2")?.range(), group("new", "new2")?.range());
        return paired(s, new, old);
    }
    if let Some(found) = NOT_OLD.captures(lower) {
        let (lead, old) = (found.name("lead")?.range(), found.name("old")?.range());
        let own = STATES.is_match(lower) || BARE.is_match(lower) || EXCUSES.is_match(lower);
        let typed = !typed_values(s.slice(old.clone())).is_empty();
        let plain = lower[lead.end..].starts_with(", ") || CUE.is_match(lower) || typed;
        return if own && plain { paired(s, lead, old) } else { None };
    }
    if let Some(new) = MAKE_IT.captures(lower).and_then(|found| Some(found.name("new")?.range())) {
        let value = single(s, new.clone())?;
        let exact = matches!(value.kind, ValueType::Date | ValueType::Time | ValueType::Money);
        // "Make it 8 pm", and no "make it 300 words for Monday's class".
        let alone = value.range.start <= new.start + 4 && exact;
        return alone.then(|| new_value(s, value.range, None));
    }
    for form in [&*MOVED, &*CHANGED_IT, &*IS_NOW] {
        let Some(found) = form.captures(lower) else { continue };
        let noun = found.name("n")?.as_str();
        let new = found.name("new").or_else(|| found.name("new2"))?.range();
        let Some(value) = single(s, new.clone()) else { continue };
        let near = value.range.start <= new.start + 8;
        if near {
            return Some(new_value(s, value.range, Some(noun)));
        }
    }
    for form in [&*IT_IS, &*EXCUSED, &*BARE] {
        let Some(found) = form.captures(lower) else { continue };
        let new = found.name("new").or_else(|| found.name("new2"))?.range();
        let Some(value) = single(s, new.clone()) else { continue };
        let exact = value.kind != ValueType::Name || found.name("new2").is_some();
        let near = value.range.start <= new.start + 4;
        if near && exact {
            return Some(new_value(s, value.range, None));
        }
    }
    told_anew(s)
}

/// "Rex is actually 5 years old": a statement with one value that says that something changed.
fn told_anew(s: &Sentence) -> Option<Found> {
    let lower = s.lower.as_str();
    let short = lower.split(' ').count() <= 16 && !lower.contains('_');
    if !short || !ANEW.is_match(lower) || !TELLS.is_match(lower) {
        return None;
    }
    let mut values =
        typed_values(&s.text).into_iter().filter(|value| value.kind != ValueType::Name);
    let value = values.next().filter(|_| values.next().is_none())?;
    let rest = format!("{} {}", &lower[..value.range.start], &lower[value.range.end..]);
    Some(new_value(s, value.range, Some(&rest)))
}

/// A correction that names both: the new value is what is like the old one.
fn paired(s: &Sentence, new: Range<usize>, old: Range<usize>) -> Option<Found> {
    const NOT_VALUES: [&str; 10] =
        ["sure", "only", "just", "if", "that", "because", "so", "very", "all", "yet"];
    let first = s.lower[old.clone()].split(' ').next().unwrap_or_default();
    if s.lower[old.clone()].contains('_') || NOT_VALUES.contains(&first) {
        return None;
    }
    let old_text = stripped(s.slice(old));
    let wanted = typed_values(old_text);
    let new_text = s.slice(new.clone());
    if old_text.split(' ').count() > 5 {
        return None;
    }
    if let Some(wanted) = wanted.last() {
        let values = typed_values(new_text);
        let value = values.iter().rev().find(|value| alike(new_text, value, old_text, wanted))?;
        let range = new.start + value.range.start..new.start + value.range.end;
        let told = &old_text[wanted.range.clone()];
        let unit = |text: &str, range: &Range<usize>| {
            let rest = text[range.end..].strip_prefix(' ')?;
            let word = rest.split(|c: char| !c.is_alphabetic()).next()?;
            (!word.is_empty()).then(|| word.to_owned())
        };
        // "60 plates, not 40 plates": with what is counted, where both say it.
        let counted = unit(new_text, &value.range);
        let same = counted.is_some() && counted == unit(old_text, &wanted.range);
        let (mut new_value_range, mut told) = (range, told.to_owned());
        if let Some(word) = counted.filter(|_| same && wanted.kind == ValueType::Number) {
            new_value_range.end += 1 + word.len();
            told = format!("{told} {word}");
        }
        if s.slice(new_value_range.clone()) == told {
            return None;
        }
        let found = Found::open(FactKind::Fact, "project", Some(s.slice(new_value_range)));
        return Some(found.refers_to(Reference { old: Some(told), noun: None }));
    }
    // Of words without a type, only what says that it corrects.
    let said = CUE.is_match(&s.lower) || SWITCHED.is_match(&s.lower);
    let joins = [
        " is ", "'s ", " are ", " to ", " in ", " called ", " with ", " was ", ": ", " meant ",
        " be ",
    ];
    let lower = &s.lower[new.clone()];
    let cut = joins.iter().filter_map(|join| Some(lower.rfind(join)? + join.len())).max();
    let from = if SWITCHED.is_match(&s.lower) { 0 } else { cut? };
    let end =
        words::value_end(&s.lower, new.start + from, &[" now", " last ", " this "]).min(new.end);
    let value = stripped(s.slice(new.start + from..end));
    let short = !value.is_empty() && value.split(' ').count() <= 5 && old_text.len() > 2;
    (said && short && tells(value) && tells(old_text)).then(|| {
        Found::open(FactKind::Fact, "project", Some(value))
            .refers_to(Reference { old: Some(old_text.to_owned()), noun: None })
    })
}

/// Whether a value has a word that is no function word: else it would be found everywhere.
fn tells(value: &str) -> bool {
    !terms(value).is_empty()
}

/// A value without the small words around it.
fn stripped(text: &str) -> &str {
    let mut text = text.trim().trim_end_matches(['.', '!', ',', ' ']);
    while let Some(rest) =
        ["in ", "on ", "at ", "the ", "a ", "an ", "to ", "from ", "with ", "by ", "called "]
            .iter()
            .find_map(|word| text.strip_prefix(word))
    {
        text = rest;
    }
    text.strip_suffix(" now").unwrap_or(text)
}

/// The first value of a range.
fn single(s: &Sentence, range: Range<usize>) -> Option<TypedValue> {
    if s.lower[range.clone()].contains('_') {
        return None;
    }
    let value = typed_values(s.slice(range.clone())).into_iter().next()?;
    let at = range.start + value.range.start..range.start + value.range.end;
    Some(TypedValue { kind: value.kind, range: at })
}

/// A correction with its new value: with what goes on with it, as in "Monday the 8th, 10:45", and with its unit.
fn new_value(s: &Sentence, range: Range<usize>, noun: Option<&str>) -> Found {
    let mut range = range;
    for value in typed_values(&s.text).iter().filter(|value| value.kind != ValueType::Name) {
        let between = s.lower.get(range.end..value.range.start).unwrap_or("-");
        let dated = matches!(value.kind, ValueType::Date | ValueType::Time);
        if dated && [" ", ", ", " the ", ", the ", " at ", ", at ", " of "].contains(&between) {
            range.end = value.range.end;
        }
    }
    let rest = &s.lower[range.end..];
    let percent = [" percent", " per cent", "%", " %"].iter().find(|unit| rest.starts_with(**unit));
    let kind = if percent.is_some() { FactKind::Metric } else { FactKind::Fact };
    range.end += percent.map_or(0, |unit| unit.len());
    let noun = noun.map(|noun| noun.trim().to_owned());
    Found::open(kind, "project", Some(s.slice(range))).refers_to(Reference { old: None, noun })
}
