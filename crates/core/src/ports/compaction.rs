//! Makes room in a conversation that no longer fits its model: the loop asks, another component does it.
//!
//! On a host without it, such a turn ends with a message that says what to do. The loop stores the result as a
//! `data-compaction` part of the answer; from then on every request, also after a restart, consists of the
//! summary, the tail and what followed (`crate::compaction`).

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::BoxFuture;
use super::model::{ModelError, ModelInfo, ThoughtLevel, Usage};
use super::store::ModelRef;
use super::telemetry::SpanContext;
use super::tool::ToolSpec;
use crate::conversation::Conversation;
use crate::ids::{CallId, MessageId, SessionId};

/// A conversation that will soon exceed its model's context, or that a provider refused as too long.
#[derive(Clone, Debug)]
pub struct CompactionRequest {
    /// Whose conversation it is.
    pub session_id: SessionId,
    /// Where the session works.
    pub root: PathBuf,
    /// The model of the turn.
    pub info: Arc<ModelInfo>,
    /// The instructions of the agent that summarises: the session's own `compaction`.
    pub instructions: Arc<str>,
    /// The model and thought level that this agent's manifest names for writing, if it does.
    pub writer: NoteWriter,
    /// The thought level of the turn. Level, prompt and tools are the same as in its requests, so that the
    /// provider's cache applies.
    pub thought: Option<ThoughtLevel>,
    /// The system prompt of the turn.
    pub system: Arc<str>,
    /// The tools of the turn.
    pub tools: Arc<[ToolSpec]>,
    /// The conversation as it would be sent, with the prompt of the current turn.
    pub conversation: Conversation,
    /// The prompt of the current turn. Until it is answered it has to stay in the tail.
    pub prompt: MessageId,
    /// Why the conversation is compacted.
    pub occasion: Occasion,
    /// Receives progress; reporting none is allowed.
    pub progress: ProgressSender,
    /// What the next request would take; `None` if only the provider knows.
    pub expected_tokens: Option<u64>,
    /// The most that the model accepts.
    pub limit_tokens: u64,
    /// Why room is needed: our own count, or the provider's error.
    pub reason: String,
    /// The parent span for calls of a model; `None` on a host that measures nothing.
    pub parent_span: Option<SpanContext>,
}

/// What the manifest of the summarising agent says about its model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteWriter {
    /// Used if the conversation fits its window; else the model of the turn writes.
    pub model: Option<ModelRef>,
    /// For whichever model writes, if it has this level.
    pub thought: Option<ThoughtLevel>,
}

/// Why a conversation is compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// It does not fit. The last turns stay.
    Overflow,
    /// The user asked for it, with what to keep in particular, which may be empty. No turn stays.
    Command {
        /// What the user wants kept, in their words.
        keep: String,
    },
}

/// How far a summary has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionProgress {
    /// The model reads one piece of the conversation; replaces what was written about the piece before.
    Piece {
        /// Which piece, from 1 on.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// More of the summary.
    Text(String),
}

/// Sends progress to the caller.
#[derive(Clone, Debug, Default)]
pub struct ProgressSender(Option<mpsc::Sender<CompactionProgress>>);

impl ProgressSender {
    /// Sends it to this channel.
    pub fn new(sender: mpsc::Sender<CompactionProgress>) -> Self {
        Self(Some(sender))
    }

    /// Waits for the receiver, so that nothing piles up.
    pub async fn tell(&self, progress: CompactionProgress) {
        if let Some(sender) = &self.0 {
            // A receiver that is gone needs no progress.
            drop(sender.send(progress).await);
        }
    }
}

/// A summary that replaces what was said before the tail.
#[derive(Clone, Debug, PartialEq)]
pub struct Compacted {
    /// Replaces everything before the tail.
    pub summary: String,
    /// The first message that is still sent unchanged. `None`: none before the current step.
    pub tail_start: Option<MessageId>,
    /// The step of that message with this call is the first that is still sent. `None`: all of the message.
    pub tail_call: Option<CallId>,
    /// Tokens of the summary, if they were counted.
    pub summary_tokens: Option<u64>,
    /// What making it used and by which model: paid like the steps of the turn.
    pub used: Usage,
    /// The model that wrote it.
    pub model: Option<Arc<ModelInfo>>,
}

/// Makes a conversation shorter.
pub trait Compaction: Send + Sync + Debug {
    /// Called at most once per request to the model. `None` if nothing can be shortened. Cancelling ends it at
    /// once.
    fn compact(
        &self,
        request: CompactionRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Option<Compacted>, ModelError>>;
}
