//! What an instruction or a preference is about. A topic that has one value at a time is a slot, so
//! that a later instruction supersedes the earlier one, whatever verb it is said with.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::sentence::Sentence;
use super::words::Class;
use crate::text::query_terms;

/// Topics with one value at a time, the more specific first, and the words that tell them.
const TOPICS: &[(&str, &str)] = &[
    ("emojis", "emoji emojis emoticon emoticons smiley smileys"),
    ("exclamation marks", "exclamation exclamations"),
    ("oxford comma", "oxford"),
    (
        "citations",
        "apa bibliography citation citations cite cited footnote footnotes harvard mla \
      reference referenced references refs sources vancouver",
    ),
    ("date format", "date dates dd/mm/yyyy iso iso-8601 mm/dd/yyyy yyyy-mm-dd"),
    ("time format", "12-hour 12h 24-hour 24h am/pm"),
    ("time zone", "cet est gmt pst timezone timezones utc"),
    (
        "currency",
        "currencies currency dollar dollars eur euro euros franc francs gbp krona krone \
      kroner price prices rupee rupees sterling usd yen zloty",
    ),
    (
        "units",
        "celsius centigrade centimeters centimetres fahrenheit gallons grams \
      cups imperial inches kelvin kilograms kilometers kilometres kilos kms litres metric mile miles \
      ounces temperatures units yards",
    ),
    ("spelling", "spell spelled spelling spellings"),
    ("pronouns", "he/him pronoun pronouns she/her they/them ze/zir"),
    ("sign-off", "closing sign-off sign-offs signature signoff valediction"),
    ("greeting", "greet greeting greetings salutation salutations"),
    (
        "indentation",
        "four-space indent indentation indented indents spaces tab tabs tabwidth \
      two-space",
    ),
    ("naming style", "camelcase kebab-case pascalcase snake_case snake-case"),
    ("type hints", "annotations type-hints typehints typings"),
    ("semicolons", "semicolon semicolons"),
    ("quote style", "double-quotes single-quotes"),
    ("comments", "comment commented comments docstring docstrings"),
    ("line length", "columns line-length"),
    ("commit messages", "changelog commit commits"),
    ("test framework", "jest junit mocha pytest rspec unittest vitest"),
    (
        "libraries",
        "crate crates dependencies dependency libraries library packages stdlib \
      third-party",
    ),
    (
        "framework",
        "angular bootstrap django fastapi flask framework frameworks htmx laravel nextjs \
      react solidjs svelte sveltekit tailwind vue",
    ),
    ("shell", "bash fish nushell powershell shell zsh"),
    (
        "verse",
        "haiku haikus limerick limericks poem poems poetic poetry rhyme rhymed rhymes rhyming \
      sonnet verse verses",
    ),
    (
        "sayings",
        "aphorism aphorisms idiom idioms maxim motto mottos proverb proverbs \
      quotation quotations saying sayings",
    ),
    ("jokes", "humor humour joke jokes puns wisecracks"),
    ("disclaimers", "caveat caveats disclaimer disclaimers"),
    ("apologies", "apologies apologise apologising apologize apologizing apology"),
    ("praise", "compliment compliments flatter flattery praise"),
    ("hints", "hint hints spoiler spoilers"),
    ("headings", "header headers heading headings headline headlines"),
    ("paragraphs", "paragraph paragraphs"),
    ("lists", "enumerate enumerations list lists numbering"),
    ("format", "bullet bulleted bullets formatting json markdown prose table tables yaml"),
    (
        "length",
        "brevity brief briefly compact concise detail detailed lengthy long longer one-liner \
      sentence sentences short shorter succinct succinctly terse verbose word words",
    ),
    (
        "tone",
        "blunt bluntly casual casually cheerful direct drily formal formality formally \
      friendly gentle harsh honest informal informally polite politely politeness professional \
      sarcasm sarcastic serious strict swear swearing tone",
    ),
    ("wake time", "alarm"),
    ("seat", "aisle seat seats"),
    ("theme", "darkmode theme themes"),
    ("editor", "editor emacs helix neovim vim vscode"),
    ("database", "mariadb mongodb mysql oracle postgres postgresql sqlite"),
    ("contact", "email emails e-mail phone-calls texting voicemail"),
    ("transport", "bus buses flying plane planes train trains"),
    ("form of address", "'je' 'sie' 'tu' 'vous' duzen siezen tutoyer vouvoyer"),
];

/// Topics told by two words that follow each other.
const PAIRS: &[(&str, &str)] = &[
    ("am pm", "time format"),
    ("dark mode", "theme"),
    ("day first", "date format"),
    ("double quotes", "quote style"),
    ("first name", "called"),
    ("follow-up question", "questions"),
    ("follow up", "questions"),
    ("light mode", "theme"),
    ("month first", "date format"),
    ("one question", "questions"),
    ("single quotes", "quote style"),
    ("time zone", "time zone"),
    ("time zones", "time zone"),
    ("type annotations", "type hints"),
    ("type hints", "type hints"),
    ("year first", "date format"),
    ("plain text", "format"),
    ("military time", "time format"),
    ("hour clock", "time format"),
    ("standard library", "libraries"),
    ("external code", "libraries"),
    ("phone calls", "contact"),
    ("sign off", "sign-off"),
    ("close with", "sign-off"),
    ("sign with", "sign-off"),
    ("end with", "sign-off"),
    ("sign it", "sign-off"),
    ("british english", "spelling"),
    ("american english", "spelling"),
    ("american spelling", "spelling"),
    ("british spelling", "spelling"),
    ("bullet points", "format"),
    ("iso dates", "date format"),
    ("call me", "called"),
    ("calling me", "called"),
    ("address me", "called"),
    ("addressing me", "called"),
    ("refer to", "called"),
];

/// Natural languages that no nationality names.
const LANGUAGES: &[&str] = &[
    "arabic", "basque", "bengali", "cantonese", "catalan", "esperanto", "farsi", "flemish",
    "gaelic", "galician", "hebrew", "hindi", "klingon", "latin", "mandarin", "swahili", "tagalog",
    "tamil", "urdu", "welsh",
];

/// Programming languages.
const CODE: &[&str] = &[
    "c", "c#", "c++", "clojure", "cobol", "dart", "elixir", "elm", "erlang", "f#", "fortran", "go",
    "golang", "haskell", "java", "javascript", "julia", "kotlin", "lua", "ocaml", "perl", "php",
    "python", "ruby", "rust", "scala", "sql", "swift", "typescript", "zig",
];

static WORDS: LazyLock<FxHashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let mut words = FxHashMap::default();
    for (topic, told) in TOPICS {
        for word in told.split_ascii_whitespace() {
            words.insert(word, *topic);
        }
    }
    words
});

/// The topic that a word tells.
pub(super) fn of_word(word: &str) -> Option<&'static str> {
    WORDS.get(word).copied()
}

/// The topic of the words of `range`: the most specific that one of them tells. `whole` is the
/// sentence that they stand in: for whom or what an instruction holds is part of its slot.
pub(super) fn topic(s: &Sentence<'_>, range: std::ops::Range<usize>) -> Option<String> {
    let mut best: Option<(usize, &str)> = None;
    for at in range.clone() {
        let told = pair(s, at).or_else(|| of_word(s.lower(at)));
        if let Some(topic) = told {
            let rank = TOPICS.iter().position(|(name, _)| *name == topic).unwrap_or(0);
            if best.is_none_or(|(held, _)| rank < held) {
                best = Some((rank, topic));
            }
        }
    }
    let language = range.clone().find(|at| is_language(s, *at) && spoken(s, *at));
    if language.is_some()
        && best.is_none_or(|(_, topic)| matches!(topic, "length" | "tone" | "lists"))
    {
        return Some("language".to_owned());
    }
    let coded =
        |at: &usize| CODE.contains(&s.lower(*at)) && (s.lower(*at).len() > 2 || s.is_capital(*at));
    let code = range.clone().find(coded);
    if best.is_none() {
        if code.is_some() {
            return Some("code language".to_owned());
        }
        // "in Lisbon time".
        let zoned =
            range.clone().any(|at| s.lower(at) == "time" && at > range.start && s.is_name(at - 1));
        return zoned.then(|| "time zone".to_owned());
    }
    let (_, topic) = best?;
    let code_topic = matches!(
        topic,
        "indentation"
            | "naming style"
            | "type hints"
            | "semicolons"
            | "quote style"
            | "comments"
            | "line length"
            | "libraries"
    );
    // "Tabs in Go", "two spaces in yaml": each language has its own.
    let scope = (0..s.len()).find(|at| {
        code_topic && (coded(at) || matches!(s.lower(*at), "yaml" | "json" | "html" | "css"))
    });
    Some(match scope {
        Some(at) => format!("{topic}, {}", s.lower(at)),
        None => topic.to_owned(),
    })
}

/// Every topic that a word of `text` tells.
pub(in crate::fact) fn topics(text: &str) -> Vec<&'static str> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| c.is_whitespace() || ",.;:!?()\"".contains(c));
    words.filter_map(of_word).collect()
}

fn pair(s: &Sentence<'_>, at: usize) -> Option<&'static str> {
    let first = s.lower(at);
    let found = PAIRS.iter().find(|(pair, _)| {
        pair.strip_prefix(first).and_then(|rest| rest.strip_prefix(' ')) == Some(s.lower(at + 1))
    });
    found.map(|(_, topic)| *topic)
}

fn is_language(s: &Sentence<'_>, at: usize) -> bool {
    s.is(at, Class::Nations) || s.lower(at) == "english" || LANGUAGES.contains(&s.lower(at))
}

/// "in French", "to Italian", "French only", "French please".
fn spoken(s: &Sentence<'_>, at: usize) -> bool {
    at > 0
        && (matches!(s.lower(at - 1), "in" | "to" | "speak" | "only" | "of")
            || at > 1 && s.lower(at - 2) == "in" && s.lower(at - 1) == "plain")
        || matches!(s.lower(at + 1), "only" | "please" | "answers" | "replies")
}

/// Verbs and nouns that do not tell one instruction from another.
const GENERIC: &[&str] = &[
    "add", "answer", "answers", "anyth", "anything", "avoid", "don", "drop", "everyth", "ever",
    "everything", "give", "includ", "include", "keep", "leav", "leave", "let", "make", "need",
    "omit", "only", "pleas", "please", "put", "refrain", "repli", "replies", "reply", "respons",
    "response", "rule", "send", "show", "skip", "stick", "stop", "thing", "time", "use", "want",
    "when", "whenev", "whenever", "write", "alway", "always", "never", "again", "anymore", "feel",
    "free", "stuff",
];

/// A slot for what no topic names: the words that tell it, their forms aside, in order.
pub(super) fn words_of(text: &str) -> Option<String> {
    let mut terms: Vec<String> = query_terms(text)
        .into_iter()
        .filter(|term| !GENERIC.contains(&term.as_str()) && !term.starts_with('@'))
        .take(4)
        .collect();
    terms.dedup();
    (!terms.is_empty()).then(|| terms.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_tells_one_topic() {
        let mut seen = std::collections::HashMap::new();
        for (topic, words) in TOPICS {
            for word in words.split_ascii_whitespace() {
                assert_eq!(seen.insert(word, topic), None, "{word}");
                assert_eq!(word.to_lowercase(), word);
            }
        }
    }
}
