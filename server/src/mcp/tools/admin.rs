//! Use, rules and the state of the service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::Result;
use throughline_core::access::Permission;
use throughline_core::scope::{self, ProfileChange};
use throughline_core::secret::{count_of_masked, masks};
use throughline_core::usage::UsageDay;
use throughline_engine::config::ToolSet;

use crate::mcp::tool::{Call, Effect, Outcome, Tool};

/// Default number of days.
const DEFAULT_DAYS: u32 = 30;

pub(super) fn tools() -> Vec<Tool> {
    let set = ToolSet::Admin;
    vec![
        Tool::new::<Nothing, WhoAmI, _>(
            set,
            "whoami",
            "Whose memory this is, and which permissions you have.",
            Effect::Reads,
            whoami,
        ),
        Tool::new::<UsageArgs, Used, _>(
            set,
            "get_usage",
            "Messages stored, contexts assembled and tokens saved, by day.",
            Effect::Reads,
            usage,
        ),
        Tool::new::<Nothing, Profile, _>(
            set,
            "get_profile",
            "The user's rules and profile card, which begin every context.",
            Effect::Reads,
            profile,
        ),
        Tool::new::<ProfileArgs, Profile, _>(
            set,
            "set_profile",
            "Change the user's rules or profile card. Fields not given stay; an empty text clears \
             one.",
            Effect::Removes,
            set_profile,
        ),
        Tool::new::<Nothing, State, _>(
            set,
            "service_health",
            "The state of the store, the vector index and the cache.",
            Effect::Reads,
            health,
        )
        .needs(Permission::Admin),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Serialize, JsonSchema)]
struct WhoAmI {
    tenant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    permissions: Vec<String>,
}

async fn whoami(call: Call, _: Nothing) -> Result<Outcome> {
    let principal = &call.who.principal;
    Outcome::data(&WhoAmI {
        tenant: principal.tenant.to_string(),
        user: principal.user.as_ref().map(ToString::to_string),
        workspace: principal.workspace.as_ref().map(ToString::to_string),
        permissions: principal.permissions.iter().map(|may| may.as_str().to_owned()).collect(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsageArgs {
    /// Default 30.
    #[schemars(range(min = 1, max = 366))]
    days: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Used {
    days: Vec<Day>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Day {
    day: String,
    messages: u64,
    contexts: u64,
    context_tokens: u64,
    baseline_tokens: u64,
}

async fn usage(call: Call, asked: UsageArgs) -> Result<Outcome> {
    let days = asked.days.unwrap_or(DEFAULT_DAYS);
    let used = call.server.app.usage_of_last(&call.who, days).await?;
    let day = |(day, counters): (UsageDay, throughline_core::usage::UsageCounters)| Day {
        day: day.start().to_rfc3339().chars().take(10).collect(),
        messages: counters.messages,
        contexts: counters.contexts,
        context_tokens: counters.context_tokens,
        baseline_tokens: counters.baseline_tokens,
    };
    Outcome::data(&Used { days: used.into_iter().map(day).collect() })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProfileArgs {
    /// Standing instructions, one per line.
    rules: Option<String>,
    /// Who the user is.
    card: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Profile {
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<String>,
    /// The values that it states although the user rejected them, and how many secrets are masked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Profile {
    fn of(held: scope::Profile, mut warnings: Vec<String>, call: &Call) -> Self {
        if !call.who.may_read() {
            return Self { rules: None, card: None, warnings };
        }
        let shown = held.for_model(call.server.app.engine.masking);
        let masked = masks(&shown.rules) + masks(&shown.card);
        if masked > 0 {
            let how = "`secrets = \"keep\"` shows what they stand for";
            warnings.push(format!("{}: {how}", count_of_masked(masked)));
        }
        Self { rules: Some(shown.rules), card: Some(shown.card), warnings }
    }
}

async fn profile(call: Call, _: Nothing) -> Result<Outcome> {
    let held = call.server.app.engine.profiles.get(&call.scope()?).await?;
    Outcome::data(&Profile::of(held, Vec::new(), &call))
}

async fn set_profile(call: Call, asked: ProfileArgs) -> Result<Outcome> {
    let change = ProfileChange { rules: asked.rules, card: asked.card };
    let (held, warnings) = call.server.app.change_profile(&call.who, change).await?;
    Outcome::data(&Profile::of(held, warnings, &call))
}

#[derive(Debug, Serialize, JsonSchema)]
struct State {
    parts: Vec<Part>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Part {
    backend: String,
    problems: Vec<String>,
}

async fn health(call: Call, _: Nothing) -> Result<Outcome> {
    let told = call.server.app.engine.health(false).await?;
    let parts = told
        .into_iter()
        .map(|health| Part { backend: health.backend, problems: health.problems })
        .collect();
    Outcome::data(&State { parts })
}
