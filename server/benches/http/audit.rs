//! What is there in the end: everything that was acknowledged, once, where it was put, and nothing else.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use super::USERS;
use super::clients::{Target, Told};

/// Messages and sessions of one page.
const PAGE: usize = 500;

/// What was found amiss. Messages are named by user and external id.
#[derive(Debug, Default)]
pub(super) struct Audit {
    pub(super) acknowledged: usize,
    stored: usize,
    pub(super) lost: Vec<String>,
    pub(super) doubled: Vec<String>,
    /// Under another id or in another session than was said.
    moved: Vec<String>,
    /// Never sent, or of another user.
    foreign: Vec<String>,
}

impl Audit {
    /// Reads every session of every user, page by page.
    pub(super) async fn of(target: &Target, told: &Told) -> Self {
        let mut audit = Self { acknowledged: told.acknowledged.len(), ..Self::default() };
        let mut found: BTreeMap<(String, String), Vec<(String, String)>> = BTreeMap::new();
        for user in (0..USERS).map(|nth| format!("user-{nth}")) {
            for session in all(target, &user, "/v1/sessions").await {
                let session = session["id"].as_str().unwrap().to_owned();
                let path = format!("/v1/sessions/{session}/messages");
                for message in all(target, &user, &path).await {
                    audit.stored += 1;
                    let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
                    let places = found.entry((user.clone(), text("external_id"))).or_default();
                    places.push((session.clone(), text("id")));
                }
            }
        }
        for (key, places) in &found {
            let named = format!("{} {}", key.0, key.1);
            if places.len() > 1 {
                audit.doubled.push(named.clone());
            }
            match told.acknowledged.get(key) {
                Some(said) => {
                    let is_there = |(session, id): &(String, String)| {
                        *session == said.session && *id == said.id
                    };
                    if !places.iter().all(is_there) {
                        audit.moved.push(named);
                    }
                }
                None if !told.unknown.contains(key) => audit.foreign.push(named),
                None => {}
            }
        }
        let lost = told.acknowledged.keys().filter(|key| !found.contains_key(*key));
        audit.lost = lost.map(|(user, id)| format!("{user} {id}")).collect();
        audit
    }

    /// Whether all is as it must be.
    pub(super) fn is_sound(&self) -> bool {
        [&self.lost, &self.doubled, &self.moved, &self.foreign].iter().all(|found| found.is_empty())
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "acknowledged": self.acknowledged, "stored": self.stored, "lost": self.lost,
            "doubled": self.doubled, "moved": self.moved, "foreign": self.foreign,
        })
    }
}

/// All items of a list.
async fn all(target: &Target, user: &str, path: &str) -> Vec<Value> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = format!("{path}?limit={PAGE}{cursor}");
        let answer = target.request(Method::GET, user, &page).send().await.unwrap();
        let answer: Value = answer.error_for_status().unwrap().json().await.unwrap();
        items.extend(answer["items"].as_array().unwrap().iter().cloned());
        match answer["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return items,
        }
    }
}
