//! Sends the spans of turns to an OpenTelemetry collector: OTLP over HTTP, in JSON. Never in the way: a
//! collector that is slow or dead costs spans, not time.

mod collector;
mod encode;
mod exporter;
mod limits;
mod queue;
mod send;

pub use collector::{Collector, ServiceResource, parse_pairs};
pub use exporter::OtlpExporter;
