//! The context of a turn, and the window of a session.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_core::chat::RESULT_MARK_TOKENS;
use throughline_core::settings::TenantSettings;
use throughline_core::turn::{Intent, Tier};
use throughline_engine::app::{SessionWindow, Turn};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::cooked;
use super::entities::EntityJson;
use super::files::FileJson;
use super::messages::MessageJson;
use super::summaries::SummaryJson;
use crate::http::caller::{Caller, Read};
use crate::http::extract::{Body, Named, Params};
use crate::http::service::Service;
use crate::wire::problem::Failure;
use crate::wire::{AssembledContextJson, IntentJson, PayloadFormat, TierJson};

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(assemble)).routes(routes!(window))
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
    /// Maximum number of recalled items, in addition to the limit on tokens.
    #[serde(default)]
    #[schema(minimum = 1)]
    k: Option<usize>,
    /// The format of `messages`; default `openai`.
    #[serde(default)]
    format: PayloadFormat,
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
    /// Maximum number of tokens.
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
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    body: Body<Assemble>,
) -> Result<Json<AssembledContextJson>, Failure> {
    let asked = body.value;
    let turn = Turn {
        user_turn: asked.user_turn,
        intent: asked.intent.map(Intent::from),
        tier: asked.tier.map(Tier::from),
        token_budget: asked.token_budget,
        topic_tags: asked.topic_tags,
        max_items: asked.k,
        force_refresh: asked.force_refresh,
        tool_mark: RESULT_MARK_TOKENS,
        ..Turn::default()
    };
    let context = service.app.assemble(&caller, &id, turn).await?;
    Ok(Json(AssembledContextJson::of(context, asked.format)))
}

/// Show the window of a session
///
/// Returns recent messages and entities; `standard` and `full` add a summary, `full` adds files. Older messages that
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
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    Params(which): Params<WhichWindow>,
) -> Result<Json<WindowJson>, Failure> {
    let tier = which.tier.map(Tier::from);
    let secrets = service.app.engine.masking;
    let shown = |message| MessageJson::shown(message, secrets);
    let SessionWindow { tier, window, settings, .. } =
        service.app.window(&caller, &id, tier).await?;
    Ok(Json(WindowJson {
        tier: tier.into(),
        recent_history: window.recent.into_iter().map(shown).collect(),
        key_entities: window.entities.into_iter().map(EntityJson::of).collect(),
        summary: window.summary.as_ref().map(SummaryJson::of),
        files: window.files.into_iter().map(FileJson::of).collect(),
        token_count: window.tokens,
        token_budget: tier.budget(),
        client_config: settings.as_ref().and_then(client_config),
    }))
}

fn client_config(settings: &TenantSettings) -> Option<Value> {
    (!settings.client_config.is_empty()).then(|| cooked(&settings.client_config))
}
