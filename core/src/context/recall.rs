//! What recall found, and which of it a turn can afford: by relevance, until relevance or room
//! ends. Pure.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::DocumentCandidate;
use super::account::{Item, ItemKind, Outcome, Reason, Section};
use super::rank::Ranked;
use super::source::Source;
use crate::access::Actor;
use crate::fact::Fact;
use crate::ids::{MessageId, SessionId};
use crate::index::UnitKey;
use crate::session::{Message, Passage};
use crate::text::{fold_spaces, guarded};
use crate::tokens::Tokenizer;
use crate::turn::RecallOptions;

/// Most facts of one context.
const MAX_FACTS: usize = 10;
/// Factor for messages of the turn's own session: of two that say the same, the nearer one.
const CURRENT_SESSION: f32 = 1.15;
/// Facts below this share of the best fact's score are left out.
const FACT_FLOOR: f32 = 0.4;
/// Most passages of documents of one context.
const MAX_DOCUMENTS: usize = 6;
/// Passages of documents below this share of the best one's score are left out.
const DOCUMENT_FLOOR: f32 = 0.4;
/// Tokens of the heading of a day.
const HEADING_TOKENS: u32 = 8;
/// Shorter passages are never repeats: "Yes." answers another question each time.
const REPEAT_BYTES: usize = 40;
/// Factor for each further passage of a message that is quoted already: the same statement goes on,
/// where another message says something else.
const SAME_MESSAGE: f32 = 0.5;
/// What the user stated last may take 1 ÷ this of the room, where relevance leaves it.
const NEW_SHARE: u32 = 8;
/// Below this nothing useful fits any more.
const CRUMBS: u32 = 16;

/// A text that is shown within a message where it stands: what replaced a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Byte offset in the message's content.
    pub at: usize,
    /// The text, with the space before it.
    pub text: String,
}

/// A passage that recall found, with its message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageCandidate {
    /// Which passage.
    pub key: UnitKey,
    /// Its message.
    pub message: Arc<Message>,
    /// Where in its message it stands.
    pub range: Range<usize>,
    /// Tokens of its text.
    pub tokens: u32,
    /// Its score.
    pub score: f32,
    /// The lines shown in it, in order.
    pub marks: Vec<Mark>,
    /// Whether it is among what the user stated last: a wish that shares no word with the turn that
    /// it bears on is found by nothing else.
    pub is_new: bool,
}

impl MessageCandidate {
    /// The passage with its marks.
    pub(super) fn marked(&self) -> Cow<'_, str> {
        if self.marks.is_empty() {
            return Cow::Borrowed(self.passage());
        }
        let mut text = String::new();
        let mut at = self.range.start;
        for mark in &self.marks {
            text.push_str(self.message.content.get(at..mark.at).unwrap_or_default());
            text.push_str(&mark.text);
            at = mark.at;
        }
        text.push_str(self.message.content.get(at..self.range.end).unwrap_or_default());
        Cow::Owned(text.trim().to_owned())
    }

    /// The text that would be shown.
    pub(crate) fn passage(&self) -> &str {
        self.message.content.get(self.range.clone()).unwrap_or_default().trim()
    }

    /// Whether the passage is the whole message.
    fn is_whole(&self) -> bool {
        self.range.len() == self.message.content.len()
    }
}

/// A fact that recall found.
#[derive(Debug, Clone, PartialEq)]
pub struct FactCandidate {
    /// The fact.
    pub fact: Fact,
    /// Its score among facts.
    pub score: f32,
}

/// Everything that recall found, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Candidates {
    /// Passages of messages.
    pub messages: Vec<MessageCandidate>,
    /// Facts.
    pub facts: Vec<FactCandidate>,
    /// Passages of documents.
    pub documents: Vec<DocumentCandidate>,
    /// Warnings about parts of recall that did not work, in sentences.
    pub warnings: Vec<String>,
}

impl Candidates {
    /// Whether nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.facts.is_empty() && self.documents.is_empty()
    }

    /// Adds what documents say, and what recall of them had to do without, once.
    pub(crate) fn add_documents(
        &mut self,
        (documents, warning): (Vec<DocumentCandidate>, Option<String>),
    ) {
        self.documents = documents;
        self.warnings.extend(warning.filter(|warning| !self.warnings.contains(warning)));
    }

    /// Joins ranked keys with the messages they stand for; keys that nothing stands for any more fall
    /// out. `current` is the session of the turn, which is favoured.
    pub(crate) fn join(
        ranked: &[Ranked],
        found: Vec<(UnitKey, Arc<Message>)>,
        current: &SessionId,
    ) -> Vec<MessageCandidate> {
        let scores: BTreeMap<UnitKey, f32> =
            ranked.iter().map(|ranked| (ranked.key, ranked.score)).collect();
        let mut joined: Vec<MessageCandidate> = found
            .into_iter()
            .filter_map(|(key, message)| {
                let favour = if message.session == *current { CURRENT_SESSION } else { 1.0 };
                let score = scores.get(&key)? * favour;
                let Passage { range, tokens } = message.passage(key)?;
                let (marks, is_new) = (Vec::new(), false);
                Some(MessageCandidate { key, message, range, tokens, score, marks, is_new })
            })
            .collect();
        joined.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
        joined
    }
}

/// One line of the recalled block.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    item: Item,
    /// The message that it quotes, unless it is a fact.
    message: Option<MessageId>,
    text: String,
    key: UnitKey,
    day: String,
    /// Whether it is a fact on the word of somebody who does not speak for the user.
    by_another: bool,
}

/// The recalled block: its text and the account of every candidate. Spans are byte ranges of the
/// text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Recalled {
    pub(crate) text: String,
    pub(super) items: Vec<(Item, Option<Range<usize>>)>,
}

const OPEN: &str = "<recalled>\n";
const CLOSE: &str = "</recalled>";

/// Chooses among the candidates what fits into `room` tokens and renders it, in the order in which
/// it was said. `shown` are the messages that history already shows whole.
pub(crate) fn select(
    candidates: &Candidates,
    shown: &HashSet<MessageId>,
    room: u32,
    options: &RecallOptions,
    tokenizer: &dyn Tokenizer,
) -> Recalled {
    let mut selection = Selection {
        left: room.saturating_sub(tokenizer.count(OPEN) + tokenizer.count(CLOSE)),
        most: options.max_items,
        days: BTreeSet::new(),
        lines: Vec::new(),
        dropped: Vec::new(),
        said: HashSet::new(),
        quoted: HashMap::new(),
    };
    let best = candidates.messages.first().map_or(0.0, |candidate| candidate.score);
    let mut pending: Vec<&MessageCandidate> = Vec::new();
    let mut new: Vec<&MessageCandidate> = Vec::new();
    for candidate in &candidates.messages {
        if shown.contains(&candidate.message.id) {
            selection.drop_message(candidate, Reason::InHistory);
        } else if candidate.is_new && candidate.score < best * options.relevance_floor {
            new.push(candidate);
        } else if candidate.score < best * options.relevance_floor {
            selection.drop_message(candidate, Reason::BelowRelevance);
        } else {
            pending.push(candidate);
        }
    }
    // Facts are short: they may take an eighth of the room from messages, where their own message
    // did not make it.
    let kept_for_facts = if candidates.facts.is_empty() { 0 } else { selection.left / 8 };
    selection.left -= kept_for_facts;
    // Documents were written to be read again: they may take a fifth.
    let kept_for_documents = if candidates.documents.is_empty() { 0 } else { selection.left / 5 };
    selection.left -= kept_for_documents;
    // Of a bounded number of lines they keep as much.
    let most = selection.most;
    let of_facts = candidates.facts.len().min(most.div_ceil(8)).min(most - 1);
    let of_documents = candidates.documents.len().min(most / 5);
    selection.most = most.saturating_sub(of_facts + of_documents).max(1);
    let rest = selection.take_messages(pending, tokenizer);
    selection.most = most - of_facts;
    selection.left += kept_for_documents;
    selection.take_documents(&candidates.documents, tokenizer);
    selection.most = most;
    selection.left += kept_for_facts;
    selection.take_facts(&candidates.facts, shown, tokenizer);
    let rest = selection.take_messages(rest, tokenizer);
    for candidate in rest {
        selection.drop_message(candidate, Reason::OverShare);
    }
    new.sort_by_key(|candidate| Reverse(candidate.key));
    selection.take_new(&new, room / NEW_SHARE, tokenizer);
    selection.render(room, tokenizer)
}

struct Selection {
    left: u32,
    /// Most lines.
    most: usize,
    days: BTreeSet<String>,
    lines: Vec<Line>,
    dropped: Vec<Item>,
    said: HashSet<u64>,
    /// Passages that are quoted of each message.
    quoted: HashMap<MessageId, i32>,
}

/// A candidate by what it adds to what is taken.
struct Waiting<'c> {
    worth: f32,
    candidate: &'c MessageCandidate,
}

impl Ord for Waiting<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = || other.candidate.key.cmp(&self.candidate.key);
        self.worth.total_cmp(&other.worth).then_with(by_key)
    }
}

impl PartialOrd for Waiting<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting<'_> {}

impl Selection {
    fn is_full(&self) -> bool {
        self.lines.len() >= self.most
    }

    /// Takes what fits, best first; what does not is returned. A message that is quoted already has
    /// less to add by another of its passages.
    fn take_messages<'c>(
        &mut self,
        candidates: Vec<&'c MessageCandidate>,
        tokenizer: &dyn Tokenizer,
    ) -> Vec<&'c MessageCandidate> {
        let mut over = Vec::new();
        let mut waiting: BinaryHeap<Waiting<'c>> = candidates
            .into_iter()
            .map(|candidate| Waiting { worth: candidate.score, candidate })
            .collect();
        while let Some(Waiting { worth, candidate }) = waiting.pop() {
            let quoted = self.quoted.get(&candidate.message.id).copied().unwrap_or_default();
            let now = candidate.score * SAME_MESSAGE.powi(quoted);
            if now < worth {
                waiting.push(Waiting { worth: now, candidate });
                continue;
            }
            // Rendering a line that cannot fit would be wasted work.
            if self.left < CRUMBS || candidate.tokens > self.left || self.is_full() {
                over.push(candidate);
                continue;
            }
            let said = xxh3_64(candidate.passage().as_bytes());
            if candidate.passage().len() >= REPEAT_BYTES && self.said.contains(&said) {
                self.drop_message(candidate, Reason::Repeats);
                continue;
            }
            let Some(line) = message_line(candidate, tokenizer) else {
                self.drop_message(candidate, Reason::OverShare);
                continue;
            };
            let heading = if self.days.contains(&line.day) { 0 } else { HEADING_TOKENS };
            let cost = line.item.tokens + heading;
            if cost <= self.left {
                self.left -= cost;
                self.days.insert(line.day.clone());
                self.said.insert(said);
                self.lines.push(line);
                *self.quoted.entry(candidate.message.id).or_default() += 1;
            } else {
                over.push(candidate);
            }
        }
        over
    }

    /// Takes the newest statements, of what is left, within `room` tokens.
    fn take_new(&mut self, newest: &[&MessageCandidate], room: u32, tokenizer: &dyn Tokenizer) {
        let kept = self.left.saturating_sub(room);
        self.left -= kept;
        let taken = self.lines.len();
        let mut over = Vec::new();
        // One by one: all have the same score, and the newest goes first.
        for candidate in newest {
            over.extend(self.take_messages(vec![candidate], tokenizer));
        }
        for line in &mut self.lines[taken..] {
            line.item.reason = Reason::Recent;
        }
        for candidate in over {
            self.drop_message(candidate, Reason::OverShare);
        }
        self.left += kept;
    }

    fn take_documents(&mut self, candidates: &[DocumentCandidate], tokenizer: &dyn Tokenizer) {
        let best = candidates.first().map_or(0.0, |candidate| candidate.score);
        let mut taken = 0;
        for candidate in candidates {
            let text = candidate.line();
            let tokens = tokenizer.count(&text);
            let said = xxh3_64(candidate.text().as_bytes());
            let outcome = if candidate.score < best * DOCUMENT_FLOOR {
                Some(Reason::BelowRelevance)
            } else if self.said.contains(&said) {
                Some(Reason::Repeats)
            } else if taken >= MAX_DOCUMENTS || tokens > self.left || self.is_full() {
                Some(Reason::OverShare)
            } else {
                None
            };
            let item = Item {
                section: Section::Recall,
                kind: ItemKind::Document,
                source: candidate.source(),
                external_id: None,
                session: None,
                at: Some(candidate.snapshot.info.created_at),
                tokens,
                score: Some(candidate.score),
                outcome: outcome.map_or(Outcome::Included, |_| Outcome::Dropped),
                reason: outcome.unwrap_or(Reason::Relevant),
                span: None,
            };
            if outcome.is_some() {
                self.dropped.push(item);
            } else {
                // Once for the heading of them all.
                let heading = if taken == 0 { HEADING_TOKENS } else { 0 };
                self.left = self.left.saturating_sub(tokens + heading);
                taken += 1;
                self.said.insert(said);
                let (key, day) = (candidate.key, String::new());
                self.lines.push(Line { item, message: None, text, key, day, by_another: false });
            }
        }
    }

    fn take_facts(
        &mut self,
        candidates: &[FactCandidate],
        shown: &HashSet<MessageId>,
        tokenizer: &dyn Tokenizer,
    ) {
        let best = candidates.first().map_or(0.0, |candidate| candidate.score);
        let mut taken = 0;
        for candidate in candidates {
            let fact = &candidate.fact;
            let day = fact.observed_at.day_in_words();
            let on_whose_word = match fact.actor {
                Actor::Model => "told by a tool, ",
                Actor::Extractor => "inferred, ",
                Actor::Guest => "told by a guest, ",
                Actor::User | Actor::Api | Actor::Import => "",
            };
            let text = guarded(&fold_spaces(&fact.text)).into_owned();
            let text = format!("- {text} ({on_whose_word}{day})\n");
            let tokens = tokenizer.count(&text);
            let outcome = if self.holds(fact, shown) {
                Some(Reason::HeldBySource)
            } else if candidate.score < best * FACT_FLOOR {
                Some(Reason::BelowRelevance)
            } else if taken >= MAX_FACTS || tokens > self.left || self.is_full() {
                Some(Reason::OverShare)
            } else {
                None
            };
            let item = Item {
                section: Section::Recall,
                kind: ItemKind::Fact,
                source: Source::Fact(fact.id),
                external_id: None,
                session: fact.session.clone(),
                at: Some(fact.observed_at),
                tokens,
                score: Some(candidate.score),
                outcome: outcome.map_or(Outcome::Included, |_| Outcome::Dropped),
                reason: outcome.unwrap_or(Reason::Relevant),
                span: None,
            };
            if outcome.is_some() {
                self.dropped.push(item);
            } else {
                self.left -= tokens;
                taken += 1;
                let key = UnitKey::fact(fact.number);
                let by_another = !fact.actor.speaks_for_the_user();
                self.lines.push(Line { item, message: None, text, key, day, by_another });
            }
        }
    }

    /// Whether the payload says a fact already: in history, or in a line of one of its messages.
    fn holds(&self, fact: &Fact, shown: &HashSet<MessageId>) -> bool {
        let said = || fold_spaces(&fact.text);
        fact.sources.iter().any(|source| {
            shown.contains(source)
                || self.lines.iter().any(|line| {
                    line.message == Some(*source)
                        && (line.item.kind == ItemKind::Message
                            || fold_spaces(&line.text).contains(&said()))
                })
        })
    }

    fn drop_message(&mut self, candidate: &MessageCandidate, reason: Reason) {
        let mut item = message_item(candidate, candidate.tokens);
        item.outcome = Outcome::Dropped;
        item.reason = reason;
        self.dropped.push(item);
    }

    /// Renders what was taken. The estimate of each line is kept above its cost, but the block is
    /// what counts: while it is over `room`, the least relevant line goes.
    fn render(mut self, room: u32, tokenizer: &dyn Tokenizer) -> Recalled {
        loop {
            self.lines.sort_by_key(|line| (place(line.item.kind), line.by_another, line.key));
            let (text, spans) = match self.lines.as_slice() {
                [] => (String::new(), Vec::new()),
                lines => render(lines),
            };
            let tokens = tokenizer.count(&text);
            if self.lines.is_empty() || tokens <= room {
                let spans = spans.into_iter().map(Some);
                let taken = self.lines.into_iter().map(|line| line.item).zip(spans);
                let dropped = self.dropped.into_iter().map(|item| (item, None));
                return Recalled { text, items: taken.chain(dropped).collect() };
            }
            let least = self
                .lines
                .iter()
                .enumerate()
                .min_by(|(_, a), (_, b)| {
                    let ((a_kind, a_score), (b_kind, b_score)) = (worth(a), worth(b));
                    a_kind.cmp(&b_kind).then(a_score.total_cmp(&b_score))
                })
                .map_or(0, |(index, _)| index);
            let mut item = self.lines.remove(least).item;
            (item.outcome, item.reason) = (Outcome::Dropped, Reason::OverShare);
            self.dropped.push(item);
        }
    }
}

/// Messages stand first, in the order in which they were said, then documents, then facts.
fn place(kind: ItemKind) -> u8 {
    match kind {
        ItemKind::Fact => 2,
        ItemKind::Document => 1,
        _ => 0,
    }
}

/// What a line is worth when one has to go: facts go first, then documents, then by score.
fn worth(line: &Line) -> (Reverse<u8>, f32) {
    (Reverse(place(line.item.kind)), line.item.score.unwrap_or_default())
}

fn message_item(candidate: &MessageCandidate, tokens: u32) -> Item {
    let message = &candidate.message;
    Item {
        section: Section::Recall,
        kind: if candidate.is_whole() { ItemKind::Message } else { ItemKind::Passage },
        source: Source::Message(message.id),
        external_id: message.external_id.clone(),
        session: Some(message.session.clone()),
        at: Some(message.created_at),
        tokens,
        score: Some(candidate.score),
        outcome: Outcome::Included,
        reason: Reason::Relevant,
        span: None,
    }
}

fn message_line(candidate: &MessageCandidate, tokenizer: &dyn Tokenizer) -> Option<Line> {
    let message = &candidate.message;
    let passage = candidate.passage();
    if passage.is_empty() {
        return None;
    }
    let speaker = message.speaker();
    let speaker = guarded(&speaker);
    let gap = if candidate.is_whole() { "" } else { "…" };
    let text = format!("{speaker}: {gap}{}{gap}\n", guarded(&candidate.marked()));
    let tokens = tokenizer.count(&text);
    let item = message_item(candidate, tokens);
    let day = message.stated_at().day_in_words();
    let (message, key) = (Some(message.id), candidate.key);
    Some(Line { item, message, text, key, day, by_another: false })
}

/// Messages under headings of their days, then documents, then facts.
fn render(lines: &[Line]) -> (String, Vec<Range<usize>>) {
    let mut text = String::from(OPEN);
    let mut spans = Vec::with_capacity(lines.len());
    let mut under: Option<&str> = None;
    let (mut in_documents, mut facts_of) = (false, None);
    for line in lines {
        if line.item.kind == ItemKind::Document {
            if !in_documents {
                text.push_str("[from documents]\n");
                in_documents = true;
            }
        } else if line.item.kind == ItemKind::Fact {
            if facts_of != Some(line.by_another) {
                let heading = if line.by_another { "told by others" } else { "stated by the user" };
                text.push_str(&format!("[{heading}]\n"));
                facts_of = Some(line.by_another);
            }
        } else {
            if under != Some(line.day.as_str()) {
                text.push('[');
                text.push_str(&line.day);
                text.push_str("]\n");
                under = Some(&line.day);
            }
        }
        let start = text.len();
        text.push_str(&line.text);
        spans.push(start..text.len() - 1);
    }
    text.push_str(CLOSE);
    (text, spans)
}
