//! The rule by which a context is said to show a message: one of up to 400 characters in full, of a longer one a
//! verbatim passage of at least 160.

use throughline_core::context::AssembledContext;
use throughline_core::ids::ExternalId;
use throughline_core::text::fold_spaces;

use super::Sample;

/// Contents of up to this many characters must be shown in full.
const WHOLE_CHARS: usize = 400;
/// Of longer ones, a verbatim passage of this many characters must be shown.
const PASSAGE_CHARS: usize = 160;

/// Whether a context shows a message of a sample, by the rule of the measure.
#[must_use]
pub fn shows(context: &AssembledContext, sample: &Sample, id: &ExternalId) -> bool {
    let content = sample.content(id);
    context
        .items
        .iter()
        .filter(|item| item.external_id.as_ref() == Some(id))
        .filter_map(|item| context.rendered(item))
        .any(|text| holds(text, content))
}

/// Whether a rendered text shows a message, by the rule of the measure.
#[must_use]
pub fn holds(rendered: &str, content: &str) -> bool {
    let rendered = fold_spaces(rendered);
    let content = fold_spaces(content);
    let length = content.chars().count();
    if length <= WHOLE_CHARS {
        return !content.is_empty() && rendered.contains(&content);
    }
    // Any window of the passage length will do; a step of a word's length finds it if it is there.
    let starts: Vec<usize> = content.char_indices().map(|(at, _)| at).collect();
    (0..=length - PASSAGE_CHARS).step_by(8).any(|first| {
        let end = starts.get(first + PASSAGE_CHARS).copied().unwrap_or(content.len());
        rendered.contains(&content[starts[first]..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_shown_or_not() {
        let long = "word ".repeat(200);
        let other = "drow ".repeat(200);
        let table = [
            ("Ana: I  moved to Porto.", "I moved to\nPorto.", true),
            ("Ana: I moved to", "I moved to Porto.", false),
            ("", "I moved", false),
            ("anything", "", false),
            (&long[..180], &long, true),
            (&long[..100], &long, false),
            (&other, &long, false),
        ];
        for (rendered, content, expected) in table {
            assert_eq!(holds(rendered, content), expected, "{rendered:.40} / {content:.40}");
        }
    }
}
