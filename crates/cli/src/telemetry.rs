//! Whether this process sends spans, and where to: `[telemetry]` decides, and if it is on, OpenTelemetry's own
//! variables give the rest. Sends nothing itself.

use std::sync::Arc;

use attache_core::ports::telemetry::ContentPolicy;
use attache_core::redact::Redactor;
use attache_telemetry::{Collector, OtlpExporter, ServiceResource, parse_pairs};

use crate::config::{HeaderPiece, header_pieces};
use crate::setup::Sources;

/// Where collectors listen by default.
const USUAL_COLLECTOR: &str = "http://127.0.0.1:4318";

pub(crate) enum TelemetrySetup {
    NotWanted,
    /// `OTEL_SDK_DISABLED` is set.
    Disabled,
    Ready(Collector),
}

/// Where spans would go. The error says what is wrong, without any values.
pub(crate) fn telemetry_setup(sources: &Sources) -> Result<TelemetrySetup, String> {
    let settings = &sources.config.telemetry;
    if !settings.is_wanted() {
        return Ok(TelemetrySetup::NotWanted);
    }
    if variable(sources, "OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
        return Ok(TelemetrySetup::Disabled);
    }
    let stated = settings.endpoint.as_ref();
    let mut collector = match stated {
        Some(endpoint) => Collector::at(endpoint.value.as_str()).map_err(|error| error.to_string())?,
        None => collector_of_variables(sources)?,
    };
    for (name, value) in settings.headers.iter().flat_map(|headers| &headers.value) {
        let value = filled_in(sources, value).map_err(|why| format!("the header {name}: {why}"))?;
        collector = collector.with_header(name, &value).map_err(|error| error.to_string())?;
    }
    Ok(TelemetrySetup::Ready(collector))
}

/// The exporter for this process's spans; `None` if they are off or the setup failed.
pub(crate) fn exporter(sources: &Sources) -> Option<Arc<OtlpExporter>> {
    let collector = match telemetry_setup(sources) {
        Ok(TelemetrySetup::Ready(collector)) => collector,
        Ok(TelemetrySetup::NotWanted | TelemetrySetup::Disabled) => return None,
        Err(why) => {
            sources.troubles.report("There is no telemetry", why);
            return None;
        }
    };
    let content = match sources.config.telemetry.sends_content() {
        true => ContentPolicy::Sent,
        false => ContentPolicy::Withheld,
    };
    let redactor = Redactor::new(sources.dirs.home.as_deref());
    Some(Arc::new(OtlpExporter::new(collector, resource(sources), content, redactor)))
}

/// Sends the variables' headers only to the variables' address: one backend must not see another's key.
fn collector_of_variables(sources: &Sources) -> Result<Collector, String> {
    let named = |name: &'static str| variable(sources, name).map(|text| (name, text));
    let exactly = named("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let (name, made) = match (exactly, named("OTEL_EXPORTER_OTLP_ENDPOINT")) {
        (Some((name, address)), _) => (name, Collector::exactly(&address)),
        (None, Some((name, address))) => (name, Collector::at(&address)),
        (None, None) => ("the usual address", Collector::at(USUAL_COLLECTOR)),
    };
    let mut collector = made.map_err(|error| format!("{name}: {error}"))?;
    for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"] {
        for (header, value) in parse_pairs(&variable(sources, name).unwrap_or_default()) {
            collector = collector.with_header(&header, &value).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    Ok(collector)
}

fn resource(sources: &Sources) -> ServiceResource {
    let attributes = parse_pairs(&variable(sources, "OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
    let stated = sources.config.telemetry.service_name.as_ref().map(|name| name.value.clone());
    let among = || attributes.iter().find(|(key, _)| key == "service.name").map(|(_, name)| name.clone());
    let service_name = stated.or_else(|| variable(sources, "OTEL_SERVICE_NAME")).or_else(among);
    ServiceResource {
        service_name: service_name.unwrap_or_else(|| "attache".to_owned()),
        service_version: env!("CARGO_PKG_VERSION"),
        attributes,
    }
}

fn filled_in(sources: &Sources, value: &str) -> Result<String, String> {
    let mut text = String::new();
    for piece in header_pieces(value).ok_or("`${` must be followed by the name of a variable and `}`")? {
        match piece {
            HeaderPiece::Text(plain) => text.push_str(plain),
            HeaderPiece::Variable(name) => {
                let held = variable(sources, name);
                text.push_str(
                    &held.ok_or_else(|| format!("{name} is not set in the environment of attache"))?,
                );
            }
        }
    }
    Ok(text)
}

fn variable(sources: &Sources, name: &str) -> Option<String> {
    sources.credentials.variable(name).map(|held| held.expose().to_owned())
}
