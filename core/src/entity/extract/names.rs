//! Names by their capitals. A capital at the start of a sentence proves nothing, so a single word
//! there is never a name.

use std::ops::Range;
use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::Claims;
use crate::entity::EntityKind;

/// Longest name in words; a longer run of capitals is a headline.
const MAX_WORDS: usize = 4;

/// Words that prose capitalizes and that are no names: first words of sentences, dates, languages,
/// greetings and headings.
const COMMON: &str = "\
    a able about action address afraid african after again ago all also although always am \
    american an and another answer any anyone anything apr april arabic are argentinian \
    around as asian ask at attention aug august australian austrian avenue back be because \
    been before belgian best bible born brazilian british buddhist bulgarian busy but by \
    call can canadian catholic ceo chapter check cheers chinese christian christmas \
    correction could croatian cto currently czech dad danish date day dear debug dec \
    december decision did do does don't done during dutch each early easter either else \
    email english error euro european euros even every everyone everything example feb \
    february few figure finally find fine finnish first for french fri friday from german \
    get give glad go god good grandma grandpa great greek had happy has have he hebrew hello \
    help her here hey hi hindi his home how however hungarian i i'd i'll i'm i've if \
    important in indian indonesian info instead internet into irish is isn't issue it it's \
    italian item its jan january japanese jewish jul july jun june just keep kind korean \
    last late lately later let let's like look madam make many mar march may maybe me \
    meanwhile meet met mexican mister mom mon monday more most mr much mum muslim my name \
    need never new next no nobody none norwegian not note nothing nov november now oct \
    october of off ok okay on once one only option or other our out over part perhaps phone \
    please polish portuguese project put question re read ready regards remember remind \
    reminder road romanian russian sat saturday say scottish second section see send sep \
    sept september serbian set she should show since sincerely sir so some somebody someone \
    something soon sorry spanish step street subject summary sun sunday sure swedish swiss \
    table take tell thai thank thanks that that's the their them then there there's these \
    they they're thing think this those though through thu thursday ticket tired title to \
    today todo tomorrow tonight too try tue tuesday turkish two ukrainian under \
    unfortunately until up update urgent us use usually version very vietnamese warm warning \
    was we we'll we're we've wed wednesday welcome well welsh were what what's when where \
    which while who why will with without would write yes yesterday yet you you're your \
    yours";

/// Capitalized words before a name that are part of it.
const TITLES: &[&str] = &["Dr", "Miss", "Mr", "Mrs", "Ms", "Mt", "Prof", "Sir", "St"];

/// Words within a name that are not capitalized.
const PARTICLES: &[&str] =
    &["bin", "da", "de", "del", "der", "di", "do", "dos", "du", "la", "van", "von"];

static COMMON_WORDS: LazyLock<FxHashSet<&'static str>> =
    LazyLock::new(|| COMMON.split_ascii_whitespace().collect());

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// A capital and small letters.
    Name,
    /// Capitals only, or an initial.
    Capitals,
    /// `Dr.` and the like.
    Title,
    /// `de`, `van` and the like.
    Particle,
    Other,
}

#[derive(Debug)]
struct Word {
    span: Range<usize>,
    case: Case,
    /// At the start of a sentence, a line, a quotation or after a colon.
    first: bool,
    /// Punctuation or a possessive follows: a name ends here.
    last: bool,
}

/// Claims the names of a part, where nothing else was found.
pub(super) fn claim(part: &str, claims: &mut Claims) {
    if !part.chars().any(char::is_uppercase) {
        return;
    }
    let words = words(part, claims);
    let mut at = 0;
    while at < words.len() {
        let end = run_end(&words, at);
        if end == at {
            at += 1;
            continue;
        }
        for name in names(part, &words, at..end) {
            claims.add(
                words[name.start].span.start..words[name.end - 1].span.end,
                EntityKind::Name,
                None,
            );
        }
        at = end;
    }
}

/// The end of the run of capitalized words at `at`.
fn run_end(words: &[Word], at: usize) -> usize {
    let mut end = at;
    while end < words.len() {
        let inner = words[end].case == Case::Particle
            && end > at
            && words
                .get(end + 1)
                .is_some_and(|next| next.case == Case::Name || next.case == Case::Particle);
        if !inner && matches!(words[end].case, Case::Other | Case::Particle)
            || end > at && words[end].first
        {
            break;
        }
        end += 1;
        if words[end - 1].last {
            break;
        }
    }
    end
}

/// The names within a run: words such as months and greetings divide it.
fn names(part: &str, words: &[Word], run: Range<usize>) -> Vec<Range<usize>> {
    let mut names = Vec::new();
    let mut start = run.start;
    for at in run.start..=run.end {
        let divides = at == run.end
            || words[at].case == Case::Name && is_common(&part[words[at].span.clone()]);
        if !divides {
            continue;
        }
        let mut end = at;
        while end > start && words[end - 1].case == Case::Particle {
            end -= 1;
        }
        while start < end && words[start].case == Case::Particle {
            start += 1;
        }
        let named = words[start..end].iter().filter(|word| word.case == Case::Name).count();
        let length = end - start;
        let proven = length > 1 || length == 1 && !words[start].first;
        if named > 0 && proven && length <= MAX_WORDS {
            names.push(start..end);
        }
        start = at + 1;
    }
    names
}

fn is_common(word: &str) -> bool {
    word.len() <= 16 && COMMON_WORDS.contains(word.to_lowercase().replace('’', "'").as_str())
}

fn words(part: &str, claims: &Claims) -> Vec<Word> {
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
        let initial = bare.len() == 1 && case == Case::Capitals;
        let abbreviated = tail == "." && (case == Case::Title || initial && bare != "I");
        let numbered =
            !core.is_empty() && core.bytes().all(|b| b.is_ascii_digit()) && words.is_empty();
        let ends = tail.contains(['.', '!', '?', ':']) && !abbreviated
            || core.is_empty() && first
            || numbered;
        if !core.is_empty() {
            let last = !tail.is_empty() && !abbreviated || bare.len() < core.len();
            words.push(Word { span, case, first: first || opened, last });
        }
        first = ends;
    }
    words
}

fn case_of(word: &str) -> Case {
    if PARTICLES.binary_search(&word).is_ok() {
        return Case::Particle;
    }
    let mut letters = word.chars();
    if !letters.next().is_some_and(char::is_uppercase) {
        return Case::Other;
    }
    if TITLES.binary_search(&word).is_ok() {
        return Case::Title;
    }
    let (mut small, mut odd) = (false, false);
    for c in letters {
        small |= c.is_lowercase();
        odd |= !c.is_alphabetic() && !matches!(c, '-' | '\'' | '’');
    }
    match (odd, small) {
        (true, _) => Case::Other,
        (false, true) => Case::Name,
        (false, false) if word == "I" => Case::Other,
        (false, false) => Case::Capitals,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(COMMON.split_ascii_whitespace().is_sorted());
        assert!(TITLES.is_sorted() && PARTICLES.is_sorted());
    }
}
