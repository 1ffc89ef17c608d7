//! A turn that a model answers: its context is assembled, a model of a configured provider answers it, and question and
//! answer are stored together. Nothing is stored of a turn that fails, is cut off or is given up, so that no session has a
//! question without its answer.

mod files;
mod models;
mod remarks;
mod specialists;
mod spent;
mod stored;
mod tools;

use async_stream::try_stream;
use futures_util::{StreamExt as _, future, pin_mut};
use throughline_core::chat::{
    ChatAnswer, ChatEvent, ChatMessage, ChatModelRequest, ModelInfo, RESULT_MARK_TOKENS, ToolCall,
    ToolSpec,
};
use throughline_core::context::AssembledContext;
use throughline_core::files::Plan;
use throughline_core::ids::MessageId;
use throughline_core::ports::Idempotency;
use throughline_core::session::{NewMessage, Role};
use throughline_core::tokens::PER_MESSAGE;
use throughline_core::turn::{MAX_BUDGET, Tier};
use throughline_core::{Error, ErrorKind, Result};

use super::messages::ErasureMark;
use super::{App, Thread, Turn};
use crate::compose::ChosenModel;
use crate::config::SpecialistConfig;
use crate::identity::Identity;
use files::{FilesAtWork, SEARCH, count_files};
use spent::Spent;
pub(super) use stored::{answer_parts, read_back};
use tools::{DELEGATE, SHARE, Tools, delegate, delegation};

pub use files::TurnFiles;
pub use specialists::SpecialistView;

/// Most messages that may follow a turn before its answer: as many as twenty rounds of calls and results.
const MAX_STEPS: usize = 40;
/// Most rounds in which a model calls our own tools in one request.
const MAX_ROUNDS: usize = 8;

/// A turn to answer.
#[derive(Debug, Clone, Default)]
pub struct ChatTurn {
    /// What to assemble the context of.
    pub turn: Turn,
    /// The model, as `provider:id` or as the id alone; the configured one if not given.
    pub model: Option<String>,
    /// The specialist that answers instead, from the window of the session.
    pub specialist: Option<String>,
    /// Whether the model may ask the configured specialists.
    pub delegate: bool,
    /// Files of the conversation, for this turn and those before it.
    pub files: Option<TurnFiles>,
    /// Tools of the caller that the model may call.
    pub tools: Vec<ToolSpec>,
    /// What followed the turn so far: calls of tools and their results.
    pub steps: Vec<ChatMessage>,
    /// Diversity, 0.0 to 2.0.
    pub temperature: Option<f64>,
    /// Most tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Makes a repeat harmless.
    pub idempotency: Option<Idempotency>,
}

/// A piece of what comes of a turn.
#[derive(Debug)]
pub enum ChatPiece {
    /// The context that the model is sent; first.
    Context(Box<AssembledContext>),
    /// What the specialist that answers is sent; first, in the place of a context.
    Window(Box<SpecialistView>),
    /// The next piece of the text. What comes before a call of a tool is not part of the answer.
    Text(String),
    /// A call of a tool of the caller's, which has to be run before the turn goes on.
    ToolCall(ToolCall),
    /// The whole answer; last.
    Done(Box<ChatReply>),
}

/// The answer to a turn.
#[derive(Debug, Clone)]
pub struct ChatReply {
    /// The model that answered, as `provider:id`.
    pub model: String,
    /// What it said, what it calls of the caller's tools, and what the turn took, all rounds together.
    pub answer: ChatAnswer,
    /// US dollars, where price and tokens are known.
    pub cost: Option<f64>,
    /// The messages that were stored: of a turn that waits for results of tools none.
    pub stored: Vec<MessageId>,
    /// All that followed the turn, where it waits: to be sent again with the results behind it.
    pub steps: Vec<ChatMessage>,
    /// What specialists were shown, in the order in which they answered.
    pub views: Vec<SpecialistView>,
    /// What became of the files of the turn, for who may read.
    pub files: Option<Plan>,
}

/// A turn at work.
struct Work {
    chosen: ChosenModel,
    asked: ChatTurn,
    tools: Tools,
    files: Option<FilesAtWork>,
    /// What is sent before the steps, and its tokens.
    base: ChatModelRequest,
    used: u32,
    /// The tokens that everything may have together.
    limit: u32,
    spent: Spent,
    views: Vec<SpecialistView>,
    rounds: usize,
    mark: ErasureMark,
}

impl Work {
    fn request(&self) -> ChatModelRequest {
        let steps = self.asked.steps.iter().cloned();
        ChatModelRequest {
            messages: self.base.messages.iter().cloned().chain(steps).collect(),
            tools: self.tools.sent(),
            temperature: self.asked.temperature,
            max_tokens: self.asked.max_tokens,
            ..self.base.clone()
        }
    }

    /// The ids of the calls that searched files.
    fn searches(&self) -> Vec<&str> {
        let calls = self.asked.steps.iter().flat_map(|step| &step.tool_calls);
        let searches = calls.filter(|call| self.files.is_some() && call.name == SEARCH);
        searches.map(|call| call.id.as_str()).collect()
    }

    fn reply(self, mut answer: ChatAnswer, stored: Vec<MessageId>) -> ChatReply {
        answer.usage = self.spent.usage();
        let waits = !answer.tool_calls.is_empty();
        ChatReply {
            model: self.chosen.name(),
            answer,
            cost: self.spent.cost(),
            stored,
            steps: if waits { self.asked.steps } else { Vec::new() },
            views: self.views,
            files: self.files.map(|files| files.planned.plan),
        }
    }
}

/// The step of an answer that calls tools.
fn said(answer: &ChatAnswer) -> ChatMessage {
    ChatMessage {
        tool_calls: answer.tool_calls.clone(),
        ..ChatMessage::text(Role::Assistant, answer.text.clone())
    }
}

impl App {
    /// Answers a turn, piece by piece. Dropping the stream ends the model's answer, and stores nothing.
    pub fn chat(
        &self,
        caller: Identity,
        session: String,
        mut asked: ChatTurn,
    ) -> impl futures_util::Stream<Item = Result<ChatPiece>> + Send + 'static {
        let app = self.clone();
        try_stream! {
            // A caller who may not append is refused before a model is paid.
            let thread = Thread::to_append(&app.engine, &caller, &session).await?;
            asked.idempotency = thread.repeat(&caller, asked.idempotency)?;
            if let Some(reply) = app.answered_before(&caller, &thread, &asked).await? {
                yield ChatPiece::Text(reply.answer.text.clone());
                yield ChatPiece::Done(Box::new(reply));
                return;
            }
            let mark = app.erasure_mark(&caller, &thread).await?;
            let (mut work, shown) = app.begin(&caller, &session, asked, mark).await?;
            yield shown;
            let answer = loop {
                let pieces = work.chosen.stream(&work.request()).await;
                let pieces = app.count_if_declined(&caller, &work.chosen, pieces).await?;
                pin_mut!(pieces);
                let mut done = None;
                while let Some(piece) = pieces.next().await {
                    match app.count_if_declined(&caller, &work.chosen, piece).await? {
                        ChatEvent::Text(text) => yield ChatPiece::Text(text),
                        ChatEvent::Done(answer) => done = Some(answer),
                    }
                }
                let answer = done.ok_or_else(cut_off)?;
                work.spent.add(&work.chosen, answer.usage);
                app.count_chat(&caller, &work.chosen, answer.usage).await;
                if answer.tool_calls.is_empty() {
                    break answer;
                }
                work.asked.steps.push(said(&answer));
                let waiting = app.call_ours(&caller, &session, &mut work, &answer).await?;
                for call in &waiting {
                    yield ChatPiece::ToolCall(call.clone());
                }
                if !waiting.is_empty() {
                    break ChatAnswer { tool_calls: waiting, ..answer };
                }
            };
            if let Some(files) = &mut work.files {
                files.close().await;
                count_files(&files.planned.plan);
            }
            let reads = caller.may_read();
            let mut reply = match answer.tool_calls.is_empty() {
                true => app.store_turn(caller, session, work, answer).await?,
                false => work.reply(answer, Vec::new()),
            };
            // Their account tells what earlier turns had.
            reply.files = reply.files.filter(|_| reads);
            yield ChatPiece::Done(Box::new(reply));
        }
    }

    /// Who answers a turn.
    async fn choose(
        &self,
        caller: &Identity,
        asked: &ChatTurn,
    ) -> Result<(ChosenModel, Option<SpecialistConfig>)> {
        check_steps(&asked.steps)?;
        ToolSpec::check_all(&asked.tools)?;
        let calls = asked.delegate || !asked.tools.is_empty();
        let Some(name) = &asked.specialist else {
            let chosen = self.model_for(caller, asked.model.as_deref()).await?;
            if asked.delegate && self.engine.models.specialists.is_empty() {
                return Err(Error::invalid("delegate: `specialists` configures none"));
            }
            if calls && !chosen.info.tools {
                return Err(Error::invalid(format!(
                    "the model `{}` calls no tools: leave out `tools` and `delegate`, or name another model",
                    chosen.name()
                )));
            }
            return Ok((chosen, None));
        };
        if calls || !asked.steps.is_empty() {
            return Err(Error::invalid(
                "a specialist calls no tools: leave out `tools`, `steps` and `delegate`",
            ));
        }
        let role = self.specialist(name)?;
        let own = Some(&*role.model).filter(|model| !model.is_empty());
        let chosen = self.model_for(caller, asked.model.as_deref().or(own)).await?;
        Ok((chosen, Some(role.clone())))
    }

    /// Makes what is sent first, and says what is in it.
    async fn begin(
        &self,
        caller: &Identity,
        session: &str,
        mut asked: ChatTurn,
        mark: ErasureMark,
    ) -> Result<(Work, ChatPiece)> {
        let (chosen, specialist) = self.choose(caller, &asked).await?;
        if specialist.is_some() && asked.files.is_some() {
            return Err(Error::invalid("a specialist is sent no files: leave out `files`"));
        }
        if let Some(role) = specialist {
            return self.begin_as(caller, session, &role, (chosen, asked, mark)).await;
        }
        let specialists = self.engine.models.specialists.as_slice();
        let specialists = if asked.delegate { specialists } else { &[] };
        let usual = self.budget(caller, &asked.turn).await?;
        let less = budget_within_window(&chosen.info, asked.max_tokens, usual);
        let budget = less.unwrap_or(usual);
        asked.turn.token_budget = less.or(asked.turn.token_budget);
        let files = match asked.files.take() {
            Some(files) => {
                let answer = answer_tokens(&chosen.info, asked.max_tokens);
                let beside = u64::from(answer) + u64::from(budget);
                Some(self.files_at_work(caller, session, (&chosen, beside), files).await?)
            }
            None => None,
        };
        let schemas = std::mem::take(&mut asked.tools);
        let is_much =
            schemas.iter().map(|tool| self.tokens_of_tool(tool)).sum::<u32>() > budget / SHARE;
        let search = files.as_ref().and_then(FilesAtWork::tool);
        let ours = delegate(specialists).into_iter().chain(search).collect();
        let tools = Tools::of(schemas, ours, is_much, &asked.steps)?;
        let mut work = Work {
            chosen,
            asked,
            tools,
            files,
            base: ChatModelRequest::default(),
            used: 0,
            limit: 0,
            spent: Spent::default(),
            views: Vec::new(),
            rounds: 0,
            mark,
        };
        let context = self.assemble_base(caller, session, &mut work).await?;
        Ok((work, ChatPiece::Context(Box::new(context))))
    }

    /// The same for a specialist, which has its window in the place of a context, and no tools.
    async fn begin_as(
        &self,
        caller: &Identity,
        session: &str,
        role: &SpecialistConfig,
        (chosen, asked, mark): (ChosenModel, ChatTurn, ErasureMark),
    ) -> Result<(Work, ChatPiece)> {
        let turn = &asked.turn;
        let question = NewMessage::new(Role::User, turn.user_turn.as_str());
        if let Some((_, what)) = question.problem() {
            return Err(Error::invalid(format!("user_turn {what}")));
        }
        let usual = turn.token_budget.unwrap_or(Tier::from(role.tier).budget());
        let budget = budget_within_window(&chosen.info, asked.max_tokens, usual).unwrap_or(usual);
        let (base, view) =
            self.for_specialist(caller, session, role, &turn.user_turn, budget).await?;
        let (used, limit) = (view.tokens, view.token_budget);
        let shown = ChatPiece::Window(Box::new(view.clone()));
        let (spent, tools, rounds, files) = (Spent::default(), Tools::default(), 0, None);
        Ok((
            Work {
                chosen,
                asked,
                tools,
                files,
                base,
                used,
                limit,
                spent,
                views: vec![view],
                rounds,
                mark,
            },
            shown,
        ))
    }

    /// Assembles the context with what room tools and steps leave.
    async fn assemble_base(
        &self,
        caller: &Identity,
        session: &str,
        work: &mut Work,
    ) -> Result<AssembledContext> {
        let beside = self.tokens_beside(work);
        let turn = Turn {
            tools: work.tools.directory(),
            beside,
            tool_mark: RESULT_MARK_TOKENS,
            ..work.asked.turn.clone()
        };
        let context = self.assemble(caller, session, turn).await?;
        let system: Vec<&str> =
            context.header.iter().map(|message| message.content.as_str()).collect();
        let said = context.working_set.iter().map(ChatMessage::of_history);
        work.base = ChatModelRequest {
            system: system.join("\n\n"),
            messages: work.files.iter().filter_map(FilesAtWork::message).chain(said).collect(),
            ..ChatModelRequest::default()
        };
        work.used = context.budget.used;
        work.limit = context.budget.limit.saturating_add(beside);
        Ok(context)
    }

    /// Runs what an answer calls of our own tools; returns the calls of the caller's tools, which wait.
    async fn call_ours(
        &self,
        caller: &Identity,
        session: &str,
        work: &mut Work,
        answer: &ChatAnswer,
    ) -> Result<Vec<ToolCall>> {
        let (ours, others): (Vec<ToolCall>, Vec<ToolCall>) =
            answer.tool_calls.iter().cloned().partition(|call| work.tools.is_ours(call));
        if ours.is_empty() {
            return Ok(others);
        }
        work.rounds += 1;
        if work.rounds > MAX_ROUNDS {
            return Err(Error::new(
                ErrorKind::Declined,
                format!(
                    "the model called tools in {MAX_ROUNDS} rounds and did not answer: nothing was stored; ask again in \
                     other words, or name another model"
                ),
            ));
        }
        let delegations = ours.iter().filter(|call| call.name == DELEGATE);
        let model = work.asked.model.clone();
        let asked = delegations
            .map(async |call| (call, self.delegate(caller, session, call, model.as_deref()).await));
        for (call, told) in future::join_all(asked).await {
            let told = match told? {
                Delegated::Refused(why) => why,
                Delegated::Answered { chosen, view, answer } => {
                    work.spent.add(&chosen, answer.usage);
                    work.views.push(*view);
                    answer.text
                }
            };
            work.asked.steps.push(ChatMessage::result_of(call, told));
        }
        for call in ours.iter().filter(|call| call.name != DELEGATE) {
            let told = match &mut work.files {
                Some(files) if call.name == SEARCH => {
                    self.search_files(caller, files, call).await?
                }
                _ => work.tools.load(call),
            };
            work.asked.steps.push(ChatMessage::result_of(call, told));
        }
        if others.is_empty() && work.used + self.tokens_beside(work) > work.limit {
            self.assemble_base(caller, session, work).await?;
        }
        Ok(others)
    }

    /// Lets a specialist do what a model asks of it.
    async fn delegate(
        &self,
        caller: &Identity,
        session: &str,
        call: &ToolCall,
        model: Option<&str>,
    ) -> Result<Delegated> {
        let asked = match delegation(call) {
            Ok(asked) => asked,
            Err(why) => return Ok(Delegated::Refused(why)),
        };
        let role = match self.specialist(&asked.specialist) {
            Ok(role) => role,
            Err(unknown) => return Ok(Delegated::Refused(unknown.message().to_owned())),
        };
        let own = Some(&*role.model).filter(|model| !model.is_empty());
        let chosen = self.model_for(caller, own.or(model)).await?;
        let usual = Tier::from(role.tier).budget();
        let budget = budget_within_window(&chosen.info, None, usual).unwrap_or(usual);
        let sent = self.for_specialist(caller, session, role, &asked.task, budget).await;
        let (request, view) = match sent {
            Err(error) if error.kind() == ErrorKind::BudgetTooSmall => {
                return Ok(Delegated::Refused(format!(
                    "The task is too long: {}",
                    error.message()
                )));
            }
            sent => sent?,
        };
        let answer = chosen.complete(&request).await;
        let answer = self.count_if_declined(caller, &chosen, answer).await?;
        self.count_chat(caller, &chosen, answer.usage).await;
        Ok(Delegated::Answered { chosen, view: Box::new(view), answer: Box::new(answer) })
    }

    /// Tokens of what is sent beside the assembled context.
    fn tokens_beside(&self, work: &Work) -> u32 {
        let count = |text: &str| self.engine.tokenizer.count(text);
        // Passages have room of their own.
        let searches = work.searches();
        let is_counted = |step: &&ChatMessage| {
            step.tool_call_id.as_deref().is_none_or(|id| !searches.contains(&id))
        };
        let steps = work.asked.steps.iter().filter(is_counted).map(|step| {
            let calls = step.tool_calls.iter();
            let calls = calls.map(|call| count(&call.name) + count(&call.arguments) + PER_MESSAGE);
            count(&step.content) + calls.sum::<u32>() + PER_MESSAGE
        });
        let sent = work.tools.sent();
        sent.iter().map(|tool| self.tokens_of_tool(tool)).chain(steps).sum()
    }

    fn tokens_of_tool(&self, tool: &ToolSpec) -> u32 {
        let texts = [&tool.name, &tool.description, &tool.parameters];
        texts.iter().map(|text| self.engine.tokenizer.count(text)).sum::<u32>() + PER_MESSAGE
    }
}

/// What came of asking a specialist.
enum Delegated {
    /// It was not asked; the reason is for the model.
    Refused(String),
    Answered {
        chosen: ChosenModel,
        view: Box<SpecialistView>,
        answer: Box<ChatAnswer>,
    },
}

pub(super) fn cut_off() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the provider's answer was cut off: nothing was stored, try again",
    )
}

/// Tokens of the window that are kept for the answer.
fn answer_tokens(model: &ModelInfo, max_tokens: Option<u32>) -> u32 {
    max_tokens.unwrap_or(model.max_output).min(model.window / 2)
}

/// The budget that leaves room for the answer in the model's window, where the usual one does not.
fn budget_within_window(model: &ModelInfo, max_tokens: Option<u32>, usual: u32) -> Option<u32> {
    let room = model.window.saturating_sub(answer_tokens(model, max_tokens));
    // A budget that is not allowed is refused, and not replaced.
    (room < usual && usual <= MAX_BUDGET).then_some(room)
}

/// Calls and their results have to match, or a provider refuses all of it.
fn check_steps(steps: &[ChatMessage]) -> Result<()> {
    if steps.len() > MAX_STEPS {
        return Err(Error::invalid(format!(
            "steps: {} messages follow the turn, and at most {MAX_STEPS} may: the model may be calling tools in a loop",
            steps.len()
        )));
    }
    let mut open: Vec<&str> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        match (step.role, step.tool_call_id.as_deref()) {
            (Role::Assistant, None) if !step.tool_calls.is_empty() && open.is_empty() => {
                open = step.tool_calls.iter().map(|call| call.id.as_str()).collect();
            }
            (Role::Tool, Some(id)) if open.contains(&id) => open.retain(|call| *call != id),
            _ => {
                return Err(Error::invalid(format!(
                    "steps[{index}]: expected an assistant's message with tool_calls, or the result of a call \
                     that was made before and has none yet"
                )));
            }
        }
    }
    match open.first() {
        Some(call) => Err(Error::invalid(format!("steps: the call `{call}` has no result"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_leave_room_for_the_answer() {
        let model = |window, max_output| ModelInfo {
            id: "m".to_owned(),
            window,
            max_output,
            tools: true,
            temperature: true,
            thinks: false,
            price: None,
        };
        for (window, max_output, max_tokens, usual, budget) in [
            (4_096, 4_096, None, 1_000, None),
            (4_096, 4_096, None, 3_000, Some(2_048)),
            (8_192, 1_000, None, 20_000, Some(7_192)),
            (8_192, 8_192, Some(192), 20_000, Some(8_000)),
            (1_000_000, 32_768, None, 20_000, None),
            (8_192, 1_000, None, MAX_BUDGET + 1, None),
        ] {
            let found = budget_within_window(&model(window, max_output), max_tokens, usual);
            assert_eq!(found, budget, "{window} {max_output} {max_tokens:?} {usual}");
        }
    }
}
