//! A session may change its model at any prompt: what one provider said has to be a history the next one takes.
//! All ordered pairs of dialects, from recorded answers, held against the providers' rules.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::sync::Arc;

use attache_core::chunk::reduce::Reducer;
use attache_core::chunk::{Chunk, Rest, ToolMarks};
use attache_core::ids::{CallId, MessageId};
use attache_core::part::{Part, Passage, Role};
use attache_core::ports::model::{ModelInfo, ThoughtLevel};
use attache_core::ports::store::ModelRef;
use attache_core::ports::tool::{Effect, ToolKind, ToolSpec};
use attache_core::ports::{ModelRequest, StepEvent};
use attache_models::{BlobBytes, Compatibility, Dialect, Outgoing, SseParser};
use attache_testkit::fakes::request;
use attache_testkit::provider_rules::violations;
use serde_json::{Value, json};

/// The answers a conversation is made of, in order: each is one step.
const STEPS: [&str; 5] = ["reasoning", "tool_call", "parallel_tool_calls", "text", "length"];

/// Names that decide how a dialect is told to think.
fn model_id(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "claude-sonnet-4-5",
        Dialect::OpenAiChat => "gpt-4.1",
        Dialect::OpenAiResponses => "gpt-5.1",
        Dialect::Gemini => "gemini-3-pro-preview",
    }
}

fn asked(dialect: Dialect, passages: Vec<Arc<Passage>>) -> ModelRequest {
    let model = ModelRef::new(dialect.as_str(), model_id(dialect));
    let info = ModelInfo {
        images: true,
        audio: true,
        pdf: true,
        max_output: 32_000,
        thought_levels: ThoughtLevel::ALL.to_vec(),
        ..ModelInfo::undescribed(model.clone())
    };
    let read = ToolSpec {
        id: "read".into(),
        description: "Reads a file.".into(),
        parameters:
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}).into(),
        kind: ToolKind::Read,
        effect: Effect::ReadOnly,
        hidden: false,
    };
    ModelRequest {
        info: Arc::new(info),
        thought: Some(ThoughtLevel::High),
        system: "Be brief.".into(),
        tools: Arc::new([read]),
        runtime_context: Arc::new([(Some("open file".into()), "a.rs".into())]),
        ..request(model, passages)
    }
}

/// What a recorded answer of this dialect adds up to, with a result for each of its calls.
fn step(dialect: Dialect, fixture: &str, number: usize) -> Vec<Part> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(dialect.as_str());
    let body = std::fs::read(folder.join(fixture).with_extension("sse")).unwrap();
    let mut decoder = dialect.decoder(&asked(dialect, Vec::new()));
    let (mut parser, mut events) = (SseParser::default(), Vec::new());
    parser.feed(&body).unwrap();
    while let Some(event) = parser.next() {
        decoder.event(&event, &mut events).unwrap();
    }
    if !matches!(events.last(), Some(StepEvent::End { .. })) {
        decoder.body_ended(&mut events);
    }
    let mut reducer = Reducer::default();
    reducer.apply(&Chunk::StartStep { rest: Rest::none() }).unwrap();
    let mut calls = Vec::new();
    for event in &mut events {
        let StepEvent::Chunk(chunk) = event else { continue };
        // The loop keeps ids apart over the steps of a conversation; here a number does.
        rename_call(chunk, number);
        reducer.apply(chunk).unwrap();
        if let Chunk::ToolInputAvailable { call_id, marks, .. } = chunk
            && marks.provider_executed != Some(true)
        {
            calls.push(call_id.clone());
        }
    }
    for (index, call_id) in calls.into_iter().enumerate() {
        let result = match index {
            0 => Chunk::ToolOutputAvailable {
                call_id,
                output: json!({"lines": 3}),
                preliminary: None,
                marks: ToolMarks::default(),
                rest: Rest::none(),
            },
            _ => Chunk::ToolOutputError {
                call_id,
                error_text: "there is no such file".into(),
                marks: ToolMarks::default(),
                rest: Rest::none(),
            },
        };
        reducer.apply(&result).unwrap();
    }
    reducer.finish()
}

fn rename_call(chunk: &mut Chunk, number: usize) {
    if let Chunk::ToolInputStart { call_id, .. }
    | Chunk::ToolInputDelta { call_id, .. }
    | Chunk::ToolInputAvailable { call_id, .. }
    | Chunk::ToolInputError { call_id, .. } = chunk
    {
        *call_id = CallId::new(format!("{call_id}_{number}"));
    }
}

fn user(text: &str) -> Arc<Passage> {
    let part = |text: &str| Part::Text { text: text.into(), state: None, provider_metadata: None };
    let picture = Part::File {
        media_type: "image/png".into(),
        url: "data:image/png;base64,aGk=".into(),
        filename: Some("a.png".into()),
        provider_metadata: None,
    };
    Arc::new(Passage::new(MessageId::new("msg_user"), Role::User, vec![part(text), picture]))
}

/// A user asks, this dialect answers in several steps, another user message follows.
fn history(dialect: Dialect) -> Vec<Arc<Passage>> {
    let mut passages = vec![user("Look at it.")];
    for (number, fixture) in STEPS.iter().enumerate() {
        let parts = step(dialect, fixture, number);
        passages.push(Arc::new(Passage::new(MessageId::new("msg_answer"), Role::Assistant, parts)));
    }
    passages.push(user("And now?"));
    passages
}

fn body(dialect: Dialect, request: &ModelRequest) -> Value {
    let outgoing = Outgoing { request, blobs: &BlobBytes::new(), compatibility: &Compatibility::default() };
    serde_json::from_slice(&dialect.body(&outgoing)).unwrap()
}

fn accepted(from: Dialect, to: Dialect, body: &Value) {
    let broken = violations(to.as_str(), body);
    let pretty = serde_json::to_string_pretty(body).unwrap();
    assert!(broken.is_empty(), "{} → {}:\n{}\n{pretty}", from.as_str(), to.as_str(), broken.join("\n"));
}

#[test]
fn every_dialect_takes_the_history_of_every_other() {
    let mut pairs = 0;
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            accepted(from, to, &body(to, &asked(to, history(from))));
            pairs += usize::from(from.as_str() != to.as_str());
        }
    }
    assert_eq!(pairs, 12);
}

#[test]
fn a_cut_answer_of_any_dialect_is_a_history_for_every_other() {
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            let mut passages = history(from);
            passages.pop();
            // The last step as a crash leaves it: calls named, arguments in part, nothing run.
            let mut cut = step(from, "parallel_tool_calls", 9);
            for tool in cut.iter_mut().filter_map(Part::tool_mut) {
                tool.state = attache_core::part::ToolState::InputStreaming;
                (tool.input, tool.output, tool.error_text) = (Some(json!({"pa": null})), None, None);
            }
            passages.push(Arc::new(Passage::new(MessageId::new("msg_cut"), Role::Assistant, cut)));
            passages.push(Arc::new(Passage::new(MessageId::new("msg_empty"), Role::Assistant, Vec::new())));
            passages.push(user("Go on."));
            accepted(from, to, &body(to, &asked(to, passages)));
        }
    }
}

#[test]
fn a_turn_under_way_is_taken_by_its_own_dialect() {
    for dialect in Dialect::ALL {
        let mut passages = history(dialect);
        for (number, fixture) in ["tool_call", "parallel_tool_calls"].iter().enumerate() {
            let mut parts = step(dialect, "reasoning", 20 + number);
            // Reasoning alone makes no tool step: what was thought comes before the calls, as these models do
            // it.
            parts.retain(|part| matches!(part, Part::StepStart | Part::Reasoning { .. }));
            parts
                .extend(step(dialect, fixture, 10 + number).into_iter().filter(|part| part.tool().is_some()));
            passages.push(Arc::new(Passage::new(MessageId::new("msg_answer"), Role::Assistant, parts)));
            accepted(dialect, dialect, &body(dialect, &asked(dialect, passages.clone())));
        }
    }
}

#[test]
fn what_only_its_author_understands_goes_to_nobody_else() {
    for from in Dialect::ALL {
        let secret_words = secrets(&history(from));
        for to in Dialect::ALL {
            let sent = body(to, &asked(to, history(from))).to_string();
            let leaked: Vec<&String> =
                secret_words.iter().filter(|word| sent.contains(word.as_str())).collect();
            match from.as_str() == to.as_str() {
                true => assert!(!leaked.is_empty() || secret_words.is_empty(), "{} forgets", from.as_str()),
                false => assert!(leaked.is_empty(), "{} → {}: {leaked:?}", from.as_str(), to.as_str()),
            }
        }
    }
    assert!(Dialect::ALL.into_iter().filter(|from| !secrets(&history(*from)).is_empty()).count() >= 3);
}

/// Signatures and encrypted reasoning as the parts keep them.
fn secrets(passages: &[Arc<Passage>]) -> Vec<String> {
    fn collect(value: &Value, into: &mut Vec<String>) {
        const KEYS: [&str; 4] =
            ["signature", "redactedData", "reasoningEncryptedContent", "thoughtSignature"];
        for (key, value) in value.as_object().into_iter().flatten() {
            match value {
                Value::String(text) if KEYS.contains(&key.as_str()) && !text.is_empty() => {
                    into.push(text.clone())
                }
                _ => collect(value, into),
            }
        }
    }
    let mut found = Vec::new();
    for part in passages.iter().flat_map(|passage| &passage.parts) {
        let metadata = match part {
            Part::Reasoning { provider_metadata, .. } | Part::Text { provider_metadata, .. } => {
                provider_metadata.as_ref()
            }
            Part::Tool(tool) => tool.call_provider_metadata.as_ref(),
            Part::StepStart
            | Part::SourceUrl { .. }
            | Part::SourceDocument { .. }
            | Part::File { .. }
            | Part::Data { .. } => None,
        };
        if let Some(metadata) = metadata {
            collect(metadata, &mut found);
        }
    }
    found
}
