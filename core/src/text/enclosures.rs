//! What stands between marks: fenced blocks of code, inline code, quotations and parentheses. No sentence ends
//! inside.

use std::ops::Range;

/// Longest quotation, inline code or parentheses, in bytes. Longer ones are split like other text.
const MAX_BYTES: usize = 400;
/// Longest quotation in straight single quotes, in bytes. Most of these marks are apostrophes.
const MAX_SINGLE_BYTES: usize = 200;
/// Longest run of backticks that opens inline code.
const MAX_BACKTICKS: usize = 3;

/// Characters that end a line.
pub(super) const LINE_BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// The enclosures of a text, outermost only. Positions are asked for in order, so that each line is read once.
pub(super) struct Enclosures<'t> {
    text: &'t str,
    fences: std::iter::Peekable<std::vec::IntoIter<Range<usize>>>,
    line: Range<usize>,
    inline: Vec<Range<usize>>,
    /// Index of the first of `inline` that may still be asked for.
    first: usize,
}

impl<'t> Enclosures<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let fences = fences(text).into_iter().peekable();
        Self { text, fences, line: 0..0, inline: Vec::new(), first: 0 }
    }

    /// Whether a position is inside a fenced block of code.
    pub(super) fn is_in_fence(&mut self, at: usize) -> bool {
        while self.fences.next_if(|fence| fence.end <= at).is_some() {}
        self.fences.peek().is_some_and(|fence| fence.start < at)
    }

    /// The inline enclosure that ends at `said` or contains it. Only white space lies between `said` and `at`.
    pub(super) fn at(&mut self, said: usize, at: usize) -> Option<&Range<usize>> {
        while self.line.end < at {
            let start = self.line.end;
            let rest = &self.text[start..];
            let end = rest
                .find(LINE_BREAKS)
                .map_or(self.text.len(), |end| self.text.ceil_char_boundary(start + end + 1));
            self.line = start..end;
            if end >= at {
                self.inline.clear();
                self.first = 0;
                inline(&self.text[start..end], start, &mut self.inline);
            }
        }
        let rest = &self.inline[self.first..];
        self.first += rest.iter().take_while(|enclosure| enclosure.end < said).count();
        self.inline.get(self.first).filter(|enclosure| enclosure.start < said)
    }
}

/// Every enclosure of a text, outermost only, in order.
pub(super) fn enclosures(text: &str) -> Vec<Range<usize>> {
    let mut found = fences(text);
    let mut start = 0;
    for line in text.split_inclusive(LINE_BREAKS) {
        inline(line, start, &mut found);
        start += line.len();
    }
    merge(&mut found, 0);
    found
}

/// Fenced blocks of code, in whole lines. A fence that is never closed is ignored, because a passage may begin
/// inside a block.
fn fences(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if !text.contains("```") && !text.contains("~~~") {
        return found;
    }
    let mut open: Option<(usize, u8, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let (at, end) = (start, start + line.len());
        start = end;
        let bare = line.trim();
        let Some(mark @ (b'`' | b'~')) = bare.bytes().next() else { continue };
        let length = bare.bytes().take_while(|b| *b == mark).count();
        let info = &bare[length..];
        if length < 3 || mark == b'`' && info.contains('`') {
            continue;
        }
        open = match open {
            Some((begin, same, least)) if same == mark && length >= least && info.is_empty() => {
                found.push(begin..end);
                None
            }
            // A line of the open block.
            Some(other) if other.1 != mark || length < other.2 => Some(other),
            // A fence with a language always opens a block, so the earlier one was a closing fence.
            _ => Some((at, mark, length)),
        };
    }
    found
}

/// Adds the enclosures of a line that begins at `offset`.
fn inline(line: &str, offset: usize, found: &mut Vec<Range<usize>>) {
    let from = found.len();
    let code = code_spans(line);
    let mut spans = code.iter().peekable();
    let mut open = Open::default();
    let mut before = ' ';
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if spans.next_if(|span| span.end <= at).is_some() {
            before = '`';
        }
        if spans.peek().is_some_and(|span| span.contains(&at)) {
            continue;
        }
        let next = chars.peek().map_or(' ', |(_, next)| *next);
        if let Some(start) = open.read(at, before, c, next) {
            found.push(offset + start..offset + at + c.len_utf8());
        }
        before = c;
    }
    found.extend(code.into_iter().map(|span| offset + span.start..offset + span.end));
    merge(found, from);
}

/// Spans of inline code: from a run of backticks to the next one of the same length.
fn code_spans(line: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in line.match_indices('`') {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    let mut same = [None; MAX_BACKTICKS + 1];
    let mut partners = vec![None; runs.len()];
    for (index, (_, length)) in runs.iter().enumerate().rev() {
        if let Some(later) = same.get_mut(*length) {
            partners[index] = later.replace(index);
        }
    }
    let mut spans = Vec::new();
    let mut index = 0;
    while let Some((start, _)) = runs.get(index) {
        let partner = partners[index].map(|partner| (partner, runs[partner].0 + runs[partner].1));
        index = match partner.filter(|(_, end)| end - start <= MAX_BYTES) {
            Some((partner, end)) => {
                spans.push(*start..end);
                partner + 1
            }
            None => index + 1,
        };
    }
    spans
}

/// Positions of marks that are open.
#[derive(Default)]
struct Open {
    double: Option<usize>,
    single: Option<usize>,
    curly: Option<usize>,
    curly_single: Option<usize>,
    angle: Option<(usize, char)>,
    brackets: [Vec<usize>; BRACKETS.len()],
}

const BRACKETS: [(char, char); 6] =
    [('(', ')'), ('[', ']'), ('「', '」'), ('『', '』'), ('（', '）'), ('【', '】')];

impl Open {
    /// Reads a character at a position; where it closes what was opened, returns where that begins.
    fn read(&mut self, at: usize, before: char, c: char, next: char) -> Option<usize> {
        let begins = !before.is_alphanumeric() && !next.is_whitespace();
        let ends = !before.is_whitespace() && !next.is_alphanumeric();
        let within = |start: &usize, most: usize| at - start < most;
        let start = match c {
            '"' => straight(&mut self.double, at, begins, ends),
            // Most apostrophes stand in a word, or before a decade.
            '\'' => {
                let begins = begins && next.is_alphabetic();
                let start = straight(&mut self.single, at, begins, ends);
                return start.filter(|start| within(start, MAX_SINGLE_BYTES));
            }
            '“' | '”' if self.curly.is_some() => self.curly.take(),
            '“' | '„' => {
                self.curly = Some(at);
                None
            }
            '‘' => {
                self.curly_single = Some(at);
                None
            }
            '’' if ends => self.curly_single.take(),
            '«' | '»' => match self.angle {
                Some((start, mark)) if mark != c => {
                    self.angle = None;
                    Some(start)
                }
                _ => {
                    self.angle = Some((at, c));
                    None
                }
            },
            _ => {
                let pairs = BRACKETS.iter().zip(&mut self.brackets);
                pairs
                    .filter_map(|((open, close), stack)| {
                        if c == *close {
                            return stack.pop();
                        }
                        // ":(" is a face.
                        if c == *open && !next.is_whitespace() {
                            stack.push(at);
                        }
                        None
                    })
                    .next()
            }
        };
        start.filter(|start| within(start, MAX_BYTES))
    }
}

/// Reads a mark that both opens and closes; the characters beside it tell which.
fn straight(open: &mut Option<usize>, at: usize, begins: bool, ends: bool) -> Option<usize> {
    if ends && open.is_some() {
        return open.take();
    }
    if begins {
        *open = Some(at);
    }
    None
}

/// Sorts the ranges from index `from` on and joins those that overlap.
pub(super) fn merge(ranges: &mut Vec<Range<usize>>, from: usize) {
    ranges[from..].sort_unstable_by_key(|range| (range.start, range.end));
    let mut kept = from;
    for index in from..ranges.len() {
        let range = ranges[index].clone();
        match ranges[from..kept].last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => {
                ranges[kept] = range;
                kept += 1;
            }
        }
    }
    ranges.truncate(kept);
}
