//! The JSON form of a part, as in the AI SDK's UI messages. Ignores unknown keys.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{Part, StreamState, ToolApproval, ToolPart, ToolState};
use crate::ids::CallId;

/// Why an object is no part.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum PartError {
    #[error("the part has no `type`")]
    NoType,
    #[error("unknown part type `{0}`")]
    UnknownType(String),
    #[error("part `{kind}`: field `{field}` is missing")]
    MissingField { kind: String, field: &'static str },
    #[error("part `{kind}`: field `{field}` must be {expected}")]
    WrongField { kind: String, field: &'static str, expected: &'static str },
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &self.kind())?;
        match self {
            Self::StepStart => {}
            Self::Text { text, state, provider_metadata } => {
                map.serialize_entry("text", text)?;
                write_some(&mut map, "state", &state.map(StreamState::as_str))?;
                write_some(&mut map, "providerMetadata", provider_metadata)?;
            }
            Self::Reasoning { id, text, state, provider_metadata } => {
                write_some(&mut map, "id", id)?;
                map.serialize_entry("text", text)?;
                write_some(&mut map, "state", &state.map(StreamState::as_str))?;
                write_some(&mut map, "providerMetadata", provider_metadata)?;
            }
            Self::Tool(tool) => write_tool(tool, &mut map)?,
            Self::SourceUrl { source_id, url, title, provider_metadata } => {
                map.serialize_entry("sourceId", source_id)?;
                map.serialize_entry("url", url)?;
                write_some(&mut map, "title", title)?;
                write_some(&mut map, "providerMetadata", provider_metadata)?;
            }
            Self::SourceDocument { source_id, media_type, title, filename, provider_metadata } => {
                map.serialize_entry("sourceId", source_id)?;
                map.serialize_entry("mediaType", media_type)?;
                map.serialize_entry("title", title)?;
                write_some(&mut map, "filename", filename)?;
                write_some(&mut map, "providerMetadata", provider_metadata)?;
            }
            Self::File { media_type, url, filename, provider_metadata } => {
                map.serialize_entry("mediaType", media_type)?;
                map.serialize_entry("url", url)?;
                write_some(&mut map, "filename", filename)?;
                write_some(&mut map, "providerMetadata", provider_metadata)?;
            }
            Self::Data { name: _, id, data } => {
                write_some(&mut map, "id", id)?;
                map.serialize_entry("data", data)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Map::deserialize(deserializer)?;
        part_from(object).map_err(D::Error::custom)
    }
}

impl Serialize for ToolApproval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        write_some(&mut map, "approved", &self.approved)?;
        write_some(&mut map, "reason", &self.reason)?;
        for (key, value) in &self.unknown {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

fn write_tool<M: SerializeMap>(tool: &ToolPart, map: &mut M) -> Result<(), M::Error> {
    let ToolPart {
        call_id,
        tool_name,
        dynamic,
        state,
        title,
        input,
        input_encoding,
        raw_input,
        output,
        error_text,
        preliminary,
        provider_executed,
        tool_metadata,
        call_provider_metadata,
        result_provider_metadata,
        approval,
    } = tool;
    if *dynamic {
        map.serialize_entry("toolName", tool_name)?;
    }
    map.serialize_entry("toolCallId", call_id)?;
    map.serialize_entry("state", state.as_str())?;
    write_some(map, "title", title)?;
    write_some(map, "input", input)?;
    write_some(map, "inputEncoding", input_encoding)?;
    write_some(map, "rawInput", raw_input)?;
    write_some(map, "output", output)?;
    write_some(map, "errorText", error_text)?;
    write_some(map, "preliminary", preliminary)?;
    write_some(map, "providerExecuted", provider_executed)?;
    write_some(map, "toolMetadata", tool_metadata)?;
    write_some(map, "callProviderMetadata", call_provider_metadata)?;
    write_some(map, "resultProviderMetadata", result_provider_metadata)?;
    write_some(map, "approval", approval)
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

/// The keys of one part; each is taken out as it is read.
struct PartFields {
    kind: String,
    object: Map<String, Value>,
}

fn part_from(mut object: Map<String, Value>) -> Result<Part, PartError> {
    let Some(Value::String(kind)) = object.swap_remove("type") else { return Err(PartError::NoType) };
    let mut f = PartFields { kind, object };
    let kind = f.kind.clone();
    Ok(match kind.as_str() {
        "step-start" => Part::StepStart,
        "text" => Part::Text {
            text: f.text("text")?,
            state: f.stream_state()?,
            provider_metadata: f.value("providerMetadata"),
        },
        "reasoning" => Part::Reasoning {
            id: f.optional_text("id")?,
            text: f.text("text")?,
            state: f.stream_state()?,
            provider_metadata: f.value("providerMetadata"),
        },
        "source-url" => Part::SourceUrl {
            source_id: f.text("sourceId")?,
            url: f.text("url")?,
            title: f.optional_text("title")?,
            provider_metadata: f.value("providerMetadata"),
        },
        "source-document" => Part::SourceDocument {
            source_id: f.text("sourceId")?,
            media_type: f.text("mediaType")?,
            title: f.text("title")?,
            filename: f.optional_text("filename")?,
            provider_metadata: f.value("providerMetadata"),
        },
        "file" => Part::File {
            media_type: f.text("mediaType")?,
            url: f.text("url")?,
            filename: f.optional_text("filename")?,
            provider_metadata: f.value("providerMetadata"),
        },
        "dynamic-tool" => {
            let name = f.text("toolName")?;
            Part::Tool(Box::new(ToolPart { dynamic: true, ..f.tool(name)? }))
        }
        other => match (other.strip_prefix("tool-"), other.strip_prefix("data-")) {
            (Some(name), _) => Part::Tool(Box::new(f.tool(name.to_owned())?)),
            (None, Some(name)) => Part::Data {
                name: name.to_owned(),
                id: f.optional_text("id")?,
                data: f.value("data").unwrap_or(Value::Null),
            },
            (None, None) => return Err(PartError::UnknownType(kind)),
        },
    })
}

impl PartFields {
    fn tool(&mut self, tool_name: String) -> Result<ToolPart, PartError> {
        let state = self.text("state")?;
        Ok(ToolPart {
            call_id: CallId::new(self.text("toolCallId")?),
            tool_name,
            dynamic: false,
            state: ToolState::parse(&state).ok_or_else(|| self.wrong("state", "the state of a tool call"))?,
            title: self.optional_text("title")?,
            input: self.value("input"),
            input_encoding: self.optional_text("inputEncoding")?,
            raw_input: self.value("rawInput"),
            output: self.value("output"),
            error_text: self.optional_text("errorText")?,
            preliminary: self.optional_flag("preliminary")?,
            provider_executed: self.optional_flag("providerExecuted")?,
            tool_metadata: self.value("toolMetadata"),
            call_provider_metadata: self.value("callProviderMetadata"),
            result_provider_metadata: self.value("resultProviderMetadata"),
            approval: self.approval()?,
        })
    }

    fn approval(&mut self) -> Result<Option<ToolApproval>, PartError> {
        let object = match self.value("approval") {
            None => return Ok(None),
            Some(Value::Object(object)) => object,
            Some(_) => return Err(self.wrong("approval", "an object")),
        };
        let mut f = PartFields { kind: self.kind.clone(), object };
        Ok(Some(ToolApproval {
            id: f.text("id")?,
            approved: f.optional_flag("approved")?,
            reason: f.optional_text("reason")?,
            unknown: f.object,
        }))
    }

    fn stream_state(&mut self) -> Result<Option<StreamState>, PartError> {
        match self.optional_text("state")? {
            None => Ok(None),
            Some(text) => match StreamState::parse(&text) {
                Some(state) => Ok(Some(state)),
                None => Err(self.wrong("state", "`streaming` or `done`")),
            },
        }
    }

    fn value(&mut self, name: &'static str) -> Option<Value> {
        self.object.swap_remove(name)
    }

    fn text(&mut self, name: &'static str) -> Result<String, PartError> {
        let found = self.optional_text(name)?;
        found.ok_or_else(|| PartError::MissingField { kind: self.kind.clone(), field: name })
    }

    fn optional_text(&mut self, name: &'static str) -> Result<Option<String>, PartError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a string")),
        }
    }

    fn optional_flag(&mut self, name: &'static str) -> Result<Option<bool>, PartError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    fn wrong(&self, field: &'static str, expected: &'static str) -> PartError {
        PartError::WrongField { kind: self.kind.clone(), field, expected }
    }
}
