//! Parts of a message as the AI SDK's UI messages have them: what the chunks add up to, stored and sent whole.

use serde_json::Value;

use crate::ids::{CallId, MessageId};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    User,
    Assistant,
    System,
}

/// Whether a text or reasoning part may still grow. User parts carry no state at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState {
    Streaming,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolState {
    InputStreaming,
    InputAvailable,
    ApprovalRequested,
    ApprovalResponded,
    OutputAvailable,
    OutputError,
    OutputDenied,
}

impl ToolState {
    /// Whether the call has its one result.
    pub fn is_settled(self) -> bool {
        match self {
            Self::OutputAvailable | Self::OutputError | Self::OutputDenied => true,
            Self::InputStreaming | Self::InputAvailable | Self::ApprovalRequested | Self::ApprovalResponded => false,
        }
    }
}

/// A question put to the user about one call, and the answer once there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    pub id: String,
    pub approved: Option<bool>,
    pub reason: Option<String>,
    /// Other keys of the approval (descriptor, signature …), kept as they came.
    pub unknown: serde_json::Map<String, Value>,
}

/// One call of a tool with all that is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPart {
    pub call_id: CallId,
    pub tool_name: String,
    /// `dynamic-tool` instead of `tool-NAME`.
    pub dynamic: bool,
    pub state: ToolState,
    pub title: Option<String>,
    pub input: Option<Value>,
    pub input_encoding: Option<String>,
    pub raw_input: Option<Value>,
    pub output: Option<Value>,
    pub error_text: Option<String>,
    /// The output is live progress, not the result.
    pub preliminary: Option<bool>,
    pub provider_executed: Option<bool>,
    pub tool_metadata: Option<Value>,
    pub call_provider_metadata: Option<Value>,
    pub result_provider_metadata: Option<Value>,
    pub approval: Option<Approval>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    StepStart,
    Text { text: String, state: Option<StreamState>, provider_metadata: Option<Value> },
    /// `id` is the stream id the chunks used.
    Reasoning { id: Option<String>, text: String, state: Option<StreamState>, provider_metadata: Option<Value> },
    Tool(Box<ToolPart>),
    SourceUrl { source_id: String, url: String, title: Option<String>, provider_metadata: Option<Value> },
    SourceDocument {
        source_id: String,
        media_type: String,
        title: String,
        filename: Option<String>,
        provider_metadata: Option<Value>,
    },
    File { media_type: String, url: String, filename: Option<String>, provider_metadata: Option<Value> },
    /// `data-NAME`; `name` is without the prefix.
    Data { name: String, id: Option<String>, data: Value },
}

/// A message, or one finished step of it, as the model's view needs it: shared, never cloned per turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    pub message_id: MessageId,
    pub role: Role,
    pub parts: Vec<Part>,
}
