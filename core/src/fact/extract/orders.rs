//! The words of orders, and what says that an order stands, is for this once, or is somebody else's.

use std::sync::LazyLock;

use super::sentence::{Phrases, Sentence, Stop};

/// What says that an order stands, whatever else the sentence holds.
pub(super) static LASTING: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of(&[
        "from now on",
        "from now onwards",
        "from here on",
        "from here onwards",
        "from today",
        "from tomorrow",
        "from this point",
        "from this moment",
        "from this day",
        "going forward",
        "moving forward",
        "in future",
        "in the future",
        "for the future",
        "for future",
        "for all future",
        "hereafter",
        "henceforth",
        "as a rule",
        "as a standing",
        "as a general",
        "as a habit",
        "as a matter of course",
        "new rule",
        "standing rule",
        "standing rules",
        "standing instruction",
        "standing order",
        "my rule",
        "rule for you",
        "my rules",
        "general rule",
        "house rule",
        "house rules",
        "quick rule",
        "ground rule",
        "one rule",
        "rule:",
        "same rule",
        "by default",
        "at all times",
        "no exceptions",
        "without exception",
        "until further notice",
        "until i say otherwise",
        "unless i say otherwise",
        "unless i ask",
        "as long as we",
        "for the rest of our",
        "for the rest of this",
        "for good",
        "in every",
        "in each",
        "in everything",
        "for everything",
        "on everything",
        "at every",
        "for every",
        "for the lot",
        "for the whole",
        "across the board",
        "now and later",
        "a general thing",
        "the whole thesis",
        "every single",
        "every time",
        "each time",
        "any time",
        "anytime",
        "all the time",
        "every answer",
        "per answer",
        "per reply",
        "per response",
        "per message",
        "every reply",
        "every response",
        "every message",
        "each answer",
        "each reply",
        "each response",
        "each message",
        "all answers",
        "all replies",
        "all responses",
        "all messages",
        "your answers",
        "your replies",
        "your responses",
        "your messages",
        "your explanations",
        "your emails",
        "your code",
        "in all your",
        "everything you",
        "anything you",
        "all the code",
        "all code",
        "all your",
        "any code",
        "if you ever",
        "only ever",
        "don't ever",
        "do not ever",
        "never ever",
        "for as long as",
        "permanently",
        "this goes for",
        "and onwards",
        "onwards",
        "in whatever",
        "whatever you",
        "make it a habit",
        "make a habit",
        "get into the habit",
        "make a point",
        "make it a point",
        "as standard",
        "as a default",
        "as the default",
        "under no circumstances",
        "at no point",
        "without fail",
        "wherever you",
        "till further notice",
        "until i tell you otherwise",
        "unless i tell you",
        "unless told otherwise",
        "unless asked",
        "unless i explicitly",
        "for all our",
        "in all our",
        "from this day on",
        "starting now",
        "starting today",
        "as of now",
        "as of today",
        "effective immediately",
    ])
});

/// What says that an order is for this once.
pub(super) static ONCE: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of(&[
        "this time", "this once", "just once", "for once", "only once", "once more",
        "one more time", "for now", "right now", "for this", "in this", "on this", "with this",
        "this one", "of this", "for the next", "the next five", "the next ten", "for a minute",
        "for a moment", "today only", "just today", "for today", "at the end of this", "below",
        "the following", "as follows", "again but", "that again", "the above",
    ])
});

/// Stand before an order and are no part of it.
pub(super) const BEFORE: &[&str] = &[
    "please", "pls", "plz", "kindly", "just", "also", "so", "and", "but", "then", "instead", "ok",
    "okay", "oh", "well", "hey", "rather", "simply", "always", "therefore", "hence", "thus",
    "otherwise", "plus", "first", "actually", "correction", "update", "again", "now", "ah", "btw",
    "fyi", "thanks", "sorry", "right", "yes", "no,", "hereafter", "henceforth", "basically",
    "really", "ideally", "preferably", "hi", "hello",
];

/// Forms after which the order follows.
pub(super) static ASKING: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of(&[
        "i want you to",
        "i need you to",
        "i expect you to",
        "i'd like you to",
        "i would like you to",
        "i'd love you to",
        "i ask you to",
        "i'd prefer you to",
        "i prefer you to",
        "i'd rather you",
        "i'd prefer if you",
        "i'd prefer it if you",
        "i'd appreciate it if you",
        "i would appreciate it if you",
        "i'd be grateful if you",
        "i'd be glad if you",
        "i'd be happy if you",
        "i'd like it if you",
        "i'd love it if you",
        "i like it when you",
        "i prefer it when you",
        "it'd be great if you could",
        "it'd be great if you",
        "it would be great if you could",
        "it would be great if you",
        "it'd be nice if you could",
        "it'd be nice if you",
        "it would be nice if you could",
        "it would be nice if you",
        "it'd help if you",
        "it would help if you",
        "it helps me if you",
        "it helps if you",
        "it would help me if you",
        "let's have you",
        "make it a habit to",
        "make a habit to",
        "make it a point to",
        "make a point to",
        "get into the habit and",
        "be so kind as to",
        "i'd be happier if you",
        "i'd be much happier if you",
        "it'd be lovely if you",
        "it would be lovely if you",
        "it'd be good if you",
        "it would be good if you",
        "it works best for me if you",
        "it works better for me if you",
        "it makes my life easier if you",
        "you'd help me if you",
        "you'd help me a lot if you",
        "may i ask that you",
        "i'd ask that you",
        "i'd like it more if you",
        "do me a favour and",
        "do me a favor and",
        "would you do me a favour and",
        "would you do me a favor and",
        "could you do me a favour and",
        "could you do me a favor and",
        "can you do me a favour and",
        "can you do me a favor and",
        "make sure to",
        "make sure you",
        "make sure that you",
        "be sure to",
        "be sure you",
        "try to",
        "try and",
        "see to it that you",
        "can you",
        "could you",
        "would you",
        "will you",
        "can you please",
        "could you please",
        "would you please",
        "you should",
        "you must",
        "you need to",
        "you have to",
        "you shall",
        "you ought to",
        "you're to",
        "you are to",
        "you will",
        "you'll",
        "you can",
        "you may",
        "you shouldn't",
        "you mustn't",
        "you are not to",
        "you're not to",
        "you're allowed to",
        "remember to",
        "don't forget to",
        "never forget to",
        "feel free to",
        "my rule is to",
        "i'd prefer that you",
        "i prefer that you",
        "i'd rather that you",
        "i want that you",
        "i'd like that you",
        "the rule is to",
        "i'd ask you to",
        "may i ask you to",
        "i must ask you to",
        "get used to",
        "would you mind",
        "do you mind",
    ])
});

/// Forms after which something to remember follows.
pub(super) static REMEMBER: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of(&[
        "remember that",
        "please remember that",
        "remember,",
        "bear in mind that",
        "bear in mind",
        "keep in mind that",
        "keep in mind",
        "make a mental note that",
        "make a mental note",
        "take a mental note",
        "make a note that",
        "take note that",
        "make a note",
        "don't forget that",
        "do not forget that",
        "never forget that",
        "note to you",
        "note for you",
        "note for later",
        "for your memory",
        "commit to memory that",
        "for future reference",
        "please note for later that",
    ])
});

/// Nouns of what an assistant makes, in the plural or as a mass.
pub(super) const MADE: &[&str] = &[
    "answers", "articles", "briefs", "captions", "charts", "code", "commits", "copy",
    "descriptions", "diagrams", "documentation", "documents", "drafts", "emails", "essays",
    "examples", "exercises", "explanations", "functions", "headings", "itineraries", "letters",
    "lists", "mails", "memos", "menus", "messages", "newsletters", "outlines", "outputs",
    "patches", "plots", "posts", "presentations", "queries", "quizzes", "recipes",
    "recommendations", "replies", "reports", "responses", "reviews", "routines", "samples",
    "schedules", "scripts", "slides", "snippets", "suggestions", "summaries", "tables", "tests",
    "texts", "titles", "translations", "tweets", "workouts",
];

/// Say when an order holds, before it.
pub(super) static LEADS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of(&[
        "from now on",
        "from now onwards",
        "from here on",
        "from here on out",
        "from today on",
        "from today",
        "from this point on",
        "going forward",
        "moving forward",
        "in future",
        "in the future",
        "for the future",
        "by default",
        "at all times",
        "as a rule",
        "as a general rule",
        "as a standing rule",
        "as a habit",
        "as always",
        "in general",
        "for future reference",
        "new rule",
        "one more thing",
        "by the way",
        "if possible",
        "for everything in this project",
        "small change",
        "quick change",
        "for the record",
    ])
});

/// Verbs of orders to an assistant, in their base form. Sorted.
pub(super) const VERBS: &[&str] = &[
    "abbreviate", "acknowledge", "add", "address", "adopt", "annotate", "answer", "apologise",
    "apologize", "append", "ask", "assume", "attach", "avoid", "base", "be", "begin", "benchmark",
    "bold", "book", "break", "bring", "build", "calculate", "call", "cap", "capitalise",
    "capitalize", "capture", "challenge", "change", "check", "cite", "close", "collect", "color",
    "colour", "comment", "commit", "compare", "compute", "confirm", "congratulate", "consider",
    "convert", "correct", "count", "credit", "criticise", "criticize", "curse", "cut", "date",
    "default", "define", "delete", "deploy", "describe", "design", "disclose", "distinguish", "do",
    "document", "double", "double-check", "draft", "draw", "drop", "emphasise", "emphasize", "end",
    "escape", "estimate", "exclude", "expand", "explain", "export", "expose", "express", "favor",
    "favour", "finish", "flag", "flatter", "focus", "follow", "format", "generate", "give", "go",
    "grade", "greet", "group", "hallucinate", "hide", "highlight", "hyphenate", "ignore",
    "illustrate", "import", "include", "indent", "insert", "install", "interrupt", "introduce",
    "invent", "italicise", "italicize", "justify", "keep", "label", "leave", "lengthen", "let",
    "limit", "link", "list", "localise", "localize", "lock", "log", "look", "lowercase", "make",
    "mark", "measure", "mention", "mock", "move", "name", "note", "number", "offer", "omit",
    "open", "order", "paraphrase", "phrase", "pick", "pin", "plan", "plot", "pluralize", "point",
    "praise", "prefer", "prefix", "prepend", "present", "print", "profile", "proofread", "propose",
    "provide", "push", "put", "quiz", "quote", "rank", "rate", "read", "recommend", "record",
    "refactor", "refer", "refrain", "remind", "remove", "render", "repeat", "rephrase", "reply",
    "report", "respect", "respond", "retry", "return", "reveal", "review", "rewrite", "romanise",
    "round", "run", "sanitize", "save", "say", "schedule", "score", "send", "separate", "set",
    "share", "shorten", "show", "sign", "simplify", "skip", "sort", "source", "speak", "speculate",
    "spell", "split", "spoil", "start", "state", "stay", "stick", "stop", "store", "structure",
    "stub", "suffix", "suggest", "summarise", "summarize", "swear", "switch", "tag", "talk",
    "target", "teach", "tell", "test", "thank", "touch", "track", "translate", "transliterate",
    "treat", "trim", "try", "type", "underline", "uppercase", "use", "validate", "verify", "wait",
    "warn", "welcome", "wrap", "write",
];

/// Whether a sentence says that what was said before it stands: "Please stick to that."
pub(super) fn endorses(s: &Sentence<'_>) -> bool {
    let start = s.skip_words(0, &["please", "and", "so", "pls"]);
    let here = s.phrase(
        start,
        &[
            "stick to that", "stick with that", "stick to it", "keep that up", "keep it that way",
            "keep to that", "keep doing that", "remember that", "remember this",
            "that goes for you", "this goes for you", "that applies to you", "that holds for",
            "that's a rule", "that's the rule", "make that a rule", "make it a rule",
            "keep that in mind", "keep this in mind", "bear that in mind", "house style",
            "that's a standing rule", "that's for good", "same goes for you",
        ],
    );
    let praise = s.phrase(start, &["keep that up", "keep doing that"]).is_some();
    here.is_some_and(|words| !praise && start + words + 6 >= s.len() || lasting(s))
}

/// What people say to be kind, and no order: "let me know", "keep going", "no worries".
pub(super) fn is_kindness(s: &Sentence<'_>, at: usize) -> bool {
    s.among(at, &KIND).is_some()
}

static KIND: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::of(&[
        "let me know", "let us know", "let me tell", "let me see", "keep me posted",
        "keep in touch", "keep going", "keep moving", "keep pushing", "keep at it", "keep up the",
        "keep trying", "keep believing", "keep smiling", "stay strong", "stay positive",
        "stay safe", "stay in touch", "take care", "take it easy", "take your time", "be careful",
        "be proud", "be happy", "don't worry", "don't give up", "never give up", "don't hesitate",
        "don't forget to", "don't be", "no worries", "no prob", "no problem", "no way", "no doubt",
        "no wonder", "no idea", "no rush", "no need", "no matter", "no thanks", "no thank",
        "follow your", "go for it", "go get", "trust yourself", "stop by", "never mind",
        "never say never", "never too late", "reach out", "count on", "say hi", "have fun",
    ])
});

/// Whether something before the first colon says that an order stands.
pub(super) fn lasting_before_colon(s: &Sentence<'_>) -> bool {
    let colon = (0..s.len()).find(|at| s.stop(*at) == Stop::Colon).unwrap_or(s.len());
    lasting_within(s, colon + 1)
}

/// Whether a sentence has a word that says that an order stands.
pub(super) fn lasting(s: &Sentence<'_>) -> bool {
    lasting_within(s, s.len())
}

pub(super) fn lasting_within(s: &Sentence<'_>, end: usize) -> bool {
    (0..end.min(s.len())).any(|at| {
        if s.is_quoted(at) {
            return false;
        }
        let generic = match s.lower(at) {
            "always" | "never" => {
                // "You always say that", "she never does": not of what is asked for.
                let before = if at == 0 { "" } else { s.lower(at - 1) };
                let told = [
                    "i", "i've", "we", "he", "she", "they", "it", "is", "are", "was", "has",
                    "have", "you're", "been",
                ]
                .contains(&before);
                let idle = before == "you" && at < 2
                    || s.lower(at) == "never" && s.lower(at + 1) == "mind";
                !told && !idle
            }
            "whenever" | "hereafter" | "henceforth" | "everytime" => true,
            // "When you show me a date", "when I ask for code", "when cooking for us".
            "when" | "if" => {
                let present = matches!(s.lower(at + 1), "you" | "i" | "we")
                    && ![
                        "were", "was", "had", "did", "could", "would", "get", "have", "can",
                        "need", "find", "want", "like",
                    ]
                    .contains(&s.lower(at + 2))
                    && !s.lower(at + 2).ends_with("ed");
                let doing = s.lower(at + 1).ends_with("ing");
                s.lower(at) == "when" && (present || doing)
                    || s.lower(at) == "if"
                        && matches!(s.lower(at + 1), "you")
                        && ["write", "suggest", "ever", "quote", "show", "mention"]
                            .contains(&s.lower(at + 2))
            }
            // "One question at a time", not "one step at a time".
            "one" => {
                matches!(s.lower(at + 1), "question" | "topic" | "point" | "thing")
                    && s.has(at + 2, "at a time")
            }
            "your" => MADE.contains(&s.lower(at + 1)),
            "all" | "any" | "every" | "each" => {
                let noun = (at + 1..at + 4)
                    .take_while(|at| s.stop(*at - 1) == Stop::None || *at == at + 1);
                noun.into_iter().any(|at| {
                    MADE.contains(&s.lower(at))
                        || [
                            "answer", "reply", "response", "snippet", "list", "times", "dates",
                            "prices", "function", "email", "recipe", "summary", "message",
                            "paragraph",
                        ]
                        .contains(&s.lower(at))
                })
            }
            // "Please avoid idioms with me".
            "with" => {
                matches!(s.lower(at + 1), "me" | "us")
                    && (at + 2 >= s.len() || s.stop(at + 1) != Stop::None)
                    && (0..at).any(|at| matches!(s.lower(at), "avoid" | "never" | "stop" | "use"))
            }
            "everything" => at + 1 < s.len(),
            // "No semicolons, ever", "don't use bullets any more".
            "ever" | "anymore" => {
                at + 2 >= s.len() && matches!(s.lower(0), "no" | "don't" | "please" | "stop")
            }
            "for" | "in" if at == 0 => {
                // "For code samples use TypeScript".
                (at + 1..at + 4).any(|at| MADE.contains(&s.lower(at)))
                    && !matches!(s.lower(at + 1), "the" | "these" | "those")
            }
            _ => false,
        };
        generic || s.among(at, &LASTING).is_some()
    })
}

/// Whether somebody's words or a report begin before `start`.
pub(super) fn reported(s: &Sentence<'_>, start: usize) -> bool {
    // "My doctor told me to stop, so forget that rule": the user draws the consequence.
    let drawn = (start.saturating_sub(3)..start).rev().find(|at| {
        s.lower(*at) == "so" && (*at + 1..start).all(|at| BEFORE.contains(&s.lower(at)))
    });
    (drawn.unwrap_or(0)..start).any(|at| {
        if s.is_quoted(at) {
            return false;
        }
        let word = s.lower(at);
        let says = [
            "say", "says", "said", "saying", "told", "tells", "telling", "tell", "wrote", "writes",
            "reads", "asked", "asks", "insists", "insisted", "demands", "demanded", "roared",
            "shouted", "claims", "claimed", "thinks", "reckons", "suggests", "suggested",
            "recommends", "recommended", "reminded", "reminds", "advised", "advises", "wants",
            "wanted", "states", "imagine", "suppose", "pretend", "hypothetically", "reply",
            "quote",
        ]
        .contains(&word);
        if !says {
            return false;
        }
        // "As I said", "I told you": the user's own.
        let own = at > 0
            && matches!(s.lower(at - 1), "i" | "i've" | "i'd")
            && (["you", "before", "earlier", "it", "that"].contains(&s.lower(at + 1))
                || s.stop(at) != Stop::None)
            || at > 0
                && matches!(s.lower(at - 1), "you" | "to" | "i'll" | "you'll")
                && !(at > 1 && s.lower(at - 2) == "used")
            || at == 0 && matches!(word, "tell" | "reply" | "quote" | "say")
            || at > 0
                && s.stop(at - 1) != Stop::None
                && matches!(word, "tell" | "reply" | "quote" | "say")
            || at > 0
                && BEFORE.contains(&s.lower(at - 1))
                && matches!(word, "tell" | "reply" | "quote");
        !own
    })
}

pub(super) fn is_verb(word: &str) -> bool {
    VERBS.binary_search(&word).is_ok()
}
