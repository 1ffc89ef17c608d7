//! What the process tells of itself while it works: its log and, with the feature `otel`, its spans.
//! Neither holds contents.

#[cfg(feature = "otel")]
mod spans;

use throughline_core::{Error, Result};
use tracing::{Span, Subscriber};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::{Config, LogConfig, LogFormat};

/// What is held while the process works: when it is dropped, the spans that wait are sent.
#[must_use = "spans are sent as long as this is held"]
pub struct Telemetry {
    #[cfg(feature = "otel")]
    _spans: Option<spans::Spans>,
}

/// Starts the log of the process and, where a collector is configured, the sending of its spans.
///
/// # Errors
/// `InvalidInput` that names the setting.
pub fn start(config: &Config) -> Result<Telemetry> {
    let (subscriber, telemetry) = subscriber(config)?;
    subscriber
        .try_init()
        .map_err(|error| Error::internal("the log was started twice").with_source(error))?;
    Ok(telemetry)
}

/// Makes the caller's span, which its header `traceparent` (W3C) names, the parent of a request's. The
/// request's is not entered yet. Without such a header, or without the feature, it begins a trace.
pub fn set_parent<'h>(span: &Span, header: impl Fn(&str) -> Option<&'h str>) {
    #[cfg(feature = "otel")]
    spans::set_parent(span, header);
    #[cfg(not(feature = "otel"))]
    let _ = (span, header);
}

fn subscriber(config: &Config) -> Result<(impl Subscriber + Send + Sync + use<>, Telemetry)> {
    let subscriber = tracing_subscriber::registry().with(log(&config.log)?);
    #[cfg(feature = "otel")]
    {
        let (layer, spans) = spans::start(&config.otel)?.unzip();
        Ok((subscriber.with(layer), Telemetry { _spans: spans }))
    }
    #[cfg(not(feature = "otel"))]
    Ok((subscriber, Telemetry {}))
}

/// Who asks for these by name gets them. A driver's warnings repeat what our errors say, and what rmcp tells of
/// messages is what callers sent.
const QUIET: [(&str, &str); 2] = [("sqlx", "sqlx=error,sqlx_core=error"), ("rmcp", "rmcp=error")];

/// Logs go to standard error.
fn log<S>(config: &LogConfig) -> Result<impl Layer<S> + Send + Sync + use<S>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let level = QUIET
        .iter()
        .filter(|(name, _)| !config.level.contains(name))
        .fold(config.level.clone(), |level, (_, quiet)| format!("{level},{quiet}"));
    let filter =
        EnvFilter::try_new(level).map_err(|error| Error::invalid(format!("log.level: {error}")))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match config.format {
        LogFormat::Human => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    Ok(lines.with_filter(filter))
}

#[cfg(all(test, feature = "otel"))]
mod tests;
