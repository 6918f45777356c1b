//! Parts of a message as the AI SDK's UI messages have them: what the chunks add up to, stored and sent whole.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::data_name::DataName;
use crate::hooks;
use crate::ids::{CallId, MessageId};

pub mod json;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the words of the AI SDK")]
pub enum Role {
    User,
    Assistant,
    System,
}

impl Role {
    /// The stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
    /// Reads the stored form.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Assistant, Self::System].into_iter().find(|role| role.as_str() == text)
    }
}

/// Whether a text or reasoning part may still grow. User parts carry no state at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the AI SDK")]
pub enum StreamState {
    Streaming,
    Done,
}

impl StreamState {
    /// The stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Streaming => "streaming",
            Self::Done => "done",
        }
    }
    /// Reads the stored form.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Streaming, Self::Done].into_iter().find(|state| state.as_str() == text)
    }
}

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the AI SDK")]
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
    const ALL: [Self; 7] = [
        Self::InputStreaming,
        Self::InputAvailable,
        Self::ApprovalRequested,
        Self::ApprovalResponded,
        Self::OutputAvailable,
        Self::OutputError,
        Self::OutputDenied,
    ];

    /// The stored form.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InputStreaming => "input-streaming",
            Self::InputAvailable => "input-available",
            Self::ApprovalRequested => "approval-requested",
            Self::ApprovalResponded => "approval-responded",
            Self::OutputAvailable => "output-available",
            Self::OutputError => "output-error",
            Self::OutputDenied => "output-denied",
        }
    }
    /// For people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::InputStreaming => "incomplete",
            Self::InputAvailable | Self::ApprovalResponded => "not finished",
            Self::ApprovalRequested => "waiting for permission",
            Self::OutputAvailable => "completed",
            Self::OutputError => "failed",
            Self::OutputDenied => "denied",
        }
    }

    /// Reads the stored form.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether the call has an output. Live progress counts, too: `ToolPart::is_settled` tells the two apart.
    pub fn is_settled(self) -> bool {
        match self {
            Self::OutputAvailable | Self::OutputError | Self::OutputDenied => true,
            Self::InputStreaming
            | Self::InputAvailable
            | Self::ApprovalRequested
            | Self::ApprovalResponded => false,
        }
    }
}

/// A question to the user about one call, and the answer once there is one.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the words of the AI SDK")]
pub struct ToolApproval {
    pub id: String,
    pub approved: Option<bool>,
    pub reason: Option<String>,
    /// Other keys of the approval (descriptor, signature …), unchanged.
    pub unknown: serde_json::Map<String, Value>,
}

/// One call of a tool with all that is known of it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the words of the AI SDK")]
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
    pub approval: Option<ToolApproval>,
}

impl ToolPart {
    /// A call of which only the name is known yet.
    pub fn new(call_id: CallId, tool_name: impl Into<String>) -> Self {
        Self {
            call_id,
            tool_name: tool_name.into(),
            dynamic: false,
            state: ToolState::InputStreaming,
            title: None,
            input: None,
            input_encoding: None,
            raw_input: None,
            output: None,
            error_text: None,
            preliminary: None,
            provider_executed: None,
            tool_metadata: None,
            call_provider_metadata: None,
            result_provider_metadata: None,
            approval: None,
        }
    }

    /// The state in words for people, who do not count live progress as an end.
    pub fn state_in_words(&self) -> &'static str {
        match self.state {
            ToolState::OutputAvailable if !self.is_settled() => "running",
            state => state.in_words(),
        }
    }

    /// Whether the call has its one result; live progress is not a result.
    pub fn is_settled(&self) -> bool {
        match self.state {
            ToolState::OutputAvailable => self.preliminary != Some(true),
            ToolState::OutputError | ToolState::OutputDenied => true,
            ToolState::InputStreaming
            | ToolState::InputAvailable
            | ToolState::ApprovalRequested
            | ToolState::ApprovalResponded => false,
        }
    }
}

/// One part of a stored message.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the words of the AI SDK")]
pub enum Part {
    StepStart,
    Text {
        text: String,
        state: Option<StreamState>,
        provider_metadata: Option<Value>,
    },
    /// `id` is the stream id the chunks used.
    Reasoning {
        id: Option<String>,
        text: String,
        state: Option<StreamState>,
        provider_metadata: Option<Value>,
    },
    Tool(Box<ToolPart>),
    SourceUrl {
        source_id: String,
        url: String,
        title: Option<String>,
        provider_metadata: Option<Value>,
    },
    SourceDocument {
        source_id: String,
        media_type: String,
        title: String,
        filename: Option<String>,
        provider_metadata: Option<Value>,
    },
    File {
        media_type: String,
        url: String,
        filename: Option<String>,
        provider_metadata: Option<Value>,
    },
    /// `data-NAME`; `name` is without the prefix.
    Data {
        name: String,
        id: Option<String>,
        data: Value,
    },
}

impl Part {
    /// The AI SDK's type (`text`, `tool-read`, `data-plan` …).
    pub fn kind(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::StepStart => "step-start",
            Self::Text { .. } => "text",
            Self::Reasoning { .. } => "reasoning",
            Self::Tool(tool) if tool.dynamic => "dynamic-tool",
            Self::Tool(tool) => return Cow::Owned(format!("tool-{}", tool.tool_name)),
            Self::SourceUrl { .. } => "source-url",
            Self::SourceDocument { .. } => "source-document",
            Self::File { .. } => "file",
            Self::Data { name, .. } => return Cow::Owned(format!("data-{name}")),
        })
    }
    /// Its data, if it is data of this name.
    pub fn data(&self, wanted: DataName) -> Option<&Value> {
        match self {
            Self::Data { name, data, .. } if *name == wanted => Some(data),
            Self::StepStart
            | Self::Text { .. }
            | Self::Reasoning { .. }
            | Self::Tool(_)
            | Self::SourceUrl { .. }
            | Self::SourceDocument { .. }
            | Self::File { .. }
            | Self::Data { .. } => None,
        }
    }
    /// The call, if it is one.
    pub fn tool(&self) -> Option<&ToolPart> {
        if let Self::Tool(tool) = self { Some(tool) } else { None }
    }
    /// The call, if it is one.
    pub fn tool_mut(&mut self) -> Option<&mut ToolPart> {
        if let Self::Tool(tool) = self { Some(tool) } else { None }
    }
}

/// A message, or one finished step of it, as the model's view needs it: shared, never cloned per turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// Which message it is.
    pub message_id: MessageId,
    /// The author.
    pub role: Role,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// The provider's form of this passage, kept by the code that encodes it.
    pub written: PassageCache,
}

impl Passage {
    /// A passage of these parts.
    pub fn new(message_id: MessageId, role: Role, parts: Vec<Part>) -> Self {
        Self { message_id, role, parts, written: PassageCache::default() }
    }

    /// A step of an answer, followed by what a hook told the model so that it continues.
    pub(crate) fn of_step(message_id: &MessageId, parts: Vec<Part>) -> impl Iterator<Item = Self> {
        let words: Vec<Part> = parts.iter().filter(|part| hooks::is_word(part)).cloned().collect();
        let told = (!words.is_empty()).then(|| Self::new(message_id.clone(), Role::System, words));
        std::iter::once(Self::new(message_id.clone(), Role::Assistant, parts)).chain(told)
    }
}

/// The form in which one passage was sent to a provider, so that history is encoded once and not at every step.
/// Not part of the passage's value: a copy starts empty, and all caches compare equal.
#[derive(Default)]
pub struct PassageCache {
    /// Why a lock: the turn and the current request share passages. Held only to copy a pointer.
    kept: Mutex<Option<Arc<dyn Any + Send + Sync>>>,
}

impl PassageCache {
    /// What was last kept, if it has this type and `fits` accepts it (the session may have changed its model).
    pub fn get<T: Any + Send + Sync>(&self, fits: impl FnOnce(&T) -> bool) -> Option<Arc<T>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        kept.downcast::<T>().ok().filter(|kept| fits(kept))
    }

    /// Replaces what was kept.
    pub fn keep<T: Any + Send + Sync>(&self, written: Arc<T>) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(written);
    }
}

impl Clone for PassageCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for PassageCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for PassageCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Written")
    }
}
