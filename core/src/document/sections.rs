//! Sections by headings. The text is only read: a section is a range of it.

use std::collections::HashMap;
use std::ops::Range;

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

/// The sections of a document, in order. Headings are those of Markdown: `#` to `######`, or underlined
/// with `=` or `-`; within fences of code, and in front matter between `---`, nothing is a heading. None
/// of an empty text.
#[must_use]
pub fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    if text.is_empty() {
        return sections;
    }
    let headings = Headings::of(text).found;
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
    let ends = headings.iter().skip(1).map(|heading| heading.start).chain([text.len()]);
    for (heading, end) in headings.iter().zip(ends) {
        sections.push(Section {
            title: heading.title.clone(),
            level: heading.level,
            slug: slug(short_title(&heading.title)),
            line: heading.line,
            own: heading.start..end,
            range: heading.start..end,
            body: heading.body,
        });
    }
    extend_over_subsections(&mut sections, text.len());
    name_apart(&mut sections);
    sections
}

/// A text for the inside of a section: lines that would begin another one are escaped as Markdown has it, and a
/// fence of code that is open at its end is closed.
pub(super) fn within_section(text: &str) -> String {
    let mut headings = Headings::default();
    let mut escaped = String::with_capacity(text.len());
    for whole in lines(text) {
        let before = (headings.fence, headings.paragraph, headings.within);
        headings.read(whole, 0, whole, 1);
        if headings.found.pop().is_none() {
            escaped.push_str(whole);
            continue;
        }
        (headings.fence, headings.paragraph, headings.within) = before;
        let indent = whole.len() - whole.trim_start().len();
        let line = format!("{}\\{}", &whole[..indent], &whole[indent..]);
        headings.read(&line, 0, &line, 1);
        escaped.push_str(&line);
    }
    if let Some((mark, length)) = headings.fence {
        if !escaped.ends_with('\n') {
            escaped.push('\n');
        }
        escaped.extend(std::iter::repeat_n(mark, length));
    }
    escaped
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

struct Heading {
    title: String,
    level: u8,
    start: usize,
    body: usize,
    line: usize,
}

/// Reads line by line.
#[derive(Default)]
struct Headings {
    found: Vec<Heading>,
    /// The fence that is open: its character and length.
    fence: Option<(char, usize)>,
    /// Where the paragraph began that a line of `=` or `-` would make a heading, and its line.
    paragraph: Option<(usize, usize)>,
    /// What a line that is only text belongs to.
    within: Within,
}

/// The block of which a line of text may be the going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Within {
    /// None but a paragraph.
    #[default]
    Nothing,
    /// A paragraph of a list's item, or of a quotation: the next line of text goes on with it, whatever its
    /// indent. With the indent that the item's text has.
    Paragraph(usize),
    /// An item of a list after an empty line: what is indented as its text is goes on with it.
    Item(usize),
}

impl Headings {
    fn of(text: &str) -> Self {
        let mut headings = Self::default();
        let (mut at, matter) = (0, front_matter(text));
        for (line, whole) in (1..).zip(lines(text)) {
            if at >= matter {
                headings.read(text, at, whole, line);
            }
            at += whole.len();
        }
        headings
    }

    fn read(&mut self, text: &str, at: usize, whole: &str, line: usize) {
        let content = without_mark(whole).trim_end_matches(['\n', '\r']);
        let body = at + whole.len();
        if let Some(open) = self.fence {
            if closes(content, open) {
                self.fence = None;
            }
            return;
        }
        let indent = content.len() - content.trim_start_matches(' ').len();
        let trimmed = content.trim();
        if trimmed.is_empty() {
            self.paragraph = None;
            self.within = match self.within {
                Within::Paragraph(indent) if indent > 0 => Within::Item(indent),
                Within::Item(indent) => Within::Item(indent),
                _ => Within::Nothing,
            };
        } else if indent > 3 || content.starts_with('\t') {
            // Code, or the going on of a paragraph: it neither begins nor ends one.
        } else if let Some(open) = opens(trimmed) {
            (self.fence, self.paragraph) = (Some(open), None);
            self.end_paragraph_of_item(indent);
        } else if let Some((level, title)) = atx(trimmed) {
            (self.paragraph, self.within) = (None, Within::Nothing);
            self.found.push(Heading { title, level, start: at, body, line });
        } else if let (Some((start, first)), Some(level)) = (self.paragraph, underline(trimmed)) {
            self.paragraph = None;
            let title = fold_spaces(text.get(start..at).unwrap_or_default());
            self.found.push(Heading { title, level, start, body, line: first });
        } else if begins_other(trimmed) {
            self.paragraph = None;
            self.within = match text_of_other(trimmed) {
                Some(own) => Within::Paragraph(if own > 0 { indent + own } else { 0 }),
                None => Within::Nothing,
            };
        } else {
            match self.within {
                Within::Paragraph(_) => {}
                Within::Item(own) if indent >= own => self.within = Within::Paragraph(own),
                _ => {
                    self.within = Within::Nothing;
                    self.paragraph.get_or_insert((at, line));
                }
            }
        }
    }

    /// What is no text ends a paragraph; an item goes on as long as what follows is indented as its text is.
    fn end_paragraph_of_item(&mut self, indent: usize) {
        self.within = match self.within {
            Within::Paragraph(own) | Within::Item(own) if own > 0 && indent >= own => {
                Within::Item(own)
            }
            _ => Within::Nothing,
        };
    }
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

/// A line without the byte order mark that some programs begin a file with.
fn without_mark(line: &str) -> &str {
    line.strip_prefix('\u{feff}').unwrap_or(line)
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
        if line.is_empty() || atx(line).is_some() {
            return 0;
        }
    }
    0
}

/// `# Title`, with the `#` that may close it left out.
fn atx(line: &str) -> Option<(u8, String)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let title = rest.trim();
    let open = title.trim_end_matches('#');
    let title =
        if open.is_empty() || open.ends_with([' ', '\t']) { open.trim_end() } else { title };
    Some((u8::try_from(level).ok()?, fold_spaces(title)))
}

/// The level of a heading that such a line is under.
fn underline(line: &str) -> Option<u8> {
    match line.as_bytes() {
        [b'=', ..] if line.bytes().all(|b| b == b'=') => Some(1),
        [b'-', ..] if line.bytes().all(|b| b == b'-') => Some(2),
        _ => None,
    }
}

/// What opens a fence of code: three or more of one character; its info has none of it.
fn opens(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, length))
}

fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let line = line.trim();
    indent <= 3 && line.len() >= length && line.chars().all(|c| c == mark)
}

/// Whether a line begins a list, a quotation or a table, or is a rule: what an underline follows there is
/// no heading.
fn begins_other(line: &str) -> bool {
    let mut chars = line.chars();
    let (first, second) = (chars.next(), chars.next());
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match first {
        Some('>' | '|') => true,
        Some('-' | '*' | '+') if second.is_none_or(char::is_whitespace) => true,
        Some('-' | '*' | '_') => line.chars().all(|c| Some(c) == first || c.is_whitespace()),
        Some('0'..='9') => {
            let rest = line[digits..].strip_prefix(['.', ')']);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
        }
        _ => false,
    }
}

/// Of a line that begins a list's item with text, where in it the text begins; 0 for a quotation, of which
/// only a paragraph goes on without a mark. None of a rule, a table, or what has no text in it.
fn text_of_other(line: &str) -> Option<usize> {
    let is_rule = |c: char| line.chars().all(|other| other == c || other.is_whitespace());
    let marker = match line.chars().next()? {
        '>' => 1,
        '|' => return None,
        c @ ('-' | '*' | '+' | '_') if line.len() > 1 && is_rule(c) => return None,
        '-' | '*' | '+' => 1,
        _ => 1 + line.find(['.', ')'])?,
    };
    let rest = line[marker..].trim_start();
    let plain = !rest.is_empty() && atx(rest).is_none() && opens(rest).is_none();
    let at = if line.starts_with('>') { 0 } else { line.len() - rest.len() };
    plain.then_some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Level, slug and line.
    type Told = (u8, &'static str, usize);

    fn outline(text: &str) -> Vec<(u8, String, usize)> {
        sections(text).into_iter().map(|s| (s.level, s.slug, s.line)).collect()
    }

    #[test]
    fn headings_are_found() {
        let table: &[(&str, &[Told])] = &[
            ("", &[]),
            ("no heading", &[(0, "preamble", 1)]),
            ("# Active Context\nx\n# Facts", &[(1, "active-context", 1), (1, "facts", 3)]),
            ("intro\n\n## Progress ##\n", &[(0, "preamble", 1), (2, "progress", 3)]),
            ("Title\n=====\ntext\n\nSub part\n---\n", &[(1, "title", 1), (2, "sub-part", 5)]),
            ("two\nlines\n---\n", &[(2, "two-lines", 1)]),
            ("```\n# code\n```\n# Real", &[(0, "preamble", 1), (1, "real", 4)]),
            ("~~~~ sh\n# a\n~~~\n# b\n~~~~\n# Real", &[(0, "preamble", 1), (1, "real", 6)]),
            ("```\n# never closed", &[(0, "preamble", 1)]),
            ("    # indented\n#no space\n####### seven", &[(0, "preamble", 1)]),
            ("- item\n---\n> quote\n===\n1. one\n---\n***\n", &[(0, "preamble", 1)]),
            ("---\ntitle: x\n---\n# A", &[(0, "preamble", 1), (1, "a", 4)]),
            (
                "# Facts\n# Facts\n# Facts-1\n# Facts",
                &[(1, "facts", 1), (1, "facts-1", 2), (1, "facts-1-1", 3), (1, "facts-2", 4)],
            ),
            ("# \n# Ünïcode & more!\r\n", &[(1, "preamble", 1), (1, "ünïcode-more", 2)]),
            // A byte order mark is no text; lines may end with a carriage return.
            ("\u{feff}# Facts\n- a\n", &[(1, "facts", 1)]),
            ("\u{feff}---\na: b\n---\n# A", &[(0, "preamble", 1), (1, "a", 4)]),
            (
                "# Facts\r- a\r# Next\r\n- b\r\r# Third",
                &[(1, "facts", 1), (1, "next", 3), (1, "third", 6)],
            ),
            // Rules around what is of the document are no front matter.
            (
                "---\n# Facts\n- a\n---\n# Timeline",
                &[(0, "preamble", 1), (1, "facts", 2), (1, "timeline", 5)],
            ),
            ("---\n\nTitle\n---\n", &[(0, "preamble", 1), (2, "title", 3)]),
            // What goes on with an item or a quotation is no heading.
            ("- one\n  two\n---\n", &[(0, "preamble", 1)]),
            ("- one\ntwo\n===\nthree\n---\n", &[(0, "preamble", 1)]),
            ("> one\ntwo\n---\n", &[(0, "preamble", 1)]),
            ("10. one\n\n    two\n---\n", &[(0, "preamble", 1)]),
            ("- one\n\n  two\n---\n", &[(0, "preamble", 1)]),
            ("- one\n\ntwo\n---\n", &[(0, "preamble", 1), (2, "two", 3)]),
            ("> one\n\n  two\n---\n", &[(0, "preamble", 1), (2, "two", 3)]),
            ("***\ntwo\n---\n", &[(0, "preamble", 1), (2, "two", 2)]),
            ("1.5 metres\n---\n", &[(2, "1-5-metres", 1)]),
        ];
        for (text, expected) in table {
            let expected: Vec<_> = expected
                .iter()
                .map(|(level, slug, line)| (*level, (*slug).to_owned(), *line))
                .collect();
            assert_eq!(outline(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_name_stands_for_the_section_that_bears_it() {
        let table = [
            ("# C\nx\n# C++\ny", "C++", Some(1)),
            ("# C\nx\n# C++\ny", " c++ ", Some(1)),
            ("# C++\ny\n# C\nx", "C", Some(1)),
            ("# C\nx\n# C++\ny", "c-1", Some(1)),
            ("# Facts\n# Facts\n# Facts-1", "Facts-1", Some(2)),
            ("# Facts\n# Facts\n# Facts-1", "facts-1", Some(1)),
            ("# Facts\n# Facts\n# Facts-1", "FACTS", Some(0)),
            ("# Active   Context\n", "active context", Some(0)),
            ("# Active Context\n", "Active-Context!", Some(0)),
            ("# a\n# 🚀", "🚀", Some(1)),
            ("# 🚀\n# 🚀", "🚀", Some(0)),
            ("x\n# a", " ", None),
        ];
        for (text, name, expected) in table {
            let found = sections(text);
            let at = find_section(&found, name)
                .map(|of| found.iter().position(|section| section == of).unwrap());
            assert_eq!(at, expected, "{name:?} in {text:?}");
        }
    }

    #[test]
    fn a_long_heading_has_a_short_name() {
        let text = format!("# {}\nx", "é b".repeat(9_000));
        let found = sections(&text);
        assert!(found[0].title.len() > 30_000 && found[0].slug.len() <= MOST_TITLE_BYTES);
        assert_eq!(find_section(&found, &found[0].title), Some(&found[0]));
        assert_eq!(short_title(&"é".repeat(150)), "é".repeat(100));
        assert_eq!(short_title(&format!("x{}", "é".repeat(150))).len(), 199);
    }

    #[test]
    fn a_section_has_its_subsections() {
        let text = "# A\na\n## B\nb\n### C\nc\n## D\nd\n# E\ne";
        let found = sections(text);
        let of = |name: &str| &text[find_section(&found, name).unwrap().range.clone()];
        assert_eq!(of("A"), "# A\na\n## B\nb\n### C\nc\n## D\nd\n");
        assert_eq!(of("b"), "## B\nb\n### C\nc\n");
        assert_eq!(of("C"), "### C\nc\n");
        assert_eq!(of("E"), "# E\ne");
        assert_eq!(&text[found[1].own.clone()], "## B\nb\n");
        assert_eq!(&text[found[1].body..found[1].own.end], "b\n");
        assert!(find_section(&found, "").is_none() && find_section(&found, "F").is_none());
    }

    proptest! {
        /// Whatever the text: sections never overlap, and are together the text.
        #[test]
        fn sections_are_the_text(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("# A\n".to_owned()), Just("## B ##\r\n".to_owned()), Just("===\n".to_owned()),
                    Just("---\n".to_owned()), Just("```\n".to_owned()), Just("\n".to_owned()),
                    Just("- x\n".to_owned()), Just("\r".to_owned()), Just("  two\n".to_owned()),
                    "\\PC{0,12}\n?", "[ #`~=-]{0,6}\n",
                ],
                0..40,
            )
        ) {
            let text = parts.concat();
            let found = sections(&text);
            let mut at = 0;
            let mut slugs = std::collections::HashSet::new();
            for section in &found {
                prop_assert_eq!(section.own.start, at);
                prop_assert!(section.own.end > at && section.range.start == at);
                prop_assert!(section.range.end >= section.own.end);
                prop_assert!((section.own.start..=section.own.end).contains(&section.body));
                prop_assert!(text.is_char_boundary(section.own.end));
                prop_assert!(slugs.insert(section.slug.clone()));
                prop_assert_eq!(section.line, 1 + lines(&text[..at]).count());
                at = section.own.end;
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
