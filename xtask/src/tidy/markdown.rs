//! The little of Markdown that the check of documents reads: code, and where links lead.

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

/// A piece of a document that can name something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Inline code.
    Code,
    /// A line of a fenced block.
    Fenced,
    /// The target of a link.
    Link,
}

/// The pieces of a document.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let line_at = |at: usize| text[..at].matches('\n').count() + 1;
    let mut push = |kind, at, text: &str| {
        pieces.push(Piece { line: line_at(at), kind, text: text.trim().to_owned() });
    };
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES);
    for (_, definition) in parser.reference_definitions().iter() {
        push(Kind::Link, definition.span.start, &definition.dest);
    }
    let mut in_code = false;
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(block) if in_code => {
                let mut at = range.start;
                for line in block.split_inclusive('\n') {
                    push(Kind::Fenced, at, line);
                    at += line.len();
                }
            }
            Event::Code(code) => push(Kind::Code, range.start, &code),
            Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, .. }) => {
                push(Kind::Link, range.start, &dest_url);
            }
            _ => {}
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(usize, Kind, String)> {
        pieces(text).into_iter().map(|piece| (piece.line, piece.kind, piece.text)).collect()
    }

    #[test]
    fn code_and_links_are_read() {
        let text =
            "See `a/b` and [`c`](d/e.md#f \"title\").\n\n[g]: h.md\n\n| `` a`b `` |\n|---|\n";
        assert_eq!(
            read(text),
            [
                (3, Kind::Link, "h.md".into()),
                (1, Kind::Code, "a/b".into()),
                (1, Kind::Link, "d/e.md#f".into()),
                (1, Kind::Code, "c".into()),
                (5, Kind::Code, "a`b".into()),
            ]
        );
    }

    #[test]
    fn fences_hold_lines() {
        assert_eq!(
            read("```sh\ncargo x `y`\n```\n`z`\n"),
            [(2, Kind::Fenced, "cargo x `y`".into()), (4, Kind::Code, "z".into())]
        );
    }
}
