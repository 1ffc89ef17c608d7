//! What kind of answer a turn asks for, as far as it changes whose words bear on it. English; a turn
//! in another language is of no kind.

use unicode_segmentation::UnicodeSegmentation;

/// Whether the assistant's words matter as much as the user's own.
///
/// Most turns are about what their user stated, which in a chat with a model is a small part of the
/// text. Two kinds are not: a summary of what was worked on, and a question about what the assistant
/// said.
pub(super) fn asks_for_both_sides(turn: &str) -> bool {
    let words: Vec<String> = turn.unicode_words().map(str::to_lowercase).collect();
    let is =
        |at: usize, any: &[&str]| words.get(at).is_some_and(|word| any.contains(&word.as_str()));
    (0..words.len()).any(|at| {
        let word = words[at].as_str();
        SUMMARY.iter().any(|stem| word.starts_with(stem))
            || word == "sum" && is(at + 1, &["up"])
            || word == "did" && is(at + 1, &["you"])
            || word == "you"
                && (is(at + 1, SAID) || is(at + 2, SAID) && is(at + 1, &["have", "had", "just"]))
            || word == "your" && (is(at + 1, ANSWER) || is(at + 2, ANSWER) && is(at + 1, EARLIER))
    })
}

const SUMMARY: &[&str] = &["summar", "recap", "overview"];
const SAID: &[&str] = &[
    "said", "told", "gave", "mentioned", "recommended", "suggested", "advised", "explained",
    "listed", "provided", "described", "proposed", "wrote", "showed",
];
const ANSWER: &[&str] = &[
    "answer", "answers", "advice", "suggestion", "suggestions", "recommendation",
    "recommendations", "explanation", "reply", "response", "responses",
];
const EARLIER: &[&str] = &["earlier", "previous", "last", "first", "own"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_from_words() {
        let table = [
            ("Give me a summary of the project", true),
            ("Can you summarize how the move went?", true),
            ("How did you recommend structuring the sprint?", true),
            ("What was your earlier suggestion for the name?", true),
            ("Remind me what you said about the index", true),
            ("When does my first sprint end?", false),
            ("What would you recommend for dinner?", false),
            ("How many roles did I define?", false),
            ("", false),
        ];
        for (turn, expected) in table {
            assert_eq!(asks_for_both_sides(turn), expected, "{turn}");
        }
    }
}
