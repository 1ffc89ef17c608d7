//! Where sentences end, and where they do not.

use proptest::prelude::*;

use super::*;

/// Each `|` in a line is where a sentence is expected to end.
fn check(table: &[&str]) {
    let mut wrong = Vec::new();
    for marked in table {
        let text = marked.replace('|', "");
        let expected: Vec<&str> = marked.split('|').map(str::trim).collect();
        let found: Vec<&str> = sentences(&text).collect();
        if found != expected {
            wrong.push(format!("{marked:?} became {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn keeps_units_whole() {
    check(&[
        // URLs, with what belongs to the sentence outside.
        "ERROR: connection to https://db.example.com:5432/x?y=1 refused (code E4711). |Retry.",
        "See https://example.com/a?B=1&c=!D#E! |Then go on.",
        "Is it (https://example.com/a?Q=1)? |Yes, see https://example.com/?A. |Next.",
        "Open http://localhost:8080/Index.Html?X=Y, then click.",
        "It is on www.Example.Com/Path?X and nowhere else.",
        // Paths and files.
        "Edit src/main.rs and ./Run.sh, then ../Cargo.toml. |Build it.",
        r"Delete C:\A.B\C.Txt! |It is old.",
        r"It is at \\server\Share\What?.Txt for now.",
        "Run ./run.sh. |Then look at /var/log/App.Log. |Done.",
        "Add it to .Gitignore and .NET works.",
        // Versions, numbers, addresses, times, mail.
        "Use 1.2.3 or 2.0.Final. |Not 0.9.",
        "Pi is 3.14. |It was 1,000.50 and -0.5 before.",
        "The host is 10.0.0.1:80. |The other is 192.168.0.X for now.",
        "We meet at 7.40 or 8.15. |Be there.",
        "Write to Ana.Silva@Example.Com or to bo@example.org. |Thanks.",
        // Identifiers and domains.
        "Call foo.bar() or Foo.Bar?.Baz!.Qux() first. |Then stop.",
        "We use Node.js, crates.io and Example.Com. |All work.",
        "Set a?b:c or x!=Y or vec![A] here.",
        // Code.
        "Type `git. Reset! Now` first. |Then `a? B`. |Done.",
        "It is ``a. `B`. C`` there. |Done.",
        "Look:\n|```rust\nlet a = B? C. D;\n\nrun!();\n```\n|That is it.",
        "Look:\n|~~~\nOne. Two.\n~~~\n|That is it. |Yes.",
        // Quotations and parentheses.
        "\"He said. Then left.\" he wrote. |So it was.",
        "“He said. Then left.” he wrote. |So it was.",
        "«He said. Then left.» he wrote. |So it was.",
        "„He said. Then left.“ he wrote. |So it was.",
        "She wrote 'Never. Again.' and left. |So it was.",
        "「行く。帰る。」と言った。|終わり。",
        "\"Did you?\" he asked. |\"Yes.\" |She left.",
        "It works (I hope! Really. Yes) so far. |Good.",
        "It works (finally!) and stays. |(It was late. Too late.) |Good.",
        "Read [the manual. Twice](https://example.com/a?b) first. |Then ask.",
        // Abbreviations and initials.
        "I see Dr. Smith, e.g. Monday, and Mrs. Jones. |Then Prof. Weber.",
        "It is No. 5 Main Street, see Fig. 3 Above and i.e. This. |Good.",
        "J. R. Smith met John F. Kennedy and J.R. Tolkien. |They spoke.",
        "The U.S. Senate met Anna Lee, Ph.D. Smith and others. |It voted. |I read \"The Expanse\" by James S.A. Corey.",
        // Ellipses and enumerators.
        "Well... it works . . . somehow … Yes. |Good.",
        "1. Install it.\n|2. Run it! |It works.\n|a. Stop it.",
    ]);
}

#[test]
fn ends_where_a_sentence_ends() {
    check(&[
        "One. |Two! |Three? |Four?! |Five.",
        "one. two? |three! |four",
        "これは本です。|あれは？|はい！|終わり",
        "First line\n|second line\r\n|third.\n\n|New paragraph",
        "- one item\n|- another. |With more\n|* third\n|# Heading\n|Text.",
        "It is at https://example.com/a?b=1. |Then we go on.",
        "It costs 3.50. |Then came 4. |We left.",
        "He is in room B. |It has a desk. |Plan B. |Then we left.",
        "We meet at 7 p.m. |Bring it. |I live in the U.S. |We moved.",
        "So do I. |We agree. |Really?|Yes. |Great.",
        "I live in Baker St. |It is near St. James. |He has apples etc. |She has none. |It took 250 ms. |It was fast.",
        "The 5\" disk broke. |The 6' board. |It \"works\" now. |Fine.",
        "I'm sad :( It broke. |Now it works :) Good.",
        "He said \"go. |Then he left. |Nobody closed it.",
        "It (never closed. |Then more. |And more.",
        "A ` alone. |Then another sentence.",
        "```\n|never closed. |Then text.",
        "The dogs' bowl. |The cats' bowl. |It's 'fine'. |The '90s were good. |The boys' song.",
        "\"One.\" |\"Two.\" |Three.",
    ]);
}

#[test]
fn a_long_quotation_is_split_as_text() {
    let text = format!("\"{}\" he wrote.", "He came. ".repeat(80));
    assert_eq!(sentences(&text).count(), 80);
}

#[test]
fn hostile_texts_take_linear_time() {
    let parts = [
        "a.", "\"", "http://", "(", ")", "`", "``a", "'a", "?a", "!\"", "“", "a. ", "A. B. ",
        "Dr. ", "```\n", "```a\n", "~~~\n```\n", "\n", ". ", "!**", "?=", "「", "...", " ", "1.",
        "é. ", "好?",
    ];
    for part in parts {
        let text = part.repeat((1 << 20) / part.len());
        assert_covers(&text);
    }
}

fn assert_covers(text: &str) {
    let mut at = 0;
    for range in split_sentences(text) {
        assert_eq!(range.start, at);
        assert!(range.end > at && text.is_char_boundary(range.end));
        at = range.end;
    }
    assert_eq!(at, text.len());
}

/// Texts of what the splitter looks at.
pub(crate) fn tricky() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        r#"[ .?!"'`()“”«»\n*-]{1,3}"#,
        r"[A-Za-zéß]{1,6}",
        Just("https://example.com/a?B=1".to_owned()),
        Just("```".to_owned()),
        Just("Dr. ".to_owned()),
        Just("。好！".to_owned()),
        Just("3.14".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec(part, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn ranges_cover_any_text(text in tricky()) {
        assert_covers(&text);
    }

    #[test]
    fn urls_survive_in_any_text(before in "[A-Za-z .?!\n]{0,40}", path in "[A-Za-z0-9/?&=.!#]{0,20}[a-z]") {
        let url = format!("https://example.com:5432/{path}");
        let text = format!("{before} {url} And more. The end.");
        prop_assert!(sentences(&text).any(|sentence| sentence.contains(&url)), "{text:?}");
    }
}
