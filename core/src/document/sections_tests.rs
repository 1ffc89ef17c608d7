//! Tests of sections.

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
        // A heading inside an item or a quotation is part of it, and so is a fence.
        ("- one\n  # two\n# A", &[(0, "preamble", 1), (1, "a", 3)]),
        ("> # one\n# A", &[(0, "preamble", 1), (1, "a", 2)]),
        ("- ```\n  # code\n  ```\n# A", &[(0, "preamble", 1), (1, "a", 4)]),
        ("- ```\n# A", &[(0, "preamble", 1), (1, "a", 2)]),
        // Comments and raw HTML have none.
        ("<!--\n# gone\n\n# too\n-->\n# A", &[(0, "preamble", 1), (1, "a", 6)]),
        ("<div>\n# inside\n</div>\n\n# A", &[(0, "preamble", 1), (1, "a", 5)]),
        // A rule after a table is no underline, and neither is one with spaces in it.
        ("| a | b |\n|---|---|\n| c | d |\n---\n# A", &[(0, "preamble", 1), (1, "a", 5)]),
        ("one\n- - -\n# A", &[(0, "preamble", 1), (1, "a", 3)]),
        // White space that is neither space nor tab is text.
        ("#\u{a0}A\n\u{a0}# B", &[(0, "preamble", 1)]),
        // Titles are as they are written.
        ("# `a` *b* [c](d) &amp; \\#", &[(1, "a-b-c-d-amp", 1)]),
        ("[a]: /b\nTitle\n===", &[(0, "preamble", 1), (1, "title", 2)]),
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

#[test]
fn a_text_stays_within_its_section() {
    let table = [
        // What an escaped heading leaves to be one.
        ("# A\n===\n---", "\\# A\n\\===\n\\---"),
        ("# A\n    code\n===", "\\# A\n    code\n\\==="),
        // Of other blocks headings are not ours.
        ("- # A\n\n> # B", "- # A\n\n> # B"),
        ("<!-- x -->\n# A", "<!-- x -->\n\\# A"),
        // What would take in the next section.
        ("```", "```\n```"),
        (" ~~~~ sh\n~~~\n", " ~~~~ sh\n~~~\n~~~~"),
        ("a\n\n <!-- x\n# A", "a\n\n \\<!-- x\n\\# A"),
        ("<script>\n\nx", "\\<script>\n\nx"),
    ];
    for (own, expected) in table {
        assert_eq!(within_section(own), expected, "{own:?}");
    }
}

#[test]
fn escapes_line_by_line_what_rounds_do_not_settle() {
    let own = "# A\n2. x\n---\n".repeat(50);
    let escaped = within_section(&own);
    assert_eq!(escaped, "\\# A\n2. x\n\\---\n".repeat(50));
}

/// Ends at all only where the time does not grow with the square of the text.
#[test]
fn large_documents_are_read() {
    for part in ["- ---\n", "# h\n", "[a](", "<a ", "<!--", "*a _b ", "`a", "> ", "a\n===\n", "\r"]
    {
        let text = part.repeat((1 << 19) / part.len());
        assert_eq!(sections(&text).iter().map(|of| of.own.len()).sum::<usize>(), text.len());
        assert!(within_section(&text).len() >= text.len());
    }
}

/// Lines and what may stand in them.
fn markdown() -> impl Strategy<Value = String> {
    const PARTS: &[&str] = &[
        "# A\n", "## B ##\r\n", "===\n", "---\n", "```\n", "~~~", "\n", "- x\n", "1. ", "> ",
        "    ", "\t", "\r", "  two\n", "<!--", "-->\n", "<div>", "<script>", "| a |\n|---|\n",
        "[a]: /b\n", "[a](", "*", "`", "\\", "\u{feff}", "\0", "&amp;",
    ];
    let part = prop_oneof![
        2 => prop::sample::select(PARTS).prop_map(str::to_owned),
        1 => "\\PC{0,12}\n?",
        1 => "[ #`~=-]{0,6}\n",
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    /// Whatever the text: sections never overlap, and are together the text.
    #[test]
    fn sections_are_the_text(text in markdown()) {
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

    /// Whatever is put into a section, it and the next one are the only ones.
    #[test]
    fn any_text_stays_within_its_section(own in markdown()) {
        let text = format!("# A\n{}\n\n# B\n", within_section(&own));
        let found = sections(&text);
        let titles: Vec<&str> = found.iter().map(|section| section.title.as_str()).collect();
        prop_assert_eq!(titles, ["A", "B"], "{}", text);
    }
}
