//! Where text begins that was pasted into a message. It has the form of a document, of records, of a log, of markup
//! or of an e-mail, which nobody types to an assistant. Nothing says where it ends, so nothing after it is the user's.

use std::sync::LazyLock;

use regex::Regex;

use super::own::{ANNOUNCES, DATA, LIST, masked, pattern};

/// A line of markup, or a rule, a page number, a file name or emphasis by itself, or a link with what it leads to.
pub(super) static MARKUP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"<!|-->|</?[A-Za-z][^<>]*>|&(?:nbsp|amp|lt|gt|quot|#[0-9]+);|\f| \| .* \| |[^ |]\|[^ |].*\||›| [·•] |",
        r"^ *[-=_*~#|+.]{3,} *$|^ *(?:\*\*|__)[^*_]+(?:\*\*|__):? *$|",
        r"^ *(?i:(?:page|p\.) ?)?[0-9]+(?: ?(?:/|of) ?[0-9]+)? *$|^[^0-9A-Za-z]{0,3}(?:https?://|www\.)|",
        r"^[^0-9A-Za-z]{0,3}[0-9A-Za-z_./\\()-]+\.[A-Za-z][0-9A-Za-z]{1,5}:?(?: \(?[0-9.,]+ ?[KMG]?i?B\)?)? *$|",
        r"^[0-9A-Za-z_()' -]{1,60}\.(?:txt|md|rtf|pdf|docx?|odt|xlsx?|csv|tsv|pptx?|html?|eml|msg|log|json|ya?ml|xml):? *$|",
        r"^ *\(?(?:[0-9]{1,3}|[A-Za-z]|[ivxIVX]{1,4})\) |^ *\[[0-9]+\]",
    ))
});

/// A line that begins with a time or a date, or is a name with one, or ends with how long ago something was.
static DATED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^[^0-9A-Za-z]{0,3}(?:[A-Z][a-z]{2,8}\.? [0-9]{1,2},? )?[0-9]{1,2}:[0-9]{2}(?-u:\b)|",
        r"^[^0-9A-Za-z]{0,3}(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4})(?-u:\b)|",
        r"^[^.?!:]{1,40}(?: [—–|~-]+|,?  ?[\[(]|  +)[^.?!:\[\]()]{0,24}",
        r"(?:[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4})",
        r"(?: ?[AaPp]\.?[Mm]\.?)?[^0-9A-Za-z]{0,3}$|",
        r"^(?:[A-Z][0-9A-Za-z'_-]* ){1,3}[0-9]{1,2}:[0-9]{2}(?: ?[AaPp][Mm])? *$|",
        r"(?:[0-9]+|an?) ?(?:s|m|h|d|w|mo|y|sec|min|hr|wk|yr|second|minute|hour|day|week|month|year)s?\.? ago[^0-9A-Za-z]{0,3}$",
    ))
});

/// A name and what it is, on one line: a header of an e-mail, a field of a form, a line of a chat.
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^[*_]{0,2}[A-Za-z][0-9A-Za-z_./()'-]*(?: [0-9A-Za-z_./()'-]+){0,3}[*_]{0,2}: +[^ ]")
});

/// A comma or semicolon between fields, and not between clauses.
static FIELD_END: LazyLock<Regex> = LazyLock::new(|| pattern(r"[^\s,;][,;][^\s,;0-9]"));

/// Names of fields: short, between commas or semicolons.
static FIELDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^ *[0-9A-Za-z_#()/-]+(?: [0-9A-Za-z_#()/-]+)?(?: *[,;] *[0-9A-Za-z_#()/-]+(?: [0-9A-Za-z_#()/-]+)?){2,} *$",
    )
});

/// A row that begins with its number.
static NUMBERED_ROW: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^ *[0-9]+ *[,;] *[^ ,;][^,;]*[,;]"));

/// Words of a talk with an assistant: a line with one is no heading.
static TALK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?i:hi|hello|hey|dear|good|thanks|thank|ok|okay|yes|no|sure|great|perfect|nice|cool|sorry|actually)(?-u:\b)|",
        r"(?-u:\b)(?i:i|i'm|i'd|i've|my|me|we|our|us|you|your|please|always|never|don't|now on)(?-u:\b)",
    ))
});

/// Words of a sentence, or that say that what follows stands.
static SENTENCE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?-u:\b)(?i:is|are|was|were|has|have|had|it's|that's|there's|not|moved|switched|cancelled|canceled|from now|",
        r"going forward|henceforth|hereafter|from here|whenever|every|remember|forget|use|answer|btw|ps|quick|one thing|",
        r"thing|question|also|no|scratch|cancel|make|call|bye|welcome|morning|evening)(?-u:\b)",
    ))
});

/// A question about what follows: of no thing that it names.
static VAGUE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?i:(?:is|was|does|did|has|can|could|should|would|will) (?:it|that|he|she|they)|any|key|main|",
        r"what are the|what is the (?:gist|point|summary|tone)|what's the (?:gist|point|summary|tone)|",
        r"was bedeutet|was hei(?:ß|ss)t|was steht|que (?:dit|veut)|qué (?:dice|significa)|cosa)(?-u:\b).*\?$",
    ))
});

/// Longest heading, in words.
const MAX_HEADING: usize = 10;
/// Longest fragment that introduces what follows, in words.
const MAX_FRAGMENT: usize = 6;
/// Shorter lines are not wrapped.
const MIN_WRAPPED: usize = 20;

/// The beginning of a message that the user may have typed: up to the first block that has a form of something pasted.
/// Empty lines separate blocks. Fenced code and quotations are in none: they say where they end.
pub(super) fn typed(text: &str) -> &str {
    let blocks = blocks(text);
    let lines = || blocks.iter().flat_map(|block| &block.lines).copied();
    if lines().count() < 2 {
        return text;
    }
    let form = Form {
        has_labels: lines().filter(|line| is_label(line)).count() > 1,
        has_fields: lines().filter(|line| FIELD_END.is_match(line)).count() > 1,
    };
    if lines().next().is_some_and(is_fragment) {
        return "";
    }
    let pasted = blocks.iter().find(|block| form.is_pasted(&block.lines));
    pasted.map_or(text, |block| &text[..block.start])
}

/// Lines that follow each other.
struct Block<'t> {
    start: usize,
    lines: Vec<&'t str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let (mut at, mut is_open, mut is_quoted) = (0, false, false);
    let mut fence: Option<&str> = None;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let bare = line.trim();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark)) {
            fence = if fence == Some(mark) { None } else { fence.or(Some(mark)) };
            (is_open, is_quoted) = (false, false);
        } else if bare.is_empty() {
            (is_open, is_quoted) = (false, false);
        } else if fence.is_none() {
            is_quoted |= bare.starts_with('>');
            if is_quoted {
                continue;
            }
            let line = line.trim_end_matches('\n');
            match blocks.last_mut().filter(|_| is_open) {
                Some(block) => block.lines.push(line),
                None => blocks.push(Block { start, lines: vec![line] }),
            }
            is_open = true;
        }
    }
    blocks
}

fn is_label(line: &str) -> bool {
    LABEL.is_match(line) && !ANNOUNCES.is_match(&line.to_ascii_lowercase())
}

/// What the lines of a message have in common.
struct Form {
    /// Several begin with a label.
    has_labels: bool,
    /// Several have fields.
    has_fields: bool,
}

impl Form {
    fn is_pasted(&self, lines: &[&str]) -> bool {
        let alone = lines.len() == 1;
        lines.iter().any(|line| self.is_structure(line) || is_title(line))
            || alone && is_heading(lines[0])
            || lines
                .windows(2)
                .any(|pair| is_wrapped(pair[0], pair[1]) || are_rows(pair[0], pair[1]))
            || lines.windows(3).any(are_alike)
    }

    fn is_structure(&self, line: &str) -> bool {
        let mut indent = line.chars().take_while(|c| c.is_whitespace());
        let is_indented = indent.any(|c| c != ' ') || line.starts_with("  ");
        // Quotations and inline code are the user's way to speak of such things.
        let Some((line, _)) = masked(line) else { return true };
        let line = line.as_str();
        is_indented
            || line.contains('\t')
            || LIST.is_match(line)
            || MARKUP.is_match(line)
            || DATED.is_match(line)
            || DATA.is_match(line)
            || DATA.is_match(&line.to_ascii_lowercase())
            || NUMBERED_ROW.is_match(line)
            || FIELDS.is_match(line) && !TALK.is_match(line)
            || self.has_labels && is_label(line)
            || match self.has_fields {
                true => FIELD_END.is_match(line),
                false => FIELD_END.find_iter(line).nth(1).is_some(),
            }
    }
}

/// The words of a line that may be a heading: few, without a sentence's end, and not to an assistant.
fn heading_words(line: &str) -> Option<Vec<&str>> {
    let ends = ['.', '?', '!', ',', ';', ':', '…', ')'];
    let line = line.trim();
    let words: Vec<&str> = line.split_whitespace().collect();
    let may_be = !line.ends_with(ends)
        && words.len() <= MAX_HEADING
        && line.starts_with(|c: char| c.is_uppercase() || c.is_numeric())
        && !TALK.is_match(line);
    may_be.then_some(words)
}

/// A heading in title case or capitals.
fn is_title(line: &str) -> bool {
    let begins = |word: &&str| word.starts_with(|c: char| c.is_uppercase() || c.is_numeric());
    heading_words(line).is_some_and(|words| {
        let words = words.into_iter().filter(|word| word.starts_with(char::is_alphanumeric));
        let (large, small): (Vec<&str>, Vec<&str>) = words.partition(begins);
        let many = large.iter().filter(|word| word.chars().count() > 1).count() > 1;
        many && small.iter().all(|word| word.chars().count() < 4)
    })
}

/// A heading in any case, which stands by itself.
fn is_heading(line: &str) -> bool {
    heading_words(line).is_some()
}

/// Whether the first line of a message is no sentence, or a question about what follows: it only introduces that.
fn is_fragment(line: &str) -> bool {
    let ends = ['.', '!', ',', ';', '…', ')'];
    let line = line.trim();
    let is_short = line.split_whitespace().count() <= MAX_FRAGMENT;
    is_short
        && !line.ends_with(ends)
        && !TALK.is_match(line)
        && match line.ends_with('?') {
            true => VAGUE.is_match(line),
            false => !SENTENCE.is_match(line) && !ANNOUNCES.is_match(&line.to_ascii_lowercase()),
        }
}

/// Whether a sentence goes on in the next line: nobody breaks lines while typing.
fn is_wrapped(line: &str, next: &str) -> bool {
    let line = line.trim_end();
    let goes_on = next.starts_with(char::is_lowercase);
    let is_hyphenated =
        line.ends_with('-') && line.trim_end_matches('-').ends_with(char::is_alphabetic);
    let is_broken = line.chars().count() >= MIN_WRAPPED
        && line.starts_with(char::is_uppercase)
        && line.ends_with(|c: char| c.is_alphanumeric() || c == ',');
    goes_on && (is_hyphenated || is_broken)
}

/// Whether two lines are rows of a table: as many commas or semicolons in both.
fn are_rows(line: &str, next: &str) -> bool {
    are_alike(&[line, next]) && !line.ends_with(['.', '?', '!'])
}

/// Whether each of these lines has as many commas or semicolons as the others: more than one.
fn are_alike(lines: &[&str]) -> bool {
    [',', ';'].iter().any(|mark| {
        let mut counts = lines.iter().map(|line| line.matches(*mark).count());
        counts.next().is_some_and(|first| first > 1 && counts.all(|count| count == first))
    })
}
