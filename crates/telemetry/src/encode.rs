//! Spans as OTLP has them in JSON: ids in hex, enums as numbers, 64-bit integers as strings. What may hold a
//! secret goes through the redactor here, and nowhere else does content leave the process.

use attache_core::ports::telemetry::{
    ContentPolicy, FinishedSpan, SpanContext, SpanKind, SpanStatus, SpanValue,
};
use attache_core::redact::Redactor;
use serde_json::{Map, Value, json};

use crate::collector::ServiceResource;

/// How spans are encoded: whose they are, and how much of their content is sent.
#[derive(Debug)]
pub(crate) struct OtlpEncoder {
    pub(crate) resource: ServiceResource,
    pub(crate) content: ContentPolicy,
    pub(crate) redactor: Redactor,
}

const SPAN_KIND_INTERNAL: u8 = 1;
const SPAN_KIND_CLIENT: u8 = 3;
const STATUS_CODE_ERROR: u8 = 2;

impl OtlpEncoder {
    /// The body of one request.
    pub(crate) fn body(&self, spans: &[FinishedSpan]) -> Vec<u8> {
        let spans: Vec<Value> = spans.iter().map(|span| self.span(span)).collect();
        let scope = json!({ "name": "attache", "version": self.resource.service_version });
        let body = json!({
            "resourceSpans": [{
                "resource": { "attributes": self.resource() },
                "scopeSpans": [{ "scope": scope, "spans": spans }],
            }],
        });
        body.to_string().into_bytes()
    }

    fn resource(&self) -> Vec<Value> {
        let ServiceResource { service_name, service_version, attributes } = &self.resource;
        let own = [("service.name", service_name.as_str()), ("service.version", service_version)];
        let named = |key: &str| own.iter().any(|(own, _)| *own == key);
        let more = attributes.iter().filter(|(key, _)| !named(key));
        let all = own.into_iter().chain(more.map(|(key, value)| (key.as_str(), value.as_str())));
        all.map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } })).collect()
    }

    fn span(&self, span: &FinishedSpan) -> Value {
        let kind = match span.kind {
            SpanKind::Internal => SPAN_KIND_INTERNAL,
            SpanKind::Client => SPAN_KIND_CLIENT,
        };
        let mut fields = Map::new();
        fields.insert("traceId".into(), json!(span.context.trace_id.to_string()));
        fields.insert("spanId".into(), json!(span.context.span_id.to_string()));
        if let Some(parent) = span.parent {
            fields.insert("parentSpanId".into(), json!(parent.to_string()));
        }
        if !span.links.is_empty() {
            let link = |link: &SpanContext| json!({ "traceId": link.trace_id.to_string(), "spanId": link.span_id.to_string() });
            fields.insert("links".into(), span.links.iter().map(link).collect());
        }
        fields.insert("name".into(), json!(span.name));
        fields.insert("kind".into(), json!(kind));
        fields.insert("startTimeUnixNano".into(), nanoseconds(span.started_at));
        fields.insert("endTimeUnixNano".into(), nanoseconds(span.ended_at));
        let attributes = span.attributes.iter().filter_map(|(key, value)| {
            let value = self.value(value)?;
            Some(json!({ "key": key, "value": value }))
        });
        fields.insert("attributes".into(), attributes.collect());
        if let SpanStatus::Failed { words } = &span.status {
            let mut status = json!({ "code": STATUS_CODE_ERROR });
            if let (Some(words), ContentPolicy::Sent) = (words, self.content) {
                status["message"] = json!(self.redactor.text(words));
            }
            fields.insert("status".into(), status);
        }
        Value::Object(fields)
    }

    /// `None` for what is not to leave.
    fn value(&self, value: &SpanValue) -> Option<Value> {
        Some(match value {
            SpanValue::Text(text) => json!({ "stringValue": text }),
            SpanValue::Texts(texts) => {
                let values: Vec<Value> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
                json!({ "arrayValue": { "values": values } })
            }
            SpanValue::Integer(number) => json!({ "intValue": number.to_string() }),
            SpanValue::Number(number) => json!({ "doubleValue": number }),
            SpanValue::Flag(flag) => json!({ "boolValue": flag }),
            SpanValue::Content(content) => match self.content {
                ContentPolicy::Withheld => return None,
                ContentPolicy::Sent => json!({ "stringValue": self.redacted(content) }),
            },
        })
    }

    /// Backends show JSON in a text; few take structures as attributes.
    fn redacted(&self, content: &Value) -> String {
        match content {
            Value::String(text) => self.redactor.text(text),
            other => {
                let mut copy = other.clone();
                self.redactor.value(&mut copy);
                copy.to_string()
            }
        }
    }
}

fn nanoseconds(milliseconds: i64) -> Value {
    json!((i128::from(milliseconds.max(0)) * 1_000_000).to_string())
}

#[cfg(test)]
mod tests {
    use attache_core::ids::MessageId;
    use attache_core::ports::telemetry::SpanId;

    use super::*;

    pub(crate) fn span(attributes: Vec<(&'static str, SpanValue)>) -> FinishedSpan {
        FinishedSpan {
            name: "tool.call".into(),
            kind: SpanKind::Internal,
            context: SpanContext::of_turn(&MessageId::new("msg_1")),
            parent: Some(SpanId([1, 2, 3, 4, 5, 6, 7, 255])),
            links: vec![SpanContext::of_turn(&MessageId::new("msg_0"))],
            started_at: 1_767_225_600_123,
            ended_at: 1_767_225_600_456,
            attributes,
            status: SpanStatus::Failed { words: Some("no /home/me/x".into()) },
        }
    }

    fn encoder(content: ContentPolicy) -> OtlpEncoder {
        let attributes = vec![("team".into(), "a".into()), ("service.name".into(), "lost".into())];
        let resource =
            ServiceResource { service_name: "attache".into(), service_version: "1.2.3", attributes };
        OtlpEncoder { resource, content, redactor: Redactor::default() }
    }

    fn encoded(content: ContentPolicy, span: &FinishedSpan) -> Value {
        serde_json::from_slice(&encoder(content).body(std::slice::from_ref(span))).unwrap()
    }

    #[test]
    fn a_span_is_written_as_the_protocol_says() {
        let body = encoded(
            ContentPolicy::Withheld,
            &span(vec![
                ("gen_ai.usage.input_tokens", SpanValue::Integer(i64::MAX)),
                ("gen_ai.response.finish_reasons", SpanValue::Texts(vec!["stop".into()])),
                ("x", SpanValue::Flag(true)),
                ("y", SpanValue::Number(0.5)),
            ]),
        );
        let resource = &body["resourceSpans"][0];
        assert_eq!(
            resource["resource"]["attributes"],
            json!([
                { "key": "service.name", "value": { "stringValue": "attache" } },
                { "key": "service.version", "value": { "stringValue": "1.2.3" } },
                { "key": "team", "value": { "stringValue": "a" } },
            ])
        );
        let span = &resource["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        assert_eq!(span["parentSpanId"], "01020304050607ff");
        let other = SpanContext::of_turn(&MessageId::new("msg_0"));
        let link = json!({ "traceId": other.trace_id.to_string(), "spanId": other.span_id.to_string() });
        assert_eq!(span["links"], json!([link]));
        assert_eq!(span["startTimeUnixNano"], "1767225600123000000");
        assert_eq!(span["endTimeUnixNano"], "1767225600456000000");
        assert_eq!(span["kind"], 1);
        assert_eq!(span["status"], json!({ "code": 2 }));
        assert_eq!(
            span["attributes"],
            json!([
                { "key": "gen_ai.usage.input_tokens", "value": { "intValue": "9223372036854775807" } },
                { "key": "gen_ai.response.finish_reasons",
                  "value": { "arrayValue": { "values": [{ "stringValue": "stop" }] } } },
                { "key": "x", "value": { "boolValue": true } },
                { "key": "y", "value": { "doubleValue": 0.5 } },
            ])
        );
    }

    #[test]
    fn content_leaves_only_where_it_is_wanted_and_without_secrets() {
        let key = format!("sk-ant-{}", "a1B2".repeat(12));
        let secret = json!({ "command": format!("export ANTHROPIC_API_KEY={key}"), "password": "hunter2" });
        let told = span(vec![("gen_ai.tool.call.arguments", SpanValue::Content(secret))]);
        let withheld = encoded(ContentPolicy::Withheld, &told).to_string();
        assert!(!withheld.contains("command") && !withheld.contains("/home"), "{withheld}");
        let sent = encoded(ContentPolicy::Sent, &told).to_string();
        assert!(sent.contains("export ANTHROPIC_API_KEY"), "{sent}");
        for hidden in [key.as_str(), "hunter2", "/home/me"] {
            assert!(!sent.contains(hidden), "{hidden} in {sent}");
        }
    }
}
