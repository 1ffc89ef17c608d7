//! What holds of every assembled context, whatever the session, budget, tier, intent and tokenizer.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is the answer")]

mod documents;

use std::sync::Arc;

use proptest::prelude::*;
use throughline_core::access::Actor;
use throughline_core::context::{
    AssembledContext, Candidates, DocumentCandidate, FactCandidate, Gathered, Item, ItemKind,
    MessageCandidate, Outcome, Reason, Section, Source, ToolLine, Turn, assemble,
};
use throughline_core::entity::{Entity, EntityKind};
use throughline_core::fact::{Fact, FactKind, FactStatus};
use throughline_core::ids::{EntityId, FactId, MessageId, SummaryId};
use throughline_core::index::UnitKey;
use throughline_core::scope::Profile;
use throughline_core::session::{Cuts, Message, Passage, Role};
use throughline_core::summary::{Summary, SummaryLine, SummaryWriter};
use throughline_core::text::{fold_spaces, guarded, holds_all};
use throughline_core::tokens::{PER_MESSAGE, PER_PAYLOAD, Tokenizer};
use throughline_core::turn::{Fading, Intent, RecallOptions, Tier};
use throughline_core::{Error, ErrorKind};
use throughline_testkit::WordTokenizer;
use throughline_testkit::build::{at, id, session};

/// Everything that one call of `assemble` takes.
#[derive(Debug, Clone)]
struct Case {
    turn: String,
    intent: Intent,
    tier: Tier,
    budget: u32,
    exact: bool,
    options: RecallOptions,
    /// All messages of the session, oldest first.
    said: Vec<Message>,
    gathered: Gathered,
}

impl Case {
    fn tokenizer(&self) -> WordTokenizer {
        if self.exact { WordTokenizer::exact() } else { WordTokenizer::inexact() }
    }

    fn run(&self) -> Result<AssembledContext, Error> {
        self.run_with(self.budget, &self.said)
    }

    /// With another budget, or after more was said.
    fn run_with(&self, budget: u32, said: &[Message]) -> Result<AssembledContext, Error> {
        let recent = said.len().saturating_sub(self.tier.messages());
        let gathered = Gathered {
            recent: said[recent..].to_vec(),
            session_messages: said.len() as u64,
            ..self.gathered.clone()
        };
        let turn = Turn {
            text: &self.turn,
            intent: self.intent,
            tier: self.tier,
            budget,
            fading: Fading::Steps,
            options: self.options,
        };
        assemble(&turn, &gathered, &self.tokenizer())
    }

    /// Messages that `assemble` is given as recent ones.
    fn recent(&self) -> &[Message] {
        &self.said[self.said.len().saturating_sub(self.tier.messages())..]
    }
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => "[A-Z]?[a-z]{1,14}( [a-z]{1,9}){0,14}[.?!,] ",
        3 => "[a-z]{20,90} ",
        2 => "[0-9]{1,7} ",
        2 => "(日本語です。|Ключ от дома |été déjà |👩‍👩‍👧 )",
        1 => Just("https://example.org/a?b=1&c=é ".to_owned()),
        1 => Just("error: disk is full\n".to_owned()),
        1 => Just("\"a quoted value\" `code` ".to_owned()),
        2 => "(\n|\n\n|    |\t)",
        1 => "</?(recalled|RECALLED|Recalled|summary)>\n?",
        1 => "</?(recalled|summary) [a-z]{0,4}>",
    ]
}

/// Up to 4,000 characters; most messages are short, some long.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        6 => proptest::collection::vec(piece(), 0..5),
        1 => proptest::collection::vec(piece(), 30..120),
    ];
    pieces.prop_map(|pieces| pieces.concat().chars().take(4_000).collect())
}

fn short() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 1..3).prop_map(|pieces| pieces.concat().trim().to_owned())
}

fn spoken() -> impl Strategy<Value = (Role, Option<String>, String)> {
    let role = prop_oneof![
        4 => Just(Role::User),
        4 => Just(Role::Assistant),
        1 => Just(Role::Tool),
        1 => Just(Role::System),
    ];
    let name = prop_oneof![
        6 => Just(None),
        2 => "[A-Z][a-z]{1,12}".prop_map(Some),
        1 => Just(Some("</recalled> system".to_owned())),
    ];
    (role, name, text())
}

/// Messages of one session, as a store would hold them.
fn thread(number: u32, spoken: Vec<(Role, Option<String>, String)>) -> Vec<Message> {
    let mut position = 0;
    let mut messages = Vec::new();
    for (ordinal, (role, name, content)) in (0..).zip(spoken) {
        let cuts = Cuts::of(&content, &WordTokenizer::exact());
        let units = u32::try_from(cuts.len()).unwrap();
        messages.push(Message {
            id: MessageId::from_uuid(id()),
            session: session(&format!("s{number}")),
            session_number: number,
            seq: u64::from(number) * 1_000 + ordinal,
            position,
            units,
            cuts,
            role,
            name,
            tokens: WordTokenizer::exact().count(&content),
            content,
            external_id: None,
            created_at: at(i64::try_from(ordinal).unwrap() * 3_600 * 5),
            parts: None,
            attachments: None,
            actor: Actor::User,
            original: None,
        });
        position += units;
    }
    messages
}

/// Passages of messages under scores, best first.
fn ranked(messages: &[Message], picks: Vec<(prop::sample::Index, u32)>) -> Vec<MessageCandidate> {
    let keys = |of: &Message| {
        let number = of.session_number;
        (of.position..of.position + of.units).map(move |at| UnitKey::message(number, at))
    };
    let of = |message| keys(message).map(move |key| (key, message.passage(key).unwrap(), message));
    let all: Vec<(UnitKey, Passage, &Message)> = messages.iter().flat_map(of).collect();
    let mut chosen: Vec<MessageCandidate> = Vec::new();
    for (pick, score) in picks {
        let Some((key, passage, message)) =
            (!all.is_empty()).then(|| all[pick.index(all.len())].clone())
        else {
            break;
        };
        if chosen.iter().all(|candidate| candidate.key != key) {
            chosen.push(MessageCandidate {
                key,
                message: Arc::new(message.clone()),
                range: passage.range,
                tokens: passage.tokens,
                score: score as f32 / 10.0,
                marks: Vec::new(),
                is_new: score % 3 == 0,
            });
        }
    }
    chosen.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
    chosen
}

type Told = (String, u32, Option<prop::sample::Index>);

fn facts(told: Vec<Told>, messages: &[Message]) -> Vec<FactCandidate> {
    let mut facts: Vec<FactCandidate> = (1..)
        .zip(told)
        .map(|(number, (text, score, source))| FactCandidate {
            score: score as f32 / 10.0,
            fact: Fact {
                id: FactId::from_uuid(id()),
                number,
                session: Some(session("s1")),
                kind: FactKind::Fact,
                text: text.chars().take(500).collect(),
                subject: None,
                attribute: None,
                value: None,
                tags: Vec::new(),
                sources: match source.filter(|_| !messages.is_empty()) {
                    Some(source) => vec![messages[source.index(messages.len())].id],
                    None => vec![MessageId::from_uuid(id())],
                },
                weight: 1.0,
                status: FactStatus::Active,
                observed_at: at(i64::from(number) * 100_000),
                extracted_by: Some("forms/1".to_owned()),
                actor: Actor::User,
                rejected: false,
            },
        })
        .collect();
    facts.sort_by(|a, b| b.score.total_cmp(&a.score));
    facts
}

fn summary(lines: Vec<String>, said: &[Message]) -> Option<Summary> {
    let (first, last) = (said.first()?, said.last()?);
    let text = lines.join("\n");
    Some(Summary {
        id: SummaryId::from_uuid(id()),
        session: session("s1"),
        version: 1,
        previous: None,
        covered: said.len() as u64,
        to_position: last.position,
        from_at: first.created_at,
        to_at: last.created_at,
        lines: lines
            .into_iter()
            .map(|text| SummaryLine {
                source: first.id,
                text: format!("user: {}", fold_spaces(&text)),
            })
            .collect(),
        tokens: WordTokenizer::exact().count(&text),
        writer: SummaryWriter::Extract,
    })
}

fn gathered() -> impl Strategy<Value = (Vec<Message>, Gathered)> {
    let picks = proptest::collection::vec((any::<prop::sample::Index>(), 1..400_u32), 0..40);
    let told = proptest::collection::vec(
        (short(), 1..200_u32, proptest::option::of(any::<prop::sample::Index>())),
        0..14,
    );
    let entities = proptest::collection::vec(
        (prop::sample::select(&EntityKind::ALL[..]), "[a-z0-9]{1,24}|</recalled>|<recalled> é"),
        0..9,
    );
    (
        proptest::collection::vec(spoken(), 0..45),
        proptest::collection::vec(spoken(), 0..12),
        (
            picks,
            told,
            entities,
            proptest::collection::vec((documents::text_of_parts(), 1..200_u32), 0..4),
        ),
        (proptest::option::of(short()), proptest::option::of(short())),
        proptest::collection::btree_map("[a-z]{1,12}", short(), 0..40),
        proptest::option::of(proptest::collection::vec(short(), 0..9)),
    )
        .prop_map(|(here, there, (picks, told, values, kept), (rules, card), tools, lines)| {
            let said = thread(1, here);
            let all = [said.clone(), thread(2, there)].concat();
            let entities = values.into_iter().map(|(kind, value)| Entity {
                id: EntityId::from_uuid(id()),
                session: session("s1"),
                kind,
                value,
                sources: Vec::new(),
                last_at: at(0),
            });
            let gathered = Gathered {
                profile: Profile {
                    rules: rules.unwrap_or_default(),
                    card: card.unwrap_or_default(),
                    version: 1,
                    updated_at: at(0),
                },
                tools: tools
                    .into_iter()
                    .map(|(name, purpose)| ToolLine { name, purpose })
                    .collect(),
                summary: lines.and_then(|lines| summary(lines, &said)),
                entities: entities.collect(),
                candidates: Candidates {
                    messages: ranked(&all, picks),
                    facts: facts(told, &all),
                    documents: documents::passages_of(kept),
                    warnings: Vec::new(),
                },
                scope_tokens: all.iter().map(|message| u64::from(message.tokens)).sum(),
                ..Gathered::default()
            };
            (said, gathered)
        })
}

fn case() -> impl Strategy<Value = Case> {
    let turn = prop_oneof![9 => short(), 1 => text()];
    let budget = prop_oneof![1 => 1..250_u32, 2 => 250..6_000_u32];
    (
        turn,
        prop::sample::select(&Intent::ALL[..]),
        prop::sample::select(&Tier::ALL[..]),
        budget,
        any::<bool>(),
        gathered(),
    )
        .prop_map(|(turn, intent, tier, budget, exact, (said, gathered))| Case {
            turn,
            intent,
            tier,
            budget,
            exact,
            options: RecallOptions::default(),
            said,
            gathered,
        })
}

/// What the payload costs, counted from its bytes.
fn counted(context: &AssembledContext, tokenizer: &dyn Tokenizer) -> u32 {
    let messages = context.payload();
    let tokens: u32 = messages.map(|m| tokenizer.count(&m.content) + PER_MESSAGE).sum();
    tokens + PER_PAYLOAD
}

/// The last number of a sentence.
fn last_number(sentence: &str) -> Option<u32> {
    let mut numbers = sentence.split(|c: char| !c.is_ascii_digit());
    numbers.rfind(|number| !number.is_empty())?.parse().ok()
}

/// As the recalled block writes a text that could close it.
fn in_fence(text: &str) -> [String; 2] {
    [text.to_owned(), guarded(text).into_owned()]
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 192,
        failure_persistence: None,
        max_shrink_iters: 4_000,
        max_global_rejects: 65_536,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    /// (a) The budget holds, whatever the input, and the count is the payload's own.
    #[test]
    fn a_payload_never_exceeds_its_budget(case in case()) {
        let context = match case.run() {
            Ok(context) => context,
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::BudgetTooSmall, "{}", error);
                return Ok(());
            }
        };
        prop_assert_eq!(counted(&context, &case.tokenizer()), context.budget.used);
        prop_assert_eq!(context.budget.limit, case.budget);
        prop_assert!(context.budget.used <= context.budget.limit);
        let sections: u32 = context.budget.by_section.iter().map(|(_, tokens)| tokens).sum();
        prop_assert_eq!(sections + PER_PAYLOAD, context.budget.used);
        prop_assert_eq!(&context.working_set.last().unwrap().content, &case.turn);
    }

    /// (a) What a refusal names as the least is enough.
    #[test]
    fn the_least_that_a_refusal_names_works(case in case(), budget in 1..200_u32) {
        let Err(error) = case.run_with(budget, &case.said) else { return Ok(()); };
        prop_assert_eq!(error.kind(), ErrorKind::BudgetTooSmall, "{}", error);
        let least = last_number(error.message()).unwrap();
        prop_assert!(least > budget, "{}", error);
        let works = case.run_with(least, &case.said);
        prop_assert!(works.is_ok(), "{}; then: {:?}", error, works.err());
        prop_assert!(works.unwrap().budget.used <= least);
    }

    /// (b) Every candidate has one item, in its section; nothing else has one.
    #[test]
    fn every_candidate_is_accounted_for_once(case in case()) {
        let Ok(context) = case.run() else { return Ok(()); };
        let mut found: Vec<(Section, Source)> =
            context.items.iter().map(|item| (item.section, item.source.clone())).collect();
        let mut expected = candidates(&case);
        found.sort();
        expected.sort();
        prop_assert_eq!(found, expected);
    }

    /// (b) What is shown stands where its span says; what is dropped stands nowhere.
    #[test]
    fn every_span_shows_its_item(case in case()) {
        let Ok(context) = case.run() else { return Ok(()); };
        for item in &context.items {
            let without_span = item.section == Section::Header || item.kind == ItemKind::Entity;
            if item.outcome == Outcome::Dropped || without_span {
                prop_assert_eq!(&item.span, &None, "{:?}", item);
                continue;
            }
            let shown = context.rendered(item);
            prop_assert!(shown.is_some(), "{:?}", item);
            if let Err(why) = shows(&case, item, shown.unwrap()) {
                prop_assert!(false, "{}: {:?} as {:?}", why, item, shown);
            }
        }
    }

    /// (b) A dropped candidate's reason is one for dropping, a shown one's is not.
    #[test]
    fn reasons_fit_outcomes(case in case()) {
        let Ok(context) = case.run() else { return Ok(()); };
        for item in &context.items {
            let drops = matches!(
                item.reason,
                Reason::InHistory | Reason::HeldBySource | Reason::Repeats | Reason::BelowRelevance
                    | Reason::OverShare | Reason::HistoryIsWhole | Reason::MinimumOnly
            );
            prop_assert_eq!(drops, item.outcome == Outcome::Dropped, "{:?}", item);
        }
    }

    /// (c) Same inputs, same bytes.
    #[test]
    fn the_same_input_gives_the_same_context(case in case()) {
        match (case.run(), case.clone().run()) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
            (a, b) => prop_assert_eq!(
                a.map_err(|error| error.to_string()).err(),
                b.map_err(|error| error.to_string()).err()
            ),
        }
    }

    /// (d) One more message in the session leaves the header's bytes alone.
    #[test]
    fn appending_leaves_the_header_alone(case in case(), next in spoken()) {
        let (Ok(before), Ok(after)) = (case.run(), case.run_with(case.budget, &longer(&case, next)))
        else { return Ok(()); };
        prop_assert_eq!(&before.header, &after.header);
        prop_assert_eq!(&before.header_hash, &after.header_hash);
        prop_assert_eq!(&before.lazy_tools, &after.lazy_tools);
    }

    /// (d) Between two steps, what history shows stays and the new message comes after it.
    #[test]
    fn history_grows_at_its_end_between_steps(case in case(), next in spoken()) {
        let step = (case.tier.messages() / 3).next_multiple_of(2);
        let said = longer(&case, next);
        prop_assume!(!said.len().is_multiple_of(step));
        let (Ok(before), Ok(after)) = (case.run(), case.run_with(case.budget, &said))
        else { return Ok(()); };
        // The documented third for what comes before the next step, of the smallest ceiling that
        // any intent has; and exchanges that do not raise the floor.
        let tokenizer = case.tokenizer();
        let cost = |messages: &[Message]| -> u32 {
            messages.iter().map(|m| tokenizer.count(&m.content) + PER_MESSAGE).sum()
        };
        let exchange = |said: &[Message]| {
            let from = said.iter().rposition(|m| m.role == Role::Assistant);
            from.map_or(0, |from| cost(&said[from..]))
        };
        let spent = |section| {
            let of = before.budget.by_section.iter().find(|(name, _)| *name == section);
            of.map_or(0, |(_, tokens)| *tokens)
        };
        let limit = case.budget - if case.exact { 0 } else { case.budget.div_ceil(20) };
        let steady = limit - spent(Section::Header);
        let ceiling = (steady / 5).min(steady - spent(Section::Turn) - PER_PAYLOAD);
        let since = &said[said.len() - said.len() % step..];
        prop_assume!(cost(since) <= ceiling / 3);
        prop_assume!(exchange(&case.said).max(exchange(&said)) <= ceiling / 3 * 2);
        prop_assume!(before.header == after.header);
        let (before, after) = (history(&before), history(&after));
        prop_assert_eq!(after.len(), before.len() + 1);
        prop_assert_eq!(&after[..before.len()], &before[..]);
        prop_assert_eq!(&after[before.len()], &said[said.len() - 1].content);
    }

    /// (e) No stored text closes a fence, or opens one.
    #[test]
    fn stored_text_cannot_close_its_fence(case in case()) {
        let Ok(context) = case.run() else { return Ok(()); };
        let spoken: Vec<usize> = context
            .items
            .iter()
            .filter(|item| matches!(item.section, Section::History | Section::Turn))
            .filter_map(|item| item.span.as_ref().map(|span| span.message))
            .collect();
        for (at, message) in context.working_set.iter().enumerate() {
            if spoken.contains(&at) {
                continue;
            }
            let text = message.content.to_ascii_lowercase();
            let count = |tag: &str| text.matches(tag).count();
            let summary = message.content.starts_with("<summary>\n");
            if summary {
                prop_assert_eq!((count("<summary"), count("</summary")), (1, 1), "{}", text);
                prop_assert_eq!((count("<recalled"), count("</recalled")), (0, 0), "{}", text);
                prop_assert!(text.ends_with("\n</summary>"));
            } else {
                // Ours stand at the start of a line: one block of what was found, one of values.
                let ours = message.content.lines().filter(|line| *line == "<recalled>").count();
                prop_assert!((1..=2).contains(&ours), "{}", text);
                prop_assert_eq!((count("<recalled"), count("</recalled")), (ours, ours), "{}", text);
                prop_assert_eq!((count("<summary"), count("</summary")), (0, 0), "{}", text);
                prop_assert!(text.starts_with("<recalled>\n") && text.ends_with("</recalled>"));
            }
        }
    }
}

fn longer(case: &Case, next: (Role, Option<String>, String)) -> Vec<Message> {
    let mut said = case.said.clone();
    let mut more = thread(1, vec![next]).remove(0);
    more.seq = 1_000 + said.len() as u64;
    if let Some(last) = said.last() {
        more.position = last.position + last.units;
        more.created_at = last.created_at;
    }
    said.push(more);
    said
}

/// The messages of history, as they are sent.
fn history(context: &AssembledContext) -> Vec<String> {
    let items = context.items.iter().filter(|item| item.section == Section::History);
    items.filter_map(|item| context.rendered(item)).map(str::to_owned).collect()
}

/// Section and source of everything that `assemble` is given.
fn candidates(case: &Case) -> Vec<(Section, Source)> {
    let given = &case.gathered;
    let mut all = vec![(Section::Header, Source::Rules), (Section::Turn, Source::Turn)];
    for part in [&given.profile.rules, &given.profile.card] {
        all.extend((!part.is_empty()).then_some((Section::Header, Source::Profile)));
    }
    let mut add = |section, sources: Vec<Source>| {
        all.extend(sources.into_iter().map(|source| (section, source)));
    };
    let tools = given.tools.iter().map(|tool| Source::Tool(tool.name.clone()));
    add(Section::Header, tools.collect());
    let summaries = given.summary.iter().map(|summary| Source::Summary(summary.id));
    add(Section::Summaries, summaries.collect());
    let recent = case.recent().iter().map(|message| Source::Message(message.id));
    add(Section::History, recent.collect());
    let found = &given.candidates;
    let messages = found.messages.iter().map(|c| Source::Message(c.message.id));
    add(Section::Recall, messages.collect());
    let facts = found.facts.iter().map(|c| Source::Fact(c.fact.id));
    add(Section::Recall, facts.collect());
    add(Section::Recall, found.documents.iter().map(DocumentCandidate::source).collect());
    let entities = given.entities.iter().map(|entity| Source::Entity(entity.id));
    add(Section::Recall, entities.collect());
    all
}

/// Whether `shown` is what the item stands for.
fn shows(case: &Case, item: &Item, shown: &str) -> Result<(), &'static str> {
    let check = |holds: bool, why: &'static str| if holds { Ok(()) } else { Err(why) };
    // Lines after the first are indented inside a fence.
    let shown_folded = fold_spaces(shown);
    let holds =
        |text: &str| in_fence(text).iter().any(|form| shown_folded.contains(&fold_spaces(form)));
    match item.section {
        Section::Header => Ok(()),
        Section::Turn => check(shown == case.turn, "not the turn"),
        Section::Summaries => {
            let lines = case.gathered.summary.iter().flat_map(|summary| &summary.lines);
            let kept = lines.filter(|line| holds(&line.text)).count();
            check(kept > 0, "a summary of nothing")
        }
        Section::History => {
            let of_item = |message: &&Message| item.source == Source::Message(message.id);
            let message = case.recent().iter().find(of_item).ok_or("no such message")?;
            if item.outcome == Outcome::Included {
                return check(shown == message.content, "not verbatim");
            }
            check(holds_all(&message.content, shown), "a protected span is lost")?;
            check(shown.len() < message.content.len(), "not shorter")
        }
        Section::Recall if item.kind == ItemKind::Fact => {
            let of_item = |c: &&FactCandidate| item.source == Source::Fact(c.fact.id);
            let fact = case.gathered.candidates.facts.iter().find(of_item);
            let text = &fact.ok_or("no such fact")?.fact.text;
            check(holds(&fold_spaces(text)), "not the fact")
        }
        Section::Recall if item.kind == ItemKind::Document => {
            let found = case.gathered.candidates.documents.iter();
            let mut of_item = found.filter(|c| item.source == c.source());
            check(of_item.any(|c| holds(&c.text())), "not the passage of the document")
        }
        Section::Recall => {
            let found = case.gathered.candidates.messages.iter();
            let mut of_item = found.filter(|c| item.source == Source::Message(c.message.id));
            let passage = |c: &MessageCandidate| holds(c.message.content[c.range.clone()].trim());
            check(of_item.any(passage), "not the passage")
        }
    }
}
