//! The settings of a tenant.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use throughline_core::Result;
use throughline_core::settings::{Flag, SettingsChange, TenantSettings};
use throughline_core::turn::Tier;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{cooked, raw};
use crate::http::caller::{Admin, Caller, Read};
use crate::http::extract::Body;
use crate::http::service::Service;
use crate::http::written::{Receipt, Written};
use crate::wire::TierJson;
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(show, change))
}

/// The settings of a tenant. Values in a request override them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "token_budget": 2000, "tier": null, "flags": {"recall_meaning": true},
    "models": {"chat": "gpt-5-mini"}, "client_config": {"gdrive_folder_id": "1x-9"},
    "version": 3, "updated_at": "2026-03-02T09:14:00Z"
}))]
pub(crate) struct SettingsJson {
    /// Token budget of a context; null means the tier's.
    token_budget: Option<u32>,
    /// Size of a context; null means `full`.
    tier: Option<TierJson>,
    /// Flags that are on or off: `recall`, `recall_facts`, `recall_meaning`, `recall_documents`. A
    /// flag that is not listed is on.
    flags: BTreeMap<String, bool>,
    /// Models by purpose.
    models: BTreeMap<String, String>,
    /// The tenant's own data; stored, not interpreted.
    #[schema(value_type = Object)]
    client_config: Value,
    /// Increases with every change; 0 if the settings were never set.
    version: u64,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl From<TenantSettings> for SettingsJson {
    fn from(settings: TenantSettings) -> Self {
        let empty = settings.client_config.is_empty();
        Self {
            token_budget: settings.token_budget,
            tier: settings.tier.map(TierJson::from),
            flags: settings
                .flags
                .iter()
                .map(|(flag, on)| (flag.as_str().to_owned(), *on))
                .collect(),
            models: settings.models,
            client_config: match empty {
                true => Value::Object(Map::new()),
                false => cooked(&settings.client_config),
            },
            version: settings.version,
            updated_at: settings.updated_at.to_rfc3339(),
        }
    }
}

impl From<SettingsJson> for Receipt {
    fn from(settings: SettingsJson) -> Self {
        Self { version: Some(settings.version), ..Self::default() }
    }
}

/// What to change; fields that are not given stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"token_budget": 2000, "client_config": {"gdrive_folder_id": "1x-9"}}))]
pub(crate) struct SettingsChangeJson {
    /// Token budget of a context; 0 resets it to the tier's.
    #[serde(default)]
    #[schema(maximum = 1_000_000)]
    token_budget: Option<u32>,
    /// Size of a context.
    #[serde(default)]
    tier: Option<TierJson>,
    /// Flags to turn on or off: `recall`, `recall_facts`, `recall_meaning`, `recall_documents`;
    /// null turns a flag on again.
    #[serde(default)]
    flags: BTreeMap<String, Option<bool>>,
    /// Models by purpose; null removes one.
    #[serde(default)]
    models: BTreeMap<String, Option<String>>,
    /// Replaces the tenant's own data; at most 64 KiB.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    client_config: Option<Map<String, Value>>,
}

/// Show the settings of the tenant
#[utoipa::path(
    get,
    path = "/v1/settings",
    operation_id = "get_settings",
    tag = "tenant",
    responses((status = 200, body = SettingsJson, description = "The settings"))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
) -> Result<Json<SettingsJson>, Failure> {
    Ok(Json(service.app.engine.settings.get(&caller.principal.tenant).await?.into()))
}

/// Change the settings of the tenant
#[utoipa::path(
    put,
    path = "/v1/settings",
    operation_id = "change_settings",
    tag = "tenant",
    request_body = SettingsChangeJson,
    responses((status = 200, body = Written<SettingsJson>, description = "The settings"))
)]
async fn change(
    State(service): State<Service>,
    caller: Caller<Admin>,
    body: Body<SettingsChangeJson>,
) -> Result<Json<Written<SettingsJson>>, Failure> {
    let change = body.value;
    let flags = change.flags.into_iter().map(|(flag, on)| Ok((flag.parse::<Flag>()?, on)));
    let change = SettingsChange {
        token_budget: change.token_budget.map(|budget| (budget > 0).then_some(budget)),
        tier: change.tier.map(|tier| Some(Tier::from(tier))),
        flags: flags.collect::<Result<_>>()?,
        models: change.models,
        client_config: change.client_config.map(|own| raw(&Value::Object(own))).transpose()?,
    };
    let principal = &caller.principal;
    let settings =
        service.app.engine.settings.change(caller.by(), &principal.tenant, change).await?;
    Ok(Json(Written::of(&caller, settings.into())))
}
