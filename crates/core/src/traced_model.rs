//! A model whose calls are measured: each request below a span becomes a span of its own, following
//! OpenTelemetry's conventions for generative AI. Only hosts that measure use it.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::chunk::Chunk;
use crate::ids::Ids;
use crate::limits::SPAN_CONTENT_BYTES;
use crate::part::{Part, Passage, Role};
use crate::ports::model::{ModelAround, ModelError, ModelRequest, Price, StepEvent, Usage};
use crate::ports::telemetry::{SpanKind, SpanValue};
use crate::ports::{BoxStream, Clock, Model, Telemetry};
use crate::spans::{OpenSpan, SpanMaker, keys};

/// A model that reports each of its calls.
#[derive(Debug)]
pub struct TracedModel {
    inner: Arc<dyn Model>,
    maker: SpanMaker,
}

impl TracedModel {
    /// Reports the calls of `model`.
    pub fn new(
        inner: Arc<dyn Model>,
        telemetry: Arc<dyn Telemetry>,
        clock: Arc<dyn Clock>,
        ids: Arc<Ids>,
    ) -> Self {
        Self { inner, maker: SpanMaker { telemetry, clock, ids } }
    }
}

impl ModelAround for TracedModel {
    fn inner(&self) -> &Arc<dyn Model> {
        &self.inner
    }

    fn stream_through(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let Some(parent) = request.parent_span else { return self.inner.stream(request, cancel) };
        let model = &request.info.model;
        let open = self.maker.begin(format!("chat {}", model.model_id), parent);
        let mut call = ModelCall::begin(open, &request);
        let events = self.inner.stream(request, cancel);
        events.inspect(move |event| call.take(event)).boxed()
    }
}

/// One running request. If its stream is dropped, the call is reported as aborted.
struct ModelCall {
    span: OpenSpan,
    price: Option<Price>,
    has_begun: bool,
    /// The model's text, if content is wanted.
    said: Option<AnswerText>,
}

#[derive(Default)]
struct AnswerText {
    text: String,
    calls: Vec<Value>,
}

impl ModelCall {
    fn begin(mut span: OpenSpan, request: &ModelRequest) -> Self {
        let model = &request.info.model;
        span.set_kind(SpanKind::Client);
        span.set(keys::OPERATION, "chat");
        span.set(keys::PROVIDER, provider_name(&model.provider_id));
        span.set(keys::REQUEST_MODEL, model.model_id.as_str());
        span.set(keys::CONVERSATION, request.session_id.as_str());
        span.set(keys::STREAM, SpanValue::Flag(true));
        if request.info.max_output > 0 {
            span.set(keys::MAX_TOKENS, request.info.max_output);
        }
        span.set_content(
            keys::SYSTEM_INSTRUCTIONS,
            || json!([{ "type": "text", "content": &*request.system }]),
        );
        span.set_content(keys::INPUT_MESSAGES, || input_messages(&request.passages));
        let said = span.has_content().then(AnswerText::default);
        Self { span, price: request.info.price, has_begun: false, said }
    }

    fn take(&mut self, event: &Result<StepEvent, ModelError>) {
        match event {
            Ok(StepEvent::Chunk(chunk)) => {
                if !std::mem::replace(&mut self.has_begun, true) {
                    let waited = self.span.now() - self.span.started_at();
                    self.span.set(keys::FIRST_CHUNK, SpanValue::Number(waited as f64 / 1_000.0));
                }
                if let Some(said) = &mut self.said {
                    said.take(chunk);
                }
            }
            Ok(StepEvent::End { reason, usage }) => {
                self.span.set(keys::FINISH_REASONS, SpanValue::Texts(vec![reason.as_str().to_owned()]));
                self.tell_usage(usage);
                if let Some(said) = self.said.take() {
                    self.span.set_content(keys::OUTPUT_MESSAGES, || said.message(reason.as_str()));
                }
                self.span.tell();
            }
            Err(error) => {
                self.span.fail(error_type(error), &error.to_string());
                self.span.tell();
            }
        }
    }

    /// Leaves out what was not counted.
    fn tell_usage(&mut self, usage: &Usage) {
        if *usage == Usage::default() {
            return;
        }
        let input = usage.input + usage.cache_read + usage.cache_write;
        self.span.set(keys::INPUT_TOKENS, input);
        self.span.set(keys::OUTPUT_TOKENS, usage.output + usage.reasoning);
        let parts = [
            (keys::CACHE_READ_TOKENS, usage.cache_read),
            (keys::CACHE_WRITE_TOKENS, usage.cache_write),
            (keys::REASONING_TOKENS, usage.reasoning),
        ];
        for (key, tokens) in parts.into_iter().filter(|(_, tokens)| *tokens > 0) {
            self.span.set(key, tokens);
        }
        if let Some(price) = self.price {
            self.span.set(keys::COST, SpanValue::Number(price.of(usage)));
        }
    }
}

impl AnswerText {
    fn take(&mut self, chunk: &Chunk) {
        // Leaves out thoughts: they quote a lot, and the session has them.
        if let Chunk::TextDelta { delta, .. } = chunk {
            let room = SPAN_CONTENT_BYTES.saturating_sub(self.text.len());
            self.text.push_str(&delta[..delta.floor_char_boundary(room)]);
        } else if let Chunk::ToolInputAvailable { call_id, tool_name, input, .. } = chunk {
            self.calls.push(called(call_id.as_str(), tool_name, input));
        }
    }

    fn message(self, reason: &str) -> Value {
        let text = (!self.text.is_empty()).then(|| json!({ "type": "text", "content": self.text }));
        let parts: Vec<Value> = text.into_iter().chain(self.calls).collect();
        json!([{ "role": "assistant", "parts": parts, "finish_reason": reason }])
    }
}

/// The conversation, from its end backwards, as far as it fits.
fn input_messages(passages: &[Arc<Passage>]) -> Value {
    let mut messages = Vec::new();
    let mut bytes = 0;
    for passage in passages.iter().rev() {
        let told = messages_of(passage);
        bytes += told.iter().map(|message| message.to_string().len()).sum::<usize>();
        if bytes > SPAN_CONTENT_BYTES && !messages.is_empty() {
            break;
        }
        messages.extend(told.into_iter().rev());
    }
    messages.reverse();
    Value::Array(messages)
}

/// A passage with results becomes two messages: the model's calls, and their results.
fn messages_of(passage: &Passage) -> Vec<Value> {
    let (mut parts, mut results) = (Vec::new(), Vec::new());
    for part in &passage.parts {
        match part {
            Part::Text { text, .. } => parts.push(json!({ "type": "text", "content": text })),
            Part::Tool(tool) => {
                let input = tool.input.clone().unwrap_or_default();
                parts.push(called(tool.call_id.as_str(), &tool.tool_name, &input));
                let told = tool.error_text.clone().map(Value::String);
                if let Some(result) = tool.output.clone().or(told) {
                    let id = tool.call_id.as_str();
                    results.push(json!({ "type": "tool_call_response", "id": id, "response": result }));
                }
            }
            Part::File { media_type, filename, .. } => {
                parts.push(json!({ "type": "file", "mime_type": media_type, "name": filename }));
            }
            // Neither the user's words nor the model's.
            Part::StepStart
            | Part::Reasoning { .. }
            | Part::SourceUrl { .. }
            | Part::SourceDocument { .. }
            | Part::Data { .. } => {}
        }
    }
    let role = match passage.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    };
    let mut messages = vec![json!({ "role": role, "parts": parts })];
    if !results.is_empty() {
        messages.push(json!({ "role": "tool", "parts": results }));
    }
    messages
}

fn called(id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "type": "tool_call", "id": id, "name": name, "arguments": arguments })
}

/// The conventions' name of a provider; others have the name from the configuration.
fn provider_name(id: &str) -> &str {
    match id {
        "gemini" => "gcp.gemini",
        "azure" => "azure.ai.openai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    }
}

pub(crate) fn error_type(error: &ModelError) -> &'static str {
    match error {
        ModelError::Transient { .. } => "transient",
        ModelError::Permanent(_) => "permanent",
        ModelError::Auth(_) => "auth",
        ModelError::Refused(_) => "refused",
        ModelError::Overflow(_) => "overflow",
        ModelError::AttachmentRejected(_) => "attachment_rejected",
        ModelError::Unreadable(_) => "unreadable",
    }
}
