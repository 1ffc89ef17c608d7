//! A fixed corpus with the word frequencies of natural language: the words of the sample
//! conversation by their rank, then made-up words, drawn by the law of Zipf and Mandelbrot.

use std::collections::HashMap;

use throughline_core::fact::FactKind;
use throughline_core::ids::ExternalId;
use throughline_core::services::facts::Remember;
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;
use throughline_engine::import::read_bytes;

/// Distinct words.
const VOCABULARY: usize = 40_000;
/// Mean words of a message.
const WORDS: usize = 40;

/// Questions of every sort: rare words, names, and words that are in thousands of messages.
const QUESTIONS: &[&str] = &[
    "What port does the manifest api listen on?",
    "When did we move the cutover to another date?",
    "What did the team say about the work that has to be done this week?",
    "Did the people from the office say what time they want to come?",
    "How much is the budget now and who has to sign it?",
    "What time is the day of the work call?",
    "Where does Priya live now?",
    "Who said the new database would need more time?",
    "What is the good thing about the old one?",
    "Is there anything left to do before the day after?",
    "What happened with the certificate of the server?",
    "Which broker do we use and why did we go back to it?",
    "What do I need to make for dinner on Friday?",
    "How long did the dry run take?",
    "What was the error code that the import gave last time?",
    "Which ticket did Odile open about the queue?",
    "What should I know before I call the landlord?",
    "Tell me what we know about the rollback window and the plan for the night",
    "What does the dog have to take and how many times a day?",
    "Who is on call this week and who is next?",
];

pub(crate) struct Corpus {
    words: Vec<String>,
    /// Cumulative weight up to each word.
    cumulative: Vec<f64>,
}

impl Corpus {
    pub(crate) fn new() -> Self {
        let sample = include_bytes!("../../assets/demo-conversation.json");
        let file = read_bytes(sample, "the sample").unwrap();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for message in file.sessions.iter().flat_map(|session| &session.messages) {
            for word in message.content.split_whitespace() {
                let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
                if !word.is_empty() {
                    *counts.entry(word).or_default() += 1;
                }
            }
        }
        let mut ranked: Vec<(String, usize)> = counts.into_iter().collect();
        ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut words: Vec<String> = ranked.into_iter().map(|(word, _)| word).collect();
        words.extend((words.len()..VOCABULARY).map(made_up));
        let mut sum = 0.0;
        let cumulative = (0..words.len())
            .map(|rank| {
                sum += 1.0 / (rank as f64 + 2.7).powf(1.07);
                sum
            })
            .collect();
        Self { words, cumulative }
    }

    pub(crate) fn questions(&self) -> &'static [&'static str] {
        QUESTIONS
    }

    /// The `at`-th message of a conversation.
    pub(crate) fn message(&self, rng: &mut fastrand::Rng, at: usize) -> NewMessage {
        let count = rng.usize(WORDS / 2..WORDS * 3 / 2);
        let mut content = String::with_capacity(count * 7);
        for word in 0..count {
            if word > 0 {
                content.push_str(if word.is_multiple_of(13) { ". " } else { " " });
            }
            content.push_str(self.word(rng));
        }
        content.push(if rng.u8(..5) == 0 { '?' } else { '.' });
        // One in four states something, so that the ledger grows and is superseded as in life.
        if rng.u8(..4) == 0 {
            let subject = made_up(rng.usize(1_000..VOCABULARY));
            let value = rng.u16(1_024..);
            content.push_str(&format!(" The {subject} port is {value}."));
        }
        let (role, name) =
            if at.is_multiple_of(2) { (Role::User, "Priya") } else { (Role::Assistant, "Sage") };
        // Two hundred messages a day from the first day of 2025 on.
        let micros = 1_735_689_600_000_000 + at as i64 * 432_000_000;
        NewMessage {
            name: Some(name.to_owned()),
            external_id: ExternalId::new(format!("m{at}")).ok(),
            created_at: Some(Timestamp::from_micros(micros)),
            ..NewMessage::new(role, content)
        }
    }

    fn word(&self, rng: &mut fastrand::Rng) -> &str {
        let total = self.cumulative.last().copied().unwrap_or_default();
        let drawn = rng.f64() * total;
        let rank = self.cumulative.partition_point(|sum| *sum < drawn);
        &self.words[rank.min(self.words.len() - 1)]
    }
}

/// A word that no language has, the same for each rank.
fn made_up(rank: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "ke", "ti", "lo", "mu", "ra", "se", "vi", "no", "du", "pal", "mer", "sin", "tor",
        "gun", "chi",
    ];
    let mut word = String::new();
    let mut rest = rank;
    while rest > 0 {
        word.push_str(SYLLABLES[rest % 16]);
        rest /= 16;
    }
    word
}

/// What services have, one value at a time.
const PROPERTIES: [&str; 8] =
    ["port", "region", "budget", "deadline", "owner", "password policy", "version", "queue"];

/// So many facts to be told: properties of services with made-up names.
pub(crate) fn statements(rng: &mut fastrand::Rng, count: usize) -> Vec<Remember> {
    let statement = |at: usize| {
        let (service, property) = (made_up(1_000 + at / 8), PROPERTIES[at % 8]);
        let value = rng.u32(1_024..1_000_000).to_string();
        Remember {
            kind: FactKind::Fact,
            text: format!("The {service} {property} is {value}."),
            subject: Some(service),
            attribute: Some(property.to_owned()),
            value: Some(value),
            tags: Vec::new(),
        }
    };
    (0..count).map(statement).collect()
}

/// Questions about them: one service's property, and properties that thousands have.
pub(crate) fn questions_of_statements() -> Vec<String> {
    let one = |(at, property): (usize, &&str)| {
        format!("What is the {property} of {}?", made_up(1_000 + at * 97))
    };
    let many = PROPERTIES.iter().map(|property| format!("Which {property} do we have there?"));
    PROPERTIES.iter().enumerate().map(one).chain(many).collect()
}
