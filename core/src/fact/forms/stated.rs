//! Names and plain attributes of the user, and what they prefer.

use std::sync::LazyLock;

use regex::Regex;

use super::own::{Sentence, pattern};
use super::{Found, USER, words};
use crate::fact::FactKind;
use crate::fact::values::{ValueType, typed_values};

/// What a form states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum States {
    /// A fact of the user under this attribute; the value is a name.
    Name(&'static str),
    /// A fact of the user under this attribute.
    Fact(&'static str),
    /// What the user works as.
    Job,
    /// A fact of the user of which several hold.
    OneOf,
    /// A fact of what the user owns: its noun is the subject.
    Owned,
    /// What the user likes best of a kind.
    Favourite,
    /// What the user prefers.
    Prefers,
}

/// Words that end a value.
const STOPS: &[&str] = &[
    " and ", " but ", " because ", " since ", " so ", " which ", " who ", " where ", " with ",
    " if ", " when ", " though ", " as i ", " for the ", " these days", " now", " at the moment",
    " originally", " anymore", " too", " by the way", " btw", " right now", " from ", " until ",
    " while ", " after ", " before ", " or ", " in case", " instead", " last ", " this ", " next ",
    " near ", " plus ", " once ", " tbh", " anyway", " cause ", " i ", " we ", " mostly",
    " myself", " until", " on ",
];

static FORMS: LazyLock<Vec<(Regex, States)>> = LazyLock::new(|| {
    use States::{Fact, Favourite, Job, Name, OneOf, Owned, Prefers};
    [
        (r"^my (?:full |first |real )?name(?:'s| is) (?P<v>.+)", Name("name")),
        (r"^i(?:'m| am) (?:called|named) (?P<v>.+)", Name("name")),
        (r"^(?:i|we) (?:now |currently |actually |still )?live in (?P<v>.+)", Name("home")),
        (r"^i(?:'m| am) (?:now |currently )?(?:based|living) in (?P<v>.+)", Name("home")),
        (r"^(?:i|we)(?:'ve| have)? (?:just |recently |finally |now )*(?:moved|relocated) (?:back |over )?to (?P<v>.+)", Name("home")),
        (r"^i (?:now |currently )?work (?:at|for) (?P<v>.+)", Name("employer")),
        (r"^i(?:'m| am) (?:now |currently )?working (?:at|for) (?P<v>.+)", Name("employer")),
        (r"^i(?:'m| am) with (?P<v>[^,;]+?) (?:now|these days)\b", Name("employer")),
        (r"^i (?:now |currently )?work as (?:an? )?(?P<v>[a-z][a-z -]+)", Fact("job")),
        (r"^i(?:'ve| have)? (?:just |recently |finally )*(?:got|been|was|gotten) promoted to (?:an? |the )?(?P<v>[a-z][a-z -]+)", Fact("job")),
        (r"^i(?:'m| am) (?:severely |badly |very |also )?allergic to (?P<v>[a-z][a-z ,]+)", OneOf),
        (r"^my (?:new )?(?P<n>e-?mail|email address|phone number|phone|birthday|date of birth|blood type|time ?zone|pronouns|postcode|zip code|address) (?:is|are) (?:now )?(?P<v>.+)", Owned),
        (r"^(?:my|our) (?:new )?(?P<n>(?:[a-z]+ )?(?:flight|budget|deadline|rent|appointment|train|wedding|birthday|meeting|interview|exam|salary|launch|due date|move-in date|viva|defen[cs]e|start date|hotel)(?: [a-z0-9-]+){0,4}?) (?:is|leaves|starts) (?:now )?(?:at |on )?(?P<v>.+)", Owned),
        (
            r"^i(?:'m| am| have been|'ve been) (?:an? |also |now |mostly )*(?P<v>vegetarian|vegan|pescatarian|left-handed|right-handed|dyslexic|diabetic|type [12] diabetic|colou?r-?blind|red-green colou?r-?blind|lactose intolerant|coeliac|celiac|retired|self-employed|pregnant|hard of hearing|deaf in one ear)\b",
            OneOf,
        ),
        (
            r"^i(?:'m| am) an? (?P<v>(?:[a-z0-9-]+ ){0,3}(?:nurse|teacher|engineer|developer|student|doctor|lawyer|designer|accountant|writer|electrician|plumber|carpenter|chef|baker|librarian|journalist|architect|scientist|researcher|professor|pilot|farmer|translator|consultant|analyst|programmer|photographer|musician|dentist|pharmacist|veterinarian|midwife|paramedic|firefighter|producer|illustrator|therapist|psychologist))\b",
            Job,
        ),
        (r"^i(?:'m| am) (?:originally )?from (?P<v>.+)", Name("origin")),
        (r"^i (?P<v>(?:don't|can't|cannot|never) eat [a-z]+)\b", OneOf),
        (r"^my (?P<n>wife|husband|partner|son|daughter|sister|brother|mother|father|mum|mom|dad|boss|manager|landlord|landlady|cat|dog|doctor|dentist|therapist)(?:'s name is| is (?:called|named)) (?P<v>.+)", Owned),
        (r"^(?:my|our) (?:absolute |all-time )?(?:favou?rite|fave) (?P<n>[a-z]+(?: [a-z]+){0,2}?) (?:is|are|has (?:always )?been) (?:still |always |definitely |probably |actually )?(?P<v>.+)", Favourite),
        (r"^my preferred (?P<n>[a-z]+(?: [a-z]+)?) (?:is|are) (?P<v>.+)", Favourite),
        (r"^(?:i|we) (?:really |generally |usually |always |still |much |strongly |actually |tend to |now )*prefer (?P<v>.+)", Prefers),
        (r"^(?:i|we) like (?P<v>.+?) (?:better|more) than ", Prefers),
        (r"^i like (?P<v>[^,.;]+?) better\b", Prefers),
        (r"^i(?:'d| would)(?: much)? (?:rather|sooner) (?P<v>.+? than .+)", Prefers),
        (r"^i(?:'d| would) rather you (?P<v>.+)", Prefers),
        (r"^i(?:'m| am) (?P<v>not a (?:big |huge )?fan of .+)", Prefers),
    ]
    .into_iter()
    .map(|(form, states)| (pattern(form), states))
    .collect()
});

/// What may stand before a statement.
static OPENERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:(?:ok(?:ay)?|so|hey|hi|hello|also|and|but|btw|by the way|oh|well|thanks|thank you|fyi|honestly|tbh|actually|",
        r"personally|in general|generally|in code|remember|just so you know|for the record|for context|as i said|",
        r"hi there|quick update|small update|update|one thing|sorry|correction|yes|no|yeah|sure|usually|for me|good news)[,:;!.]?\s+)+",
    ))
});

/// Of code, and of things that nobody lives in.
static TECHNICAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\b(?:code|project|app|framework|library|version|database|stack|setup|api|branch|step|phase|chapter|",
        r"module|component|migrat\w+|feature|sprint|server|cloud|team|role|section|task|page|part|stage)\b",
    ))
});

/// Names, facts and preferences of a sentence, in the order of its clauses.
pub(super) fn stated(sentence: &Sentence, found: &mut Vec<Found>) {
    if sentence.asks {
        return;
    }
    let lower = sentence.lower.as_str();
    let start = OPENERS.find(lower).map_or(0, |opened| opened.end());
    static JOINS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?:[,;] (?:and |but |so |though )?| and | but | [-–—] |^since )(?:now |my name|i|we|my|our)\b",
        )
    });
    let joins = JOINS
        .find_iter(&lower[start..])
        .map(|join| start + words::start_of_last(&lower[start..], join.end()));
    for at in std::iter::once(start).chain(joins) {
        // "When I live in Porto", "that my name is": of another sentence.
        let before = lower[..at].trim_end_matches([' ', ',']);
        let depends =
            ["if", "when", "whether", "that", "unless", "because", "until", "before", "as"];
        if before.rsplit(' ').next().is_some_and(|word| depends.contains(&word)) {
            continue;
        }
        if let Some(one) = clause(sentence, at)
            && !found.contains(&one)
        {
            found.push(one);
        }
    }
}

fn clause(sentence: &Sentence, at: usize) -> Option<Found> {
    let lower = &sentence.lower[at..];
    let (captures, states) =
        FORMS.iter().find_map(|(form, states)| Some((form.captures(lower)?, *states)))?;
    let from = at + captures.name("v")?.start();
    let mut stops: Vec<&str> = STOPS.to_vec();
    match states {
        States::Prefers => stops.extend([
            " better", " more than", " over ", " to ", " than ", " for ", " in ", " whenever ",
        ]),
        States::Name(_) => stops.extend([" as ", " in ", " at ", " for ", " to ", " - "]),
        States::Fact(_) => stops.extend([" at ", " for ", " in ", " on "]),
        _ => {}
    }
    let end = words::value_end(&sentence.lower, from, &stops);
    let value = sentence.slice(from..end).trim();
    let unsaid = value.is_empty() || sentence.lower[from..end].contains('_') || value.len() > 80;
    if unsaid || value.split(' ').count() > 8 {
        return None;
    }
    let noun = captures.name("n").map(|noun| noun.as_str().trim());
    match states {
        States::Name(attribute) => {
            let moves = attribute == "home" && TECHNICAL.is_match(&sentence.lower);
            let name = named(value).filter(|_| !moves)?;
            Some(Found::slot(FactKind::Fact, USER, attribute, name))
        }
        States::Fact(attribute) => Some(Found::slot(FactKind::Fact, USER, attribute, value)),
        States::Job => {
            let end = captures.name("v")?.end();
            let job = sentence.slice(from..at + end);
            Some(Found::slot(FactKind::Fact, USER, "job", job))
        }
        States::OneOf => Some(Found::open(FactKind::Fact, USER, Some(value))),
        States::Owned => {
            let noun = noun?;
            let typed = typed_values(value);
            let first = typed.first()?;
            let clear = first.kind != ValueType::Name || first.range.start == 0;
            (clear && first.range.start < 12)
                .then(|| Found::slot(FactKind::Fact, USER, noun, value))
        }
        States::Favourite => {
            let noun = noun.filter(|noun| !noun.ends_with("one") && !noun.ends_with("ones"))?;
            let attribute = format!("favourite {noun}");
            Some(Found::slot(FactKind::Preference, USER, &attribute, value))
        }
        States::Prefers => {
            let first = value.split(' ').next().unwrap_or_default().to_lowercase();
            let vague = ["to", "it", "that", "this", "if", "you", "them", "these", "those", "one"];
            (!vague.contains(&first.as_str()))
                .then(|| Found::open(FactKind::Preference, USER, Some(value)))
        }
    }
}

/// The name that a value begins with: words with a capital, and "the Hague" with its article.
fn named(value: &str) -> Option<&str> {
    let mut end = 0;
    let mut at = 0;
    for word in value.split_inclusive(' ') {
        let bare = word.trim_end();
        if !(bare.starts_with(char::is_uppercase) || end > 0 && bare == "&") {
            break;
        }
        at += word.len();
        end = at - (word.len() - bare.len());
    }
    let name = value[..end].trim_end_matches(|c: char| !c.is_alphanumeric());
    // A name in small letters tells too little: "I live in a village".
    (!name.is_empty() && name.len() <= 60).then_some(name)
}
