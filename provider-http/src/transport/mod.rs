//! The connection to a server: deadlines, retries, the circuit breaker and the key.

mod body;
mod breaker;
mod key;
mod retry;

use std::sync::Arc;
use std::time::Duration;

use backon::Retryable as _;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use reqwest::redirect::Policy;
use serde::Serialize;
use serde_json::{Value, json};
use throughline_core::{Error, ErrorKind, Result};
use tokio::time::{Instant, timeout_at};

use crate::errors::{Origin, Problem, RequestedModel, ServerError};
use crate::profile::ApiProfile;
use crate::settings::{BreakerSettings, ConnectionSettings, Endpoint};

pub use body::{Body, collect};
pub(crate) use key::ApiKey;
pub use retry::wait_of;

pub(crate) use body::SharedPermit;

use body::{Beginning, Limits};
use breaker::Breaker;
use retry::{RetryPolicy, retry_after};

/// The media type of whole answers.
pub const JSON: &str = "application/json";
/// The media type of streams of events.
pub const STREAM: &str = "text/event-stream";

/// How long a check of a server may take: a person waits for it.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

/// How much of an error's body is read, and for how long.
const MAX_ERROR_BYTES: usize = 64 << 10;
const MAX_ERROR_TIME: Duration = Duration::from_secs(5);
/// Longer timeouts would overflow `Instant`.
const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Less than the minute after which servers and proxies close idle connections.
const POOL_IDLE: Duration = Duration::from_secs(30);

/// A server that is called.
#[derive(Debug)]
pub struct Transport {
    client: reqwest::Client,
    profile: &'static ApiProfile,
    endpoint: Endpoint,
    server: Arc<str>,
    key: ApiKey,
    request_timeout: Duration,
    idle_timeout: Duration,
    retries: RetryPolicy,
    breaker: Arc<Breaker>,
}

/// How long a call may take, with its retries and its stream.
#[derive(Debug, Clone, Copy)]
pub struct TimeLimit {
    /// How long.
    pub after: Duration,
    /// The setting that says so, in the table of the provider's settings.
    pub setting: Option<&'static str>,
}

/// What is sent.
#[derive(Debug, Clone)]
pub struct Call {
    /// How.
    pub method: Method,
    /// Behind the base URL, with a slash at its beginning.
    pub path: String,
    /// Headers beside that of the key.
    pub headers: HeaderMap,
    /// JSON, if the headers name no other media type; or nothing.
    pub body: Bytes,
    /// The media type to answer with.
    pub accept: &'static str,
    /// Whether an answer with an error status is passed on as it is, unless it is about the key. Then the call is sent
    /// again only where no connection could be made.
    pub any_status: bool,
    /// Whether a stream may pause for as long as the call may take.
    pub may_pause: bool,
    /// How long it may take, where that is not the timeout of the connection.
    pub timeout: Option<TimeLimit>,
    /// What its errors name.
    pub origin: Origin,
}

impl Call {
    /// A call that only reads.
    pub fn get(path: impl Into<String>, origin: Origin) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            accept: JSON,
            any_status: false,
            may_pause: false,
            timeout: None,
            origin,
        }
    }

    /// A call that sends JSON.
    ///
    /// # Errors
    /// `Internal` where it cannot be written, which none of the adapters' types causes.
    pub fn post(path: impl Into<String>, body: &impl Serialize, origin: Origin) -> Result<Self> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::internal("a request cannot be written").with_source(error))?;
        Ok(Self { method: Method::POST, body: body.into(), ..Self::get(path, origin) })
    }
}

/// An answer whose body is still to come.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Body,
    pub(crate) permit: SharedPermit,
}

/// Why an attempt failed, and whether to make another.
struct Failure {
    error: Error,
    again: bool,
    retry_after: Option<Duration>,
}

impl Failure {
    fn last(error: Error) -> Self {
        Self { error, again: false, retry_after: None }
    }
}

impl Transport {
    /// # Errors
    /// `InvalidInput` that names the setting that is wrong; `Unavailable` where TLS has no certificates.
    pub fn new(settings: &ConnectionSettings, profile: &'static ApiProfile) -> Result<Self> {
        let endpoint = Endpoint::parse(&settings.base_url, profile)?;
        let key = ApiKey::new(settings.api_key.clone(), profile)?;
        // Fails where the program has chosen a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder();
        let client = if endpoint.base.starts_with("https:") {
            client
        } else {
            // A server in the same network needs no certificates, and a small container may have none.
            client.tls_certs_only([])
        };
        let client = client
            .connect_timeout(settings.connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            // A peer that is gone is noticed, however long an answer may take.
            .tcp_keepalive(POOL_IDLE)
            // The key goes to the configured server and to no other.
            .redirect(Policy::none())
            .user_agent(concat!("throughline/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                let sentence = format!(
                    "TLS to `{}.base_url` cannot be set up: install the root certificates of this \
                     system, or name a file of them in SSL_CERT_FILE",
                    profile.settings
                );
                Error::new(ErrorKind::Unavailable, sentence).with_source(error.without_url())
            })?;
        Ok(Self {
            client,
            profile,
            server: endpoint.label(profile).into(),
            endpoint,
            key,
            request_timeout: settings.request_timeout.min(MAX_TIME),
            idle_timeout: settings.idle_timeout.min(MAX_TIME),
            retries: RetryPolicy {
                max_retries: settings.max_retries,
                first_delay: settings.first_retry_delay,
                max_retry_after: settings.max_retry_after,
            },
            breaker: Breaker::new(BreakerSettings {
                open_for: settings.breaker.open_for.min(MAX_TIME),
                ..settings.breaker
            }),
        })
    }

    /// Where it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// What the errors of an operation name.
    pub fn origin(&self, operation: &'static str, model: Option<Arc<RequestedModel>>) -> Origin {
        Origin {
            profile: self.profile,
            server: Arc::clone(&self.server),
            operation,
            model,
            key: self.key.clone(),
        }
    }

    /// The provider's own service does nothing without a key; other servers may.
    ///
    /// # Errors
    /// `Unauthenticated`, naming the variable to set.
    pub fn require_key(&self, origin: &Origin) -> Result<()> {
        if self.endpoint.is_own && !self.key.is_given() {
            return Err(origin.unauthenticated());
        }
        Ok(())
    }

    /// Sends a call, again where that may help, and gives the answer with its status and headers.
    ///
    /// # Errors
    /// `Unauthenticated`, `RateLimited` and `Unavailable`; what the server reports, unless any status is taken.
    pub async fn send(&self, call: &Call) -> Result<Answer> {
        self.require_key(&call.origin)?;
        let of_connection = TimeLimit { after: self.request_timeout, setting: Some("timeout_ms") };
        let whole = call.timeout.unwrap_or(of_connection);
        let deadline = Instant::now() + whole.after.min(MAX_TIME);
        let limits = Limits { deadline, whole, idle: self.idle_timeout };
        let left = || deadline.saturating_duration_since(Instant::now());
        (|| self.attempt(call, limits))
            .retry(self.retries.backoff())
            .sleep(tokio::time::sleep)
            .when(|failure: &Failure| failure.again)
            .adjust(|failure, backoff| {
                let wait = self.retries.wait(backoff?, failure.retry_after, left())?;
                // The error that opened the circuit says more than that it is open.
                (!self.breaker.is_open(Instant::now() + wait)).then_some(wait)
            })
            .notify(|failure, wait| {
                tracing::debug!(
                    server = &*self.server,
                    operation = call.origin.operation,
                    wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    error = %failure.error,
                    "a call failed and is sent again"
                );
            })
            .await
            .map_err(|failure| failure.error)
    }

    /// The body of an answer that is passed on to someone who must not have the key.
    pub fn without_key(&self, body: Body) -> Body {
        self.key.redact_body(body)
    }

    async fn attempt(&self, call: &Call, limits: Limits) -> Result<Answer, Failure> {
        let refused = |wait| Failure::last(call.origin.circuit_open(wait));
        let mut permit = self.breaker.enter(Instant::now()).map_err(refused)?;
        let mut response = match timeout_at(limits.deadline, self.request(call).send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                permit.failed();
                // No byte of an answer has come: nothing was found at the address, or the connection was lost.
                let again = error.is_connect() || error.is_request() && !call.any_status;
                let error = call.origin.unreachable(error);
                return Err(Failure { error, again, retry_after: None });
            }
            Err(_) => {
                permit.failed();
                return Err(Failure::last(call.origin.timed_out(limits.whole)));
            }
        };
        let mut begun = Beginning::default();
        if response.status().is_success() {
            permit.succeeded();
        } else {
            let until = limits.deadline.min(Instant::now() + MAX_ERROR_TIME);
            begun = beginning(&mut response, until).await;
            let status = response.status().as_u16();
            let said = (self.profile.read_error)(Some(status), &error_body(&begun.bytes));
            if said.problem.is_server_failure() {
                permit.failed();
            } else {
                permit.succeeded();
            }
            // What a server says of a key repeats parts of it, so that is never passed on.
            if !call.any_status || said.problem == Problem::Key {
                return Err(self.failure(call, &response, &said));
            }
        }
        let (status, headers) = (response.status(), response.headers().clone());
        // A whole answer may be long in the making; pieces of a stream are not.
        let pauses = call.may_pause || !has_type(&headers, STREAM);
        let idle = if pauses { limits.whole.after } else { limits.idle };
        let (limits, permit) = (Limits { idle, ..limits }, SharedPermit::new(permit));
        let origin = call.origin.clone();
        let body = body::limited(begun, response, limits, permit.clone(), origin);
        Ok(Answer { status, headers, body, permit })
    }

    /// The failure that an error status means.
    fn failure(&self, call: &Call, response: &reqwest::Response, said: &ServerError) -> Failure {
        let retry_after = retry_after(response.headers()).or(said.retry_after);
        let error = call.origin.error_of(Some(response.status().as_u16()), said);
        let error = match retry_after {
            Some(wait) => error.with_retry_after(wait),
            None => error,
        };
        Failure { error, again: said.problem.is_transient() && !call.any_status, retry_after }
    }

    fn request(&self, call: &Call) -> reqwest::RequestBuilder {
        let url = format!("{}{}", self.endpoint.base, call.path);
        let mut headers = call.headers.clone();
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static(call.accept));
        if let Some(key) = self.key.header(self.profile.key_prefix) {
            headers.insert(HeaderName::from_static(self.profile.key_header), key);
        }
        let request = self.client.request(call.method.clone(), url);
        if call.body.is_empty() {
            return request.headers(headers);
        }
        headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static(JSON));
        request.headers(headers).body(call.body.clone())
    }

    /// Asks for a list, which costs nothing, within a time that a person waits. Servers other than the provider's own may
    /// have no list: then an empty request to `chat`, which costs nothing either, shows whether they have the API.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn check(&self, list: &str, chat: Option<&str>) -> Result<()> {
        let origin = self.origin("check", None);
        let Some((status, said)) = self.problem(Call::get(list, origin.clone())).await? else {
            return Ok(());
        };
        let has_no_list = matches!(status, 404 | 405 | 501) && !self.endpoint.is_own;
        if let (true, Some(chat)) = (has_no_list, chat) {
            let asked = self.problem(Call::post(chat, &json!({}), origin.clone())?).await?;
            return match asked {
                Some((status, said)) if said.problem == Problem::WrongAddress => {
                    Err(origin.error_of(Some(status), &said))
                }
                Some((status, said)) if said.problem.is_transient() => {
                    Err(origin.error_of(Some(status), &said))
                }
                // It read the request and refused it, so it has the API.
                _ => Ok(()),
            };
        }
        let error = origin.error_of(Some(status), &said);
        // Asking for a list cannot be wrong.
        if error.kind() == ErrorKind::InvalidInput {
            return Err(origin.unreadable().with_source(error));
        }
        Err(error)
    }

    /// Sends a call of a check: its status and what it reports, unless it succeeds.
    async fn problem(&self, call: Call) -> Result<Option<(u16, ServerError)>> {
        let timeout = Some(TimeLimit { after: CHECK_TIMEOUT, setting: None });
        let answer = self.send(&Call { any_status: true, timeout, ..call }).await?;
        if answer.status.is_success() {
            return collect(answer.body).await.map(|_| None);
        }
        let status = answer.status.as_u16();
        let body = collect(answer.body).await.unwrap_or_default();
        Ok(Some((status, (self.profile.read_error)(Some(status), &error_body(&body)))))
    }

    /// Sends a call and reads the JSON object that it is answered with.
    ///
    /// # Errors
    /// As [`Self::send`]; `Unavailable` for an answer that is not JSON, and the error that the answer holds instead.
    pub async fn json(&self, call: &Call) -> Result<Value> {
        let answer = self.send(call).await?;
        parse(&collect(answer.body).await?, &call.origin)
    }
}

/// JSON of an answer, unless it is that of an error.
pub(crate) fn parse(body: &[u8], origin: &Origin) -> Result<Value> {
    let value: Value =
        serde_json::from_slice(body).map_err(|error| origin.unreadable().with_source(error))?;
    if !value.is_object() {
        return Err(origin.unreadable());
    }
    if !value["error"].is_null() {
        return Err(origin.reported(None, &value));
    }
    Ok(value)
}

/// The body of an answer with an error status: JSON, or any text.
fn error_body(body: &[u8]) -> Value {
    let text = || Value::String(String::from_utf8_lossy(body).into_owned());
    serde_json::from_slice(body).unwrap_or_else(|_| text())
}

/// Whether an answer is of a media type.
pub(crate) fn has_type(headers: &HeaderMap, media_type: &str) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok());
    given.is_some_and(|given| given.trim_start().starts_with(media_type))
}

/// Whether a path may be appended to the base URL: each segment is a name, with no host, no `..` and no query.
#[must_use]
pub fn is_path(path: &str) -> bool {
    let is_name = |name: &str| {
        let allowed = |char: char| char.is_ascii_alphanumeric() || "-_.:".contains(char);
        !name.is_empty() && name.chars().all(allowed) && !name.chars().all(|char| char == '.')
    };
    path.strip_prefix('/').is_some_and(|names| names.split('/').all(is_name))
}

/// What comes of a body until then, up to a size.
async fn beginning(response: &mut reqwest::Response, until: Instant) -> Beginning {
    let mut begun = Beginning::default();
    while begun.bytes.len() < MAX_ERROR_BYTES {
        match timeout_at(until, response.chunk()).await {
            Ok(Ok(Some(piece))) => begun.bytes.extend_from_slice(&piece),
            Ok(Err(error)) => {
                begun.error = Some(error);
                break;
            }
            Ok(Ok(None)) | Err(_) => break,
        }
    }
    begun
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_paths_of_the_api_only() {
        for path in ["/chat/completions", "/embeddings", "/responses/resp_1/cancel"] {
            assert!(is_path(path), "{path}");
        }
        for path in
            ["", "/", "chat", "//there/x", "/../x", "/a/..", "/a?b", "/a#b", "/a b", "/%2e%2e"]
        {
            assert!(!is_path(path), "{path}");
        }
    }
}
