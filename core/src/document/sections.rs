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

/// The section that a slug or a title names: the first of that slug, else of that title.
#[must_use]
pub fn find_section<'s>(sections: &'s [Section], name: &str) -> Option<&'s Section> {
    let asked = slug(name);
    sections
        .iter()
        .find(|section| section.slug == name)
        .or_else(|| sections.iter().find(|section| !asked.is_empty() && section.slug == asked))
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
            slug: slug(&heading.title),
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
}

impl Headings {
    fn of(text: &str) -> Self {
        let mut headings = Self::default();
        let mut at = front_matter(text);
        let first = 1 + text[..at].matches('\n').count();
        for (line, whole) in (first..).zip(text[at..].split_inclusive('\n')) {
            headings.read(text, at, whole, line);
            at += whole.len();
        }
        headings
    }

    fn read(&mut self, text: &str, at: usize, whole: &str, line: usize) {
        let content = whole.trim_end_matches(['\n', '\r']);
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
        } else if indent > 3 || content.starts_with('\t') {
            // Code, or the going on of a paragraph: it neither begins nor ends one.
        } else if let Some(open) = opens(trimmed) {
            (self.fence, self.paragraph) = (Some(open), None);
        } else if let Some((level, title)) = atx(trimmed) {
            self.paragraph = None;
            self.found.push(Heading { title, level, start: at, body, line });
        } else if let (Some((start, first)), Some(level)) = (self.paragraph, underline(trimmed)) {
            self.paragraph = None;
            let title = fold_spaces(&text[start..at]);
            self.found.push(Heading { title, level, start, body, line: first });
        } else if begins_other(trimmed) {
            self.paragraph = None;
        } else {
            self.paragraph.get_or_insert((at, line));
        }
    }
}

/// Bytes of the front matter, which is between two lines of `---` at the very beginning.
fn front_matter(text: &str) -> usize {
    let mut lines = text.split_inclusive('\n');
    let is_rule = |line: &str| line.trim_end() == "---";
    let Some(first) = lines.next().filter(|line| is_rule(line)) else { return 0 };
    let mut at = first.len();
    for line in lines {
        at += line.len();
        if is_rule(line) {
            return at;
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
        Some('0'..='9') => line[digits..].starts_with(['.', ')']),
        _ => false,
    }
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
                    Just("- x\n".to_owned()), "\\PC{0,12}\n?", "[ #`~=-]{0,6}\n",
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
                prop_assert_eq!(section.line, 1 + text[..at].matches('\n').count());
                at = section.own.end;
            }
            prop_assert_eq!(at, text.len());
        }
    }
}
