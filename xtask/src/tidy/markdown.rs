//! The little of Markdown that the check of documents reads: code, and where links lead.

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

/// The pieces of a document, in order.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let trimmed = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            (Some(_), _) => {
                let text = trimmed.to_owned();
                pieces.push(Piece { line: line_number, kind: Kind::Fenced, text });
            }
            (None, None) => inline(line_number, line, &mut pieces),
        }
    }
    pieces
}

fn inline(line_number: usize, line: &str, pieces: &mut Vec<Piece>) {
    let mut push = |kind, text: &str| {
        let text = text.trim().to_owned();
        pieces.push(Piece { line: line_number, kind, text });
    };
    // Code first: what is in it is no link.
    let mut prose = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].chars().take_while(|char| *char == '`').count();
        let inner = &rest[start + ticks..];
        let Some(end) = inner.find(&rest[start..start + ticks]) else {
            break;
        };
        push(Kind::Code, &inner[..end]);
        prose.push_str(&rest[..start]);
        rest = &inner[end + ticks..];
    }
    prose.push_str(rest);

    for (at, opening) in prose.match_indices("](") {
        let target = &prose[at + opening.len()..];
        let end = target.find([')', ' ']).unwrap_or(target.len());
        push(Kind::Link, &target[..end]);
    }
    if prose.trim_start().starts_with('[')
        && let Some((_, target)) = prose.split_once("]: ")
    {
        push(Kind::Link, target.split_whitespace().next().unwrap_or(""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(usize, Kind, String)> {
        pieces(text).into_iter().map(|piece| (piece.line, piece.kind, piece.text)).collect()
    }

    #[test]
    fn code_and_links_are_read() {
        let text = "See `a/b` and [`c`](d/e.md#f \"title\").\n\n[g]: h.md\n`` a`b ``\n";
        assert_eq!(
            read(text),
            [
                (1, Kind::Code, "a/b".into()),
                (1, Kind::Code, "c".into()),
                (1, Kind::Link, "d/e.md#f".into()),
                (3, Kind::Link, "h.md".into()),
                (4, Kind::Code, "a`b".into()),
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
