//! From what was gathered to what is sent. Pure: same inputs, same bytes.

use std::borrow::Cow;
use std::collections::HashSet;

use super::account::{AssembledContext, Budget, Item, ItemKind, Outcome, Reason, Section, Span};
use super::entity_values::add_values;
use super::header::{Header, ToolLine, full};
use super::history::{Faded, fade, last_answer, tokens_of, trimming};
use super::ledger::{add_facts, kept};
use super::pack::{FIRST_ANSWER, KEPT_FOR_ANSWER, MAX_HEADER_TOKENS, Pack, allot, header_share};
use super::recall::{Candidates, Recalled, select};
use super::source::Source;
use super::standing_instructions;
use super::superseded::Superseded;
use crate::chat::ContextMessage;
use crate::entity::Entity;
use crate::error::{Error, ErrorKind, Result};
use crate::fact::Fact;
use crate::ids::MessageId;
use crate::ports::Ledger;
use crate::scope::Profile;
use crate::secret::{count_of_masked, masks};
use crate::session::{Message, Reader, Role};
use crate::summary::Summary;
use crate::text::guarded;
use crate::tokens::{PER_MESSAGE, PER_PAYLOAD, Tokenizer, message_tokens};
use crate::turn::{Fading, Intent, RecallOptions, Tier};

/// Room below which a recalled block is not worth its fence.
pub(crate) const LEAST_RECALL: u32 = 48;

/// Everything that a turn can draw on.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    /// Rules and card.
    pub profile: Profile,
    /// The tool directory.
    pub tools: Vec<ToolLine>,
    /// The session's last messages, oldest first; at least as many as the tier shows.
    pub recent: Vec<Message>,
    /// For whom the session is read.
    pub reader: Reader,
    /// Messages that the session holds.
    pub session_messages: u64,
    /// The session's latest summary.
    pub summary: Option<Summary>,
    /// The session's typed values, the most recent first.
    pub entities: Vec<Entity>,
    /// The result of recall.
    pub candidates: Candidates,
    /// What the user wants to hold always, stated last, and holds no more.
    pub ledger: Ledger,
    /// Tokens of all messages of the scope.
    pub scope_tokens: u64,
}

/// The request, with all defaults resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn<'t> {
    /// The user's message.
    pub text: &'t str,
    /// Its intent.
    pub intent: Intent,
    /// How many recent messages are shown.
    pub tier: Tier,
    /// Tokens of the whole payload.
    pub budget: u32,
    /// How history is shortened.
    pub fading: Fading,
    /// The parts of recall.
    pub options: RecallOptions,
}

/// Assembles the context of one turn.
///
/// # Errors
/// `BudgetTooSmall` when the budget cannot hold the critical header and the turn; the message
/// names the least that works.
pub fn assemble(
    turn: &Turn<'_>,
    gathered: &Gathered,
    tokenizer: &dyn Tokenizer,
) -> Result<AssembledContext> {
    Assembly::new(turn, gathered, tokenizer)?.run()
}

/// The least that a budget which nobody chose grows to: room for the user's rules and card, the turn, and the last
/// answer.
pub(crate) fn least_default(text: &str, gathered: &Gathered, tokenizer: &dyn Tokenizer) -> u32 {
    let standing = standing_block(gathered, tokenizer);
    let header = full(&gathered.profile, &standing, &[], 0, tokenizer);
    let answer = last_answer(&gathered.recent).map_or(0, tokens_of);
    let least = header
        .tokens
        .saturating_add(message_tokens(tokenizer, text))
        .saturating_add(PER_PAYLOAD)
        .saturating_add(if answer > FIRST_ANSWER { 0 } else { answer }.max(KEPT_FOR_ANSWER));
    budget_for(least, tokenizer)
}

/// The block of standing instructions, in what rules and card leave of the header.
fn standing_block(gathered: &Gathered, tokenizer: &dyn Tokenizer) -> (String, Vec<Item>) {
    let rest = full(&gathered.profile, &Default::default(), &[], 0, tokenizer).tokens;
    standing_instructions::block(
        &gathered.ledger.standing,
        &gathered.ledger.superseded,
        MAX_HEADER_TOKENS.saturating_sub(rest),
        tokenizer,
    )
}

struct Assembly<'a> {
    turn: &'a Turn<'a>,
    gathered: &'a Gathered,
    tokenizer: &'a dyn Tokenizer,
    header: Header,
    superseded: Superseded<'a>,
    turn_tokens: u32,
    working_set: Vec<ContextMessage>,
    by_section: [(Section, u32); 5],
    items: Vec<Item>,
    warnings: Vec<String>,
}

impl<'a> Assembly<'a> {
    fn new(
        turn: &'a Turn<'a>,
        gathered: &'a Gathered,
        tokenizer: &'a dyn Tokenizer,
    ) -> Result<Self> {
        let turn_tokens = message_tokens(tokenizer, turn.text);
        let limit = spendable(turn.budget, tokenizer);
        let fixed =
            |header: &Header| header.tokens.saturating_add(turn_tokens).saturating_add(PER_PAYLOAD);
        // Only header and turn decide: what the session has said never takes the user's rules away. What is kept for
        // the last answer is the same whether there is one or not.
        let beside_answer = limit.saturating_sub(KEPT_FOR_ANSWER);
        let standing = standing_block(gathered, tokenizer);
        let share = header_share(turn.budget);
        let mut header = full(&gathered.profile, &standing, &gathered.tools, share, tokenizer);
        if fixed(&header) > beside_answer {
            header = header.without_tools(&gathered.profile, &standing, tokenizer);
        }
        if fixed(&header) > beside_answer {
            header = header.critical(tokenizer);
        }
        let least = fixed(&header);
        if least > limit {
            return Err(Error::new(
                ErrorKind::BudgetTooSmall,
                format!(
                    "a budget of {} tokens cannot hold the critical header and this turn: it must \
                     be at least {}",
                    turn.budget,
                    budget_for(least, tokenizer)
                ),
            ));
        }
        let mut warnings = std::mem::take(&mut header.warnings);
        warnings.extend_from_slice(&gathered.candidates.warnings);
        Ok(Self {
            turn,
            gathered,
            tokenizer,
            header,
            superseded: Superseded::of(turn.text, &gathered.ledger.superseded),
            turn_tokens,
            working_set: Vec::new(),
            by_section: Section::ALL.map(|section| (section, 0)),
            items: Vec::new(),
            warnings,
        })
    }

    fn run(mut self) -> Result<AssembledContext> {
        let limit = spendable(self.turn.budget, self.tokenizer);
        let fixed = self.header.tokens + self.turn_tokens + PER_PAYLOAD;
        let room = limit - fixed;
        let answer = last_answer(&self.gathered.recent);
        let floor = answer.map_or(0, tokens_of);
        // Shares are of what the header leaves, so that the length of a turn does not move history.
        let steady = allot(limit - self.header.tokens, Pack::of(self.turn.intent), floor);
        let history = fade(
            (&self.gathered.recent, self.gathered.session_messages),
            &self.gathered.reader,
            self.turn,
            steady.history.min(room),
            floor,
            self.tokenizer,
        );
        let history_tokens = shown_tokens(&history);
        let lost = |line: &&Faded<'_>| {
            !line.is_shown() && answer.is_some_and(|answer| answer.id == line.message.id)
        };
        if let Some(answer) = history.iter().find(lost) {
            self.warnings.push(format!(
                "minimum viable context: the last answer takes {} tokens and is not shown",
                answer.tokens
            ));
        }
        self.warnings.extend(trimming(&history));
        let summary = self.summary(steady.summaries.min(room - history_tokens), &history);
        let room = room - history_tokens - self.spent(Section::Summaries);
        let whole: HashSet<MessageId> = history
            .iter()
            .filter(|line| line.outcome == Outcome::Included)
            .map(|line| line.message.id)
            .collect();
        let told = shown_facts(&self.header);
        let is_told = |fact: &Fact| {
            told.contains(&Source::Fact(fact.id))
                || fact.sources.iter().any(|source| whole.contains(source))
                || self.superseded.marked_fact(fact).is_none()
        };
        let newest = &self.gathered.ledger.newest;
        let recalled = self.recall(&whole, room - kept(newest, room, is_told, self.tokenizer));
        self.working_set.extend(summary);
        for line in history {
            self.show_history(line);
        }
        self.show_recall(recalled, room);
        self.finish(limit)
    }

    fn spent(&self, section: Section) -> u32 {
        self.by_section.iter().find(|(name, _)| *name == section).map_or(0, |(_, tokens)| *tokens)
    }

    fn spend(&mut self, section: Section, tokens: u32) {
        for (name, spent) in &mut self.by_section {
            if *name == section {
                *spent += tokens;
            }
        }
    }

    /// The session's summary, where history does not show all that it covers.
    fn summary(&mut self, ceiling: u32, history: &[Faded<'_>]) -> Option<ContextMessage> {
        let summary = self.gathered.summary.as_ref()?;
        let mut item = Item {
            section: Section::Summaries,
            kind: ItemKind::Summary,
            source: Source::Summary(summary.id),
            external_id: None,
            session: None,
            at: None,
            tokens: summary.tokens,
            score: None,
            outcome: Outcome::Dropped,
            reason: Reason::HistoryIsWhole,
            span: None,
        };
        let shown = history.iter().filter(|line| line.is_shown()).count() as u64;
        let mut message = None;
        if shown < self.gathered.session_messages {
            item.reason = Reason::OverShare;
            // The oldest lines go first; a summary of nothing is none.
            let lines = summary.lines.iter().map(|line| self.superseded.marked_line(line));
            let held: Vec<Cow<'_, str>> = lines.flatten().collect();
            let left_out = held.len() < summary.lines.len();
            for skip in 0..held.len() {
                let lines: Vec<Cow<'_, str>> =
                    held[skip..].iter().map(|line| guarded(line)).collect();
                let content = format!("<summary>\n{}\n</summary>", lines.join("\n"));
                let tokens = message_tokens(self.tokenizer, &content);
                if tokens <= ceiling {
                    let whole = skip == 0 && !left_out;
                    item.outcome = if whole { Outcome::Included } else { Outcome::Compressed };
                    item.reason = Reason::CoversOlder;
                    item.tokens = tokens;
                    item.span = Some(Span { message: 0, range: 0..content.len() });
                    self.spend(Section::Summaries, tokens);
                    message = Some(ContextMessage { role: Role::User, content });
                    break;
                }
            }
        }
        self.items.push(item);
        message
    }

    fn show_history(&mut self, line: Faded<'_>) {
        let shown = line.is_shown();
        let mut item = Item {
            section: Section::History,
            kind: ItemKind::Message,
            source: Source::Message(line.message.id),
            external_id: line.message.external_id.clone(),
            session: Some(line.message.session.clone()),
            at: Some(line.message.created_at),
            tokens: line.tokens,
            score: None,
            outcome: line.outcome,
            reason: line.reason,
            span: None,
        };
        if shown {
            let span = Span { message: self.working_set.len(), range: 0..line.text.len() };
            item.span = Some(span);
            self.spend(Section::History, line.tokens);
            self.working_set.push(ContextMessage { role: line.role, content: line.text });
        }
        self.items.push(item);
    }

    fn recall(&self, whole: &HashSet<MessageId>, room: u32) -> Recalled {
        let room = if room < LEAST_RECALL { 0 } else { room - PER_MESSAGE };
        let (mut candidates, mut items) = self.superseded.without(&self.gathered.candidates);
        items.extend(self.told_by_header(&mut candidates));
        let mut recalled = select(&candidates, whole, room, &self.turn.options, self.tokenizer);
        recalled.items.extend(items.into_iter().map(|item| (item, None)));
        recalled
    }

    /// Takes the facts that the header shows out of the candidates; their account.
    fn told_by_header(&self, candidates: &mut Candidates) -> Vec<Item> {
        let told = shown_facts(&self.header);
        let facts = std::mem::take(&mut candidates.facts);
        let (repeated, kept): (Vec<_>, Vec<_>) =
            facts.into_iter().partition(|found| told.contains(&Source::Fact(found.fact.id)));
        candidates.facts = kept;
        let item = |found: super::FactCandidate| Item {
            section: Section::Recall,
            kind: ItemKind::Fact,
            source: Source::Fact(found.fact.id),
            external_id: None,
            session: found.fact.session.clone(),
            at: Some(found.fact.observed_at),
            tokens: self.tokenizer.count(&found.fact.text),
            score: Some(found.score),
            outcome: Outcome::Dropped,
            reason: Reason::Repeats,
            span: None,
        };
        repeated.into_iter().map(item).collect()
    }

    /// Adds the recalled block, and within what is left the session's typed values that nothing
    /// shown so far holds.
    fn show_recall(&mut self, recalled: Recalled, room: u32) {
        let message = self.working_set.len();
        for (mut item, range) in recalled.items {
            item.span = range.map(|range| Span { message, range });
            self.items.push(item);
        }
        let told = |entity: &Entity| {
            entity.is_in(self.turn.text)
                || entity.is_in(&self.header.message.content)
                || self.working_set.iter().any(|shown| entity.is_in(&shown.content))
        };
        let room = room.saturating_sub(PER_MESSAGE);
        let (old, entities): (Vec<_>, Vec<_>) = self
            .gathered
            .entities
            .iter()
            .cloned()
            .partition(|entity| self.superseded.is_superseded_value(entity));
        let shown = |items: &[Item]| {
            let shown =
                |item: &&Item| item.section == Section::Recall && item.outcome != Outcome::Dropped;
            items.iter().filter(shown).count()
        };
        let most = self.turn.options.max_items.saturating_sub(shown(&self.items));
        let (text, counted, items) =
            add_values(&entities, recalled.text, (room, most), told, self.tokenizer);
        let most = most.saturating_sub(shown(&items));
        self.items.extend(old.iter().map(superseded_value));
        let known: HashSet<&Source> = self
            .items
            .iter()
            .chain(&self.header.items)
            .filter(|item| item.kind == ItemKind::Fact && !is_passed_over(item))
            .map(|item| &item.source)
            .collect();
        let newest: Vec<Fact> = self
            .gathered
            .ledger
            .newest
            .iter()
            .filter(|fact| !known.contains(&Source::Fact(fact.id)))
            .filter_map(|fact| Some(self.superseded.marked_fact(fact)?.into_owned()))
            .collect();
        let told = |said: &str| {
            text.contains(said)
                || self.turn.text.contains(said)
                || self.working_set.iter().any(|shown| shown.content.contains(said))
        };
        let (text, tokens, facts) =
            add_facts(&newest, (text.clone(), counted), (room, most), told, self.tokenizer);
        // What recall passed over and is shown after all has one account.
        self.items.retain(|item| {
            !(is_passed_over(item) && facts.iter().any(|fact| fact.source == item.source))
        });
        self.items.extend(facts);
        self.items.extend(items);
        if !text.is_empty() {
            self.spend(Section::Recall, tokens + PER_MESSAGE);
            self.working_set.push(ContextMessage { role: Role::User, content: text });
        }
    }

    fn finish(mut self, limit: u32) -> Result<AssembledContext> {
        self.spend(Section::Header, self.header.tokens);
        self.spend(Section::Turn, self.turn_tokens);
        let used = PER_PAYLOAD + self.by_section.iter().map(|(_, tokens)| tokens).sum::<u32>();
        if used > limit {
            return Err(Error::internal(format!(
                "a context of {used} tokens was assembled for {limit}"
            )));
        }
        let shown = self.working_set.iter().map(|message| message.content.as_str());
        let masked: usize = shown.chain([self.header.message.content.as_str()]).map(masks).sum();
        if masked > 0 {
            self.warnings.push(format!(
                "{}: to show the secrets in messages that you store from now on, set `secrets = \"keep\"`",
                count_of_masked(masked)
            ));
        }
        let last = self.working_set.len();
        let signature = signature(std::iter::once(&self.header.message).chain(&self.working_set));
        self.items.push(Item {
            section: Section::Turn,
            kind: ItemKind::Turn,
            source: Source::Turn,
            external_id: None,
            session: None,
            at: None,
            tokens: self.turn_tokens,
            score: None,
            outcome: Outcome::Included,
            reason: Reason::CurrentTurn,
            span: Some(Span { message: last, range: 0..self.turn.text.len() }),
        });
        let turn = ContextMessage { role: Role::User, content: self.turn.text.to_owned() };
        self.working_set.push(turn);
        let mut items = self.header.items;
        items.extend(self.items);
        let cache_key = hash(&[&signature, self.turn.text]);
        Ok(AssembledContext {
            intent: self.turn.intent,
            header_hash: hash(&[&self.header.message.content]),
            header: vec![self.header.message],
            working_set: self.working_set,
            budget: Budget {
                limit: self.turn.budget,
                used,
                tokenizer: self.tokenizer.name().to_owned(),
                by_section: self.by_section,
                warnings: self.warnings,
            },
            baseline_tokens: self.gathered.scope_tokens + u64::from(self.turn_tokens),
            lazy_tools: self.header.lazy_tools,
            cache_key,
            context_signature: signature,
            items,
        })
    }
}

/// The facts that a header shows.
fn shown_facts(header: &Header) -> HashSet<&Source> {
    let shown = |item: &&Item| item.kind == ItemKind::Fact && item.outcome == Outcome::Included;
    header.items.iter().filter(shown).map(|item| &item.source).collect()
}

/// Whether recall knew a fact and had better ones.
fn is_passed_over(item: &Item) -> bool {
    item.kind == ItemKind::Fact
        && item.section == Section::Recall
        && matches!(item.reason, Reason::BelowRelevance | Reason::OverShare)
}

fn shown_tokens(history: &[Faded<'_>]) -> u32 {
    history.iter().filter(|line| line.is_shown()).map(|line| line.tokens).sum()
}

fn superseded_value(entity: &Entity) -> Item {
    Item {
        section: Section::Recall,
        kind: ItemKind::Entity,
        source: Source::Entity(entity.id),
        external_id: None,
        session: None,
        at: None,
        tokens: 0,
        score: None,
        outcome: Outcome::Dropped,
        reason: Reason::Superseded,
        span: None,
    }
}

/// A tokenizer that is not the model's own is off by a few per cent: that much is kept free.
fn margin(tokens: u32, tokenizer: &dyn Tokenizer) -> u32 {
    if tokenizer.is_exact() { 0 } else { tokens.div_ceil(20) }
}

/// The least budget of which `tokens` can be spent.
fn budget_for(tokens: u32, tokenizer: &dyn Tokenizer) -> u32 {
    let mut budget = tokens;
    while spendable(budget, tokenizer) < tokens {
        budget += 1;
    }
    budget
}

/// What may be spent of a budget: of an inexact count, a margin is kept free.
pub(crate) fn spendable(budget: u32, tokenizer: &dyn Tokenizer) -> u32 {
    budget - margin(budget, tokenizer).min(budget)
}

fn signature<'m>(messages: impl Iterator<Item = &'m ContextMessage>) -> String {
    let parts: Vec<&str> =
        messages.flat_map(|message| [message.role.as_str(), &message.content]).collect();
    hash(&parts)
}

/// 32 hex digits over the parts, kept apart by their lengths.
fn hash(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
