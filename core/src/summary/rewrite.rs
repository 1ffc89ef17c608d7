//! A summary whose lines a model writes anew: what it is shown, and what becomes of its answer.
//!
//! A line has the one source that the model names, and nothing beside what stands there: no number, name, id, URL or
//! quotation that its source does not have. So a line goes with its message, and tells nothing that was not said.

use crate::ids::MessageId;
use crate::secret::masked;
use crate::session::Message;
use crate::summary::{MAX_SUMMARY_TOKENS, Summary, SummaryLine, join_lines};
use crate::text::{clip, fold_spaces, protected_spans, query_terms};
use crate::tokens::Tokenizer;

/// Most characters that a model is shown of what is new, and least of one message.
const SHOWN_CHARS: usize = 16_000;
const LEAST_CHARS: usize = 200;
/// Most characters of a line.
const LINE_CHARS: usize = 320;
/// The part of a line's own words that its source must have.
const SHARED_TERMS: f32 = 0.5;

/// A line as a model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Draft {
    /// Which of the texts that it was shown says this, from 1.
    pub from: usize,
    /// The line.
    pub text: String,
}

/// What a model writes a summary from: the lines of the version before, then the messages that came since.
#[derive(Debug, Clone)]
pub struct Rewriting {
    sources: Vec<MessageId>,
    texts: Vec<String>,
}

impl Rewriting {
    /// That of a version, whose new messages these are, in order. Secrets are masked, and long messages shortened.
    #[must_use]
    pub fn new(previous: Option<&Summary>, messages: &[Message]) -> Self {
        let room = (SHOWN_CHARS / messages.len().max(1)).max(LEAST_CHARS);
        let held = previous.map_or(&[][..], |summary| &summary.lines);
        let held = held.iter().map(|line| (line.source, line.text.clone()));
        let said = messages.iter().map(|message| {
            let content = clip(&masked(&message.content), room);
            (message.id, format!("{}: {content}", message.speaker()))
        });
        let (sources, texts) = held.chain(said).unzip();
        Self { sources, texts }
    }

    /// The texts, for the model to name by their numbers, which begin at 1.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The lines of a model's answer that have evidence, in the order of what they are from, at most
    /// [`MAX_SUMMARY_TOKENS`], and the tokens of their text. Where they are more, those that the model wrote last are left
    /// out.
    #[must_use]
    pub fn lines(&self, drafts: &[Draft], tokenizer: &dyn Tokenizer) -> (Vec<SummaryLine>, u32) {
        let mut kept: Vec<(usize, SummaryLine)> = Vec::new();
        let mut tokens = 0;
        for draft in drafts {
            let Some(line) = self.line(draft) else { continue };
            if kept.iter().any(|(_, other)| other.text == line.text) {
                continue;
            }
            let mut with = kept.clone();
            with.push((draft.from, line));
            with.sort_by_key(|(from, _)| *from);
            let lines: Vec<SummaryLine> = with.iter().map(|(_, line)| line.clone()).collect();
            let count = tokenizer.count(&join_lines(&lines));
            if count <= MAX_SUMMARY_TOKENS {
                (kept, tokens) = (with, count);
            }
        }
        (kept.into_iter().map(|(_, line)| line).collect(), tokens)
    }

    fn line(&self, draft: &Draft) -> Option<SummaryLine> {
        let at = draft.from.checked_sub(1)?;
        let (source, said) = (self.sources.get(at)?, self.texts.get(at)?);
        let text = fold_spaces(&draft.text);
        let is_line = !text.is_empty() && text.chars().count() <= LINE_CHARS;
        (is_line && is_evident(&text, said)).then_some(SummaryLine { source: *source, text })
    }
}

/// Whether a text says only what `said` does, as far as words tell.
fn is_evident(text: &str, said: &str) -> bool {
    let said = fold_spaces(said);
    let has_values = protected_spans(text).into_iter().all(|span| said.contains(&text[span]));
    let lower = said.to_lowercase();
    let has_names = text
        .split(|c: char| !c.is_alphanumeric())
        .skip(1)
        .filter(|word| word.chars().any(char::is_uppercase))
        .all(|name| lower.contains(&name.to_lowercase()));
    let (own, of_source) = (query_terms(text), query_terms(&said));
    let shared = own.iter().filter(|term| of_source.contains(term)).count();
    has_values && has_names && !own.is_empty() && shared as f32 >= SHARED_TERMS * own.len() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_nothing_that_their_source_does_not() {
        let said = "user: The cutover of Alfred moves from 14 May to 21 May, \
                    because the vendor's certificate (CERT-4711) is late.";
        let table = [
            ("The Alfred cutover moved to 21 May because the certificate is late.", true),
            ("Alfred's cutover was moved from 14 May to 21 May.", true),
            ("The Alfred cutover moved to 28 May.", false),
            ("The Alfred cutover moved to 21 May at the wish of Rita.", false),
            ("The certificate CERT-4712 is late.", false),
            ("Nobody likes early mornings in winter.", false),
            ("", false),
        ];
        for (line, evident) in table {
            assert_eq!(is_evident(line, said), evident, "{line}");
        }
    }
}
