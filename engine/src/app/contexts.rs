//! Contexts of turns, recall, and windows, with the defaults of the tenant.

use throughline_core::Result;
use throughline_core::context::{AssembledContext, Section, ToolLine, Window};
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::session::{Reader, Role};
use throughline_core::settings::TenantSettings;
use throughline_core::turn::{Intent, Tier};

use super::{App, Thread, measures};
use crate::identity::Identity;

/// The session of a question that names none.
const NO_SESSION: &str = "-";

/// A turn to assemble the context of.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// The user's message.
    pub user_turn: String,
    /// The intent; detected if not given.
    pub intent: Option<Intent>,
    /// The size; the tenant's if not given.
    pub tier: Option<Tier>,
    /// Tokens of the whole payload; those of the tier if one is given, else the tenant's.
    pub token_budget: Option<u32>,
    /// Topics to find facts by.
    pub topic_tags: Vec<String>,
    /// Most recalled items.
    pub max_items: Option<usize>,
    /// Whether nothing is taken from a cache.
    pub force_refresh: bool,
    /// Tools to name in the header.
    pub tools: Vec<ToolLine>,
    /// Tokens that the caller sends beside the payload, such as schemas of tools; they count in the budget.
    pub beside: u32,
    /// Tokens of the mark that the caller puts before each result of a tool; they count in the budget.
    pub tool_mark: u32,
}

/// A question to what is remembered.
#[derive(Debug, Clone, Default)]
pub struct Recalling {
    /// The session to prefer.
    pub session: Option<String>,
    /// The question.
    pub query: String,
    /// Tokens of the answer.
    pub max_tokens: u32,
    /// Most items.
    pub max_items: Option<usize>,
}

/// The window of a session.
#[derive(Debug, Clone)]
pub struct SessionWindow {
    /// Its size.
    pub tier: Tier,
    /// What it holds.
    pub window: Window,
    /// The settings of the tenant; of a session that somebody else shares, none.
    pub settings: Option<TenantSettings>,
    /// For whom the session is read.
    pub reader: Reader,
}

impl SessionWindow {
    /// That of a session that is not there yet.
    pub(super) fn empty(tier: Tier, settings: Option<TenantSettings>) -> Self {
        let window = Window {
            recent: Vec::new(),
            entities: Vec::new(),
            summary: None,
            files: Vec::new(),
            tokens: 0,
        };
        Self { tier, window, settings, reader: Reader::default() }
    }
}

/// Tokens of the marks before results of tools.
fn marks(context: &AssembledContext, each: u32) -> u32 {
    context.payload().filter(|message| message.role == Role::Tool).map(|_| each).sum()
}

impl App {
    /// Assembles the context of a turn, and counts it.
    ///
    /// # Errors
    /// As [`Thread::to_read`] and the context service.
    pub async fn assemble(
        &self,
        caller: &Identity,
        session: &str,
        turn: Turn,
    ) -> Result<AssembledContext> {
        let thread = Thread::to_read(&self.engine, caller, session).await?;
        let settings = self.settings(caller).await?;
        let request = AssembleRequest {
            intent: turn.intent,
            tier: turn.tier.or(settings.tier),
            // A tier that is asked for brings its own budget.
            token_budget: turn
                .token_budget
                .or(settings.token_budget.filter(|_| turn.tier.is_none())),
            topic_tags: turn.topic_tags,
            max_items: turn.max_items,
            force_refresh: turn.force_refresh,
            tools: turn.tools,
            beside: turn.beside,
            ..AssembleRequest::new(thread.session.clone(), turn.user_turn)
        };
        self.assemble_for(caller, thread, &settings, request, turn.tool_mark).await
    }

    /// The context of a question, within so many tokens: what answers it in any session, those of one preferred where
    /// it is named.
    ///
    /// # Errors
    /// As [`Self::assemble`].
    pub async fn recall(&self, caller: &Identity, asked: Recalling) -> Result<AssembledContext> {
        let session = asked.session.as_deref().unwrap_or(NO_SESSION);
        let thread = Thread::to_read(&self.engine, caller, session).await?;
        let settings = self.settings(caller).await?;
        let request = AssembleRequest {
            intent: Some(Intent::ContextLookup),
            token_budget: Some(asked.max_tokens),
            max_items: asked.max_items,
            recall_only: true,
            ..AssembleRequest::new(thread.session.clone(), asked.query)
        };
        self.assemble_for(caller, thread, &settings, request, 0).await
    }

    async fn assemble_for(
        &self,
        caller: &Identity,
        thread: Thread,
        settings: &TenantSettings,
        request: AssembleRequest,
        tool_mark: u32,
    ) -> Result<AssembledContext> {
        let guest = thread.share.is_some().then(|| caller.scope()).transpose()?;
        let request = AssembleRequest { recall: settings.recall(), guest, ..request };
        let assembled = async {
            let contexts = &self.engine.contexts;
            let whole = contexts.assemble(&thread.scope, &request).await?;
            let (limit, marks) = (whole.budget.limit, marks(&whole, tool_mark));
            if whole.budget.used + marks <= limit {
                return Ok(whole);
            }
            // The marks take room from what is recalled.
            let token_budget = Some(limit.saturating_sub(marks));
            let less = AssembleRequest { token_budget, ..request };
            let mut context = contexts.assemble(&thread.scope, &less).await?;
            context.budget.limit = limit;
            Ok(context)
        };
        let mut context = measures::assembly(assembled).await?;
        let marks = marks(&context, tool_mark);
        context.budget.used += marks;
        for (section, tokens) in &mut context.budget.by_section {
            *tokens += if *section == Section::History { marks } else { 0 };
        }
        self.meter.count(caller.scope()?, &context);
        Ok(context)
    }

    /// The recent messages of a session with its entities, summary and files, within a size.
    ///
    /// # Errors
    /// As [`Thread::to_read`] and the context service.
    pub async fn window(
        &self,
        caller: &Identity,
        session: &str,
        tier: Option<Tier>,
    ) -> Result<SessionWindow> {
        let thread = Thread::to_read(&self.engine, caller, session).await?;
        let settings = self.settings(caller).await?;
        let tier = tier.or(settings.tier).unwrap_or(Tier::Full);
        let window = self.engine.contexts.window(&thread.scope, &thread.session, tier).await?;
        let reader = thread.reader(caller)?;
        let settings = thread.share.is_none().then_some(settings);
        Ok(SessionWindow { tier, window, settings, reader })
    }

    /// The tokens that a turn may take.
    pub(super) async fn budget(&self, caller: &Identity, turn: &Turn) -> Result<u32> {
        let settings = self.settings(caller).await?;
        let of_tenant = settings.token_budget.filter(|_| turn.tier.is_none());
        let tier = turn.tier.or(settings.tier).unwrap_or(Tier::Full);
        Ok(turn.token_budget.or(of_tenant).unwrap_or(tier.budget()))
    }

    pub(super) async fn settings(&self, caller: &Identity) -> Result<TenantSettings> {
        self.engine.settings.get(&caller.principal.tenant).await
    }
}
