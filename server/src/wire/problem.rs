//! Failures as `application/problem+json` (RFC 9457), by one table from kinds to statuses.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use throughline_core::{Error, ErrorKind};
use throughline_engine::app::failure;
use utoipa::ToSchema;

use super::request::request_id;

/// The default `Retry-After`.
const WAIT: Duration = Duration::from_secs(1);

/// What went wrong, and what to do about it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "about:blank",
    "title": "Not Found",
    "status": 404,
    "code": "not_found",
    "detail": "there is no session with this id: appending its first message creates it",
    "request_id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11"
}))]
pub(crate) struct Problem {
    /// Always `about:blank`; see `code`.
    r#type: &'static str,
    /// The name of the status.
    title: String,
    /// The HTTP status.
    status: u16,
    /// The kind of failure; stable, for programs.
    code: String,
    /// One sentence: what is wrong and what to do.
    detail: String,
    /// The id of the request in the server's log.
    request_id: String,
}

impl Problem {
    /// The problem that an error of this request is told as.
    pub(crate) fn of(
        status: StatusCode,
        error: &Error,
        detail: String,
        request_id: String,
    ) -> Self {
        Self {
            r#type: "about:blank",
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code: error.kind().code().to_owned(),
            detail,
            request_id,
        }
    }

    /// An error that comes in a stream, after the status was sent.
    pub(crate) fn in_stream(error: &Error, request_id: String) -> Self {
        Self::of(status(error.kind()), error, failure::tell(error), request_id)
    }
}

/// The one table from kinds of errors to statuses.
pub(crate) fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidInput => StatusCode::BAD_REQUEST,
        ErrorKind::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::BudgetTooSmall | ErrorKind::Declined => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable | ErrorKind::ReadOnly | ErrorKind::SchemaTooNew => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorKind::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A failure on its way to the caller.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    error: Error,
}

impl Failure {
    /// The answer, with the type and text of a body that says it in the form of an interface.
    pub(crate) fn answer(
        self,
        form: impl FnOnce(StatusCode, &Error, String) -> (&'static str, String),
    ) -> Response {
        let Self { status, error } = self;
        let (content_type, body) = form(status, &error, failure::tell(&error));
        let mut response = (status, [(header::CONTENT_TYPE, content_type)], body).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            // The rest of the body is not read: another request on this connection would be lost.
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let wait = error.retry_after().or(error.kind().is_retryable().then_some(WAIT));
        if let Some(wait) = wait {
            // Whole seconds, and never too few.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }

    /// A failure of HTTP itself, which has a status that no kind has.
    pub(crate) fn of_status(status: StatusCode, error: Error) -> Self {
        Self { status, error }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { status: status(error.kind()), error }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.answer(|status, error, detail| {
            let problem = Problem::of(status, error, detail, request_id());
            ("application/problem+json", serde_json::to_string(&problem).unwrap_or_default())
        })
    }
}
