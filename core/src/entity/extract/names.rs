//! Names of persons. Capitals make a run of words a candidate; what stands beside it shows whether it is
//! a person (`persons.rs`), since cities, products and headings have the same capitals.

use std::ops::Range;
use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::Claims;
use super::persons::{Candidate, TITLES, is_organisation};
use crate::entity::EntityKind;

/// Longest name in words; a longer run of capitals is a headline.
const MAX_WORDS: usize = 4;

/// Words that prose capitalizes and that are no names: first words of sentences, dates, languages,
/// greetings and headings.
const COMMON: &str = "\
    a able about action address afraid african after again ago alexa all also although always am \
    american an and another answer any anyone anything approved apr april arabic are argentinian \
    around as asian ask assigned at attention aug august australian austrian avenue back be \
    because been before belgian best bible born brazilian british buddhist bulgarian busy but by \
    call can canadian catholic cc ceo chapter check cheers chinese christian christmas colleague \
    colleagues committee contact correction could croatian cto currently customer customers \
    czech dad danish date day dear debug dec december decision did do does don't done during \
    dutch each early easter either else email english error euro european euros even every \
    everyone everything example feb february few figure finally find fine finnish first folks \
    for french fri friday friends from german get give glad go god good google grandma grandpa \
    great greek guys had happy has have he hebrew hello help her here hey hi hindi hiring his \
    home how however human hungarian i i'd i'll i'm i've if important in indian indonesian info \
    instead internet into invite irish is isn't issue it it's italian item its jan january \
    japanese jewish jul july jun june just keep kind korean ladies last late lately later legal \
    let let's like look madam make management many mar march marketing may maybe me meanwhile \
    meet members message met mexican mister mom mon monday more most much mum muslim my name \
    need never new next no nobody none norwegian not note nothing nov november now oct october \
    of off ok okay on once one only option or other our out over part perhaps phone ping please \
    polish portuguese production project put question re read ready regards remember remind \
    reminder reported reviewed road romanian russian sales sat saturday saw say scottish second \
    section see send sep sept september serbian set she should show signed since sincerely sir \
    siri so some somebody someone something soon sorry spanish speak spoke step street subject \
    summary sun sunday support sure swedish swiss table take talk team tell thai thank thanks \
    that that's the their them then there there's these they they're thing think this those \
    though through thu thursday ticket tired title to today todo tomorrow tonight too try tue \
    tuesday turkish two ukrainian under unfortunately until up update urgent us use users \
    usually version very vietnamese wake warm warning was we we'll we're we've wed wednesday \
    welcome well welsh were what what's when where which while who whom why will with without \
    world would write written yes yesterday yet you you're your yours";

/// Words within a name that are not capitalized.
const PARTICLES: &[&str] =
    &["bin", "da", "de", "del", "der", "di", "do", "dos", "du", "la", "van", "von"];

/// Lines above the name at the end of a letter.
const CLOSINGS: &[&str] = &[
    "all the best", "best", "best regards", "best wishes", "cheers", "kind regards", "many thanks",
    "regards", "sincerely", "thank you", "thanks", "warm regards", "yours", "yours sincerely",
];

static COMMON_WORDS: LazyLock<FxHashSet<&'static str>> =
    LazyLock::new(|| COMMON.split_ascii_whitespace().collect());

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// A capital and small letters.
    Name,
    /// An initial.
    Initial,
    /// `Dr.` and the like.
    Title,
    /// `de`, `van` and the like.
    Particle,
    Other,
}

#[derive(Debug)]
pub(super) struct Word<'p> {
    /// Without punctuation and possessive.
    pub(super) text: &'p str,
    span: Range<usize>,
    pub(super) case: Case,
    /// At the start of a sentence, a line, a quotation or after a colon.
    pub(super) first: bool,
    /// Punctuation stands before it.
    pub(super) opened: bool,
    /// `'s` follows.
    pub(super) possessive: bool,
    /// The punctuation behind it, without the dot of an abbreviation.
    pub(super) tail: &'p str,
}

impl Word<'_> {
    /// In small letters.
    pub(super) fn lower(&self) -> String {
        self.text.to_lowercase().replace('’', "'")
    }

    /// Whether a name ends here.
    fn is_last(&self) -> bool {
        self.possessive || !self.tail.is_empty()
    }
}

/// Claims the persons of a part, where nothing else was found.
pub(super) fn claim(part: &str, claims: &mut Claims) {
    if !part.chars().any(char::is_uppercase) {
        return;
    }
    let words = words(part, claims);
    let runs = runs(&words);
    let mut known: Vec<bool> = runs
        .iter()
        .map(|run| Candidate { words: &words, start: run.start, end: run.end }.is_person())
        .collect();
    // "Rosa and Tomas": one is a person, so is the other.
    for at in 1..runs.len() {
        let (left, right) = (&runs[at - 1], &runs[at]);
        let joined = right.start == left.end + 1
            && words[left.end].text == "and"
            && !words[left.end - 1].is_last()
            && !words[right.start].opened;
        if joined && known[at - 1] != known[at] {
            (known[at - 1], known[at]) = (true, true);
        }
    }
    for (run, _) in runs.iter().zip(known).filter(|(_, known)| *known) {
        let range = words[run.start].span.start..words[run.end - 1].span.end;
        claims.add(range, EntityKind::Name, None);
    }
}

/// Whether a line is nothing but a name, as under the closing of a letter.
pub(super) fn is_signature(line: &str) -> bool {
    let words = words(line, &Claims::default());
    matches!(runs(&words).as_slice(), [run] if *run == (0..words.len()))
        && words.iter().all(|word| word.tail.is_empty())
        && !is_organisation(&words)
}

/// Whether a line closes a letter: `Best regards,`.
pub(super) fn is_closing(line: &str) -> bool {
    let line = line.trim().trim_end_matches([',', '.', '!']).to_lowercase();
    CLOSINGS.contains(&line.as_str())
}

/// The runs of capitalized words that may be names: words such as months and greetings divide them.
fn runs(words: &[Word]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let end = run_end(words, at);
        if let Some(run) = trimmed(words, at..end)
            && run.len() <= MAX_WORDS
        {
            runs.push(run);
        }
        at = end.max(at + 1);
    }
    runs
}

/// The end of the run of capitalized words at `at`.
fn run_end(words: &[Word], at: usize) -> usize {
    let mut end = at;
    while let Some(word) = words.get(end) {
        let joins = match word.case {
            Case::Other => false,
            // Only between two names.
            Case::Particle => {
                let next = words[end..].iter().find(|next| next.case != Case::Particle);
                end > at && next.is_some_and(|next| next.case == Case::Name)
            }
            Case::Name | Case::Initial | Case::Title => !is_common(word.text),
        };
        if !joins || end > at && word.first {
            break;
        }
        end += 1;
        if word.is_last() {
            break;
        }
    }
    end
}

/// A run without an ending particle, if it has a name.
fn trimmed(words: &[Word], mut run: Range<usize>) -> Option<Range<usize>> {
    while run.end > run.start && words[run.end - 1].case == Case::Particle {
        run.end -= 1;
    }
    let named = words[run.clone()].iter().any(|word| word.case == Case::Name);
    (named && !run.is_empty()).then_some(run)
}

/// Whether prose capitalizes a word that is no name.
pub(super) fn is_common(word: &str) -> bool {
    word.len() <= 16 && COMMON_WORDS.contains(word.to_lowercase().replace('’', "'").as_str())
}

fn words<'p>(part: &'p str, claims: &Claims) -> Vec<Word<'p>> {
    let mut words = Vec::new();
    let mut first = true;
    let mut at = 0;
    for chunk in part.split(|c: char| c.is_whitespace() || matches!(c, '/' | '—')) {
        let chunk_start = at;
        at += chunk.len();
        at += part[at..].chars().next().map_or(0, char::len_utf8);
        if chunk.is_empty() {
            continue;
        }
        let head = chunk.trim_start_matches(|c: char| !c.is_alphanumeric());
        let start = chunk_start + chunk.len() - head.len();
        let core = head.trim_end_matches(|c: char| !c.is_alphanumeric());
        let tail = &head[core.len()..];
        let bare = core.strip_suffix("'s").or_else(|| core.strip_suffix("’s")).unwrap_or(core);
        let span = start..start + bare.len();
        let opened = head.len() < chunk.len();
        let taken = claims.overlaps(&(chunk_start..chunk_start + chunk.len()));
        let case = if taken { Case::Other } else { case_of(bare) };
        let abbreviated = tail == "." && matches!(case, Case::Title | Case::Initial);
        let numbered =
            !core.is_empty() && core.bytes().all(|b| b.is_ascii_digit()) && words.is_empty();
        let ends = tail.contains(['.', '!', '?', ':']) && !abbreviated
            || core.is_empty() && first
            || numbered;
        if !core.is_empty() {
            words.push(Word {
                text: bare,
                span,
                case,
                first: first || opened,
                opened,
                possessive: bare.len() < core.len(),
                tail: if abbreviated { "" } else { tail },
            });
        }
        first = ends;
    }
    words
}

fn case_of(word: &str) -> Case {
    if PARTICLES.binary_search(&word).is_ok() {
        return Case::Particle;
    }
    if !word.starts_with(char::is_uppercase) {
        return Case::Other;
    }
    if TITLES.contains(&word) {
        return Case::Title;
    }
    if word.chars().count() == 1 {
        return if word == "I" { Case::Other } else { Case::Initial };
    }
    // "GitHub" is a product, "McKay" and "O'Neil" are not.
    let inner = word.strip_prefix("Mc").or_else(|| word.strip_prefix("Mac")).unwrap_or(word);
    let mut previous = '-';
    for c in inner.chars() {
        let starts = matches!(previous, '-' | '\'' | '’');
        if c.is_uppercase() != starts && c.is_uppercase()
            || !c.is_alphabetic() && !"-'’".contains(c)
        {
            return Case::Other;
        }
        previous = c;
    }
    if word.contains(char::is_lowercase) { Case::Name } else { Case::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(COMMON.split_ascii_whitespace().is_sorted());
        assert!(PARTICLES.is_sorted());
    }
}
