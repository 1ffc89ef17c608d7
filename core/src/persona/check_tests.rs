//! What is said against prompts.

use super::*;
use crate::persona::built_in;

/// A token a word.
struct Words;

impl Tokenizer for Words {
    fn name(&self) -> &str {
        "words"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> u32 {
        u32::try_from(text.split_whitespace().count()).unwrap()
    }
}

fn codes(prompt: &str, settings: Settings) -> Vec<&'static str> {
    findings(prompt, "", &settings, &Words).iter().map(Finding::code).collect()
}

#[test]
fn built_in_presets_have_no_findings() {
    for preset in built_in() {
        let found =
            findings(&preset.system_prompt, &preset.default_personality, &preset.settings, &Words);
        assert_eq!(found, [], "{}", preset.id);
        fits(&preset.system_prompt, "", &preset.settings, &Words).unwrap();
    }
}

#[test]
fn what_a_prompt_lacks_is_named() {
    let settings = Settings::default();
    let with = |temperature, max_tokens| Settings { temperature, max_tokens, ..settings };
    let long = format!("You are a clerk. {}", "word ".repeat(400));
    let table = [
        ("You are a calm guide.", settings, vec![]),
        ("Act as a librarian.", settings, vec![]),
        ("Du bist ein Bibliothekar.", settings, vec![]),
        ("あなたは司書です。", settings, vec![]),
        ("Be nice.", settings, vec!["no_role"]),
        ("You are a strictly factual clerk.", with(0.9, 1_000), vec!["contradicts_settings"]),
        ("You are a strictly factual clerk.", with(0.2, 1_000), vec![]),
        ("You are a playful poet.", with(0.1, 1_000), vec!["contradicts_settings"]),
        ("You are a playful poet.", with(0.9, 1_000), vec![]),
        ("You are a clerk with no creativity.", with(0.1, 1_000), vec![]),
        ("You are an author. Write at least 900 words.", settings, vec!["contradicts_settings"]),
        ("You are an author. Write about 600 words.", settings, vec![]),
        ("You are thorough: answer in-depth.", with(0.5, 100), vec!["contradicts_settings"]),
        (long.as_str(), settings, vec!["over_budget"]),
    ];
    for (prompt, settings, expected) in table {
        assert_eq!(codes(prompt, settings), expected, "{prompt}");
    }
    let all = findings("Be creative. in-depth", "", &with(0.0, 100), &Words);
    assert!(all.iter().all(|finding| !finding.to_string().is_empty()) && all.len() == 3);
}

#[test]
fn a_prompt_that_leaves_no_room_is_refused() {
    let settings = Settings { max_history_tokens: 200, ..Settings::default() };
    let prompt = format!("You are {}", "very ".repeat(100));
    let error = fits(&prompt, "", &settings, &Words).unwrap_err();
    assert!(error.message().contains("but at most 100 are allowed"), "{error}");
}
