//! The chunk vocabulary: one closed enum for everything a run says, the same live, in the log and on the AI SDK
//! wire. `reduce` makes parts of chunks, `order` checks their order, `json` is their JSON form.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::data_name::DataName;
use crate::ids::CallId;
use crate::metadata::OWN_KEY;

pub mod json;
pub(crate) mod limits;
pub mod order;
pub mod partial_json;
pub mod reduce;
pub mod replay;

/// Names an open text or reasoning part within one message; cheap to clone because every delta carries it.
pub type StreamId = Arc<str>;

/// What any chunk may carry beside its own fields. Empty costs one pointer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rest(pub Option<Box<RestFields>>);

/// The fields beside a chunk's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestFields {
    /// Provider payload (signatures, item ids) that goes back to the provider unchanged.
    pub provider_metadata: Option<Value>,
    /// What a client needs to show a tool call; ours is under the key `attache`. Never reaches the model.
    pub tool_metadata: Option<Value>,
    /// Keys this version does not know; they survive a round trip.
    pub unknown: Map<String, Value>,
}

impl Rest {
    /// Nothing beside the chunk's own fields.
    pub fn none() -> Self {
        Self(None)
    }
    pub(crate) fn with_tool_metadata(value: Value) -> Self {
        Self(Some(Box::new(RestFields { tool_metadata: Some(value), ..RestFields::default() })))
    }
    /// What goes back to the provider.
    pub fn provider_metadata(&self) -> Option<&Value> {
        self.0.as_ref().and_then(|rest| rest.provider_metadata.as_ref())
    }
    /// What clients need to show the call.
    pub fn tool_metadata(&self) -> Option<&Value> {
        self.0.as_ref().and_then(|rest| rest.tool_metadata.as_ref())
    }
    pub(crate) fn set_tool_metadata(&mut self, value: Value) {
        self.0.get_or_insert_default().tool_metadata = Some(value);
    }
}

/// Why a message ended, in the words of the AI SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the AI SDK")]
pub enum FinishReason {
    Stop,
    Length,
    ContentFilter,
    ToolCalls,
    Error,
    Other,
}

/// Optional marks of a tool chunk.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the words of the AI SDK")]
pub struct ToolMarks {
    pub title: Option<String>,
    pub dynamic: Option<bool>,
    pub provider_executed: Option<bool>,
}

/// One thing that a run says.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the words of the AI SDK")]
pub enum Chunk {
    Start {
        message_id: Option<String>,
        message_metadata: Option<Value>,
        rest: Rest,
    },
    StartStep {
        rest: Rest,
    },
    FinishStep {
        rest: Rest,
    },
    TextStart {
        id: StreamId,
        rest: Rest,
    },
    TextDelta {
        id: StreamId,
        delta: String,
        rest: Rest,
    },
    TextEnd {
        id: StreamId,
        rest: Rest,
    },
    ReasoningStart {
        id: StreamId,
        rest: Rest,
    },
    ReasoningDelta {
        id: StreamId,
        delta: String,
        rest: Rest,
    },
    ReasoningEnd {
        id: StreamId,
        rest: Rest,
    },
    ToolInputStart {
        call_id: CallId,
        tool_name: String,
        input_encoding: Option<String>,
        marks: ToolMarks,
        rest: Rest,
    },
    ToolInputDelta {
        call_id: CallId,
        input_text_delta: String,
        rest: Rest,
    },
    ToolInputAvailable {
        call_id: CallId,
        tool_name: String,
        input: Value,
        marks: ToolMarks,
        rest: Rest,
    },
    ToolInputError {
        call_id: CallId,
        tool_name: String,
        input: Value,
        error_text: String,
        marks: ToolMarks,
        rest: Rest,
    },
    /// Its other keys (approvalDescriptor, inputSchemaInput, signature) are kept in `rest.unknown`.
    ToolApprovalRequest {
        approval_id: String,
        call_id: CallId,
        rest: Rest,
    },
    ToolOutputAvailable {
        call_id: CallId,
        output: Value,
        preliminary: Option<bool>,
        marks: ToolMarks,
        rest: Rest,
    },
    ToolOutputError {
        call_id: CallId,
        error_text: String,
        marks: ToolMarks,
        rest: Rest,
    },
    ToolOutputDenied {
        call_id: CallId,
        rest: Rest,
    },
    SourceUrl {
        source_id: String,
        url: String,
        title: Option<String>,
        rest: Rest,
    },
    SourceDocument {
        source_id: String,
        media_type: String,
        title: String,
        filename: Option<String>,
        rest: Rest,
    },
    File {
        url: String,
        media_type: String,
        rest: Rest,
    },
    /// `data-NAME`; `name` is without the prefix.
    Data {
        name: String,
        id: Option<String>,
        data: Value,
        transient: Option<bool>,
        rest: Rest,
    },
    MessageMetadata {
        message_metadata: Value,
        rest: Rest,
    },
    Error {
        error_text: String,
        rest: Rest,
    },
    Abort {
        reason: Option<String>,
        rest: Rest,
    },
    Finish {
        finish_reason: Option<FinishReason>,
        message_metadata: Option<Value>,
        rest: Rest,
    },
}

impl FinishReason {
    /// As the AI SDK writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ContentFilter => "content-filter",
            Self::ToolCalls => "tool-calls",
            Self::Error => "error",
            Self::Other => "other",
        }
    }
    /// The reason with that name in the AI SDK.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Stop, Self::Length, Self::ContentFilter, Self::ToolCalls, Self::Error, Self::Other]
            .into_iter()
            .find(|reason| reason.as_str() == text)
    }
}

/// The `rest` of a chunk, shared or exclusive like the reference to the chunk.
macro_rules! rest_of {
    ($chunk:expr) => {
        match $chunk {
            Chunk::Start { rest, .. }
            | Chunk::StartStep { rest }
            | Chunk::FinishStep { rest }
            | Chunk::TextStart { rest, .. }
            | Chunk::TextDelta { rest, .. }
            | Chunk::TextEnd { rest, .. }
            | Chunk::ReasoningStart { rest, .. }
            | Chunk::ReasoningDelta { rest, .. }
            | Chunk::ReasoningEnd { rest, .. }
            | Chunk::ToolInputStart { rest, .. }
            | Chunk::ToolInputDelta { rest, .. }
            | Chunk::ToolInputAvailable { rest, .. }
            | Chunk::ToolInputError { rest, .. }
            | Chunk::ToolApprovalRequest { rest, .. }
            | Chunk::ToolOutputAvailable { rest, .. }
            | Chunk::ToolOutputError { rest, .. }
            | Chunk::ToolOutputDenied { rest, .. }
            | Chunk::SourceUrl { rest, .. }
            | Chunk::SourceDocument { rest, .. }
            | Chunk::File { rest, .. }
            | Chunk::Data { rest, .. }
            | Chunk::MessageMetadata { rest, .. }
            | Chunk::Error { rest, .. }
            | Chunk::Abort { rest, .. }
            | Chunk::Finish { rest, .. } => rest,
        }
    };
}

impl Chunk {
    /// The `type` of the AI SDK wire.
    pub fn kind(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Start { .. } => "start",
            Self::StartStep { .. } => "start-step",
            Self::FinishStep { .. } => "finish-step",
            Self::TextStart { .. } => "text-start",
            Self::TextDelta { .. } => "text-delta",
            Self::TextEnd { .. } => "text-end",
            Self::ReasoningStart { .. } => "reasoning-start",
            Self::ReasoningDelta { .. } => "reasoning-delta",
            Self::ReasoningEnd { .. } => "reasoning-end",
            Self::ToolInputStart { .. } => "tool-input-start",
            Self::ToolInputDelta { .. } => "tool-input-delta",
            Self::ToolInputAvailable { .. } => "tool-input-available",
            Self::ToolInputError { .. } => "tool-input-error",
            Self::ToolApprovalRequest { .. } => "tool-approval-request",
            Self::ToolOutputAvailable { .. } => "tool-output-available",
            Self::ToolOutputError { .. } => "tool-output-error",
            Self::ToolOutputDenied { .. } => "tool-output-denied",
            Self::SourceUrl { .. } => "source-url",
            Self::SourceDocument { .. } => "source-document",
            Self::File { .. } => "file",
            Self::Data { name, .. } => return Cow::Owned(format!("data-{name}")),
            Self::MessageMetadata { .. } => "message-metadata",
            Self::Error { .. } => "error",
            Self::Abort { .. } => "abort",
            Self::Finish { .. } => "finish",
        })
    }

    /// The fields beside its own.
    pub fn rest(&self) -> &Rest {
        rest_of!(self)
    }

    /// Drops what is under our own key in the fields beside its own, whoever wrote it: readers would take it
    /// for ours.
    #[must_use]
    pub fn without_own_marks(mut self) -> Self {
        let rest: &mut Rest = rest_of!(&mut self);
        if let Some(fields) = rest.0.as_deref_mut() {
            fields.unknown.shift_remove(OWN_KEY);
            for metadata in [&mut fields.provider_metadata, &mut fields.tool_metadata] {
                if let Some(Value::Object(metadata)) = metadata {
                    metadata.shift_remove(OWN_KEY);
                }
            }
        }
        self
    }

    /// Whether this chunk ends its message.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Chunk::Finish { .. } | Chunk::Abort { .. } | Chunk::Error { .. })
    }

    /// Whether it is data of this name.
    pub fn is_data(&self, wanted: DataName) -> bool {
        matches!(self, Chunk::Data { name, .. } if *name == wanted)
    }

    /// More of a text.
    pub fn text_delta(id: &StreamId, delta: impl Into<String>) -> Self {
        Self::TextDelta { id: id.clone(), delta: delta.into(), rest: Rest::none() }
    }
    /// More of a thought.
    pub fn reasoning_delta(id: &StreamId, delta: impl Into<String>) -> Self {
        Self::ReasoningDelta { id: id.clone(), delta: delta.into(), rest: Rest::none() }
    }
    /// The end of a message that failed.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Error { error_text: text.into(), rest: Rest::none() }
    }
    /// A chunk of our own that is stored with the message.
    pub fn data(name: impl Into<String>, data: Value) -> Self {
        Self::Data { name: name.into(), id: None, data, transient: None, rest: Rest::none() }
    }
    /// A chunk of our own that is not stored: only clients that are connected now see it.
    pub fn transient_data(name: impl Into<String>, data: Value) -> Self {
        Self::Data { name: name.into(), id: None, data, transient: Some(true), rest: Rest::none() }
    }
}
