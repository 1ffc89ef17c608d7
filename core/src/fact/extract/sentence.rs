//! A sentence as words, with what is quoted marked.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::words::{Class, Classes};

/// What is read of one sentence; statements begin early, and data (a log line) has no end.
const MAX_WORDS: usize = 64;

/// What may stand before a word.
const OPENING: &[char] = &['"', '\'', '(', '[', '{', '*', '_', '`', '“', '«', '„', '<'];

/// What may stand after a word.
const CLOSING: &[char] =
    &[',', ';', ':', '.', '!', '?', ')', ']', '}', '"', '\'', '*', '_', '`', '”', '»', '…', '>'];

/// What follows a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Nothing, or a full stop.
    None,
    /// A comma.
    Comma,
    /// A colon.
    Colon,
    /// A semicolon, a dash or a bracket: what follows is another thought.
    Break,
}

#[derive(Debug)]
struct Word {
    span: Range<usize>,
    classes: Classes,
    stop: Stop,
    quoted: bool,
}

/// Phrases by their first words.
#[derive(Debug)]
pub(super) struct Phrases {
    by_first: FxHashMap<&'static str, Vec<&'static str>>,
}

impl Phrases {
    pub(super) fn of(phrases: &[&'static str]) -> Self {
        let mut by_first: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        for phrase in phrases {
            let first = phrase.split(' ').next().unwrap_or_default();
            by_first.entry(first).or_default().push(phrase);
        }
        Self { by_first }
    }
}

/// A sentence of a line.
#[derive(Debug)]
pub(super) struct Sentence<'a> {
    text: Cow<'a, str>,
    lower: String,
    words: Vec<Word>,
}

impl<'a> Sentence<'a> {
    /// Reads the words of `source`. `in_quote` says whether a quotation is open, and is carried
    /// from one sentence of a paragraph to the next.
    pub(super) fn read(source: &'a str, in_quote: &mut bool) -> Self {
        let text = if source.contains(['’', '‘']) {
            Cow::Owned(source.replace(['’', '‘'], "'"))
        } else {
            Cow::Borrowed(source)
        };
        let text = ["'s been ", "'s at ", "'s now "].into_iter().fold(text, |text, short| {
            if !text.contains(short)
                || text.to_lowercase().starts_with("it's")
                || text.contains("that's")
            {
                return text;
            }
            let verb = if short == "'s been " { " has been " } else { " is " };
            Cow::Owned(text.replace(
                short,
                &format!(
                    "{verb}{}",
                    short.trim_start_matches("'s been ").trim_start_matches("'s ")
                ),
            ))
        });
        let quotes = quoted_spans(&text, in_quote);
        let lower = text.to_ascii_lowercase();
        let words = words_of(&text, &lower, &quotes);
        Self { text, lower, words }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The word at `at` in lower case; empty past the end.
    pub(super) fn lower(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| &self.lower[word.span.clone()])
    }

    /// The word at `at` as it was written; empty past the end.
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| &self.text[word.span.clone()])
    }

    pub(super) fn is(&self, at: usize, class: Class) -> bool {
        self.words.get(at).is_some_and(|word| word.classes.has(class))
    }

    pub(super) fn stop(&self, at: usize) -> Stop {
        self.words.get(at).map_or(Stop::Break, |word| word.stop)
    }

    pub(super) fn is_quoted(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|word| word.quoted)
    }

    /// Whether the words of `phrase` stand at `at`.
    pub(super) fn has(&self, at: usize, phrase: &str) -> bool {
        // Almost no phrase gets past its first word.
        let first = self.lower(at);
        phrase.as_bytes().first() == first.as_bytes().first()
            && phrase.starts_with(first)
            && phrase.split(' ').enumerate().all(|(offset, word)| self.lower(at + offset) == word)
    }

    /// How many words the first of the phrases has that stands at `at`.
    pub(super) fn phrase(&self, at: usize, phrases: &[&str]) -> Option<usize> {
        let found = phrases.iter().find(|phrase| self.has(at, phrase))?;
        Some(found.split(' ').count())
    }

    /// The same for many phrases.
    pub(super) fn among(&self, at: usize, phrases: &Phrases) -> Option<usize> {
        let first = self.words.get(at)?;
        let found = phrases.by_first.get(&self.lower[first.span.clone()])?;
        self.phrase(at, found)
    }

    /// The words of a range as they were written, with what stands between them.
    pub(super) fn slice(&self, range: Range<usize>) -> &str {
        match (self.words.get(range.start), self.words.get(range.end.saturating_sub(1))) {
            (Some(first), Some(last)) if range.start < range.end => {
                &self.text[first.span.start..last.span.end]
            }
            _ => "",
        }
    }

    /// The part of the sentence before a word.
    pub(super) fn before(&self, at: usize) -> &str {
        let end = self.words.get(at).map_or(self.text.len(), |word| word.span.start);
        self.text[..end].trim_end_matches([',', ' ', '-', '–', '—', ';', ':'])
    }

    pub(super) fn is_capital(&self, at: usize) -> bool {
        self.word(at).chars().next().is_some_and(char::is_uppercase)
    }

    /// A capitalized word that may name something: not `I` and its forms.
    pub(super) fn is_name(&self, at: usize) -> bool {
        self.is_capital(at)
            && !matches!(self.lower(at), "i" | "i'm" | "i've" | "i'll" | "i'd")
            && self.word(at).chars().any(char::is_lowercase)
    }

    /// The first word from `at` on that is not of a class.
    pub(super) fn skip(&self, mut at: usize, skip: Class) -> usize {
        while self.is(at, skip) {
            at += 1;
        }
        at
    }

    /// The same for words that need no class.
    pub(super) fn skip_words(&self, mut at: usize, skip: &[&str]) -> usize {
        while skip.contains(&self.lower(at)) {
            at += 1;
        }
        at
    }

    /// The clauses of the sentence, those that begin within a quotation left out.
    pub(super) fn clauses(&self) -> Vec<Range<usize>> {
        let mut starts: Vec<usize> = vec![0];
        // Where the last word but this ended in a comma: "Porto, and I" begins a clause at "I".
        for at in 1..self.len() {
            let conjunction = self.is(at - 1, Class::Conjunctions);
            let begins = match self.stop(at - 1) {
                Stop::Break => true,
                Stop::Comma => self.begins_clause(at),
                Stop::None if conjunction => {
                    let corrects =
                        self.lower(at) == "make" && matches!(self.lower(at + 1), "it" | "that");
                    corrects
                        || self.begins_clause(at)
                        || matches!(self.lower(at), "work" | "live" | "now")
                }
                // "I typed that wrong: the budget is 900".
                Stop::Colon => {
                    at < 9 && (self.begins_clause(at) || matches!(self.lower(at), "born" | "since"))
                }
                Stop::None => false,
            };
            if begins {
                starts.push(at);
            }
        }
        let ends: Vec<usize> = starts.iter().skip(1).copied().chain([self.len()]).collect();
        let bounds = starts.into_iter().zip(ends);
        bounds
            .map(|(start, end)| {
                // The conjunction belongs to neither side.
                let joined = end < self.len() && self.is(end - 1, Class::Conjunctions);
                start..if joined { end - 1 } else { end }
            })
            .filter(|range| range.start < range.end && !self.is_quoted(range.start))
            .collect()
    }

    fn begins_clause(&self, at: usize) -> bool {
        if self.is(at, Class::ClauseStarts) {
            return true;
        }
        let article = self.lower(at) == "the";
        let named = self.is_name(at) && !self.is_name(at - 1);
        let verb = (at + 1..at + 6).find(|next| self.is(*next, Class::Copulas));
        // "Rosa and Ivo are" has one subject, "in Porto and Ivo is" ends a clause.
        let joint = at > 1 && self.is_name(at - 2) && verb.is_some_and(|v| self.lower(v) == "are");
        (article || named && !joint) && verb.is_some()
    }
}

/// Spans within quotation marks. Apostrophes and inch marks are none.
fn quoted_spans(text: &str, in_quote: &mut bool) -> Vec<Range<usize>> {
    let plain = !text.bytes().any(|b| matches!(b, b'"' | b'`' | b'\'') || b >= 0x80);
    if plain {
        return if *in_quote { std::iter::once(0..text.len()).collect() } else { Vec::new() };
    }
    let last_single = text.rmatch_indices('\'').map(|(at, _)| at).find(|at| {
        !text[at + 1..].starts_with(char::is_alphanumeric) && !text[..*at].ends_with(' ')
    });
    let mut spans = Vec::new();
    let mut open = (*in_quote).then_some((0, '"'));
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match (c, open) {
            ('"' | '“' | '”' | '»', Some((start, '"'))) | ('`', Some((start, '`'))) => {
                spans.push(start..at);
                open = None;
            }
            ('\'', Some((start, '\''))) if !text[at + 1..].starts_with(char::is_alphanumeric) => {
                spans.push(start..at);
                open = None;
            }
            ('"', None) if !before.is_ascii_digit() => open = Some((at, '"')),
            ('“' | '„' | '«', None) => open = Some((at, '"')),
            ('`', None) => open = Some((at, '`')),
            ('\'', None)
                if !before.is_alphanumeric()
                    && text[at + 1..].starts_with(char::is_alphanumeric)
                    && last_single.is_some_and(|last| last > at) =>
            {
                open = Some((at, '\''));
            }
            _ => {}
        }
        before = c;
    }
    *in_quote = false;
    if let Some((start, mark)) = open
        && mark != '\''
    {
        *in_quote = mark == '"';
        spans.push(start..text.len());
    }
    spans
}

fn words_of(text: &str, lower: &str, quotes: &[Range<usize>]) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::with_capacity(16);
    let mut quotes = quotes.iter().peekable();
    let mut at = 0;
    for chunk in text.split(|c: char| c.is_whitespace() || c == '—') {
        if words.len() == MAX_WORDS {
            break;
        }
        let chunk_start = at;
        at += chunk.len();
        let separator = text[at..].chars().next();
        at += separator.map_or(0, char::len_utf8);
        // The bracket of "(555) 010-0142" belongs to the number.
        let number = chunk.starts_with('(') && chunk[1..].starts_with(|c: char| c.is_ascii_digit());
        let head = if number { chunk } else { chunk.trim_start_matches(OPENING) };
        // "Dark mode > light mode" compares.
        let core = if chunk == ">" { chunk } else { head.trim_end_matches(CLOSING) };
        let aside = chunk.starts_with('(') && !number;
        let dash = matches!(core, "-" | "–" | "->");
        if (aside || dash)
            && let Some(last) = words.last_mut()
            && last.stop == Stop::None
        {
            last.stop = Stop::Break;
        }
        if core.is_empty() || dash {
            continue;
        }
        let tail = &head[core.len()..];
        let stop = if chunk == ">" {
            Stop::None
        } else if separator == Some('—') || tail.contains([';', ')']) && !number {
            Stop::Break
        } else if tail.contains(':') {
            Stop::Colon
        } else if tail.contains(',') {
            Stop::Comma
        } else {
            Stop::None
        };
        let start = chunk_start + chunk.len() - head.len();
        while quotes.peek().is_some_and(|span| span.end <= start) {
            quotes.next();
        }
        let quoted = quotes.peek().is_some_and(|span| span.contains(&start));
        let span = start..start + core.len();
        let classes = Classes::of(&lower[span.clone()]);
        words.push(Word { span, classes, stop, quoted });
    }
    words
}
