//! Roles, kinds of facts, intents and tiers: one form for every interface. What each means is said by the domain's types;
//! variants carry no comments here, because schemas of tools would repeat them in every client's context window.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::access::Actor;
use throughline_core::fact::FactKind;
use throughline_core::session::Role;
use throughline_core::turn::{Intent, Tier};
use throughline_core::{Error, Result};
use utoipa::ToSchema;

/// Converts the items of a list; an error names the item, such as `messages[3]`.
///
/// # Errors
/// The first one of an item.
pub(crate) fn indexed<T, U>(
    name: &str,
    items: Vec<T>,
    convert: impl Fn(T) -> Result<U>,
) -> Result<Vec<U>> {
    let convert = |(at, item)| {
        convert(item).map_err(|error: Error| {
            Error::new(error.kind(), format!("{name}[{at}]: {}", error.message()))
        })
    };
    items.into_iter().enumerate().map(convert).collect()
}

/// The speaker.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleJson {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    #[serde(alias = "function")]
    Tool,
}

impl From<RoleJson> for Role {
    fn from(form: RoleJson) -> Self {
        match form {
            RoleJson::System => Self::System,
            RoleJson::User => Self::User,
            RoleJson::Assistant => Self::Assistant,
            RoleJson::Tool => Self::Tool,
        }
    }
}

impl From<Role> for RoleJson {
    fn from(value: Role) -> Self {
        match value {
            Role::System => Self::System,
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::Tool => Self::Tool,
        }
    }
}

/// The kind of a fact.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FactKindJson {
    Decision,
    Entity,
    Task,
    Metric,
    Link,
    Fact,
    Instruction,
    Preference,
    Retraction,
}

impl From<FactKindJson> for FactKind {
    fn from(form: FactKindJson) -> Self {
        match form {
            FactKindJson::Decision => Self::Decision,
            FactKindJson::Entity => Self::Entity,
            FactKindJson::Task => Self::Task,
            FactKindJson::Metric => Self::Metric,
            FactKindJson::Link => Self::Link,
            FactKindJson::Fact => Self::Fact,
            FactKindJson::Instruction => Self::Instruction,
            FactKindJson::Preference => Self::Preference,
            FactKindJson::Retraction => Self::Retraction,
        }
    }
}

impl From<FactKind> for FactKindJson {
    fn from(value: FactKind) -> Self {
        match value {
            FactKind::Decision => Self::Decision,
            FactKind::Entity => Self::Entity,
            FactKind::Task => Self::Task,
            FactKind::Metric => Self::Metric,
            FactKind::Link => Self::Link,
            FactKind::Fact => Self::Fact,
            FactKind::Instruction => Self::Instruction,
            FactKind::Preference => Self::Preference,
            FactKind::Retraction => Self::Retraction,
        }
    }
}

/// Who stated it: the user in a message (`user`), the user or their backend over HTTP or the command line (`api`), a
/// model through a tool (`model`), an imported file (`import`), a model that read it in a message of the user
/// (`extractor`), or another user in a session that is shared with them (`guest`).
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActorJson {
    User,
    Api,
    Model,
    Import,
    Extractor,
    Guest,
}

impl From<Actor> for ActorJson {
    fn from(value: Actor) -> Self {
        match value {
            Actor::User => Self::User,
            Actor::Api => Self::Api,
            Actor::Model => Self::Model,
            Actor::Import => Self::Import,
            Actor::Extractor => Self::Extractor,
            Actor::Guest => Self::Guest,
        }
    }
}

/// The intent of a turn.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IntentJson {
    QuickCapture,
    ContextLookup,
    DeepAnalysis,
    Planning,
}

impl From<IntentJson> for Intent {
    fn from(form: IntentJson) -> Self {
        match form {
            IntentJson::QuickCapture => Self::QuickCapture,
            IntentJson::ContextLookup => Self::ContextLookup,
            IntentJson::DeepAnalysis => Self::DeepAnalysis,
            IntentJson::Planning => Self::Planning,
        }
    }
}

impl From<Intent> for IntentJson {
    fn from(value: Intent) -> Self {
        match value {
            Intent::QuickCapture => Self::QuickCapture,
            Intent::ContextLookup => Self::ContextLookup,
            Intent::DeepAnalysis => Self::DeepAnalysis,
            Intent::Planning => Self::Planning,
        }
    }
}

/// The size of a context: `light`, `standard` or `full`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TierJson {
    Light,
    Standard,
    Full,
}

impl From<TierJson> for Tier {
    fn from(form: TierJson) -> Self {
        match form {
            TierJson::Light => Self::Light,
            TierJson::Standard => Self::Standard,
            TierJson::Full => Self::Full,
        }
    }
}

impl From<Tier> for TierJson {
    fn from(value: Tier) -> Self {
        match value {
            Tier::Light => Self::Light,
            Tier::Standard => Self::Standard,
            Tier::Full => Self::Full,
        }
    }
}
