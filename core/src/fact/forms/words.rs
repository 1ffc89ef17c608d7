//! Small helpers over lower-case text.

/// The start of the word that ends at `end`.
pub(super) fn start_of_last(lower: &str, end: usize) -> usize {
    lower[..end].rfind([' ', ':']).map_or(0, |at| at + 1)
}

/// Where a value ends that begins at `from`: before punctuation that ends a clause, or a word that goes on.
pub(super) fn value_end(lower: &str, from: usize, stops: &[&str]) -> usize {
    let rest = &lower[from..];
    let bytes = rest.as_bytes();
    let mut end = rest.len();
    for (at, c) in rest.char_indices() {
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        let ends = match c {
            ',' | '.' | ':' => next == b' ',
            ';' | '!' | '?' | '(' | ')' | '\n' => true,
            '–' | '—' | '-' => next == b' ' && at > 0 && bytes[at - 1] == b' ',
            _ => false,
        };
        if ends {
            end = at;
            break;
        }
    }
    let cut = stops.iter().filter_map(|stop| rest[..end].find(stop)).min().unwrap_or(end);
    from + rest[..cut].trim_end_matches([' ', '.', ',']).len()
}
