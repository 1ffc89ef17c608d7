//! Orders and statements that are not the user's own: quoted, reported of others, or only imagined.

use std::ops::Range;

use super::lines::sentences;
use super::sentence::Sentence;
use super::words::Class;
use super::{forms, pastes_inline};

/// Forms of what is only imagined.
const IMAGINED: &[&str] = &[
    "suppose i", "suppose we", "imagine i", "imagine we", "imagine that i", "what if i",
    "what if we", "if i had", "if we had", "if i were", "if we were", "if i lived", "if i asked",
    "if i told", "pretend i", "pretend that i", "say i", "let's say i", "let's say we", "assume i",
    "assume we", "assuming i", "suppose my", "imagine my", "what if my", "if my", "if i was",
];

/// The sentences of a message that give an order or a statement that is not the user's own.
#[must_use]
pub fn borrowed(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if !may_borrow(text) {
        return found;
    }
    let mut in_quote = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim().is_empty() {
            in_quote = false;
        }
        let (mut from, mut pasted) = (0, false);
        for sentence in sentences(line) {
            let Some(offset) = line[from..].find(sentence) else { continue };
            let start = from + offset;
            from = start + sentence.len();
            let read = Sentence::read(sentence, &mut in_quote);
            // All of a line that gives somebody's text.
            pasted |= pastes_inline(sentence);
            if pasted && !sentence.trim_end().ends_with('?') || is_borrowed(&read) {
                found.push(at + start..at + from);
            }
        }
        at += line.len();
    }
    found
}

/// Most messages have neither a quotation nor a word of the kind: one pass over the bytes tells.
fn may_borrow(text: &str) -> bool {
    if text.contains(['"', '“', '«', '„', '‘']) || text.contains(" '") || text.starts_with('\'')
    {
        return true;
    }
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if text.contains(": ") && has(&["ere's", "ere is", "his is", "from", "wrote", "sent", "says"]) {
        return true;
    }
    has(&["f I ", "f i ", "f we ", "f my ", "uppose", "magine", "retend", "ssum"])
        || has(&["every", "always", "never", "must"])
            && has(&[
                "say", "insist", "tell", "told", "demand", "claim", "wr", "want", "think",
                "reckon", "swear", "ask", "expect", "require", "makes",
            ])
}

fn is_borrowed(s: &Sentence<'_>) -> bool {
    let quoted = (0..s.len()).filter(|at| s.is_quoted(*at)).count();
    if quoted >= 3 {
        let first = (0..s.len()).find(|at| s.is_quoted(*at)).unwrap_or_default();
        let last = (0..s.len()).rfind(|at| s.is_quoted(*at)).unwrap_or_default();
        let inner = s.slice(first..last + 1).replace(['"', '“', '”', '«', '»', '„'], " ");
        // "Proofread this: ..." hands it over.
        let handed = (0..first).any(|at| s.is(at, Class::Edits));
        return handed || !forms(inner.trim_matches('\'')).is_empty();
    }
    let start = s.skip(0, Class::Openers);
    if s.phrase(start, IMAGINED).is_some() {
        return true;
    }
    // "My flatmate says that every document should use it".
    (1..s.len().min(24)).any(|at| {
        let says = [
            "says", "insists", "tells", "told", "demands", "wants", "reckons", "thinks", "claims",
            "swears", "asks", "asked", "wrote", "writes", "expects", "requires",
        ]
        .contains(&s.lower(at))
            || s.phrase(at, &["makes everyone", "makes everybody", "makes us all"]).is_some();
        let others = !["i", "we", "you", "who", "i've", "to", "was"].contains(&s.lower(at - 1));
        let own = matches!(s.lower(at - 1), "i" | "i've" | "we")
            && !matches!(s.lower(at + 1), "you" | "");
        let rules = (at + 1..s.len()).any(|at| {
            ["everyone", "everything", "everybody", "always", "never", "every", "must"]
                .contains(&s.lower(at))
        });
        says && (others || own) && rules
    })
}
