//! Spans on their way to an OpenTelemetry collector: OTLP as protobuf over HTTP, in batches, by a thread
//! of its own, so that nothing waits for the collector.

use std::time::Duration;

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use reqwest::blocking::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use throughline_core::{Error, Result};
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::registry::LookupSpan;

use crate::config::OtelConfig;

/// How long a batch may take.
const SEND: Duration = Duration::from_secs(5);
/// How long the end of the process waits for the last ones.
const LAST: Duration = Duration::from_secs(5);
/// The header that names a caller's span.
const TRACEPARENT: &str = "traceparent";

/// The way to the collector; when it is dropped, what waits is sent.
pub(super) struct Spans(SdkTracerProvider);

impl Drop for Spans {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST) {
            tracing::warn!("the last spans were not sent: {error}");
        }
    }
}

/// The layer that creates spans, and their exporter; `None` without a collector.
pub(super) fn start<S>(config: &OtelConfig) -> Result<Option<(impl Layer<S> + use<S>, Spans)>>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    if config.endpoint.is_empty() {
        return Ok(None);
    }
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client(config)?)
        .with_endpoint(format!("{}/v1/traces", config.endpoint.trim_end_matches('/')))
        .with_timeout(SEND)
        .build()
        .map_err(|error| Error::invalid(format!("otel.endpoint: {error}")))?;
    let resource = Resource::builder()
        .with_service_name(config.service_name.clone())
        .with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sample_ratio)));
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .with_sampler(sampler)
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("throughline"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(filter_fn(is_ours).and(LevelFilter::DEBUG));
    Ok(Some((layer, Spans(provider))))
}

/// Spans alone, and none of a library: drivers put statements into theirs, and events are sentences
/// whose words may be a caller's.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with("throughline")
}

fn client(config: &OtelConfig) -> Result<Client> {
    // An already installed one is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut headers = HeaderMap::new();
    for (name, value) in config.header_pairs()? {
        let header = (name.parse::<HeaderName>().ok()).zip(HeaderValue::from_str(value).ok());
        let (name, mut value) = header.ok_or_else(|| {
            Error::invalid(format!(
                "configuration key `otel.headers`: `{name}` is not a valid header"
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    // A redirect would take the headers elsewhere.
    Client::builder()
        .default_headers(headers)
        .redirect(Policy::none())
        .timeout(SEND)
        .build()
        .map_err(|error| {
            Error::internal("the HTTP client for spans cannot be set up").with_source(error)
        })
}

/// The one header that is read of a request: `tracestate` is free text, and is not passed on.
struct Parent<'h>(Option<&'h str>);

impl Extractor for Parent<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.filter(|_| key == TRACEPARENT)
    }

    fn keys(&self) -> Vec<&str> {
        vec![TRACEPARENT]
    }
}

pub(super) fn set_parent<'h>(span: &Span, header: impl Fn(&str) -> Option<&'h str>) {
    let parent = TraceContextPropagator::new().extract(&Parent(header(TRACEPARENT)));
    // A span that is not sent needs none.
    let _ = span.set_parent(parent);
}
