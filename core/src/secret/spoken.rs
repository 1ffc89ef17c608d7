//! Secrets as people write them to an assistant, and in addresses and headers: "my password is hunter2".

use std::sync::LazyLock;

use regex::Regex;

use super::Secret;
use crate::text::ascii;

/// A rule: its name, its pattern with the secret in the group `s`, and whether the secret is told apart from a word.
struct Rule {
    name: &'static str,
    pattern: LazyLock<Regex>,
    is_secret: fn(&str) -> bool,
}

const NAMED: &str = r"(?:pass(?:word|phrase|code|wd)|passwort|pwd|secret(?:[ _-]?key)?|api[ _-]?(?:key|token|secret)|access[ _-]?(?:key|token)|auth[ _-]?token|private[ _-]?key|client[ _-]?secret|recovery[ _-]?(?:code|key)|wi-?fi[ _-]?(?:key|password)|encryption[ _-]?key)";

static RULES: LazyLock<[Rule; 7]> = LazyLock::new(|| {
    [
        // "password: hunter2", `DB_PASSWORD=hunter2`, {"api_key": "abc123"}.
        Rule {
            name: "password",
            pattern: LazyLock::new(|| {
                compile(&format!(
                    r#"(?i)\b[\w-]{{0,40}}?{NAMED}[\w-]{{0,20}}["'`]?[ \t]{{0,4}}(?:=>|:=|=|:)[ \t]{{0,4}}(?:"(?<q>(?:[^"\\\s]|\\\S){{4,200}})"|'(?<a>(?:[^'\\\s]|\\\S){{4,200}})'|`(?<b>(?:[^`\\\s]|\\\S){{4,200}})`|(?<s>[^\s"'`,;<>()\[\]{{}}]{{4,200}}))"#
                ))
            }),
            is_secret: is_no_placeholder,
        },
        // "my password is hunter2", "the wifi password was changed to swordfish".
        Rule {
            name: "password",
            pattern: LazyLock::new(|| {
                compile(&format!(
                    r#"(?i)\b(?:my|our|the|his|her|their|its|your|new|old|root|admin|master|wi-?fi|account|login|database|db)\b[\w' -]{{0,40}}?\b{NAMED}(?: for [\w .'-]{{1,40}}?)?(?: is| was| are|'s)(?: still| now| just| currently| changed to| set to| reset to)*:? ["'`“]?(?<s>[^\s"'`”]{{3,200}})"#
                ))
            }),
            is_secret: is_no_word,
        },
        // "use hunter2 as the password", "log in with the password hunter2".
        Rule {
            name: "password",
            pattern: LazyLock::new(|| {
                compile(&format!(
                    r#"(?i)\b(?:with|using|use|enter|type|set) (?:the |my |our )?{NAMED} (?:to )?["'`“]?(?<s>[^\s"'`”]{{4,200}})"#
                ))
            }),
            is_secret: has_digit_or_sign,
        },
        Rule {
            name: "pin",
            pattern: LazyLock::new(|| {
                compile(
                    r"(?i)\b(?:pin(?: ?code| number)?|cvv|cvc|security code|alarm code|door code|safe code|gate code|unlock code)\b[\w' -]{0,30}?(?: is| was|:|=| to)[ ]?(?<s>\d{3,10})\b",
                )
            }),
            is_secret: |_| true,
        },
        // postgres://user:secret@host/db
        Rule {
            name: "password-in-url",
            pattern: LazyLock::new(|| {
                compile(r"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,100}:(?<s>[^\s/@]{3,200})@")
            }),
            is_secret: is_no_placeholder,
        },
        // Keys that their issuers begin so: "sk-proj-...", "sk-ant-...", "rk_live_...".
        Rule {
            name: "api-key",
            pattern: LazyLock::new(|| compile(r"\b(?<s>(?:sk|rk|pk)[-_][A-Za-z0-9_-]{20,200})")),
            is_secret: has_digits_and_letters,
        },
        Rule {
            name: "bearer-token",
            pattern: LazyLock::new(|| {
                compile(
                    r"(?i)\b(?:bearer|authorization:[ \t]{0,4}(?:basic|token))[ \t]{1,4}(?<s>[a-z0-9._~+/=-]{12,4000})|\b(?<t>tl_[0-9a-z]{8,40}_[0-9A-Za-z_-]{20,100})",
                )
            }),
            is_secret: has_digit_or_sign,
        },
    ]
});

fn compile(pattern: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "the patterns are literals, and a test compiles them")]
    Regex::new(&ascii(pattern)).expect("a pattern")
}

/// The words without which no rule finds anything.
static KEYWORDS: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?i)pass|pwd|secret|api|key|token|code|pin\b|cvv|cvc|://|bearer|authorization|tl_|[srp]k[-_]",
    )
});

pub(super) fn scan(text: &str) -> Vec<Secret> {
    if !KEYWORDS.is_match(text) {
        return Vec::new();
    }
    let mut secrets = Vec::new();
    for rule in RULES.iter() {
        for found in rule.pattern.captures_iter(text) {
            let groups = ["s", "q", "a", "b", "t"];
            let Some(secret) = groups.iter().find_map(|group| found.name(group)) else { continue };
            let is_quoted = ["q", "a", "b"].iter().any(|group| found.name(group).is_some());
            let value = secret.as_str();
            // The backslash is that of a quotation mark behind it.
            let ends = ['.', ',', '!', '?', ';', ':', ')', ']', '\\'];
            let value = if is_quoted { value } else { value.trim_end_matches(ends) };
            if (rule.is_secret)(value) {
                let range = secret.start()..secret.start() + value.len();
                secrets.push(Secret { range, rule: rule.name });
            }
        }
    }
    secrets
}

static KEY: LazyLock<Regex> =
    LazyLock::new(|| compile(&format!(r"(?i)\b[\w-]{{0,40}}?{NAMED}(?<more>[\w-]{{0,20}})$")));

static KEY_OF_PIN: LazyLock<Regex> = LazyLock::new(|| {
    compile(r"(?i)^(?:pin(?:[ _-]?(?:code|number))?|cvv2?|cvc|security[ _-]?code)$")
});

/// The rule that makes a value a secret for the key that it stands under in JSON: `{"password": "hunter2"}`.
pub(super) fn rule_of_key(key: &str, value: &str, is_number: bool) -> Option<&'static str> {
    if !KEYWORDS.is_match(key) {
        return None;
    }
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    if KEY_OF_PIN.is_match(key) {
        return (digits && (3..=10).contains(&value.len())).then_some("pin");
    }
    let named = KEY.captures(key)?;
    // Numbers under other keys are measures: `password_min_length`, `access_token_expires_in`.
    let is_measure = is_number && (!digits || !named["more"].is_empty());
    let is_one = (4..=4_000).contains(&value.len()) && !value.contains(char::is_whitespace);
    (is_one && !is_measure && is_no_placeholder(value)).then_some("password")
}

/// Whether a value is one, and no name of where it comes from: `$TOKEN`, `<your-key>`, `process.env.KEY`, `****`.
fn is_no_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    let marked = value.starts_with(['$', '<', '{', '%', '*', '[']) || value.contains("${");
    let named =
        ["env.", "environ", "process.", "config.", "settings.", "your", "example.com", "xxxx"];
    let plain = [
        "none", "null", "true", "false", "string", "undefined", "required", "optional", "changeme",
    ];
    let called = value.ends_with("()") || value.contains('(');
    !marked
        && !called
        && !is_type(value)
        && !named.iter().any(|name| lower.contains(name))
        && !plain.contains(&lower.as_str())
        && is_no_word(value)
}

/// Whether a value is the type of a field in source code: `secret: &Secret`, `password: String`, `token: dyn TokenSource`.
fn is_type(value: &str) -> bool {
    let name =
        value.trim_start_matches(['&', '*', '?']).rsplit([':', '.']).next().unwrap_or_default();
    let name = name.trim_end_matches(['?', '|']);
    let is_name = name.chars().all(|c| c.is_ascii_alphabetic());
    let lower = name.to_ascii_lowercase();
    let generic =
        ["str", "option", "optional", "vec", "box", "arc", "rc", "cow", "result", "promise"];
    let named = ["secret", "password", "token", "key", "credential", "string", "bytes"];
    is_name
        && (generic.contains(&lower.as_str())
            || name.contains(char::is_uppercase) && named.iter().any(|word| lower.contains(word)))
}

/// Whether a value is no plain word of a sentence about a password: "the password is wrong".
fn is_no_word(value: &str) -> bool {
    let lower = value.to_lowercase();
    let word = lower.trim_matches(|c: char| !c.is_alphanumeric());
    !word.is_empty() && !WORDS.contains(&word)
}

/// Whether a value is mixed as only generated ones are, and no name such as `sk-learn-preprocessing-utils`.
fn has_digits_and_letters(value: &str) -> bool {
    value.chars().filter(char::is_ascii_digit).count() >= 3
        && value.contains(|c: char| c.is_ascii_uppercase())
}

fn has_digit_or_sign(value: &str) -> bool {
    value.contains(|c: char| c.is_ascii_digit() || "!@#$%^&*_+".contains(c))
}

/// What is said of passwords, and is none.
const WORDS: &[&str] = &[
    "a", "an", "the", "not", "no", "now", "also", "too", "very", "so", "always", "never", "only",
    "still", "just", "in", "on", "at", "of", "for", "from", "to", "with", "under", "inside",
    "being", "be", "been", "set", "stored", "saved", "kept", "hashed", "encrypted", "required",
    "needed", "wrong", "incorrect", "correct", "right", "invalid", "valid", "expired", "weak",
    "strong", "safe", "secure", "missing", "empty", "blank", "long", "short", "same", "different",
    "shared", "written", "known", "unknown", "lost", "forgotten", "changed", "reset", "rotated",
    "visible", "hidden", "public", "private", "important", "essential", "used", "sent", "passed",
    "read", "that", "this", "it", "what", "which", "where", "when", "how", "why", "who", "there",
    "here", "something", "working", "failing", "ready", "done", "provided", "given", "available",
    "unavailable", "configured", "managed", "generated", "created", "optional", "string", "text",
    "null", "none", "true", "false", "my", "your", "our", "their", "his", "her", "any", "some",
    "all", "one", "two", "and", "or", "but", "if", "as", "about", "like", "case-sensitive",
    "sensitive", "complex", "simple", "easy", "hard", "old", "new", "out", "up", "down", "ok",
    "okay", "fine", "good", "bad", "great", "leaked", "exposed", "compromised", "protected",
    "validated",
];
