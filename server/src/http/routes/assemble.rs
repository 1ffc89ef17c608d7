//! The context of a turn, and the window of a session.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::settings::TenantSettings;
use throughline_core::turn::{Intent, Tier};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::cooked;
use super::entities::EntityJson;
use super::files::FileJson;
use super::messages::MessageJson;
use super::summaries::SummaryJson;
use crate::http::app::App;
use crate::http::caller::{Caller, Read};
use crate::http::extract::{Body, Named, Params};
use crate::http::measures;
use crate::http::problem::Failure;
use crate::identity::thread::Thread;
use crate::wire::AssembledContextJson;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(assemble)).routes(routes!(window))
}

/// The intent of a turn.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IntentJson {
    /// Something is told, little is asked.
    QuickCapture,
    /// Something that was said is looked for.
    ContextLookup,
    /// Much is to be weighed.
    DeepAnalysis,
    /// Something is to be planned.
    Planning,
}

impl From<IntentJson> for Intent {
    fn from(intent: IntentJson) -> Self {
        match intent {
            IntentJson::QuickCapture => Self::QuickCapture,
            IntentJson::ContextLookup => Self::ContextLookup,
            IntentJson::DeepAnalysis => Self::DeepAnalysis,
            IntentJson::Planning => Self::Planning,
        }
    }
}

/// The size of a context.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TierJson {
    /// 10 messages, 800 tokens.
    Light,
    /// 15 messages, 1,500 tokens.
    Standard,
    /// 25 messages, 3,000 tokens.
    Full,
}

impl From<TierJson> for Tier {
    fn from(tier: TierJson) -> Self {
        match tier {
            TierJson::Light => Self::Light,
            TierJson::Standard => Self::Standard,
            TierJson::Full => Self::Full,
        }
    }
}

impl From<Tier> for TierJson {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Light => Self::Light,
            Tier::Standard => Self::Standard,
            Tier::Full => Self::Full,
        }
    }
}

/// A turn to assemble the context of.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"user_turn": "When is the Alfred cutover?", "token_budget": 1500}))]
pub(crate) struct Assemble {
    /// The user's message.
    #[schema(min_length = 1)]
    user_turn: String,
    /// The intent of the turn; detected if not given.
    #[serde(default)]
    intent: Option<IntentJson>,
    /// The size of the context; the tenant's setting if not given.
    #[serde(default)]
    tier: Option<TierJson>,
    /// Topics to find facts by, such as `project:alfred`.
    #[serde(default)]
    #[schema(max_items = 16)]
    topic_tags: Vec<String>,
    /// Token budget of the whole payload, including the turn; the tier's if not given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000)]
    token_budget: Option<u32>,
    /// Read everything from the store, not from a cache.
    #[serde(default)]
    force_refresh: bool,
}

/// Which window.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WhichWindow {
    /// The size; the tenant's setting if not given.
    #[param(inline)]
    tier: Option<TierJson>,
}

/// The recent messages of a session, with its entities, summary and files.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WindowJson {
    tier: TierJson,
    /// The recent messages, the oldest first.
    recent_history: Vec<MessageJson>,
    /// Typed values, the most recently seen first.
    key_entities: Vec<EntityJson>,
    /// The newest summary; only in `standard` and `full`.
    summary: Option<SummaryJson>,
    /// Referenced files, the newest first; only in `full`.
    files: Vec<FileJson>,
    /// Tokens of the whole window.
    token_count: u32,
    /// Most tokens allowed.
    token_budget: u32,
    /// The tenant's own data; null in a session that somebody else shares.
    #[schema(value_type = Option<Object>)]
    client_config: Option<Value>,
}

/// Assemble the context of a turn
///
/// Returns what to send to a model for this turn, within the budget, with an account of every candidate. Only the usage
/// is stored. Recall covers all sessions of the user; in a session that somebody else shares, only that session.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/assemble",
    operation_id = "assemble_context",
    tag = "contexts",
    params(("id" = String, Path, description = "The session; it need not exist yet")),
    request_body = Assemble,
    responses((status = 200, body = AssembledContextJson, description = "The context"))
)]
async fn assemble(
    State(app): State<App>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    body: Body<Assemble>,
) -> Result<Json<AssembledContextJson>, Failure> {
    let thread = Thread::to_read(&app.engine, &caller, &id).await?;
    let settings = app.engine.settings.get(&caller.principal.tenant).await?;
    let asked = body.value;
    let request = AssembleRequest {
        intent: asked.intent.map(Intent::from),
        tier: asked.tier.map(Tier::from).or(settings.tier),
        // A tier that is asked for brings its own budget.
        token_budget: asked.token_budget.or(settings.token_budget.filter(|_| asked.tier.is_none())),
        topic_tags: asked.topic_tags,
        force_refresh: asked.force_refresh,
        recall: settings.recall(),
        guest: thread.share.is_some().then(|| caller.scope()).transpose()?,
        ..AssembleRequest::new(thread.session, asked.user_turn)
    };
    let context = measures::assembly(app.engine.contexts.assemble(&thread.scope, &request)).await?;
    app.usage.count(caller.scope()?, &context);
    Ok(Json(AssembledContextJson::from(context)))
}

/// Show the window of a session
///
/// Recent messages and entities, in `standard` and `full` with a summary, in `full` with files. Older messages that
/// exceed the budget are left out.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/window",
    operation_id = "get_window",
    tag = "contexts",
    params(("id" = String, Path, description = "The session"), WhichWindow),
    responses((status = 200, body = WindowJson, description = "The window"))
)]
async fn window(
    State(app): State<App>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    Params(which): Params<WhichWindow>,
) -> Result<Json<WindowJson>, Failure> {
    let thread = Thread::to_read(&app.engine, &caller, &id).await?;
    let settings = app.engine.settings.get(&caller.principal.tenant).await?;
    let tier = which.tier.map(Tier::from).or(settings.tier).unwrap_or(Tier::Full);
    let window = app.engine.contexts.window(&thread.scope, &thread.session, tier).await?;
    let own = thread.share.is_none();
    Ok(Json(WindowJson {
        tier: tier.into(),
        recent_history: window.recent.into_iter().map(MessageJson::of).collect(),
        key_entities: window.entities.into_iter().map(EntityJson::of).collect(),
        summary: window.summary.as_ref().map(SummaryJson::of),
        files: window.files.into_iter().map(FileJson::of).collect(),
        token_count: window.tokens,
        token_budget: tier.budget(),
        client_config: own.then(|| client_config(&settings)).flatten(),
    }))
}

fn client_config(settings: &TenantSettings) -> Option<Value> {
    (!settings.client_config.is_empty()).then(|| cooked(&settings.client_config))
}
