//! Collects the keys of one JSON object and makes the chunk that its `type` names; keys that the type does not
//! have stay in `rest`.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::ChunkError;
use crate::chunk::{Chunk, FinishReason, Rest, RestFields, StreamId, ToolMarks};
use crate::ids::CallId;

/// The object's keys: `type`, the keys of any chunk type, and all others.
#[derive(Default)]
pub(super) struct ChunkFields {
    kind: Option<String>,
    known: Vec<(&'static str, Value)>,
    unknown: Map<String, Value>,
}

/// What is wrong with a field; the caller knows the chunk's type and adds it.
enum FieldProblem {
    Missing(&'static str),
    Wrong(&'static str, &'static str),
    UnknownType,
}

type Taken<T> = Result<T, FieldProblem>;

/// Whether the AI SDK's schema names `providerMetadata` and `toolMetadata` for a type; where it does not, any
/// value is legal there.
#[derive(Clone, Copy)]
enum Metadata {
    Free,
    Provider,
    ProviderAndTool,
}

/// Keys that are a field of at least one type.
const KNOWN: [&str; 26] = [
    "id",
    "delta",
    "toolCallId",
    "inputTextDelta",
    "toolName",
    "input",
    "output",
    "preliminary",
    "errorText",
    "title",
    "dynamic",
    "providerExecuted",
    "providerMetadata",
    "toolMetadata",
    "inputEncoding",
    "approvalId",
    "messageId",
    "messageMetadata",
    "finishReason",
    "reason",
    "data",
    "transient",
    "sourceId",
    "url",
    "mediaType",
    "filename",
];

impl ChunkFields {
    pub(super) fn into_chunk(mut self) -> Result<Chunk, ChunkError> {
        let kind = self.kind.take().ok_or(ChunkError::NoType)?;
        self.build(&kind).map_err(|problem| match problem {
            FieldProblem::Missing(field) => ChunkError::MissingField { kind, field },
            FieldProblem::Wrong(field, expected) => ChunkError::WrongField { kind, field, expected },
            FieldProblem::UnknownType => ChunkError::UnknownType(kind),
        })
    }

    /// A flat catalogue: one arm per type. `rest` comes last in each, when the type's own keys are taken out.
    fn build(mut self, kind: &str) -> Taken<Chunk> {
        let f = &mut self;
        Ok(match kind {
            "text-delta" => Chunk::TextDelta {
                id: f.stream_id()?,
                delta: f.text("delta")?,
                rest: self.rest(Metadata::Provider)?,
            },
            "text-start" => Chunk::TextStart { id: f.stream_id()?, rest: self.rest(Metadata::Provider)? },
            "text-end" => Chunk::TextEnd { id: f.stream_id()?, rest: self.rest(Metadata::Provider)? },
            "reasoning-delta" => Chunk::ReasoningDelta {
                id: f.stream_id()?,
                delta: f.text("delta")?,
                rest: self.rest(Metadata::Provider)?,
            },
            "reasoning-start" => {
                Chunk::ReasoningStart { id: f.stream_id()?, rest: self.rest(Metadata::Provider)? }
            }
            "reasoning-end" => {
                Chunk::ReasoningEnd { id: f.stream_id()?, rest: self.rest(Metadata::Provider)? }
            }
            "tool-input-start" => Chunk::ToolInputStart {
                call_id: f.call_id()?,
                tool_name: f.text("toolName")?,
                input_encoding: f.input_encoding()?,
                marks: f.input_marks()?,
                rest: self.rest(Metadata::ProviderAndTool)?,
            },
            "tool-input-delta" => Chunk::ToolInputDelta {
                call_id: f.call_id()?,
                input_text_delta: f.text("inputTextDelta")?,
                rest: self.rest(Metadata::Free)?,
            },
            "tool-input-available" => Chunk::ToolInputAvailable {
                call_id: f.call_id()?,
                tool_name: f.text("toolName")?,
                input: f.value("input")?,
                marks: f.input_marks()?,
                rest: self.rest(Metadata::ProviderAndTool)?,
            },
            "tool-input-error" => Chunk::ToolInputError {
                call_id: f.call_id()?,
                tool_name: f.text("toolName")?,
                input: f.value("input")?,
                error_text: f.text("errorText")?,
                marks: f.input_marks()?,
                rest: self.rest(Metadata::ProviderAndTool)?,
            },
            "tool-approval-request" => {
                f.check_signature()?;
                Chunk::ToolApprovalRequest {
                    approval_id: f.text("approvalId")?,
                    call_id: f.call_id()?,
                    rest: self.rest(Metadata::Free)?,
                }
            }
            "tool-output-available" => Chunk::ToolOutputAvailable {
                call_id: f.call_id()?,
                output: f.value("output")?,
                preliminary: f.optional_flag("preliminary")?,
                marks: f.output_marks()?,
                rest: self.rest(Metadata::ProviderAndTool)?,
            },
            "tool-output-error" => Chunk::ToolOutputError {
                call_id: f.call_id()?,
                error_text: f.text("errorText")?,
                marks: f.output_marks()?,
                rest: self.rest(Metadata::ProviderAndTool)?,
            },
            "tool-output-denied" => {
                Chunk::ToolOutputDenied { call_id: f.call_id()?, rest: self.rest(Metadata::Free)? }
            }
            "source-url" => Chunk::SourceUrl {
                source_id: f.text("sourceId")?,
                url: f.text("url")?,
                title: f.optional_text("title")?,
                rest: self.rest(Metadata::Provider)?,
            },
            "source-document" => Chunk::SourceDocument {
                source_id: f.text("sourceId")?,
                media_type: f.text("mediaType")?,
                title: f.text("title")?,
                filename: f.optional_text("filename")?,
                rest: self.rest(Metadata::Provider)?,
            },
            "file" => Chunk::File {
                url: f.text("url")?,
                media_type: f.text("mediaType")?,
                rest: self.rest(Metadata::Provider)?,
            },
            "start" => Chunk::Start {
                message_id: f.optional_text("messageId")?,
                message_metadata: f.take("messageMetadata"),
                rest: self.rest(Metadata::Free)?,
            },
            "start-step" => Chunk::StartStep { rest: self.rest(Metadata::Free)? },
            "finish-step" => Chunk::FinishStep { rest: self.rest(Metadata::Free)? },
            "message-metadata" => Chunk::MessageMetadata {
                message_metadata: f.value("messageMetadata")?,
                rest: self.rest(Metadata::Free)?,
            },
            "error" => Chunk::Error { error_text: f.text("errorText")?, rest: self.rest(Metadata::Free)? },
            "abort" => Chunk::Abort { reason: f.optional_text("reason")?, rest: self.rest(Metadata::Free)? },
            "finish" => Chunk::Finish {
                finish_reason: f.finish_reason()?,
                message_metadata: f.take("messageMetadata"),
                rest: self.rest(Metadata::Free)?,
            },
            _ => {
                let name = kind.strip_prefix("data-").ok_or(FieldProblem::UnknownType)?;
                Chunk::Data {
                    name: name.to_owned(),
                    id: f.optional_text("id")?,
                    data: f.value("data")?,
                    transient: f.optional_flag("transient")?,
                    rest: self.rest(Metadata::Free)?,
                }
            }
        })
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        let at = self.known.iter().position(|(key, _)| *key == name)?;
        Some(self.known.swap_remove(at).1)
    }

    /// A value of any kind; null counts as a value, a missing key does not.
    fn value(&mut self, name: &'static str) -> Taken<Value> {
        self.take(name).ok_or(FieldProblem::Missing(name))
    }

    fn text(&mut self, name: &'static str) -> Taken<String> {
        self.optional_text(name)?.ok_or(FieldProblem::Missing(name))
    }

    fn optional_text(&mut self, name: &'static str) -> Taken<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(FieldProblem::Wrong(name, "a string")),
        }
    }

    fn optional_flag(&mut self, name: &'static str) -> Taken<Option<bool>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(FieldProblem::Wrong(name, "true or false")),
        }
    }

    fn stream_id(&mut self) -> Taken<StreamId> {
        self.text("id").map(Arc::from)
    }

    fn call_id(&mut self) -> Taken<CallId> {
        self.text("toolCallId").map(CallId::new)
    }

    fn input_encoding(&mut self) -> Taken<Option<String>> {
        let encoding = self.optional_text("inputEncoding")?;
        match encoding.as_deref() {
            None | Some("json" | "text") => Ok(encoding),
            Some(_) => Err(FieldProblem::Wrong("inputEncoding", "`json` or `text`")),
        }
    }

    fn finish_reason(&mut self) -> Taken<Option<FinishReason>> {
        let expected = "stop, length, content-filter, tool-calls, error or other";
        match self.optional_text("finishReason")? {
            None => Ok(None),
            Some(text) => {
                FinishReason::parse(&text).map(Some).ok_or(FieldProblem::Wrong("finishReason", expected))
            }
        }
    }

    fn input_marks(&mut self) -> Taken<ToolMarks> {
        let title = self.optional_text("title")?;
        Ok(ToolMarks { title, ..self.output_marks_without_title()? })
    }

    /// The schema has no `title` on outputs: a string becomes the title, any other value an unknown key.
    fn output_marks(&mut self) -> Taken<ToolMarks> {
        let titled = self.known.iter().any(|(key, value)| *key == "title" && value.is_string());
        let title = if titled { self.optional_text("title")? } else { None };
        Ok(ToolMarks { title, ..self.output_marks_without_title()? })
    }

    fn output_marks_without_title(&mut self) -> Taken<ToolMarks> {
        let dynamic = self.optional_flag("dynamic")?;
        let provider_executed = self.optional_flag("providerExecuted")?;
        Ok(ToolMarks { title: None, dynamic, provider_executed })
    }

    fn check_signature(&self) -> Taken<()> {
        match self.unknown.get("signature") {
            None | Some(Value::String(_)) => Ok(()),
            Some(_) => Err(FieldProblem::Wrong("signature", "a string")),
        }
    }

    /// Everything not taken yet.
    fn rest(mut self, metadata: Metadata) -> Taken<Rest> {
        if self.known.is_empty() && self.unknown.is_empty() {
            return Ok(Rest::none());
        }
        let provider_metadata = self.take("providerMetadata");
        let tool_metadata = self.take("toolMetadata");
        let (checks_provider, checks_tool) = match metadata {
            Metadata::Free => (false, false),
            Metadata::Provider => (true, false),
            Metadata::ProviderAndTool => (true, true),
        };
        if checks_provider && !provider_metadata.as_ref().is_none_or(is_object_of_objects) {
            return Err(FieldProblem::Wrong("providerMetadata", "an object of objects"));
        }
        if checks_tool && !tool_metadata.as_ref().is_none_or(Value::is_object) {
            return Err(FieldProblem::Wrong("toolMetadata", "an object"));
        }
        let mut unknown = self.unknown;
        unknown.extend(self.known.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Ok(Rest(Some(Box::new(RestFields { provider_metadata, tool_metadata, unknown }))))
    }
}

fn is_object_of_objects(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.values().all(Value::is_object))
}

impl<'de> Deserialize<'de> for ChunkFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = ChunkFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a chunk object")
    }

    /// Of a doubled key the last one counts, as in JavaScript.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ChunkFields, A::Error> {
        let mut fields = ChunkFields::default();
        while let Some(key) = map.next_key::<FieldKey>()? {
            match key {
                FieldKey::Type => fields.kind = Some(map.next_value()?),
                FieldKey::Known(name) => {
                    let value = map.next_value()?;
                    match fields.known.iter_mut().find(|(key, _)| *key == name) {
                        Some(slot) => slot.1 = value,
                        None => fields.known.push((name, value)),
                    }
                }
                FieldKey::Unknown(name) => {
                    fields.unknown.insert(name, map.next_value()?);
                }
            }
        }
        Ok(fields)
    }
}

enum FieldKey {
    Type,
    Known(&'static str),
    Unknown(String),
}

impl<'de> Deserialize<'de> for FieldKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = FieldKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, text: &str) -> Result<FieldKey, E> {
        if text == "type" {
            return Ok(FieldKey::Type);
        }
        Ok(match KNOWN.iter().find(|known| **known == text) {
            Some(known) => FieldKey::Known(known),
            None => FieldKey::Unknown(text.to_owned()),
        })
    }
}
