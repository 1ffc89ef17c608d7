//! The rules of gitleaks over a text: keywords first, then the patterns of those rules whose keywords are there.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::{Captures, Regex};

use super::Secret;
use crate::text::ascii;

/// Bytes that a pattern may take when it is compiled: some repeat a class hundreds of times.
const MOST_BYTES: usize = 32 << 20;

/// One rule of the table. Patterns are compiled when they are needed first.
struct Rule {
    id: &'static str,
    group: usize,
    entropy: f64,
    pattern: Pattern,
    no_secret: Option<Pattern>,
    no_match: Option<Pattern>,
}

struct Pattern {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    fn some(text: &'static str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::new(text))
    }

    /// `None` where it is no pattern, which a test rules out.
    fn regex(&self) -> Option<&Regex> {
        let compile =
            || regex::RegexBuilder::new(&ascii(self.text)).size_limit(MOST_BYTES).build().ok();
        self.compiled.get_or_init(compile).as_ref()
    }

    fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }
}

struct Rules {
    rules: Vec<Rule>,
    /// What no rule takes for a secret.
    never: Option<Pattern>,
    keywords: Option<AhoCorasick>,
    /// The rule of each keyword.
    of_keyword: Vec<usize>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::read(include_str!("gitleaks.tsv")));

impl Rules {
    fn read(table: &'static str) -> Self {
        let (mut rules, mut never) = (Vec::new(), None);
        let (mut keywords, mut of_keyword) = (Vec::new(), Vec::new());
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let mut columns = line.split('\t');
            let mut next = || columns.next().unwrap_or_default();
            let (id, group, entropy, words) = (next(), next(), next(), next());
            let (pattern, no_secret, no_match) = (next(), next(), next());
            if id == "*" {
                never = Pattern::some(no_secret);
                continue;
            }
            for word in words.split(',') {
                keywords.push(word);
                of_keyword.push(rules.len());
            }
            rules.push(Rule {
                id,
                group: group.parse().unwrap_or(0),
                entropy: entropy.parse().unwrap_or(0.0),
                pattern: Pattern::new(pattern),
                no_secret: Pattern::some(no_secret),
                no_match: Pattern::some(no_match),
            });
        }
        let keywords = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(keywords)
            .ok();
        Self { rules, never, keywords, of_keyword }
    }
}

pub(super) fn scan(text: &str) -> Vec<Secret> {
    let rules = &*RULES;
    let Some(keywords) = &rules.keywords else { return Vec::new() };
    let mut wanted = vec![false; rules.rules.len()];
    for hit in keywords.find_overlapping_iter(text) {
        wanted[rules.of_keyword[hit.pattern().as_usize()]] = true;
    }
    let wanted = rules.rules.iter().zip(wanted).filter(|(_, wanted)| *wanted);
    wanted.flat_map(|(rule, _)| rule.find(text, rules.never.as_ref())).collect()
}

impl Rule {
    fn find(&self, text: &str, never: Option<&Pattern>) -> Vec<Secret> {
        let Some(regex) = self.pattern.regex() else { return Vec::new() };
        let secret = |found: Captures<'_>| {
            let whole = found.get(0)?;
            let group = match self.group {
                0 => found.iter().skip(1).flatten().find(|group| !group.is_empty()),
                group => found.get(group),
            };
            let secret = group.unwrap_or(whole);
            let is = |pattern: Option<&Pattern>, text: &str| {
                pattern.is_some_and(|pattern| pattern.is_match(text))
            };
            let allowed = is(never, secret.as_str())
                || is(self.no_secret.as_ref(), secret.as_str())
                || is(self.no_match.as_ref(), whole.as_str());
            let random = self.entropy == 0.0 || entropy(secret.as_str()) > self.entropy;
            (random && !allowed).then(|| Secret { range: secret.range(), rule: self.id })
        };
        regex.captures_iter(text).filter_map(secret).collect()
    }
}

/// Shannon's entropy of a text, in bits a byte.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let length = text.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / length;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_the_table_compiles() {
        assert!(RULES.rules.len() > 200 && RULES.keywords.is_some());
        for rule in &RULES.rules {
            let patterns = [Some(&rule.pattern), rule.no_secret.as_ref(), rule.no_match.as_ref()];
            for pattern in patterns.into_iter().flatten() {
                assert!(pattern.regex().is_some(), "{}: {}", rule.id, pattern.text);
            }
        }
        assert!(RULES.never.as_ref().is_some_and(|never| never.regex().is_some()));
    }

    #[test]
    fn entropy_is_that_of_the_bytes() {
        assert!(entropy("aaaaaaaa").abs() < 1e-9);
        assert!((entropy("abcdefgh") - 3.0).abs() < 1e-9);
    }
}
