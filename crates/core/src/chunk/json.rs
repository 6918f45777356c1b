//! The JSON form of a chunk, as the AI SDK's wire has it. Writes straight to the writer; does not judge the
//! order of chunks.

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use thiserror::Error;

use super::{Chunk, FinishReason, Rest, ToolMarks};

mod fields;

use fields::ChunkFields;

/// Why a text is no chunk.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum ChunkError {
    #[error("not a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the chunk has no `type`")]
    NoType,
    #[error("unknown chunk type `{0}`")]
    UnknownType(String),
    #[error("chunk `{kind}`: field `{field}` is missing")]
    MissingField { kind: String, field: &'static str },
    #[error("chunk `{kind}`: field `{field}` must be {expected}")]
    WrongField { kind: String, field: &'static str, expected: &'static str },
}

/// Reads one chunk. Keys this version does not know are kept in `rest.unknown`. Values nested deeper than 126
/// levels are refused, so a producer must not let them in.
pub fn decode(text: &str) -> Result<Chunk, ChunkError> {
    serde_json::from_str::<ChunkFields>(text)?.into_chunk()
}

/// Appends the chunk's JSON text, without a line end.
pub fn encode_into(chunk: &Chunk, out: &mut String) -> Result<(), serde_json::Error> {
    // Encodes into separate bytes first: a `String` accepts only pieces that are checked as UTF-8, and checking
    // the many small ones of serde_json costs more than one copy; checking the grown buffer would make
    // appending to a long segment quadratic.
    let bytes = serde_json::to_vec(chunk)?;
    out.push_str(std::str::from_utf8(&bytes).map_err(serde_json::Error::custom)?);
    Ok(())
}

impl<'de> Deserialize<'de> for Chunk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ChunkFields::deserialize(deserializer)?.into_chunk().map_err(de::Error::custom)
    }
}

impl Serialize for Chunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Chunk::Data { name, .. } = self {
            map.serialize_entry("type", &DataType(name))?;
        } else {
            map.serialize_entry("type", &self.kind())?;
        }
        write_fields(self, &mut map)?;
        write_rest(self.rest(), &mut map)?;
        map.end()
    }
}

impl Serialize for FinishReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FinishReason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom(format!("unknown finish reason `{text}`")))
    }
}

/// `data-NAME` without building the joined text.
struct DataType<'a>(&'a str);

impl Serialize for DataType<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("data-{}", self.0))
    }
}

/// A flat catalogue: one arm per type, fields in the order of the specification.
fn write_fields<M: SerializeMap>(chunk: &Chunk, map: &mut M) -> Result<(), M::Error> {
    match chunk {
        Chunk::Start { message_id, message_metadata, rest: _ } => {
            write_some(map, "messageId", message_id)?;
            write_some(map, "messageMetadata", message_metadata)
        }
        Chunk::StartStep { rest: _ } | Chunk::FinishStep { rest: _ } => Ok(()),
        Chunk::TextStart { id, rest: _ }
        | Chunk::TextEnd { id, rest: _ }
        | Chunk::ReasoningStart { id, rest: _ }
        | Chunk::ReasoningEnd { id, rest: _ } => map.serialize_entry("id", id),
        Chunk::TextDelta { id, delta, rest: _ } | Chunk::ReasoningDelta { id, delta, rest: _ } => {
            map.serialize_entry("id", id)?;
            map.serialize_entry("delta", delta)
        }
        Chunk::ToolInputStart { call_id, tool_name, input_encoding, marks, rest: _ } => {
            map.serialize_entry("toolCallId", call_id)?;
            map.serialize_entry("toolName", tool_name)?;
            write_some(map, "inputEncoding", input_encoding)?;
            write_marks(map, marks)
        }
        Chunk::ToolInputDelta { call_id, input_text_delta, rest: _ } => {
            map.serialize_entry("toolCallId", call_id)?;
            map.serialize_entry("inputTextDelta", input_text_delta)
        }
        Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest: _ } => {
            map.serialize_entry("toolCallId", call_id)?;
            map.serialize_entry("toolName", tool_name)?;
            map.serialize_entry("input", input)?;
            write_marks(map, marks)
        }
        Chunk::ToolInputError { call_id, tool_name, input, error_text, marks, rest: _ } => {
            map.serialize_entry("toolCallId", call_id)?;
            map.serialize_entry("toolName", tool_name)?;
            map.serialize_entry("input", input)?;
            map.serialize_entry("errorText", error_text)?;
            write_marks(map, marks)
        }
        Chunk::ToolApprovalRequest { approval_id, call_id, rest: _ } => {
            map.serialize_entry("approvalId", approval_id)?;
            map.serialize_entry("toolCallId", call_id)
        }
        Chunk::ToolOutputAvailable { call_id, output, preliminary, marks, rest: _ } => {
            map.serialize_entry("toolCallId", call_id)?;
            map.serialize_entry("output", output)?;
            write_some(map, "preliminary", preliminary)?;
            write_marks(map, marks)
        }
        Chunk::ToolOutputError { call_id, error_text, marks, rest: _ } => {
            map.serialize_entry("toolCallId", call_id)?;
            map.serialize_entry("errorText", error_text)?;
            write_marks(map, marks)
        }
        Chunk::ToolOutputDenied { call_id, rest: _ } => map.serialize_entry("toolCallId", call_id),
        Chunk::SourceUrl { source_id, url, title, rest: _ } => {
            map.serialize_entry("sourceId", source_id)?;
            map.serialize_entry("url", url)?;
            write_some(map, "title", title)
        }
        Chunk::SourceDocument { source_id, media_type, title, filename, rest: _ } => {
            map.serialize_entry("sourceId", source_id)?;
            map.serialize_entry("mediaType", media_type)?;
            map.serialize_entry("title", title)?;
            write_some(map, "filename", filename)
        }
        Chunk::File { url, media_type, rest: _ } => {
            map.serialize_entry("url", url)?;
            map.serialize_entry("mediaType", media_type)
        }
        Chunk::Data { name: _, id, data, transient, rest: _ } => {
            write_some(map, "id", id)?;
            map.serialize_entry("data", data)?;
            write_some(map, "transient", transient)
        }
        Chunk::MessageMetadata { message_metadata, rest: _ } => {
            map.serialize_entry("messageMetadata", message_metadata)
        }
        Chunk::Error { error_text, rest: _ } => map.serialize_entry("errorText", error_text),
        Chunk::Abort { reason, rest: _ } => write_some(map, "reason", reason),
        Chunk::Finish { finish_reason, message_metadata, rest: _ } => {
            write_some(map, "finishReason", finish_reason)?;
            write_some(map, "messageMetadata", message_metadata)
        }
    }
}

fn write_some<M: SerializeMap, T: Serialize>(
    map: &mut M,
    key: &'static str,
    value: &Option<T>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(key, value),
        None => Ok(()),
    }
}

fn write_marks<M: SerializeMap>(map: &mut M, marks: &ToolMarks) -> Result<(), M::Error> {
    write_some(map, "title", &marks.title)?;
    write_some(map, "dynamic", &marks.dynamic)?;
    write_some(map, "providerExecuted", &marks.provider_executed)
}

fn write_rest<M: SerializeMap>(rest: &Rest, map: &mut M) -> Result<(), M::Error> {
    let Some(rest) = &rest.0 else { return Ok(()) };
    write_some(map, "providerMetadata", &rest.provider_metadata)?;
    write_some(map, "toolMetadata", &rest.tool_metadata)?;
    for (key, value) in &rest.unknown {
        map.serialize_entry(key, value)?;
    }
    Ok(())
}
