//! Which provider a request in OpenAI's form goes to.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use throughline_core::chat::ModelPrice;
use throughline_core::{Error, Result};

use super::CHAT;
use crate::app::App;
use crate::compose::{ChatModels, CompatibleApi};
use crate::identity::Identity;

/// The provider of Google's models.
const GEMINI: &str = "gemini";

/// Where a request goes.
pub(super) struct Route {
    pub(super) api: Arc<dyn CompatibleApi>,
    pub(super) provider: &'static str,
    /// The model as its provider calls it; none where the provider chooses.
    pub(super) id: Option<String>,
    /// What the model costs, where that is known.
    pub(super) price: Option<ModelPrice>,
}

impl App {
    /// The provider of the model that a request names, whose name is put in as its provider calls it. A chat without a
    /// model has that of the tenant, or the configured one; an embedding without one has the provider's.
    ///
    /// # Errors
    /// `InvalidInput` where the provider is not configured; those of the store.
    pub(super) async fn route(
        &self,
        caller: &Identity,
        path: &str,
        body: &mut Map<String, Value>,
    ) -> Result<Route> {
        let named = match body.get("model").and_then(Value::as_str) {
            Some(name) => Some(name.to_owned()),
            None if path == CHAT => self.usual_model(caller).await?,
            None => None,
        };
        let route = self.engine.models.route(named.as_deref())?;
        if let Some(id) = &route.id {
            body.insert("model".to_owned(), json!(id));
        }
        Ok(route)
    }
}

impl ChatModels {
    /// Where requests for a model go. A model that no catalogue has goes to the provider that its name begins with, as
    /// `provider:model`, or to Google's for a name such as `gemini-embedding-001`, else to OpenAI's.
    fn route(&self, named: Option<&str>) -> Result<Route> {
        let of = |name: &str| self.compatible.iter().find(|(provider, _)| *provider == name);
        let to = |(provider, api): &(&'static str, Arc<dyn CompatibleApi>), id: Option<&str>| {
            let info = id.and_then(|id| self.find(&format!("{provider}:{id}")).ok());
            let price = info.and_then(|chosen| chosen.info.price);
            let id = id.map(str::to_owned);
            Route { api: Arc::clone(api), provider, id, price }
        };
        let first = self.compatible.first().ok_or_else(|| {
            Error::invalid(
                "no provider with OpenAI's API is configured: set OPENAI_API_KEY or GEMINI_API_KEY, or \
                 `providers.openai.base_url` for a server that needs no key",
            )
        })?;
        let Some(name) = named else { return Ok(to(first, None)) };
        if let Some((provider, id)) = name.split_once(':') {
            if let Some(provider) = of(provider) {
                return Ok(to(provider, Some(id)));
            }
            let missing = |what: &&&str| what.split(':').next() == Some(provider);
            if let Some(what) = self.missing.iter().find(missing) {
                return Err(Error::invalid(format!(
                    "the provider of `{name}` is not configured: {what}"
                )));
            }
        }
        let known = self.find(name).ok();
        let provider = match &known {
            Some(chosen) => of(chosen.provider),
            None if is_googles(name) => of(GEMINI),
            None => None,
        };
        Ok(to(provider.unwrap_or(first), Some(name)))
    }
}

/// Whether a name is one that Google gives its models.
fn is_googles(name: &str) -> bool {
    name.strip_prefix("models/").unwrap_or(name).starts_with("gemini-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_names_of_google() {
        for (name, expected) in [
            ("gemini-embedding-001", true),
            ("models/gemini-embedding-001", true),
            ("text-embedding-3-small", false),
            ("gemini", false),
            ("my-gemini-1", false),
        ] {
            assert_eq!(is_googles(name), expected, "{name}");
        }
    }
}
