//! The form in which a file is uploaded.

use bytes::{Bytes, BytesMut};
use futures_util::TryStreamExt as _;
use http::HeaderValue;
use reqwest::multipart::{Form, Part};
use throughline_core::{Error, Result};

/// A day: the longest that a file which nobody deletes is kept.
const EXPIRES_AFTER_SECONDS: &str = "86400";

/// A form with a file, as bytes, so that it can be sent again.
pub(super) struct Upload {
    pub(super) body: Bytes,
    pub(super) content_type: HeaderValue,
}

impl Upload {
    /// The text as a file of this name, which has an ending that the server knows.
    pub(super) async fn of(name: String, text: String) -> Result<Self> {
        let form = Form::new()
            .text("purpose", "assistants")
            .text("expires_after[anchor]", "created_at")
            .text("expires_after[seconds]", EXPIRES_AFTER_SECONDS)
            .part("file", Part::text(text).file_name(name));
        let unwritten = |error: &dyn ToString| {
            Error::internal("a form cannot be written").with_source(error.to_string())
        };
        let content_type = format!("multipart/form-data; boundary={}", form.boundary());
        let content_type =
            HeaderValue::try_from(content_type).map_err(|error| unwritten(&error))?;
        let pieces = form.into_stream();
        let body: BytesMut = pieces
            .try_fold(BytesMut::new(), async |mut body, piece| {
                body.extend_from_slice(&piece);
                Ok(body)
            })
            .await
            .map_err(|error| unwritten(&error))?;
        Ok(Self { body: body.freeze(), content_type })
    }
}
