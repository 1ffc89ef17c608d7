//! Operations on a whole user: usage, background jobs, erasure.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use throughline_core::ids::UserId;
use throughline_core::job::Job;
use throughline_core::time::Timestamp;
use throughline_core::usage::{UsageCounters, UsageDay};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::sessions::ErasedJson;
use super::{List, ListQuery, Paging};
use crate::http::caller::{Admin, Caller, Read};
use crate::http::extract::{Named, Params};
use crate::http::service::Service;
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(usage)).routes(routes!(jobs)).routes(routes!(erase))
}

/// Which days.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Days {
    /// The first day (UTC); default 30 days before the last.
    #[param(format = Date)]
    from: Option<String>,
    /// The last day; default today.
    #[param(format = Date)]
    to: Option<String>,
}

/// The usage of a day.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "day": "2026-03-02", "messages": 6, "message_tokens": 412, "contexts": 3,
    "context_tokens": 2100, "baseline_tokens": 9800
}))]
pub(crate) struct UsageJson {
    /// The day (UTC).
    #[schema(format = Date)]
    day: String,
    /// Messages appended.
    messages: u64,
    message_tokens: u64,
    /// Contexts assembled.
    contexts: u64,
    context_tokens: u64,
    /// Tokens of the whole histories.
    baseline_tokens: u64,
}

impl UsageJson {
    fn of((day, counters): (UsageDay, UsageCounters)) -> Self {
        let (year, month, date) = day.start().date();
        Self {
            day: format!("{year:04}-{month:02}-{date:02}"),
            messages: counters.messages,
            message_tokens: counters.message_tokens,
            contexts: counters.contexts,
            context_tokens: counters.context_tokens,
            baseline_tokens: counters.baseline_tokens,
        }
    }
}

/// A background job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c17", "kind": "embed", "state": "done", "attempts": 1,
    "priority": 5, "due_at": "2026-03-02T09:14:00Z", "error": null
}))]
pub(crate) struct JobJson {
    id: String,
    /// The kind of work, such as `embed`.
    kind: String,
    /// `queued`, `running`, `done`, `failed` or `skipped`.
    state: &'static str,
    attempts: u32,
    /// Higher runs first.
    priority: i16,
    #[schema(format = DateTime)]
    due_at: String,
    /// Why it last failed or was skipped.
    error: Option<String>,
}

impl JobJson {
    fn of(job: Job) -> Self {
        Self {
            id: job.id.to_string(),
            kind: job.kind,
            state: job.state.as_str(),
            attempts: job.attempts,
            priority: job.priority,
            due_at: job.due_at.to_rfc3339(),
            error: job.error,
        }
    }
}

/// Show usage by day
///
/// Usage of the user; days without usage are left out.
#[utoipa::path(
    get,
    path = "/v1/usage",
    operation_id = "get_usage",
    tag = "operations",
    params(Days),
    responses((status = 200, body = List<UsageJson>, description = "Days with usage"))
)]
async fn usage(
    State(service): State<Service>,
    caller: Caller<Read>,
    Params(days): Params<Days>,
) -> Result<Json<List<UsageJson>>, Failure> {
    let day = |text: &String| Timestamp::parse(text).map(UsageDay::of);
    let to = days.to.as_ref().map(day).transpose()?;
    let from = days.from.as_ref().map(day).transpose()?;
    let found = service.app.usage(&caller, from, to).await?;
    Ok(Json(List { items: found.into_iter().map(UsageJson::of).collect(), next_cursor: None }))
}

/// List background jobs
///
/// Jobs of the user, in the order in which they were queued.
#[utoipa::path(
    get,
    path = "/v1/jobs",
    operation_id = "list_jobs",
    tag = "operations",
    params(Paging),
    responses((status = 200, body = List<JobJson>, description = "Jobs"))
)]
async fn jobs(
    State(service): State<Service>,
    caller: Caller<Read>,
    asked: ListQuery,
) -> Result<Json<List<JobJson>>, Failure> {
    let page = service.app.engine.store.jobs(&caller.scope()?, &asked.page).await?;
    Ok(Json(asked.list(page, JobJson::of)))
}

/// Erase a user
///
/// All data of the user in all workspaces, everything derived from it, grants of the user's sessions, and keys bound to
/// the user. It cannot be undone, and restoring a backup does not bring it back.
#[utoipa::path(
    delete,
    path = "/v1/users/{user}",
    operation_id = "erase_user",
    tag = "tenant",
    params(("user" = String, Path, description = "The user")),
    responses((status = 200, body = ErasedJson, description = "What was removed"))
)]
async fn erase(
    State(service): State<Service>,
    caller: Caller<Admin>,
    Named(user): Named<String>,
) -> Result<Json<ErasedJson>, Failure> {
    let user = UserId::new(user)?;
    let erased = service.app.erase_user(&caller, &user).await?;
    Ok(Json(ErasedJson::from(&erased)))
}
