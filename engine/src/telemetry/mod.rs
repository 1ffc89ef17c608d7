//! What the process tells of itself while it works: its log and, with the feature `otel`, its spans.
//! Neither holds contents.

#[cfg(feature = "otel")]
mod spans;

use throughline_core::{Error, Result};
use tracing::{Level, Metadata, Span, Subscriber};
use tracing_subscriber::filter::{FilterExt, LevelFilter, filter_fn};
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

/// Who asks for a driver by name gets its warnings, which repeat what our errors say.
const QUIET: (&str, &str) = ("sqlx", "sqlx=error,sqlx_core=error");
/// Of other libraries: their details are statements with values, headers and frames.
const MOST_OF_OTHERS: Level = Level::INFO;
/// What rmcp tells of messages is what callers sent.
const MOST_OF_RMCP: Level = Level::ERROR;

/// Whether what is told cannot hold contents, whatever `log.level` asks for.
fn is_without_contents(told: &Metadata<'_>) -> bool {
    let most = match told.target().split("::").next() {
        Some(own) if own.starts_with("throughline") => return true,
        Some("rmcp") => MOST_OF_RMCP,
        _ => MOST_OF_OTHERS,
    };
    *told.level() <= most
}

/// Logs go to standard error.
fn log<S>(config: &LogConfig) -> Result<impl Layer<S> + Send + Sync + use<S>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let (driver, quiet) = QUIET;
    let level = match config.level.contains(driver) {
        true => config.level.clone(),
        false => format!("{},{quiet}", config.level),
    };
    let filter =
        EnvFilter::try_new(level).map_err(|error| Error::invalid(format!("log.level: {error}")))?;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match config.format {
        LogFormat::Human => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // Two filters have a bound only where both have one; without it every span would be made.
    let contents = filter_fn(is_without_contents).with_max_level_hint(LevelFilter::TRACE);
    Ok(lines.with_filter(filter.and(contents)))
}

#[cfg(all(test, feature = "otel"))]
mod tests;
