//! Secrets in JSON: masked within its strings, so that what comes out is JSON, too.

use std::borrow::Cow;
use std::ops::Range;

use super::escapes::{Unescaped, escapes};
use super::{Secret, apart, card, found, mask, spoken};

/// A string without its quotation marks, or a number.
struct Leaf {
    range: Range<usize>,
    is_number: bool,
    /// The key that it stands under, also in a list.
    key: Option<Range<usize>>,
}

/// JSON with its secrets masked. What stands under a key such as `password` is one. A number becomes a string.
#[must_use]
pub fn masked_json(json: &str) -> Cow<'_, str> {
    let (leaves, secrets) = (leaves(json), found(json));
    let mut within = Vec::new();
    for leaf in &leaves {
        if let Some(secret) = under_its_key(json, leaf) {
            within.push(secret);
            continue;
        }
        let from = secrets.partition_point(|secret| secret.range.end <= leaf.range.start);
        let meets = |secret: &&Secret| secret.range.start < leaf.range.end;
        let rest = secrets[from..].iter().take_while(meets);
        for secret in rest.filter(|secret| !leaf.is_number || secret.rule == card::RULE) {
            within.push(Secret { range: leaf.part(json, &secret.range), rule: secret.rule });
        }
    }
    if within.is_empty() {
        return Cow::Borrowed(json);
    }
    let is_number =
        |range: &Range<usize>| leaves.iter().any(|leaf| leaf.is_number && leaf.range == *range);
    Cow::Owned(mask(json, &apart(within), is_number))
}

impl Leaf {
    /// What of it is in `secret`. No escape is cut.
    fn part(&self, json: &str, secret: &Range<usize>) -> Range<usize> {
        if self.is_number {
            return self.range.clone();
        }
        let Range { mut start, mut end } = self.range;
        start = start.max(secret.start);
        end = end.min(secret.end);
        for (escape, _) in escapes(&json[self.range.clone()]) {
            let escape = self.range.start + escape.start..self.range.start + escape.end;
            if escape.contains(&start) {
                start = escape.start;
            }
            if escape.start < end && end < escape.end {
                end = escape.end;
            }
        }
        start..end
    }
}

fn under_its_key(json: &str, leaf: &Leaf) -> Option<Secret> {
    let key = unescaped(&json[leaf.key.clone()?]);
    let value = unescaped(&json[leaf.range.clone()]);
    let rule = spoken::rule_of_key(&key, &value, leaf.is_number)?;
    Some(Secret { range: leaf.range.clone(), rule })
}

fn unescaped(text: &str) -> Cow<'_, str> {
    Unescaped::of(text).map_or(Cow::Borrowed(text), |unescaped| Cow::Owned(unescaped.text))
}

/// Every string and number, in order. A text that is no JSON has some, too.
fn leaves(json: &str) -> Vec<Leaf> {
    let bytes = json.as_bytes();
    let mut leaves = Vec::new();
    let mut key: Option<Range<usize>> = None;
    // The key of each list that is open; an object has none.
    let mut lists: Vec<Option<Range<usize>>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let range = at + 1..end_of_string(bytes, at + 1);
                at = (range.end + 1).min(bytes.len());
                let next = bytes[at..].iter().find(|byte| !byte.is_ascii_whitespace());
                if next == Some(&b':') {
                    leaves.push(Leaf { range: range.clone(), is_number: false, key: None });
                    key = Some(range);
                } else {
                    let key = key.take().or_else(|| lists.last().cloned().flatten());
                    leaves.push(Leaf { range, is_number: false, key });
                }
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let key = key.take().or_else(|| lists.last().cloned().flatten());
                leaves.push(Leaf { range: at..at + length, is_number: true, key });
                at += length;
                continue;
            }
            b'[' => lists.push(key.take().or_else(|| lists.last().cloned().flatten())),
            b'{' => {
                key = None;
                lists.push(None);
            }
            b']' | b'}' => {
                lists.pop();
                key = None;
            }
            b',' => key = None,
            _ => {}
        }
        at += 1;
    }
    leaves
}

fn end_of_string(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}
