//! Makes chunks for the property tests: any single chunk, and whole runs in the order producers must keep.
#![allow(dead_code)] // Each test binary takes what it needs.

use std::sync::Arc;

use attache_core::chunk::{Chunk, FinishReason, Rest, RestFields, StreamId, ToolMarks};
use attache_core::ids::CallId;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

pub(crate) fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-zA-Z ]{0,12}",
        1 => any::<String>(),
        1 => select(vec!["", "\n", "\"\\", "\u{0}\u{1f}", "é漢😀", "\u{2028}", "</script>"]).prop_map(str::to_owned),
    ]
}

/// Numbers both worlds can hold: JavaScript has no whole numbers beyond 2^53.
fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-(1i64 << 53)..(1i64 << 53)).prop_map(Value::from),
        (-100i64..100).prop_map(Value::from),
        (-1e15..1e15).prop_map(|number: f64| json!(number)),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(|number| json!(number)),
    ]
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z]{1,4}", 1 => any_text()].prop_filter("no magic of JavaScript", |key| {
        !["__proto__", "constructor", "prototype"].contains(&key.as_str())
    })
}

pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any_number(),
        any_text().prop_map(Value::String),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((any_key(), inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

pub(crate) fn any_object() -> impl Strategy<Value = Value> {
    vec((any_key(), any_value()), 0..3).prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

fn any_provider_metadata() -> impl Strategy<Value = Value> {
    vec((any_key(), any_object()), 0..3).prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

fn any_unknown() -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![
        select(vec!["extra", "x-1", "approvalDescriptor", "inputSchemaInput"]).prop_map(str::to_owned),
        "z[a-z]{1,5}",
    ];
    vec((key, any_value()), 0..3).prop_map(|entries| entries.into_iter().collect())
}

pub(crate) fn any_rest() -> impl Strategy<Value = Rest> {
    let full = (option::of(any_provider_metadata()), option::of(any_object()), any_unknown());
    let full = full.prop_map(|(provider_metadata, tool_metadata, unknown)| {
        if provider_metadata.is_none() && tool_metadata.is_none() && unknown.is_empty() {
            return Rest::none();
        }
        Rest(Some(Box::new(RestFields { provider_metadata, tool_metadata, unknown })))
    });
    prop_oneof![2 => Just(Rest::none()), 1 => full]
}

fn any_marks() -> impl Strategy<Value = ToolMarks> {
    let fields = (option::of(any_text()), option::of(any::<bool>()), option::of(any::<bool>()));
    fields.prop_map(|(title, dynamic, provider_executed)| ToolMarks { title, dynamic, provider_executed })
}

fn any_finish_reason() -> impl Strategy<Value = FinishReason> {
    select(vec![
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ContentFilter,
        FinishReason::ToolCalls,
        FinishReason::Error,
        FinishReason::Other,
    ])
}

/// Few ids, so that chunks meet.
fn any_stream_id() -> impl Strategy<Value = StreamId> {
    select(vec!["a", "b"]).prop_map(Arc::from)
}

fn any_call_id() -> impl Strategy<Value = CallId> {
    select(vec!["c1", "c2"]).prop_map(CallId::new)
}

fn any_tool_name() -> impl Strategy<Value = String> {
    select(vec!["read", "run-it", "漢"]).prop_map(str::to_owned)
}

/// Pieces of JSON, whole and broken, as input deltas have them.
fn any_json_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        any_value().prop_map(|value| value.to_string()),
        r#"[\[\]{}",:tru0-9.\-e \\]{0,6}"#,
        select(vec!["{\"a\":", "[1,", "tru", "\"x", "{\"k\":\"v\\u00", "}", "]", "\""])
            .prop_map(str::to_owned),
    ]
}

pub(crate) fn any_chunk() -> BoxedStrategy<Chunk> {
    prop_oneof![plain_chunk(), stream_chunk(), tool_chunk(), part_chunk()].boxed()
}

fn plain_chunk() -> BoxedStrategy<Chunk> {
    let message_id = || option::of(select(vec!["m1", "m2", ""]).prop_map(str::to_owned));
    let metadata = || option::of(prop_oneof![4 => any_object(), 1 => any_value()]);
    prop_oneof![
        (message_id(), metadata(), any_rest()).prop_map(|(message_id, message_metadata, rest)| {
            Chunk::Start { message_id, message_metadata, rest }
        }),
        any_rest().prop_map(|rest| Chunk::StartStep { rest }),
        any_rest().prop_map(|rest| Chunk::FinishStep { rest }),
        (any_object(), any_rest())
            .prop_map(|(message_metadata, rest)| Chunk::MessageMetadata { message_metadata, rest }),
        (any_text(), any_rest()).prop_map(|(error_text, rest)| Chunk::Error { error_text, rest }),
        (option::of(any_text()), any_rest()).prop_map(|(reason, rest)| Chunk::Abort { reason, rest }),
        (option::of(any_finish_reason()), metadata(), any_rest()).prop_map(
            |(finish_reason, message_metadata, rest)| Chunk::Finish { finish_reason, message_metadata, rest }
        ),
    ]
    .boxed()
}

fn stream_chunk() -> BoxedStrategy<Chunk> {
    let fields = || (any_stream_id(), any_text(), any_rest());
    prop_oneof![
        fields().prop_map(|(id, _, rest)| Chunk::TextStart { id, rest }),
        fields().prop_map(|(id, delta, rest)| Chunk::TextDelta { id, delta, rest }),
        fields().prop_map(|(id, _, rest)| Chunk::TextEnd { id, rest }),
        fields().prop_map(|(id, _, rest)| Chunk::ReasoningStart { id, rest }),
        fields().prop_map(|(id, delta, rest)| Chunk::ReasoningDelta { id, delta, rest }),
        fields().prop_map(|(id, _, rest)| Chunk::ReasoningEnd { id, rest }),
    ]
    .boxed()
}

fn tool_chunk() -> BoxedStrategy<Chunk> {
    let call = || (any_call_id(), any_tool_name(), any_marks(), any_rest());
    let encoding = option::of(select(vec!["json", "text"]).prop_map(str::to_owned));
    prop_oneof![
        (call(), encoding).prop_map(|((call_id, tool_name, marks, rest), input_encoding)| {
            Chunk::ToolInputStart { call_id, tool_name, input_encoding, marks, rest }
        }),
        (call(), any_json_piece()).prop_map(|((call_id, _, _, rest), input_text_delta)| {
            Chunk::ToolInputDelta { call_id, input_text_delta, rest }
        }),
        (call(), any_value()).prop_map(|((call_id, tool_name, marks, rest), input)| {
            Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest }
        }),
        (call(), any_value(), any_text()).prop_map(
            |((call_id, tool_name, marks, rest), input, error_text)| {
                Chunk::ToolInputError { call_id, tool_name, input, error_text, marks, rest }
            }
        ),
        (call(), select(vec!["q1", "q2"])).prop_map(|((call_id, _, _, rest), approval_id)| {
            Chunk::ToolApprovalRequest { approval_id: approval_id.to_owned(), call_id, rest }
        }),
        (call(), any_value(), option::of(any::<bool>())).prop_map(
            |((call_id, _, marks, rest), output, preliminary)| Chunk::ToolOutputAvailable {
                call_id,
                output,
                preliminary,
                marks,
                rest
            }
        ),
        (call(), any_text()).prop_map(|((call_id, _, marks, rest), error_text)| Chunk::ToolOutputError {
            call_id,
            error_text,
            marks,
            rest
        }),
        call().prop_map(|(call_id, _, _, rest)| Chunk::ToolOutputDenied { call_id, rest }),
    ]
    .boxed()
}

/// Chunks that are a part by themselves.
pub(crate) fn part_chunk() -> BoxedStrategy<Chunk> {
    let data_id = option::of(select(vec!["d1", "d2"]).prop_map(str::to_owned));
    let name = select(vec!["plan", "usage", ""]).prop_map(str::to_owned);
    prop_oneof![
        (any_text(), any_text(), option::of(any_text()), any_rest())
            .prop_map(|(source_id, url, title, rest)| Chunk::SourceUrl { source_id, url, title, rest }),
        (any_text(), any_text(), any_text(), option::of(any_text()), any_rest()).prop_map(
            |(source_id, media_type, title, filename, rest)| Chunk::SourceDocument {
                source_id,
                media_type,
                title,
                filename,
                rest
            }
        ),
        (any_text(), any_text(), any_rest()).prop_map(|(url, media_type, rest)| Chunk::File {
            url,
            media_type,
            rest
        }),
        (name, data_id, any_value(), option::of(any::<bool>()), any_rest())
            .prop_map(|(name, id, data, transient, rest)| Chunk::Data { name, id, data, transient, rest }),
    ]
    .boxed()
}
