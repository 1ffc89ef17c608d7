//! Projects, by what says that a name is one.

use super::Claims;
use super::names::is_common;
use super::patterns::{NAMED_PROJECT, PROJECT};
use crate::entity::EntityKind;

/// Longest name in words.
const MAX_WORDS: usize = 3;

/// What stands beside "project" in titles, and technologies that projects are made with.
const NO_PROJECTS: &str = "\
    android angular art board brief budget code coordinator deadline description detail details \
    director django docker files folder go goals history home ideas ios java javascript kickoff \
    kotlin lead linux list manager management meeting name node notes office overview owner page \
    php plan planner planning proposal python rails react report requirements review roadmap ruby \
    rust schedule school science scope settings setup side status structure summer swift team \
    timeline title type typescript update vue web";

/// Claims the projects of a part.
pub(super) fn claim(part: &str, claims: &mut Claims) {
    if !part.contains("roject") && !part.contains("ode") {
        return;
    }
    for cue in PROJECT.find_iter(part) {
        let length = name_len(&part[cue.end()..]);
        if length > 0 && !part[..cue.start()].ends_with(['-', '_', '/']) {
            let name = cue.end()..cue.end() + length;
            claims.add(cue.start()..name.end, EntityKind::Project, Some(name));
        }
    }
    for found in NAMED_PROJECT.captures_iter(part) {
        let Some(name) = found.name("name") else { continue };
        let length = name_len(name.as_str());
        if length > 0 {
            let name = name.start()..name.start() + length;
            claims.add(name.clone(), EntityKind::Project, Some(name));
        }
    }
}

/// The length of the project's name that a text begins with: capitalized words, without days and
/// the like behind them. 0 where there is none.
fn name_len(text: &str) -> usize {
    let mut end = 0;
    for at in 0..MAX_WORDS {
        let rest = if at == 0 { Some(text) } else { text[end..].strip_prefix(' ') };
        let Some(rest) = rest else { break };
        let inner = |c: char| c.is_alphanumeric() || c == '-';
        let word = &rest[..rest.find(|c| !inner(c)).unwrap_or(rest.len())];
        let word = word.trim_end_matches('-');
        if !word.starts_with(char::is_uppercase) || word.chars().nth(1).is_none() {
            break;
        }
        let lower = word.to_lowercase();
        let other = is_common(word) || NO_PROJECTS.split_ascii_whitespace().any(|w| w == lower);
        let acronym =
            word.len() < 5 && !word.contains(|c: char| c.is_lowercase() || c.is_numeric());
        if other || at == 0 && acronym {
            break;
        }
        end += word.len() + usize::from(at > 0);
    }
    end
}
