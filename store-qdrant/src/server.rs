//! The connection: every call has a timeout, and every failure is mapped.

use std::time::Duration;

use qdrant_client::qdrant::{PointsOperationResponse, UpdateStatus};
use qdrant_client::{Qdrant, QdrantError};
use throughline_core::{Error, ErrorKind, Result};

use crate::errors::{driver_error, timed_out};
use crate::options::QdrantOptions;

/// A client that is made without a server, and connects with its first call.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) client: Qdrant,
    patience: Duration,
}

impl Server {
    pub(crate) fn new(options: &QdrantOptions) -> Result<Self> {
        options.check()?;
        let client = Qdrant::from_url(&options.url)
            .api_key(options.api_key.clone())
            .timeout(options.timeout)
            .connect_timeout(options.connect_timeout)
            // It would wait for a server, and print to standard output, where MCP speaks.
            .skip_compatibility_check()
            .build()
            .map_err(|error| Error::invalid("`qdrant.url` is not a URL").with_source(error))?;
        Ok(Self { client, patience: options.connect_timeout.saturating_add(options.timeout) })
    }

    /// Waits for an answer. The driver tries a call again on a new connection, and its timeouts
    /// start over then: ours counts from the first word.
    pub(crate) async fn call<T>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, QdrantError>> + Send,
    ) -> Result<T> {
        match tokio::time::timeout(self.patience, answer).await {
            Ok(answer) => answer.map_err(|error| driver_error(error, operation)),
            Err(_) => Err(timed_out(operation)),
        }
    }

    /// Waits for a change of points to be there for every later call.
    pub(crate) async fn change(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<PointsOperationResponse, QdrantError>> + Send,
    ) -> Result<()> {
        let answer = self.call(operation, answer).await?;
        let status = answer.result.map(|result| result.status());
        if status == Some(UpdateStatus::Completed) {
            return Ok(());
        }
        // It is in the log of the server, which has not got so far: what follows could overtake it.
        Err(Error::new(
            ErrorKind::Unavailable,
            "Qdrant has accepted a change but not applied it yet: try again later",
        )
        .during(operation))
    }
}
