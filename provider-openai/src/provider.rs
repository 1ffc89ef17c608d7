//! A server: its catalogue, its models, and whether it can be used.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method};
use throughline_core::chat::ModelInfo;
use throughline_core::ports::{ChatModel, ChatProvider};
use throughline_core::{Error, ErrorKind, Result};

use crate::catalogue::{find, has_responses_only, merged};
use crate::chat::{Dialect, OpenAiModel};
use crate::errors::{ErrorBody, Origin, RequestedModel};
use crate::settings::{Api, Settings};
use crate::transport::{Call, JSON, Transport, collect};

/// A check is asked for by a person who waits.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

/// OpenAI, or a server that speaks its API. Clones share connections and the circuit breaker.
#[derive(Clone)]
pub struct OpenAi {
    pub(crate) transport: Arc<Transport>,
    models: Arc<[ModelInfo]>,
    api: Api,
    keep_threads: bool,
}

impl OpenAi {
    /// A server that is not called yet.
    ///
    /// # Errors
    /// `InvalidInput` that names the setting that is wrong; `Unavailable` where this system has no root certificates.
    pub fn new(settings: Settings) -> Result<Self> {
        let transport = Arc::new(Transport::new(&settings)?);
        let is_openai = transport.endpoint().is_openai;
        Ok(Self {
            transport,
            models: merged(settings.models).into(),
            api: settings.api,
            keep_threads: settings.keep_threads.unwrap_or(is_openai),
        })
    }

    /// A model of the catalogue, or a dated snapshot of one.
    ///
    /// # Errors
    /// `NotFound` that lists the models that there are.
    pub fn require_model(&self, id: &str) -> Result<Arc<dyn ChatModel>> {
        let unknown = || {
            let known = self.ids().join(", ");
            Error::not_found(format!(
                "`providers.openai` has no model `{id}`: choose one of {known}, or add it to \
                 `providers.openai.models`"
            ))
        };
        self.model(id).ok_or_else(unknown)
    }

    /// Whether calls can be made at all; it asks nobody.
    ///
    /// # Errors
    /// `Unauthenticated`, naming the variable to set, where OpenAI's own server has no key.
    pub fn require_key(&self) -> Result<()> {
        self.transport.require_key(&self.transport.origin("require_key", None))
    }

    fn ids(&self) -> Vec<String> {
        self.models.iter().map(|model| model.id.clone()).collect()
    }

    pub(crate) fn requested(
        &self,
        id: &str,
        window: Option<u32>,
        known: Vec<String>,
    ) -> Arc<RequestedModel> {
        Arc::new(RequestedModel { id: id.to_owned(), window, known })
    }

    fn dialect(&self, id: &str) -> Dialect {
        match self.api {
            Api::Responses => Dialect::Responses { keep: self.keep_threads },
            Api::ChatCompletions if has_responses_only(id) => Dialect::Responses { keep: false },
            Api::ChatCompletions => {
                Dialect::Completions { openai: self.transport.endpoint().is_openai }
            }
        }
    }
}

#[async_trait]
impl ChatProvider for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn models(&self) -> &[ModelInfo] {
        &self.models
    }

    fn model(&self, id: &str) -> Option<Arc<dyn ChatModel>> {
        let info = find(&self.models, id)?;
        let requested = self.requested(id, Some(info.window), self.ids());
        let dialect = self.dialect(id);
        Some(Arc::new(OpenAiModel {
            info,
            dialect,
            transport: Arc::clone(&self.transport),
            requested,
        }))
    }

    async fn check(&self) -> Result<()> {
        let origin: Origin = self.transport.origin("check", None);
        let call = Call {
            method: Method::GET,
            path: "/models".to_owned(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            accept: JSON,
            any_status: true,
            may_pause: false,
            origin: origin.clone(),
        };
        let answer = self.transport.send_within(&call, CHECK_TIMEOUT).await?;
        let status = answer.status;
        // Some servers have no list of models; that they say so is enough.
        if status.is_success() || matches!(status.as_u16(), 404 | 405 | 501) {
            return collect(answer.body).await.map(|_| ());
        }
        let body = collect(answer.body).await.unwrap_or_default();
        let error = origin.reported(Some(status.as_u16()), &ErrorBody::parse(&body));
        // Asking for the list of models cannot be wrong.
        if error.kind() == ErrorKind::InvalidInput {
            return Err(origin.unreadable().with_source(error));
        }
        Err(error)
    }
}

/// Without the key.
impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi")
            .field("server", &self.transport.endpoint().base)
            .field("api", &self.api)
            .field("models", &self.ids())
            .finish_non_exhaustive()
    }
}
