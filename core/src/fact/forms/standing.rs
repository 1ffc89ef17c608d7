//! Standing instructions: orders of which the user's own words say that they stand.

use std::sync::LazyLock;

use regex::Regex;

use super::own::{Sentence, pattern};
use super::{Found, USER, words};
use crate::fact::FactKind;

/// What an assistant can be told to do.
const VERBS: &str = "(?:use|answer|reply|respond|write|give|show|include|format|keep|call|address|add|avoid|\
    skip|explain|provide|speak|talk|end|start|begin|open|close|cite|quote|mention|ask|tell|remind|put|treat|\
    refer|make|list|return|limit|highlight|convert|translate|stick|be|spell|summari[sz]e|number|name|render|\
    present|assume|consider|mark|leave|omit|drop|send|set|run|follow|suggest|recommend|note|label|specify|\
    indicate|state|output|print|comment|document|test|verify|confirm|check|double[- ]check|sign|focus|\
    structure|abbreviate|point|prefer|quiz|generate|describe|break|offer|warn|flag|round|measure|lock|pin|\
    prioriti[sz]e|propose|organi[sz]e|wrap|switch|stop|refrain|express|clarify|define|compare|outline|\
    correct|pretend|touch|bring|schedule|plan|update|log|report|say|acknowledge|remember|link|attach|sort|\
    group|bold|italici[sz]e|capitali[sz]e|pick|cap|round|restate|repeat|ping|phrase|reference)";

/// Says that an order stands.
const LASTING: &str = "(?:from now on|from here on(?: out| in)?|from today(?: on| onwards?)?|\
    from this point (?:on|forward|onwards?)|going forward|moving forward|henceforth|hereafter|\
    in (?:the )?future|starting (?:now|today)|as a (?:standing|general) (?:rule|policy|request)|\
    as a (?:rule|habit)|for all (?:my )?future \\w+(?: \\w+)?|\
    for the rest of (?:our|this|the|my) \\w+)";

/// The same at the end of an order: "help me in the future" is none.
const LASTING_END: &str = "(?:from now on|from here on(?: out| in)?|from today(?: on| onwards?)?|\
    from this point (?:on|forward|onwards?)|going forward|henceforth|as a (?:standing|general) (?:rule|policy|request)|\
    for the rest of (?:our|this|the|my) (?:chat|conversation|thread|session|project|thesis)s?)";

/// What only a talk with an assistant has.
const TALK: &str = "(?:me|my|i|i'm|us|our|we|you|your)";

/// Objects of which an order with "always" or "never" is about how the assistant writes.
const TEXTS: &str = "(?:emojis?|tabs|spaces|bullet points?|bullets|code|snippets?|comments?|markdown|tables?|\
    headings?|answers?|repl(?:y|ies)|responses?|messages?|examples?|type hints?|citations?|sources?|references|\
    links?|units?|celsius|metric|kilomet(?:re|er)s|exclamation marks?|abbreviations?|jargon|versions?|\
    version numbers?|dates?|times?|timestamps?|prices?|paragraphs?|sentences|summary|summaries|sql|python|\
    typescript|javascript|rust|english|french|german|spanish|italian|dutch|portuguese|polish|japanese|\
    passive voice|first person|semicolons?|snake_case|camelcase|explanations?|instructions|disclaimers|\
    formulas?|equations?|step[- ]by[- ]step|error handling|tests?|queries|functions?|variables?|imports?|\
    oxford comma|percentages?|numbers?|statistics|details|steps|deadlines?|time ?lines?)";

static OPENERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:(?:ok(?:ay)?|so|hey|hi|hello|please|pls|also|and|but|btw|by the way|oh|well|thanks|thank you|great|",
        r"perfect|one (?:more )?thing|before (?:we start|i forget|you start)|just|note|listen|actually|kindly|",
        r"(?:a |one |my |another )?(?:new |standing |general |quick )*(?:rule|request|instruction|policy|habit|",
        r"reminder)(?: for (?:you|the future|our chats))?|make a (?:mental )?note)[,:;!.]?\s+)+",
    ))
});

/// Announces that a rule follows.
static RULE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:ok(?:ay)? |so |and |also,? )*(?:a |one |my |another )?(?:new|standing|general) (?:rule|request|instruction|policy)(?: for (?:you|our chats))?: \w",
    )
});

static FORMS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let order = format!(
        r"(?:please |kindly |just )?(?:(?:don't|do not|never|always|only|no longer) )*(?:please )?(?:{VERBS}\b)"
    );
    let you = r"(?:i(?:'d| would) (?:like|want|love|prefer) (?:you|it if you)(?: to| could| would)? |i(?: want| need) you to |(?:i )?expect you to |you(?: should| must| can| will| need to| have to|'ll| are to|'re to) |let's have you |(?:can|could|would|will) you (?:please )?)?";
    [
        // "From now on, answer in French."
        format!(r"^{LASTING}[,:]? (?:i'd like |i want |i need )?{you}{order}"),
        format!(r"^{LASTING}[,:]? (?:no|nothing|only) \w+"),
        // "Please answer in French from now on."
        format!(r"^{you}{order}.* {LASTING_END}(?:\b[^,;.]{{0,24}})?[.!?)\s]*(?:$|, )"),
        format!(r"^{you}{order}.* (?:every (?:single )?time|at all times|in every (?:answer|reply|response|message|email)|in (?:all )?(?:of )?your (?:future )?(?:answers|replies|responses|messages|emails))[.!)\s]*(?:$|, )"),
        // "Whenever I ask for code, give me only the code."
        format!(r"^(?:whenever|every time|each time|any ?time) (?:i|you|we)\b[^.;:!?]*,? (?:please |then )?{order}"),
        format!(r"^(?:when|if) (?:i|you) (?:ever )?(?:ask|send|paste|share|write|request|show|reply|answer|respond|give|explain|quote|draft|suggest|recommend|propose|say|mention|want)\b[^.;:!?]*, (?:please |then |i want you to |always |never |you should )?{order}"),
        r"^(?:whenever|every time|each time) (?:i|you|we)\b[^.;:!?]*, (?:i(?:'d like| want) (?:you to )?|(?:always|never) )".to_owned(),
        // "Use SI units whenever you give me a length."
        format!(r"^{you}{order}\b[^.;:!?]* (?:whenever|every time|each time) (?:you|i) (?:write|give|show|answer|reply|respond|explain|ask|send|paste|share|suggest|recommend|talk|quote|draft|cite|mention|propose|describe|format|edit|help|discuss|request|provide|speak)"),
        format!(r"^{you}{order}\b[^.;:!?]* when (?:you (?:write|answer|reply|respond|explain|talk|speak|suggest|recommend|quote|cite|draft|format|discuss|describe|refer|mention|show|give|provide|list)|i (?:ask|send|paste|share|request|mention|talk))\b"),
        // "In your replies, keep to two sentences."
        format!(r"^(?:in|for) (?:all |every(?:thing| single)? |any |each )?(?:(?:of )?your (?:future )?(?:answers|replies|responses|messages|explanations|code|emails|summaries|drafts)|(?:answer|reply|response|message|explanation)|(?:code |text )?you (?:write|send|give)(?: me| for me| us)?)\b[^.;:!?]{{0,40}},? {order}"),
        format!(r"^{order} in (?:all |every |each )(?:of )?(?:your )?(?:answers?|repl(?:y|ies)|responses?|messages?)"),
        // "Always include version numbers when I ask about libraries."
        format!(r"^(?:{you}|make sure (?:to|you|that you) |remember to |be sure to |try to )(?:always|never|don't ever|do not ever) (?:please )?{VERBS}\b.*\b(?:{TALK}|{TEXTS})\b"),
        format!(r"^{you}always (?:please )?(?:{VERBS})\b.*\b(?:when|if|whenever) (?:i|you|we)\b"),
        format!(r"^{order} .{{0,40}}\b(?:always|every time)(?:, no exceptions)?[.!]?$"),
    ]
    .iter()
    .map(|form| pattern(form))
    .collect()
});

/// "Call me Priya": capitals count.
static CALL_ME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:^|, (?:so |but |and )?)(?:(?:[Pp]lease|[Pp]ls|[Jj]ust|[Hh]ereafter|[Yy]ou can|[Yy]ou may|[Ff]rom now on|[Aa]ctually|[Oo]h|[Hh]i|[Hh]ello|[Hh]ey|[Oo]k|[Bb]tw|[Bb]y the way|[Aa]nd|[Ss]o)[,!.]? )*(?:just )?(?P<order>(?:[Cc]all|[Aa]ddress) me (?:as )?)(?P<name>(?:Dr\.? |Mr\.? |Mrs\.? |Ms\.? |Prof\.? |Professor |Captain |Doctor )?\p{Lu}[\p{L}'-]+(?: \p{Lu}[\p{L}'-]+)?)(?:,|;|\.|!| from now on| instead| please| - | – |$)",
    )
});

/// "Remember that I ...": of the user's own things.
static REMEMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:(?:please|pls|and|also|ok|so|oh|hey|just|make sure you|don't forget to)[,]? )*(?:(?:always )?remember(?: this| for (?:later|next time|the future))?",
        r"(?: that |: )|make a (?:mental )?note(?: that |: )|don't (?:ever )?forget that )",
        r"(?:i|i'm|i've|my|we|we're|we've|our|me)\b",
    ))
});

/// Orders for once, or that nobody gives an assistant.
static ONCE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:just once|this once|this time|for (?:this|that|the) (?:one|answer|reply|question|table|function|",
        r"file|task|email|mail|example|exercise|time being|moment)|right now|tonight|today only|until|",
        r"in this (?:function|file|answer|reply|email|table|case|example)|be sure to drink|",
        r"(?:call|text|ping|tell|ask|let|send|remind) (?:me|us) (?:whenever|when|if|every time|once)|",
        r"i always|you always|we always|i never|you never|they always|should i|do i)\b",
    ))
});

/// What stands before an order.
static LEADS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"^(?:(?:{LASTING}|please|pls|always|never|and|so|also|hi|hey|ok|oh|actually|btw|you should|just|instead)[,:!.]? )+"
    ))
});

/// Topics of which one instruction holds at a time.
const TOPICS: &[(&str, &str)] = &[
    (
        "language",
        r"\b(?:in|to|auf|into) (?:english|french|german|spanish|italian|dutch|portuguese|polish|japanese|chinese|russian|korean|swedish|danish|norwegian|finnish|turkish|arabic|hindi|greek|czech|ukrainian|catalan|welsh|irish|hungarian|romanian)\b",
    ),
    ("emojis", r"\bemojis?\b"),
    ("indentation", r"\b(?:tabs|indentation|indent)\b"),
    (
        "length",
        r"\b(?:(?:short|shorter|long|longer|brief|concise|detailed) (?:answers|replies|responses|explanations|messages)|(?:answers|replies|responses|explanations|messages) (?:short|brief|concise|long|detailed|under|to|within)|be (?:brief|concise|verbose)|keep it (?:short|brief))\b",
    ),
    ("units", r"\b(?:celsius|fahrenheit|metric|imperial)\b"),
];

static TOPIC_FORMS: LazyLock<Vec<(&str, Regex)>> =
    LazyLock::new(|| TOPICS.iter().map(|(topic, form)| (*topic, pattern(form))).collect());

/// What a text is an instruction about, where one such holds at a time.
pub(in crate::fact) fn topic(lower: &str) -> Option<&'static str> {
    let mut told = TOPIC_FORMS.iter().filter(|(_, form)| form.is_match(lower));
    let first = told.next().map(|(topic, _)| *topic);
    first.filter(|_| told.next().is_none())
}

/// A standing instruction of a sentence.
pub(super) fn standing(sentence: &Sentence) -> Option<Found> {
    if let Some(found) = CALL_ME.captures(&sentence.text)
        && let Some(name) = found.name("name")
        && !sentence.lower[name.range()].contains('_')
    {
        let order = found.name("order").map_or(name.range(), |order| order.start()..name.end());
        return Some(Found::slot(
            FactKind::Instruction,
            USER,
            "name to call",
            sentence.slice(order),
        ));
    }
    let lower = sentence.lower.as_str();
    if let Some(lead) = REMEMBER.find(lower).filter(|_| !sentence.asks) {
        let from = words::start_of_last(lower, lead.end());
        let told = sentence.slice(from..lower.len()).trim_end_matches(['.', '!', ' ']);
        return Some(Found::open(FactKind::Instruction, USER, Some(told)));
    }
    let start = OPENERS.find(lower).map_or(0, |opened| opened.end());
    let order = &lower[start..];
    if ONCE.is_match(lower) || sentence.asks && !polite(order) {
        return None;
    }
    // The clause that gives the order: what stands before it is no part of it.
    let clause = if RULE.is_match(lower) || FORMS.iter().any(|form| form.is_match(order)) {
        0
    } else {
        clauses(order).find(|at| {
            let clause = &order[*at..];
            FORMS[..4].iter().chain(&FORMS[7..11]).any(|form| form.is_match(clause))
        })?
    };
    let from = if clause == 0 { 0 } else { start + clause };
    let lower = &lower[from..];
    let mut found = Found::open(FactKind::Instruction, USER, None);
    // What holds in one case leaves room for another.
    let conditional = [" when i ", " if i ", " whenever i ", " for my ", " when you write "];
    let everywhere = !conditional.iter().any(|case| lower.contains(case));
    if let Some(topic) = topic(lower).filter(|_| everywhere) {
        let said = TOPIC_FORMS.iter().find(|(name, _)| *name == topic);
        let range = said.and_then(|(_, form)| form.find(lower)).map(|found| found.range());
        let lead = LEADS.find(lower).map_or(0, |lead| lead.end());
        let until = range.map_or(lower.len(), |range| range.end);
        let value = sentence.slice(from + lead.min(until)..from + until).trim();
        found = Found::slot(FactKind::Instruction, USER, topic, value);
    }
    Some(found)
}

/// Whether a question is an order: "Would you please always check the sums?"
fn polite(order: &str) -> bool {
    ["can you", "could you", "would you", "will you"].iter().any(|ask| order.starts_with(ask))
        && (order.contains(" please ") || order.contains("from now on"))
}

/// Where clauses begin that may give an order: "I'm dyslexic, so please write short paragraphs from now on."
fn clauses(order: &str) -> impl Iterator<Item = usize> {
    static JOINS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?:,|;| -| –|:|\.\.\.)? (?:so|and|but|and please|so please|please) |[,;] | [-–] ")
    });
    JOINS.find_iter(order).map(|join| join.end())
}
