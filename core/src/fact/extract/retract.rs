//! What the user takes back: "forget what I said about the budget", "you can use emojis again", "I no
//! longer work at Orbit", "scratch that". What exactly it takes back is found among what was
//! stated before.

use std::ops::Range;

use super::Hit;
use super::orders::{MADE, reported};
use super::phrase::USER;
use super::sentence::{Sentence, Stop};
use super::topic;
use super::words::Class;
use crate::fact::FactKind;

/// A retraction with the words that state it.
pub(super) type Found = (Hit, Range<usize>);

/// Orders to take something back.
const ORDERS: &[&str] = &[
    "forget about", "forget", "ignore", "disregard", "scratch", "scrap", "strike", "discard",
    "drop", "delete", "remove", "erase", "undo", "cancel", "retract", "nevermind", "never mind",
    "don't worry about", "please forget", "lose", "ditch", "bin", "lift", "revoke", "rescind",
    "withdraw", "repeal", "abandon", "waive", "abolish", "suspend", "lifting", "dropping",
    "withdrawing", "revoking", "scrapping",
];

/// Orders that by themselves say that something stood.
const REVOKES: &[&str] = &[
    "scratch", "scrap", "strike", "lift", "revoke", "rescind", "repeal", "abolish", "waive",
    "lifting", "revoking", "scrapping",
];

/// What an order takes back is something said before, if one of these is in its object.
const SAID: &[&str] = &[
    "rule", "rules", "instruction", "instructions", "restriction", "restrictions", "request",
    "preference", "note", "thing", "bit", "part", "requirement", "limit", "said", "told", "asked",
    "gave", "mentioned", "wrote", "earlier", "notes", "memory", "constraint", "order", "guideline",
    "stuff", "policy", "point", "statement", "figure", "ban", "embargo", "habit", "gimmick",
    "convention", "routine",
];

/// What one is under for a while.
const SPELLS: &[&str] = &[
    "ban", "bet", "challenge", "cleanse", "detox", "diet", "embargo", "experiment", "fast",
    "freeze", "phase", "regime", "regimen", "restriction", "restrictions", "rule", "rules",
    "thing", "trial",
];

/// Begin what is not wanted any more.
const NEEDLESS: &[&str] = &["no need", "no more", "no longer"];

/// What is planned, and may not happen.
const PLANS: &[&str] = &[
    "appointment", "booking", "concert", "deal", "dinner", "event", "exam", "holiday", "interview",
    "launch", "lunch", "meeting", "move", "party", "plan", "plans", "race", "reservation", "sale",
    "tour", "trip", "visit", "wedding", "workshop",
];

/// Verbs of leaving something out, which a permission to do so takes back.
const OMITS: &[&str] = &["leave out", "skip", "drop", "omit", "lose", "forget", "ditch", "stop"];

/// Things that a user owned, did or planned and does not any more.
const ENDED: &[&str] = &[
    "abandoned", "cancelled", "canceled", "scrapped", "sold", "quit", "ditched", "ended",
    "shelved", "axed", "binned",
];

/// The retraction of a sentence.
pub(super) fn retraction(s: &Sentence<'_>, asks: bool) -> Option<Found> {
    if s.len() < 2 || s.len() > 60 {
        return None;
    }
    let mut starts = vec![0];
    for at in 1..s.len() {
        let joined = matches!(s.lower(at), "so" | "and" | "but" | "because");
        if s.stop(at - 1) != Stop::None || joined {
            starts.push(at);
        }
    }
    // "I sold the boat, so forget my rule about it": what is said outright comes first.
    for outright in [true, false] {
        for start in &starts {
            let at = skip_before(s, *start);
            if at >= s.len() || s.is_quoted(at) || !outright && asks {
                continue;
            }
            let found = if outright {
                ordered(s, at).or_else(|| allowed(s, at))
            } else {
                ended(s, at).or_else(|| gone(s, at)).or_else(|| void(s, at))
            };
            if let Some(object) = found
                && !reported_here(s, at)
            {
                return hit(s, at, object);
            }
        }
    }
    None
}

fn reported_here(s: &Sentence<'_>, at: usize) -> bool {
    reported(s, at)
        || (0..at).any(|at| matches!(s.lower(at), "if" | "whether" | "imagine" | "suppose"))
}

fn skip_before(s: &Sentence<'_>, start: usize) -> usize {
    let mut at = start;
    loop {
        if s.phrase(at, NEEDLESS).is_some() {
            return at;
        }
        let next = s.skip_words(
            at,
            &[
                "please", "ok", "okay", "so", "and", "but", "just", "actually", "oh", "well", "ah",
                "hm", "because", "sorry", "then", "also", "wait", "btw", "hey", "now", "pls",
                "good", "correction", "update", "yes", "turns", "out",
            ],
        );
        let next = next + usize::from(s.lower(next) == "no" && s.phrase(next, NEEDLESS).is_none());
        let next = next
            + s.phrase(next, &["by the way", "good news", "on second thoughts", "fun fact"])
                .unwrap_or(0);
        if next == at {
            return at;
        }
        at = next;
    }
}

/// Up to a stop or a reason.
fn object(s: &Sentence<'_>, at: usize) -> Range<usize> {
    let end = (at + 1..s.len())
        .find(|next| {
            s.stop(next - 1) != Stop::None
                || ["because", "since", "please", "again", "anymore", "as", "so", "but", "if"]
                    .contains(&s.lower(*next))
                || s.phrase(
                    *next,
                    &["any more", "any longer", "after all", "these days", "from your", "for now"],
                )
                .is_some()
        })
        .unwrap_or(s.len());
    at..end
}

/// "Forget what I said about the budget", "scratch that", "ignore my rule about short paragraphs".
fn ordered(s: &Sentence<'_>, at: usize) -> Option<Range<usize>> {
    if let Some(words) = s.phrase(
        at,
        &["i take back", "i'd like to take back", "i take", "let me take back", "take back"],
    ) {
        let back = s.lower(at + words - 1) == "back";
        let that =
            matches!(s.lower(at + words), "that" | "it") && s.lower(at + words + 1) == "back";
        if back || that {
            return Some(about(s, object(s, at + words)));
        }
        return None;
    }
    if let Some(words) = s.phrase(
        at,
        &[
            "i changed my mind about",
            "i've changed my mind about",
            "changed my mind about",
            "i changed my mind on",
        ],
    ) {
        return Some(object(s, at + words));
    }
    let before = s
        .phrase(
            at,
            &[
                "let's", "let us", "we can", "you can", "you may", "we may", "we could", "can you",
                "could you", "can we", "i hereby", "i'd like to", "i want to", "i'm", "we're",
                "i want you to", "i'd like you to", "time to",
            ],
        )
        .unwrap_or(0);
    let at = s.skip_words(at + before, &["please", "now", "just", "hereby", "also", "finally"]);
    let words = s.phrase(at, ORDERS)?;
    let verb = s.lower(at);
    let from = at + words;
    let object = object(s, from);
    if object.is_empty() || from >= s.len() {
        return None;
    }
    let first = s.lower(from);
    let strong = REVOKES.contains(&verb);
    let that = matches!(first, "that" | "this" | "it") && object.len() == 1;
    if that {
        return strong.then_some(object).or_else(|| {
            (matches!(verb, "forget" | "ignore" | "disregard")).then_some(from..from + 1)
        });
    }
    let determined =
        ["the", "my", "that", "our", "this", "what", "all", "those", "everything", "anything"]
            .contains(&first);
    let said = (from..s.len().min(from + 14))
        .any(|at| SAID.contains(&s.lower(at)) && s.lower(at).len() > 2);
    let of_user = (from..object.end)
        .any(|at| ["i", "my", "earlier", "previous", "i've", "that"].contains(&s.lower(at)))
        || s.lower(object.end) == "from";
    let last = s.lower(object.end - 1);
    let head = object.clone().skip(1).find(|at| {
        matches!(s.lower(*at), "about" | "on" | "regarding" | "concerning" | "against" | "with")
    });
    let pointed =
        SAID.contains(&last) || head.is_some_and(|head| SAID.contains(&s.lower(head - 1)));
    (determined && (strong && (said || object.len() <= 3) || said && (of_user || pointed)))
        .then(|| about(s, object))
}

/// Of "what I said about the budget", "the rule about units": the topic.
fn about(s: &Sentence<'_>, object: Range<usize>) -> Range<usize> {
    let link = object.clone().find(|at| {
        matches!(s.lower(*at), "about" | "regarding" | "concerning" | "on" | "against")
            && *at > object.start
    });
    if let Some(link) = link.filter(|link| link + 1 < object.end) {
        return link + 1..object.end;
    }
    let start = s.skip_words(
        object.start,
        &["my", "the", "that", "our", "this", "earlier", "previous", "old", "last"],
    );
    let end = if object.end > start + 1 && SAID.contains(&s.lower(object.end - 1)) {
        object.end - 1
    } else {
        object.end
    };
    if start < end { start..end } else { object }
}

/// "You can use emojis again", "no need to remind me any more", "you needn't call me Doctor".
fn allowed(s: &Sentence<'_>, at: usize) -> Option<Range<usize>> {
    let again = s.phrase(
        at,
        &[
            "you can", "you may", "you could", "you're free to", "you are free to",
            "you're welcome to", "you're allowed to", "feel free to", "go ahead and",
            "it's fine to", "it's okay to", "it's ok to", "it is fine to", "it is okay to",
            "i'm fine with", "i'm ok with", "i'm okay with", "please",
        ],
    );
    let ends = |from: usize| {
        let range = object(s, from);
        let word = s.lower(range.end);
        let more = matches!(word, "again" | "anymore")
            || s.phrase(range.end, &["any more", "any longer", "after all"]).is_some();
        (range, more)
    };
    if let Some(words) = again
        && let Some(back) = s.phrase(
            at + words,
            &[
                "go back to", "switch back to", "return to", "resume", "revert to", "be back to",
                "go back and",
            ],
        )
        && !["sleep", "work", "bed", "school", "bed", "him", "her", "them"]
            .contains(&s.lower(at + words + back))
    {
        return Some(object(s, at + words + back));
    }
    // "You may leave out the Latin names now".
    if let Some(words) = again
        && let Some(omits) = s.phrase(at + words, OMITS)
    {
        let from = at + words + omits;
        let end = object(s, from).end;
        let known = ["the", "those", "these", "my", "that", "all"].contains(&s.lower(from));
        if known && end > from + 2 && s.lower(end - 1) == "now" {
            return Some(from..end - 1);
        }
    }
    // "Back to normal replies", "let's go back to English".
    let to = s.phrase(
        at,
        &[
            "let's go back to", "let's return to", "let's get back to", "go back to",
            "we're back to", "switch back to", "back to", "revert to", "return to",
        ],
    );
    if let Some(words) = to {
        let usual = ["normal", "regular", "usual", "ordinary", "plain", "standard", "default"]
            .contains(&s.lower(s.skip_words(at + words, &["the", "your", "our", "my"])));
        return usual.then(|| object(s, at + words));
    }
    if let Some(words) = again {
        let (range, more) = ends(at + words);
        let first = s.lower(range.start);
        let trying =
            ["try", "do", "ask", "say", "run", "start", "come", "explain", "tell", "check"]
                .contains(&first);
        return (more && s.lower(range.end) == "again" && !trying && range.len() > 1)
            .then_some(range);
    }
    let needless = s.phrase(
        at,
        &[
            "you needn't", "you need not", "you no longer have to", "you no longer need to",
            "there's no need to", "no need to", "you can stop", "there is no need to",
            "you are free to stop", "you may stop",
        ],
    );
    // "Enough with the proverbs", "I've had enough of those rhymes".
    if let Some(words) = s.phrase(
        at,
        &[
            "enough with", "enough of", "i've had enough of", "we've had enough of",
            "i've heard enough of", "no more of", "that's enough of",
        ],
    ) {
        let (range, _) = ends(at + words);
        let known = ["the", "those", "these", "your"].contains(&s.lower(range.start));
        return (known && range.len() > 1).then(|| range.start + 1..range.end);
    }
    let unneeded = s.phrase(
        at,
        &[
            "no need for", "there's no need for", "there is no need for", "i don't need",
            "we don't need", "i do not need", "we do not need", "i don't want", "we don't want",
            "i no longer need", "we no longer need", "i no longer want", "we no longer want",
            "no more need for",
        ],
    );
    if let Some(words) = unneeded {
        let (range, more) = ends(at + words);
        let firm = (at..at + words).any(|at| matches!(s.lower(at), "longer" | "more"));
        let whom = ["you", "to", "it", "him", "her", "them"].contains(&s.lower(range.start));
        return ((more || firm) && !whom && !range.is_empty()).then(|| about(s, range));
    }
    if let Some(words) = needless {
        let (range, more) = ends(at + words);
        let firm = s.lower(at) == "you" && s.lower(at + 1) != "can";
        let talk = matches!(s.lower(range.start), "remind" | "ask" | "tell" | "warn");
        return (more || firm).then(|| if talk { about(s, range) } else { range });
    }
    let optional = s.phrase(
        at,
        &[
            "you don't have to", "you don't need to", "you do not have to", "you do not need to",
            "don't", "i don't need you to", "i don't want you to",
        ],
    )?;
    let (range, more) = ends(at + optional);
    (more && s.lower(at) != "don't").then_some(range)
}

/// "I no longer work at Orbit", "I don't have the Skoda any longer", "we've cancelled the trip".
fn ended(s: &Sentence<'_>, at: usize) -> Option<Range<usize>> {
    let person = ["i", "we", "i'm", "we're", "i've", "we've", "i'd"].contains(&s.lower(at));
    if !person {
        return None;
    }
    let verb = s.skip_words(
        at + 1,
        &["am", "are", "have", "just", "now", "really", "finally", "also", "actually", "do"],
    );
    if s.has(verb, "no longer") {
        let range = object(s, verb + 2);
        return (!range.is_empty() && verb + 2 < s.len()).then_some(range);
    }
    if ENDED.contains(&s.lower(verb)) {
        let range = object(s, verb + 1);
        let thing = ["the", "my", "our", "that", "all"].contains(&s.lower(range.start));
        return thing.then_some(range);
    }
    if let Some(words) = s.phrase(
        verb,
        &[
            "called off", "gave up", "given up", "give up on", "giving up on", "got rid of",
            "stopped", "given away", "came off", "come off", "stepped down from",
            "stepped down as", "resigned from", "resigned as", "retired from", "retired as",
            "dropped out of", "withdrew from", "moved out of", "moved away from", "let go of",
            "parted with",
        ],
    ) {
        let from = s.skip_words(verb + words, &["on"]);
        let range = object(s, from);
        return (from < s.len() && !matches!(s.lower(from), "by" | "at" | "for" | "it"))
            .then_some(range);
    }
    let negated = ["don't", "not", "aren't", "can't", "isn't"].contains(&s.lower(verb))
        || matches!(s.lower(at), "i'm" | "we're") && s.lower(at + 1) == "not";
    if !negated {
        return None;
    }
    let from = s.skip_words(verb, &["don't", "not", "aren't", "can't", "isn't"]);
    let range = object(s, from);
    let over = s.lower(range.end) == "anymore"
        || s.phrase(range.end, &["any more", "any longer", "after all", "these days"]).is_some();
    let idle = ["know", "care", "understand", "want", "think", "sure", "get", "remember", "feel"]
        .contains(&s.lower(range.start));
    (over && !range.is_empty() && !idle).then_some(range)
}

/// "The jokes can go", "the Malta trip is off", "smileys are fine again".
fn gone(s: &Sentence<'_>, at: usize) -> Option<Range<usize>> {
    let verb = (at + 1..s.len().min(at + 7))
        .take_while(|at| s.stop(at - 1) == Stop::None)
        .find(|at| matches!(s.lower(*at), "can" | "is" | "are" | "fell"))?;
    let over = |words: usize| {
        verb + words >= s.len()
            || s.stop(verb + words - 1) != Stop::None
            || matches!(s.lower(verb + words), "now" | "then" | "so" | "because" | "as" | "for")
    };
    let known = ["the", "those", "these", "that", "my", "our", "your"].contains(&s.lower(at));
    let planned = PLANS.contains(&s.lower(verb - 1));
    // What an assistant does or makes, not what people may do.
    let made = MADE.contains(&s.lower(verb - 1))
        || SPELLS.contains(&s.lower(verb - 1))
        || topic::of_word(s.lower(verb - 1)).is_some();
    let found = match (s.lower(verb), s.lower(verb + 1)) {
        ("can", "go") => known && made && over(2),
        ("is" | "are", "off") => known && planned && over(2),
        ("fell", "through") => known && planned,
        ("is" | "are", "fine" | "ok" | "okay" | "allowed" | "welcome") => {
            made && s.lower(verb + 2) == "again" && !s.is(at, Class::NotNouns)
        }
        _ => false,
    };
    let start = if known && verb > at + 1 { at + 1 } else { at };
    found.then_some(start..verb)
}

/// "That isn't true anymore", "the currency thing no longer applies", "the link I gave you is dead".
fn void(s: &Sentence<'_>, at: usize) -> Option<Range<usize>> {
    let pointed =
        ["that", "that's", "this", "it", "it's", "the", "my", "our"].contains(&s.lower(at));
    if !pointed {
        return None;
    }
    let said = |end: usize| {
        (at..end).any(|at| SAID.contains(&s.lower(at)) || matches!(s.lower(at), "i" | "one"))
    };
    for verb in at..s.len().min(at + 14) {
        let word = s.lower(verb);
        if ![
            "is", "isn't", "are", "aren't", "was", "wasn't", "no", "doesn't", "does", "that's",
            "it's",
        ]
        .contains(&word)
        {
            continue;
        }
        let end = match s.phrase(
            verb,
            &[
                "no longer applies", "no longer apply", "no longer holds", "no longer counts",
                "no longer matters", "no longer stands", "no longer exists", "is no longer valid",
                "is no longer true", "is no longer needed", "is no longer relevant",
                "doesn't apply", "does not apply", "doesn't hold", "doesn't count",
                "doesn't matter",
            ],
        ) {
            Some(words) => {
                let last = verb + words;
                let firm = s.lower(verb) != "doesn't" && s.lower(verb) != "does"
                    || s.lower(last) == "anymore"
                    || s.phrase(last, &["any more", "any longer", "now"]).is_some();
                if !firm {
                    continue;
                }
                verb
            }
            None => {
                let negated = matches!(s.lower(verb), "isn't" | "aren't" | "wasn't")
                    || matches!(s.lower(verb), "is" | "that's" | "it's" | "was")
                        && s.lower(verb + 1) == "not";
                let from = verb + if s.lower(verb + 1) == "not" { 2 } else { 1 };
                let truth = [
                    "true", "valid", "right", "correct", "current", "relevant", "accurate",
                    "needed", "so", "happening", "on",
                ]
                .contains(&s.lower(from));
                let more = s.lower(from + 1) == "anymore"
                    || s.phrase(from + 1, &["any more", "any longer", "after all", "now"])
                        .is_some();
                if negated && truth && more {
                    verb
                } else {
                    let past = s
                        .phrase(
                            verb,
                            &[
                                "is over", "are over", "is finished", "is history", "is done",
                                "is behind me", "is behind us", "is lifted", "is off",
                                "are lifted", "is past",
                            ],
                        )
                        .is_some_and(|words| {
                            verb + words >= s.len()
                                || s.stop(verb + words - 1) != Stop::None
                                || matches!(s.lower(verb + words), "now" | "and" | "so" | "for")
                        });
                    if past && verb > at && SPELLS.contains(&s.lower(verb - 1)) {
                        return Some(about(s, trim_said(s, at..verb)));
                    }
                    let dead = matches!(s.lower(verb), "is" | "are" | "was")
                        && (["dead", "obsolete", "void", "cancelled", "canceled", "outdated"]
                            .contains(&s.lower(verb + 1))
                            || s.phrase(
                                verb + 1,
                                &[
                                    "a misdiagnosis", "a mistake", "off the table", "called off",
                                    "out of date",
                                ],
                            )
                            .is_some());
                    if dead
                        && (said(verb)
                            || s.lower(verb + 1).starts_with("cance")
                            || s.lower(verb) == "was"
                            || s.lower(verb + 1) == "called")
                    {
                        verb
                    } else {
                        continue;
                    }
                }
            }
        };
        let subject = at..end;
        if subject.is_empty() {
            return Some(at..at + 1);
        }
        return Some(if said(end) && s.lower(end) != "is" {
            about(s, trim_said(s, subject))
        } else {
            subject
        });
    }
    None
}

/// "The thing I told you about Leila's leave" without what says that it was said.
fn trim_said(s: &Sentence<'_>, range: Range<usize>) -> Range<usize> {
    let asked = range.clone().find(|at| matches!(s.lower(*at), "i" | "i've") && *at > range.start);
    match asked {
        Some(at) if !(at..range.end).any(|at| s.lower(at) == "about") => range.start..at,
        _ => range,
    }
}

fn hit(s: &Sentence<'_>, at: usize, object: Range<usize>) -> Option<Found> {
    if object.is_empty() || object.end > s.len() {
        return None;
    }
    let text = s.slice(object.clone());
    let told = topic::topic(s, object.clone());
    let slot = slot(s, &object);
    let attribute = slot.map(str::to_owned).or(told);
    let hit = Hit {
        kind: FactKind::Retraction,
        subject: USER.to_owned(),
        attribute,
        value: Some(crate::text::fold_spaces(text)),
        refers: true,
    };
    Some((hit, at..object.end))
}

/// The slot that "work at Orbit" and its like fill.
fn slot(s: &Sentence<'_>, object: &Range<usize>) -> Option<&'static str> {
    let at = object.start;
    match (s.lower(at), s.lower(at + 1)) {
        ("work" | "working", "at" | "for" | "there") => Some("works_at"),
        ("live" | "living", "in" | "at" | "there") => Some("lives_in"),
        ("work" | "working", "as") => Some("works_as"),
        ("vegan" | "vegetarian" | "pescatarian", _) => Some("diet"),
        _ => None,
    }
}
