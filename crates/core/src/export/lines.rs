//! The lines of a JSONL export, one object each, which an import reads back. Only this file knows their form.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ids::{MessageId, PartId, SessionId};
use crate::metadata::{MessageMeta, SessionMeta};
use crate::part::{Role, ToolState};
use crate::ports::store::{MessageRow, ModelRef, PartRow, SessionRow, UsageTotals};

/// The version of the form below; an import refuses another.
pub const VERSION: u64 = 1;

/// What a line says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    /// The first.
    Session,
    /// A system prompt, before the first message that was answered with it.
    SystemPrompt,
    /// A message without its parts.
    Message,
    /// Behind its message.
    Part,
    /// The content of an attachment, behind the first part that refers to it.
    Blob,
    /// The last: an import that does not find it knows that lines are missing.
    End,
}

/// One line to write.
#[derive(Serialize)]
pub(super) struct WrittenLine<T> {
    #[serde(rename = "type")]
    pub(super) kind: LineKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<u64>,
    pub(super) data: T,
}

/// A row of `chat_sessions` under its column names.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionLine {
    id: SessionId,
    agent: String,
    workspace_root: PathText,
    model: Option<ModelLine>,
    parent_id: Option<SessionId>,
    parent_message_id: Option<MessageId>,
    permissions: Value,
    metadata: SessionMeta,
    prompt_tokens: i64,
    completion_tokens: i64,
    reasoning_tokens: i64,
    cache_read: i64,
    cache_write: i64,
    /// Null where no price was known.
    cost_usd: Option<f64>,
    created_at: i64,
    updated_at: i64,
    archived_at: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelLine {
    provider_id: String,
    model_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
}

/// A path as text, or its bytes where it is none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum PathText {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl PathText {
    fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes { bytes: path.as_os_str().as_bytes().to_vec() },
        }
    }

    fn into_path(self) -> PathBuf {
        match self {
            Self::Text(text) => PathBuf::from(text),
            Self::Bytes { bytes } => PathBuf::from(OsString::from_vec(bytes)),
        }
    }
}

impl SessionLine {
    /// As a line of the export.
    pub fn of(row: &SessionRow) -> Self {
        let totals = &row.totals;
        let model = row.model.clone().map(|ModelRef { provider_id, model_id, variant }| ModelLine {
            provider_id,
            model_id,
            variant,
        });
        Self {
            id: row.id.clone(),
            agent: row.agent.clone(),
            workspace_root: PathText::of(&row.workspace_root),
            model,
            parent_id: row.parent_id.clone(),
            parent_message_id: row.parent_message_id.clone(),
            permissions: row.permissions.clone(),
            metadata: row.metadata.clone(),
            prompt_tokens: totals.prompt_tokens,
            completion_tokens: totals.completion_tokens,
            reasoning_tokens: totals.reasoning_tokens,
            cache_read: totals.cache_read,
            cache_write: totals.cache_write,
            cost_usd: totals.known_cost_usd(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            archived_at: row.archived_at,
        }
    }

    pub(crate) fn into_row(self) -> SessionRow {
        let model = self.model.map(|ModelLine { provider_id, model_id, variant }| ModelRef {
            provider_id,
            model_id,
            variant,
        });
        SessionRow {
            id: self.id,
            agent: self.agent,
            workspace_root: self.workspace_root.into_path(),
            model,
            parent_id: self.parent_id,
            parent_message_id: self.parent_message_id,
            permissions: self.permissions,
            metadata: self.metadata,
            totals: UsageTotals {
                prompt_tokens: self.prompt_tokens,
                completion_tokens: self.completion_tokens,
                reasoning_tokens: self.reasoning_tokens,
                cache_read: self.cache_read,
                cache_write: self.cache_write,
                cost_usd: self.cost_usd.unwrap_or(0.0),
            },
            created_at: self.created_at,
            updated_at: self.updated_at,
            archived_at: self.archived_at,
        }
    }
}

/// A row of `chat_messages`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageLine {
    id: MessageId,
    session_id: SessionId,
    seq: Option<i64>,
    role: String,
    metadata: MessageMeta,
    created_at: i64,
    updated_at: i64,
}

impl MessageLine {
    pub(super) fn of(row: &MessageRow) -> Self {
        Self {
            id: row.id.clone(),
            session_id: row.session_id.clone(),
            seq: row.seq,
            role: row.role.as_str().to_owned(),
            metadata: row.metadata.clone(),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }

    /// The error says what is wrong with the line.
    pub(crate) fn into_row(self) -> Result<MessageRow, String> {
        let role = Role::parse(&self.role).ok_or_else(|| format!("there is no role `{}`", self.role))?;
        Ok(MessageRow {
            id: self.id,
            session_id: self.session_id,
            seq: self.seq,
            role,
            metadata: self.metadata,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// A row of `chat_parts`, with its data character by character as stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartLine {
    id: PartId,
    message_id: MessageId,
    session_id: SessionId,
    index: i64,
    #[serde(rename = "type")]
    kind: String,
    data: Box<RawValue>,
    tool_call_id: Option<String>,
    tool_state: Option<String>,
    created_at: i64,
    updated_at: i64,
}

impl PartLine {
    pub(super) fn of(row: &PartRow) -> serde_json::Result<Self> {
        Ok(Self {
            id: row.id.clone(),
            message_id: row.message_id.clone(),
            session_id: row.session_id.clone(),
            index: row.index,
            kind: row.kind.clone(),
            data: RawValue::from_string(row.data_json.clone())?,
            tool_call_id: row.tool_call_id.clone(),
            tool_state: row.tool_state.map(str::to_owned),
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }

    pub(crate) fn into_row(self) -> Result<PartRow, String> {
        let state = |text: &str| {
            let state = ToolState::parse(text).ok_or_else(|| format!("there is no tool state `{text}`"));
            state.map(ToolState::as_str)
        };
        Ok(PartRow {
            id: self.id,
            message_id: self.message_id,
            session_id: self.session_id,
            index: self.index,
            kind: self.kind,
            data_json: String::from(Box::<str>::from(self.data)),
            tool_call_id: self.tool_call_id,
            tool_state: self.tool_state.as_deref().map(state).transpose()?,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// The system prompt of some messages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemPromptLine {
    /// Its digest, by which messages refer to it.
    pub digest: String,
    /// The whole prompt.
    pub body: String,
}

/// An attachment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobLine {
    /// Its digest, by which parts refer to it.
    pub sha256: String,
    /// Its bytes.
    pub base64: String,
}

/// The last line: how many lines of each kind must have come before it.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndLine {
    /// How many messages.
    pub messages: usize,
    /// How many parts.
    pub parts: usize,
    /// How many attachments.
    pub blobs: usize,
}
