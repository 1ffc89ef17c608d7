//! Sections by headings. The text is only read: a section is a range of it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::text::fold_spaces;

/// A part of a document: a heading and what follows it, or what stands before the first heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The heading as text; empty before the first one.
    pub title: String,
    /// 1 to 6, as Markdown counts headings; 0 before the first one.
    pub level: u8,
    /// Names the section within the document, see [`slug`]; of equal ones the later bear `-1`, `-2`, …
    pub slug: String,
    /// Line of its first byte, from 1.
    pub line: usize,
    /// Bytes from its heading up to the next heading of any level. These ranges follow each other and are
    /// together the whole text.
    pub own: Range<usize>,
    /// Bytes from its heading up to the next one that is not below it: with its subsections.
    pub range: Range<usize>,
    /// Where what is below the heading begins.
    pub body: usize,
}

/// The slug of what stands before the first heading, or of a heading without a letter or digit.
const PREAMBLE: &str = "preamble";

/// Bytes of a title that count: a heading is repeated for each of its passages.
pub const MOST_TITLE_BYTES: usize = 200;

/// A heading as a part of a URL: lower case, letters and digits, with `-` for what is between.
#[must_use]
pub fn slug(title: &str) -> String {
    let mut slug = String::with_capacity(title.len());
    for c in title.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// The section that a name stands for: the one of exactly this slug; else the one of this title, whatever the
/// case, where only one has it; else the one of the slug that the name has; else the first of this title.
#[must_use]
pub fn find_section<'s>(sections: &'s [Section], name: &str) -> Option<&'s Section> {
    if let Some(exact) = sections.iter().find(|section| section.slug == name) {
        return Some(exact);
    }
    let title = fold_spaces(name).to_lowercase();
    let titled = sections
        .iter()
        .filter(|section| !title.is_empty() && section.title.to_lowercase() == title)
        .collect::<Vec<_>>();
    if let [only] = titled[..] {
        return Some(only);
    }
    let asked = slug(name);
    sections
        .iter()
        .find(|section| !asked.is_empty() && section.slug == asked)
        .or_else(|| titled.first().copied())
}

/// Of a title what stands for it in slugs, in the index and in recalled lines: the first [`MOST_TITLE_BYTES`].
#[must_use]
pub fn short_title(title: &str) -> &str {
    title[..title.floor_char_boundary(MOST_TITLE_BYTES)].trim_end()
}

/// The sections of a document, in order. Headings are those of CommonMark that are not inside a list or a
/// quotation; front matter between `---` has none. None of an empty text.
#[must_use]
pub fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    if text.is_empty() {
        return sections;
    }
    let mark = text.len() - without_mark(text).len();
    let mut headings = read(text, front_matter(text).max(mark)).headings;
    if let Some(first) = headings.first_mut().filter(|first| first.start == mark) {
        first.start = 0;
    }
    let first = headings.first().map_or(text.len(), |heading| heading.start);
    if first > 0 {
        sections.push(Section {
            title: String::new(),
            level: 0,
            slug: String::new(),
            line: 1,
            own: 0..first,
            range: 0..first,
            body: 0,
        });
    }
    let (mut line, mut counted) = (1, 0);
    let ends = headings.iter().skip(1).map(|heading| heading.start).chain([text.len()]);
    for (heading, end) in headings.iter().zip(ends) {
        line += lines(&text[counted..heading.start]).count();
        counted = heading.start;
        sections.push(Section {
            title: heading.title.clone(),
            level: heading.level,
            slug: slug(short_title(&heading.title)),
            line,
            own: heading.start..end,
            range: heading.start..end,
            body: heading.body,
        });
    }
    extend_over_subsections(&mut sections, text.len());
    name_apart(&mut sections);
    sections
}

/// Each section ends where the next one of its level or above begins.
fn extend_over_subsections(sections: &mut [Section], end: usize) {
    // Of each level the start of the next section that is not below it, from the end on.
    let mut next = [end; 7];
    for section in sections.iter_mut().rev() {
        let level = usize::from(section.level);
        if level > 0 {
            section.range.end = next[level];
            next[level..].fill(section.own.start);
        }
    }
}

/// No two sections have one slug.
fn name_apart(sections: &mut [Section]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for section in sections {
        let base = match section.slug.as_str() {
            "" => PREAMBLE.to_owned(),
            _ => section.slug.clone(),
        };
        let mut name = base.clone();
        while seen.contains_key(&name) {
            let count = seen.entry(base.clone()).or_default();
            *count += 1;
            name = format!("{base}-{count}");
        }
        seen.insert(name.clone(), 0);
        section.slug = name;
    }
}

/// A heading of a text, in byte positions.
struct Heading {
    title: String,
    level: u8,
    /// The beginning of its first line.
    start: usize,
    /// Where a backslash makes it text.
    mark: usize,
    /// The beginning of the line after it.
    body: usize,
}

/// What of a text matters to sections.
#[derive(Default)]
struct Outline {
    headings: Vec<Heading>,
    /// The block that the text ends with.
    last: Option<(Block, Range<usize>)>,
}

/// A block that may go on over what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Fence,
    Html,
    Other,
}

/// Reads a text from a position on. Headings inside lists and quotations are part of these.
fn read(text: &str, from: usize) -> Outline {
    let source = with_line_feeds(&text[from..]);
    let mut outline = Outline::default();
    let mut depth = 0_usize;
    // With tables, so that a rule after one does not make it a heading. Not with metadata blocks: those may stand
    // anywhere, and the search for the end of each takes time that grows with the square of the text.
    for (event, range) in Parser::new_ext(&source, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if depth == 0 {
                    let block = match tag {
                        Tag::CodeBlock(CodeBlockKind::Fenced(_)) => Block::Fence,
                        Tag::HtmlBlock => Block::Html,
                        _ => Block::Other,
                    };
                    outline.last = Some((block, from + range.start..from + range.end));
                    if let Tag::Heading { level, .. } = tag {
                        outline.headings.push(heading(&source, range, level as u8, from));
                    }
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    outline
}

/// A heading at a range of `source`, which begins at byte `from` of the document.
fn heading(source: &str, range: Range<usize>, level: u8, from: usize) -> Heading {
    let written = source[range.clone()].trim_end();
    let (title, mark) = match written.rfind('\n') {
        Some(end) => {
            let underline = &written[end + 1..];
            let indent = underline.len() - underline.trim_start().len();
            (fold_spaces(&written[..end]), range.start + end + 1 + indent)
        }
        None => (atx_title(written), range.start),
    };
    let end = range.start + written.len();
    let body = source[end..].find('\n').map_or(source.len(), |feed| end + feed + 1);
    let start = source[..range.start].trim_end_matches(' ').len();
    Heading { title, level, start: from + start, mark: from + mark, body: from + body }
}

/// The text of `# Title #`, as it is written.
fn atx_title(line: &str) -> String {
    let title = line.trim_start_matches('#').trim();
    let open = title.trim_end_matches('#');
    let closed = open.is_empty() || open.ends_with([' ', '\t']);
    fold_spaces(if closed { open } else { title })
}

/// The text with a line feed for each carriage return that ends a line alone: the parser knows only the
/// former. Positions stay.
fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if lines(text).all(|line| !line.ends_with('\r')) {
        return Cow::Borrowed(text);
    }
    let with_feed = |line: &str| match line.strip_suffix('\r') {
        Some(line) => format!("{line}\n"),
        None => line.to_owned(),
    };
    Cow::Owned(lines(text).map(with_feed).collect())
}

/// The lines of a text with their ends: a line feed, a carriage return, or both.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = match rest.find(['\n', '\r']) {
            Some(at) if rest[at..].starts_with("\r\n") => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        let (line, after) = rest.split_at(end);
        rest = after;
        (!line.is_empty()).then_some(line)
    })
}

/// A text without the byte order mark that some programs begin a file with.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Bytes of the front matter, which is between two lines of `---` at the very beginning. Where there is a
/// heading or an empty line between them they are rules, and what is between them is the document's.
fn front_matter(text: &str) -> usize {
    let mut lines = lines(text);
    let is_rule = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_rule(without_mark(line))) else { return 0 };
    let mut at = first.len();
    for line in lines {
        at += line.len();
        let line = line.trim();
        if is_rule(line) {
            return at;
        }
        if line.is_empty() || is_atx(line) {
            return 0;
        }
    }
    0
}

fn is_atx(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len()))
        && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Rounds in which [`within_section`] escapes single headings: an escaped one may make a heading of what
/// follows it.
const MOST_ROUNDS: usize = 8;

/// A text for the inside of a section: lines that would begin another one are escaped as Markdown has it, and a
/// fence of code or a block of HTML that is open at its end is closed.
pub(super) fn within_section(text: &str) -> String {
    let mut own = text.to_owned();
    for _ in 0..MOST_ROUNDS {
        // What follows the text begins a section, unless the text's last block takes it in.
        let probe = format!("{own}\n\n# x");
        let mut outline = read(&probe, 0);
        let next = outline.headings.pop_if(|heading| heading.start == own.len() + 2);
        let mut escapes: Vec<usize> = outline.headings.iter().map(|heading| heading.mark).collect();
        match outline.last {
            _ if next.is_some() => {}
            Some((Block::Fence, range)) if escapes.is_empty() => {
                close_fence(&mut own, range.start);
                continue;
            }
            Some((Block::Html, range)) => {
                escapes.push(range.start + own[range.start..].find('<').unwrap_or_default());
            }
            _ => {}
        }
        if escapes.is_empty() {
            return own;
        }
        own = with_backslashes(&own, &escapes);
    }
    escape_every_line(text)
}

/// The text with a backslash at each of these positions, which are in order.
fn with_backslashes(text: &str, positions: &[usize]) -> String {
    let mut escaped = String::with_capacity(text.len() + positions.len());
    let mut copied = 0;
    for &at in positions {
        escaped.push_str(&text[copied..at]);
        escaped.push('\\');
        copied = at;
    }
    escaped.push_str(&text[copied..]);
    escaped
}

/// Ends the fence of code that opens at a position.
fn close_fence(text: &mut String, at: usize) {
    let mark = if text[at..].starts_with('~') { '~' } else { '`' };
    let length = text[at..].chars().take_while(|c| *c == mark).count();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.extend(std::iter::repeat_n(mark, length));
}

/// The text with a backslash before everything that can begin a heading, a fence or a block of HTML, code or not.
fn escape_every_line(text: &str) -> String {
    let escape = |line| {
        let content = str::trim_start(line);
        let indent = &line[..line.len() - content.len()];
        let begins = content.starts_with(['#', '=', '-', '`', '~', '<']);
        format!("{indent}{}{content}", if begins { "\\" } else { "" })
    };
    lines(text).map(escape).collect()
}

#[cfg(test)]
#[path = "sections_tests.rs"]
mod tests;
