//! The sentences of a message that are the user's own words. Code, quotations, pastes, lists, and what a
//! sentence reports, imagines or hands over to be edited are left out: of what is unclear, nothing is believed.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::pasted::{MARKUP, typed};
use crate::text::{ANY_LINE_BREAK, ascii, is_question, sentence_ranges, without_fenced};

/// Longer messages are read to here: what follows is data.
const MAX_READ: usize = 16 << 10;
/// Stands for each byte of a quotation or of inline code.
pub(in crate::fact) const MASK: u8 = b'_';

/// A sentence that the user says for themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::fact) struct Sentence {
    /// As it was written, with straight apostrophes.
    pub(in crate::fact) text: String,
    /// Of the same length: ASCII letters lower case, quotations and inline code masked.
    pub(in crate::fact) lower: String,
    /// Whether it ends in a question mark.
    pub(in crate::fact) asks: bool,
}

impl Sentence {
    /// What was written at `range` of [`Self::lower`].
    pub(super) fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }
}

/// A pattern that is written here and compiled once, with classes of ASCII; the tests of this module use every one.
#[expect(clippy::expect_used, reason = "a constant pattern; the tests compile it")]
pub(in crate::fact) fn pattern(text: &str) -> Regex {
    Regex::new(&ascii(text)).expect("it is valid")
}

/// A line of code, of a log or of markup.
pub(super) static DATA: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:\t| {4}|\s*(?:[{}<|>$%#]|\[[^\]]*\]|//|--|\*\*\*|\d{4}-\d\d-\d\d[t ,]|\d\d:\d\d:\d\d|",
        r"\[?(?:info|warn(?:ing)?|error|debug|trace|fatal)\b[\]: ]|at [\w.$]+\(|traceback))",
        r"|\b(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b|exit code \d|[{};]\s*$|</?\w+[^>]*>|",
        r#"\(\)|==|!=|=>|:=|&&|\w+\(\w*=|\{"|^\s*[\w.]+\s*=\s*\S|"#,
        r"^\s*(?:select|insert|get|post|put|import|def|return|class|fn|let|const|var|export|curl|",
        r"sudo|git|npm|pip|docker|todo)\b[^a-z]*[\w.]*\s*[(*/={:]",
    ))
});

/// A list's item or a heading: a list names things and states nothing by itself.
pub(super) static LIST: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(?:[-*+–]\s|[•▪◦‣●○■□➤→✓✔]|\d{1,2}[.)]\s|\[[ x]\]|#{1,6}\s)"));

/// A letter begins or ends, or an article names its source: the message is somebody's mail or text.
static LETTER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?m)^\s*(?:dear\s[^.!?\n]{1,40},|(?:hi|hello|hey)\s[a-z .]{2,30},\s*$|",
        r"(?:best|kind|warm|many)?\s*(?:regards|wishes|thanks),?\s*$|sincerely|cheers,|best,|",
        r"(?:from|to|subject|re|fwd?|aw|wg|sv|tr|rv):\s|---+\s*(?:forwarded|original)|(?:--|—|–|__)\s*$|sent from my\s|",
        r"(?:—|–|--) ?[a-z]+ [a-z]+(?:, [^\n]{1,60})?$|\[?\^?[0-9]{1,3}\]?: ?(?:https?://|www\.)|",
        r"\W?(?:sources?|via|retrieved from|read more|originally (?:posted|published))\b[^.!?\n]{0,40}(?:https?://|www\.)|",
        r"(?:©|\(c\)|copyright\s)[^\n]*[0-9]{4}|all rights reserved)",
    ))
});

/// What comes after it is not the user's: it is somebody's text, to be edited, or a role.
static HANDS_OVER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:says?|said|reads?|wrote|writes|states?|stated|claims?|replied|answered|goes|quote|",
        r"prompt|text|example|template|message|mail|email|post|tweet|article|snippet|log|output|",
        r"readme|transcript|review|letter|note|sign|slogan|instructions?|rules?) ?[^.:]{0,60}:(?: |$)|",
        r"^(?:so |ok |okay |and |hi,? |well )*(?:here's|here is|here are|this is what|below is|i got |",
        r"i received |we got |i found )[^.]*:|",
        r"^(?:please |can you |could you |would you |now |ok |and )*(?:draft|compose|write|tweet|post|",
        r"design|generate|create|print|say|type|fill|send|tell|turn|make|put|reply|add|save|note) ",
        r"[^:]*:(?: |$)|",
        r"^(?:please |can you |could you |now |and |let's |ok |so |hey )*(?:pretend|imagine|suppose|",
        r"role-?play|act as|act like|let's play|you are (?:a|an|the|now|my)\b|you're (?:a|an|the) |",
        r"in this (?:scene|scenario|story|game)|for the role|for the sake of|say (?:the|we|i|you|my)\b)",
    ))
});

/// What follows is a text to work on, or what came before where nothing follows. An order that stands is none of this.
static WORKS_ON: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:translate|rewrite|rephrase|paraphrase|proofread|summari[sz]e|reword|edit|shorten|fix|",
        r"correct|turn|convert|polish|improve|explain|analy[sz]e|review|check) (?:this|these|that|it|",
        r"the following|the (?:text|above)|below|my (?:text|essay|email|mail|message|letter|paragraph))\b|",
        r"^(?:please |can you |could you |would you |now |ok |and |hi,? |just )*",
        r"(?:translate|rewrite|rephrase|paraphrase|proof-?read|spell-?check|summari[sz]e|reword)\b|",
        r"\b(?:translation|proofreading|summary),? (?:please|(?:into|to) [a-z]+)[^0-9a-z]*$|",
        r"^(?:(?:please|pls|plz|can you|could you|would you|will you|i need you to|i want you to|i'd like you to|",
        r"help me|now|ok|so|and|hi|hey|hello|just|kindly)[,!]? )*",
        r"(?:sum|reply|respond|react|answer|extract|pull|classify|categori[sz]e|rate|grade|score|critique|evaluate|",
        r"assess|interpret|decode|decipher|parse|transcribe|simplify|condense|expand|re-?format|clean|tidy|",
        r"fact-?check|comment|annotate|localize|",
        r"(?:write|draft|compose|give|make|create|send|suggest|prepare)\b.{0,40}\b(?:reply|response|answer|",
        r"summary|translation|version|outline|review|title|headline|caption)s?)\b",
        r"(?:.{0,60}\b)?(?:this|these|the following|below)(?: (?:text|e-?mail|mail|message|letter|article|post|",
        r"thread|comment|review|document|paragraph|passage|note|page|tweet|ticket|transcript|chat|conversation|",
        r"speech|story|poem|code|data|table|list|log|output|one)s?)?",
        r"(?:[^0-9a-z]*$|[,;:]| (?:in|into|to|for|from|as|with|using|by|up|down|out|so|and|please|pls)\b)|",
        // The same in other languages.
        r"^[^0-9A-Za-z]*(?:(?:por favor|s'il (?:te|vous) pla[iî]t|bitte|per favore|alsjeblieft|kannst du|",
        r"puedes|peux-tu|pouvez-vous|puoi|você pode)[,:]? )*(?:trad[uú][cziys]|(?:ü|Ü|ue)bersetz|vertaal|",
        r"przetłumacz|översätt|oversæt|oversett|переведи|перевести|çevir|dịch|resum[ae]|résume|riassum|fass[et]? |",
        r"corrig|korrigier|corregg|reescrib|reformule|réécri|riscriv|umschreib|翻[译譯訳]|번역)",
    ))
});

/// A request, question or remark about the text that follows it, or a word or two that only introduce one.
static ABOUT_NEXT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:ok |so |and |hey |hi |hello |um |well |lol |wtf |omg )*(?:please|pls|can|could|would|will|should|what|what's|how|why|",
        r"who|which|where|when|is|are|was|were|does|do|did|has|have|any|anyone|i need|i want|i'd like|give|look|read|",
        r"check|help|make|see|answer|tell|show|find|list|write|say|get|go|thoughts|opinions?|feedback|comments?)\b",
        r".*\b(?:this|these|the following|below)\b|",
        r"\b(?:sent|gave|forwarded|showed|e-?mailed|mailed|texted|messaged|posted|shared|wrote|got|received|found|",
        r"saw|read|copied|pasted|dm'?e?d|came across)\b(?: [a-z']+){0,3} (?:this|these|the following)\b|",
        r"^[^0-9a-z]*(?:[a-z]+ )?(?:look|guess|see|read) what (?:i|we|my|she|he|they)\b|^(?:below|above|attached) (?:is|are)\b|",
        r"^(?:from (?:my|our|the|a) [a-z' ]{1,30}|here (?:you go|it is|they are|goes)|(?:bullet|key) points)",
        r"(?: (?:please|pls|plz))?[^0-9a-z]*$|",
        r"\bwhat (?:should|shall|do|would|can) (?:i|we|you) (?:reply|answer|respond|write back|say)\b[^0-9a-z]*$|",
        r"^(?:and |so |ok |hey |hi )*this (?:just |also )?(?:came|arrived|landed|appeared|popped up|was|is (?:from|what|the|a|an))\b|",
        r"^[^0-9a-z]*(?:tl;? ?dr|eli5|fyi|fwiw|wdyt|thoughts|opinions?|ideas|comments|feedback|reactions|advice|",
        r"help|summary|translation|see below|for (?:reference|context|information|your information)|",
        r"what (?:do|would) (?:you|u) (?:think|say|make of it)|(?:is it|true|real|legit|fake|scam|spam|phishing)",
        r"(?: or [a-z]+)?)(?: (?:please|pls|plz|thanks|thx))?[^0-9a-z]*$|",
        r"^[^0-9a-z]*(?:in|into|to) (?:[a-z]+ )?[a-z]+,? (?:please|pls|plz|thanks|thx)[^0-9a-z]*$|",
        r"^[^0-9a-z]*(?:in|into|to) (?:(?:plain|simple|proper|formal|good|british|american|brazilian) )?(?:english|",
        r"french|german|spanish|italian|dutch|portuguese|polish|russian|ukrainian|turkish|arabic|hindi|japanese|",
        r"chinese|mandarin|korean|swedish|danish|norwegian|finnish|czech|greek|words)[^0-9a-z]*$|",
        r"\b(?:esto|este (?:texto|correo|mensaje)|ceci|ce (?:texte|mail|message|courriel)|cet e-?mail|das hier|",
        r"diese[nrms]? (?:text|mail|e-mail|nachricht)|folgende[nrms]?|questo|isto|deze (?:tekst|mail))\b|",
        r"(?:это|цей|这|這|これ|이것|이거)",
    ))
});

/// A question about the text before it.
static ABOUT_THIS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^[^0-9a-z]*(?:what|what's|how|why|who|is|are|does|do|did|was|should|can|could|any)\b.{0,40}\bthis\b(?: [a-z]+){0,2}[^0-9a-z]*$",
    )
});

/// `this` with a time: no text is meant.
static THIS_TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:this|these) (?:(?:past|coming|last|next) )?(?:mornings?|afternoon|evening|week(?:end)?s?|months?|",
        r"years?|quarter|semester|term|time|days?|spring|summer|autumn|fall|winter|christmas|easter|",
        r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    ))
});

static STANDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^[^:]*\b(?:from now on|always|(?:every|each) time|whenever|going forward|henceforth|in (?:the )?future|",
        r"(?:when|if) (?:i|you) (?:ask|send|paste|share|write|request|show|give|say|mention))\b[^:]*$",
    ))
});

/// A line that introduces what the user says themselves.
pub(super) static ANNOUNCES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:ok |so |and |also,? |oh |btw,? )*(?:(?:a |one |my |another )?(?:new |standing |general |quick |",
        r"small )*(?:rule|correction|update|request|preference|reminder|instruction)s?(?: for (?:you|the future|",
        r"our chats))?|from now on|going forward|please remember|remember|for all future [\w ]{1,24}|",
        r"change of plans?|make a (?:mental )?note): ",
    ))
});

/// A sentence that tells of others, or of what is not so.
static NOT_OWN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:says|saying|writes|wrote|claims|claimed|claiming|thinks|reckons|swears|insists|insisted|",
        r"according to|supposedly|allegedly|used to say|would say|reads:|i heard|heard that|",
        r"it says|they say|people say|quote|hypothetically|imagine|suppose|pretend|what if|i wish|",
        r"let's say|i wonder|i guess|maybe|perhaps|possibly|might|lol|haha|horoscope|my dream|dreamt|",
        r"in (?:my|the|this|her|his|a) (?:novel|story|dream|book|film|movie|game|scene|song|poem|show|",
        r"world|universe)|the narrator|the character|just this once|this time|just kidding|kidding|",
        r"for example|for instance|e\.g\.)\b|",
        r"^(?:and |but |so |or |even |as )*(?:if i |if we |had (?:i|we) |were i )(?:ever |had |were |was |",
        r"lived |moved |went |got |told )?",
    ))
});

/// Somebody said or told something; the user's own "I said" does not count.
static SAID: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|[^a-z'])(?:(i|i've|i'd|we|we've|what i|as i) )?(?:said|told|asked|tells|replied)\b",
    )
});

/// The user's own sentences, in order.
pub(in crate::fact) fn own_sentences(content: &str) -> Vec<Sentence> {
    let content = without_fenced(content);
    let content = in_lines(&content[..content.floor_char_boundary(MAX_READ)]);
    let mut found = Vec::new();
    if LETTER.is_match(&content.to_ascii_lowercase()) {
        return found;
    }
    let content = content.replace(['\u{2019}', '\u{2bc}'], "'");
    let typed = typed(&content);
    let mut lines = typed.lines();
    let mut fence: Option<&str> = None;
    let mut is_quoted = false;
    while let Some(line) = lines.next() {
        let bare = line.trim_start();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark)) {
            fence = if fence == Some(mark) { None } else { fence.or(Some(mark)) };
            is_quoted = false;
            continue;
        }
        // A quotation ends with an empty line.
        is_quoted = fence.is_none() && !bare.is_empty() && (is_quoted || bare.starts_with('>'));
        if fence.is_some() || is_quoted || bare.is_empty() || LIST.is_match(line) {
            continue;
        }
        // A call of a tool, or markup: its text goes on over lines.
        let Some((masked, closed)) = masked(line) else { return found };
        let is_data = DATA.is_match(&masked) || DATA.is_match(&masked.to_ascii_lowercase());
        if is_data || MARKUP.is_match(&masked) {
            continue;
        }
        for range in sentence_ranges(line) {
            let (start, at) = (range.start, range.end);
            let text = &line[range];
            let lower = masked[start..at].to_ascii_lowercase();
            let announced = ANNOUNCES.is_match(&lower);
            let begins_line = line[..start].trim().is_empty();
            let rest = || lines.clone().chain([&content[typed.len()..]]);
            if WORKS_ON.is_match(&lower) && !STANDS.is_match(&lower) {
                let is_last = is_end(&line[at..], rest());
                return if is_last && begins_line { Vec::new() } else { found };
            }
            if !announced && HANDS_OVER.is_match(&lower) {
                return found;
            }
            let asks = is_question(text);
            if asks && begins_line && ABOUT_THIS.is_match(&lower) && is_end(&line[at..], rest()) {
                return Vec::new();
            }
            if ABOUT_NEXT.is_match(&THIS_TIME.replace_all(&lower, ""))
                && is_introduction(&line[at..], lines.clone())
            {
                return found;
            }
            let tells = SAID.captures_iter(&lower).any(|said| said.get(1).is_none());
            if NOT_OWN.is_match(&lower) || tells {
                continue;
            }
            found.push(Sentence { text: text.to_owned(), lower, asks });
        }
        // What a line announces comes after it; so does what a quotation that stays open says.
        if line.trim_end().ends_with(':') || !closed {
            return found;
        }
    }
    found
}

/// `text` with `\n` for every line break but a form feed, which is itself a sign of something pasted.
fn in_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace(|c| c != '\u{c}' && ANY_LINE_BREAK.contains(&c), "\n")
}

/// Whether nothing follows.
fn is_end<'l>(rest: &str, mut lines: impl Iterator<Item = &'l str>) -> bool {
    rest.trim().is_empty() && lines.all(|line| line.trim().is_empty())
}

/// Whether a sentence ends its line and another text follows, which is neither code nor a quotation.
fn is_introduction<'l>(rest: &str, lines: impl Iterator<Item = &'l str>) -> bool {
    let next = lines.map(str::trim_start).find(|line| !line.is_empty());
    rest.trim().is_empty()
        && next.is_some_and(|next| !["```", "~~~", ">"].iter().any(|mark| next.starts_with(mark)))
}

/// A line whose quotations and inline code are masked, and whether all of them end in it. `None` where markup
/// begins that is no text.
pub(super) fn masked(line: &str) -> Option<(String, bool)> {
    if line.contains("<tool") || line.contains("<function") || line.contains("<|") {
        return None;
    }
    let mut bytes = line.as_bytes().to_vec();
    let mut open: Option<(char, usize)> = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match open {
            Some((end, start)) if c == end => {
                let next = line[at + c.len_utf8()..].chars().next().unwrap_or(' ');
                if end != '\'' || !next.is_alphanumeric() {
                    bytes[start..at].fill(MASK);
                    open = None;
                }
            }
            Some(_) => {}
            None => {
                let begins = !before.is_alphanumeric();
                let end = match c {
                    '"' if begins => '"',
                    '“' | '„' => '”',
                    '«' => '»',
                    '‘' => '’',
                    '`' => '`',
                    '\'' if begins && line[at + 1..].contains('\'') => '\'',
                    _ => ' ',
                };
                if end != ' ' {
                    open = Some((end, at + c.len_utf8()));
                }
            }
        }
        before = c;
    }
    let closed = open.is_none_or(|(end, _)| end == '\'');
    if let Some((_, start)) = open.filter(|_| !closed) {
        bytes[start..].fill(MASK);
    }
    // Whole characters were replaced, so that the rest is still text.
    String::from_utf8(bytes).ok().map(|text| (text, closed))
}
