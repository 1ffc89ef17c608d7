//! Checks a prompt: it may name no role, contradict its settings, or take more than its share. Findings are
//! returned as advice and refuse nothing; only a prompt that could never be sent is refused.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

use super::Settings;
use super::turn::rendered_prompt;
use crate::error::{Error, Result};
use crate::tokens::Tokenizer;

/// Recommended limit of a prompt in tokens, so that most of the budget is left for the history.
pub const PROMPT_GUIDELINE: u32 = 400;

/// A problem of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It does not say who the model is to be.
    NoRole,
    /// It asks for what its settings do not give.
    Contradicts {
        /// Which setting.
        setting: &'static str,
        /// How.
        why: String,
    },
    /// It is longer than [`PROMPT_GUIDELINE`].
    Long {
        /// Its tokens.
        tokens: u32,
    },
}

impl Finding {
    /// A stable name, to act on.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoRole => "no_role",
            Self::Contradicts { .. } => "contradicts_settings",
            Self::Long { .. } => "over_budget",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRole => f.write_str(
                "the prompt does not say which role to take: begin with words such as `You are a …`",
            ),
            Self::Contradicts { setting, why } => write!(f, "{setting}: {why}"),
            Self::Long { tokens } => write!(
                f,
                "the prompt takes {tokens} tokens of every turn; at most {PROMPT_GUIDELINE} are \
                 recommended"
            ),
        }
    }
}

#[expect(clippy::expect_used, reason = "constant patterns; the tests below compile them")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("it is valid")
}

/// Words by which a prompt gives a role, in some languages.
static ROLE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(you are|you're|you will be|you act|you play|act as|acting as|behave as|respond as|answer as|speak as|serve as|work as|pretend to be|your (role|name|job|task|character) is|role\s*:|imagine (that )?you|(tu es|vous êtes|du bist|sie sind|eres|usted es|você é|sei un))\b|あなたは|你是|您是|당신은",
    )
});
/// Words that ask for the same answer each time.
static STEADY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(deterministic|exact(ly)? the same|never improvis\w+|strictly factual|only facts|precise answers|no creativity)\b",
    )
});
/// Words that ask for variety.
static VARIED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(creative|creativity|imaginative|inventive|playful|whimsical|surprise the|brainstorm\w*|poet(ic)?|improvis\w+)\b",
    )
});
/// Words that ask for long answers.
static LONG: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b(in[- ]depth|exhaustive(ly)?|comprehensive(ly)?|very detailed|long[- ]form|essays?|step[- ]by[- ]step)\b",
    )
});
/// A length in words that answers are to have.
static WORDS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(at least|around|about|minimum of|of)\s+(\d{2,6})\s+words\b"));

/// Above this temperature answers vary too much for a prompt that wants them steady.
const HOT: f64 = 0.7;
/// Below this temperature answers vary too little for a prompt that wants them varied.
const COLD: f64 = 0.3;
/// Answers of fewer tokens are not long.
const SHORT_ANSWER: u32 = 300;

/// The problems of a prompt with these settings, in a fixed order.
#[must_use]
pub fn findings(
    system_prompt: &str,
    personality: &str,
    settings: &Settings,
    tokenizer: &dyn Tokenizer,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let whole = format!("{system_prompt}\n{personality}");
    if !ROLE.is_match(system_prompt) {
        found.push(Finding::NoRole);
    }
    let temperature = settings.temperature;
    let no_creativity = STEADY.is_match(&whole);
    if no_creativity && temperature > HOT {
        let why = format!("{temperature} varies answers, but the prompt asks for exact ones");
        found.push(Finding::Contradicts { setting: "temperature", why });
    } else if !no_creativity && VARIED.is_match(&whole) && temperature < COLD {
        let why =
            format!("{temperature} does not vary answers, but the prompt asks for varied ones");
        found.push(Finding::Contradicts { setting: "temperature", why });
    }
    let asked = WORDS
        .captures_iter(&whole)
        .filter_map(|words| words[2].parse::<u32>().ok())
        .max()
        // A word takes four thirds of a token.
        .map_or(0, |words| words.saturating_mul(4) / 3);
    if asked > settings.max_tokens {
        let why = format!(
            "{} tokens are too few for the length that the prompt asks for, about {asked} tokens",
            settings.max_tokens
        );
        found.push(Finding::Contradicts { setting: "max_tokens", why });
    } else if LONG.is_match(&whole) && settings.max_tokens < SHORT_ANSWER {
        let why = format!("{} tokens are few for detailed answers", settings.max_tokens);
        found.push(Finding::Contradicts { setting: "max_tokens", why });
    }
    let tokens = tokenizer.count(&rendered_prompt(system_prompt, personality, true));
    if tokens > PROMPT_GUIDELINE {
        found.push(Finding::Long { tokens });
    }
    found
}

/// A prompt that leaves less than half of what a turn may send is refused: no conversation would fit.
///
/// # Errors
/// `InvalidInput` that names both numbers.
pub(crate) fn fits(
    system_prompt: &str,
    personality: &str,
    settings: &Settings,
    tokenizer: &dyn Tokenizer,
) -> Result<()> {
    let tokens = tokenizer.count(&rendered_prompt(system_prompt, personality, true));
    let most = settings.max_history_tokens / 2;
    if tokens <= most {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "system_prompt: together with the personality it takes {tokens} tokens, but at most {most} \
         are allowed (half of max_history_tokens): shorten it, or raise max_history_tokens"
    )))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
