//! Making room in a conversation that no longer fits its model: asked by the loop, done elsewhere.
//!
//! A host without one ends such a turn with words that say what to do. The loop stores what is given here as a
//! `data-compaction` part of the answer; from then on every request, also after a restart, is made of the
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

/// A conversation that is about to outgrow its model, or was refused as too long.
#[derive(Clone, Debug)]
pub struct CompactionRequest {
    /// Whose conversation it is.
    pub session_id: SessionId,
    /// Where the session works.
    pub root: PathBuf,
    /// The model of the turn.
    pub info: Arc<ModelInfo>,
    /// What the agent that summarises is told: the session's own `compaction`.
    pub instructions: Arc<str>,
    /// The model that its manifest wants to write, and how much it thinks; `None`: it says nothing of that.
    pub writer: NoteWriter,
    /// The level, the prompt and the tools that its requests have: what is the same to the byte is cached.
    pub thought: Option<ThoughtLevel>,
    /// The system prompt of the turn.
    pub system: Arc<str>,
    /// The tools of the turn.
    pub tools: Arc<[ToolSpec]>,
    /// As it would be sent; the prompt of the turn under way is in it.
    pub conversation: Conversation,
    /// The prompt of the turn under way. Until it is answered it has to stay in the tail.
    pub prompt: MessageId,
    /// Why room is wanted.
    pub occasion: Occasion,
    /// Told while it is made; whoever does not tell anything is as good.
    pub progress: ProgressSender,
    /// What the next request would take, and what it may take; `None` where only the provider knows.
    pub expected_tokens: Option<u64>,
    /// What the model takes at most.
    pub limit_tokens: u64,
    /// Why room is needed: our own figures, or the provider's words.
    pub reason: String,
    /// What calls of a model are measured below; `None` on a host that measures nothing.
    pub parent_span: Option<SpanContext>,
}

/// What the manifest of the agent that summarises says of its model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteWriter {
    /// Asked where the conversation fits its window; else the model of the turn.
    pub model: Option<ModelRef>,
    /// For whichever model writes, if that has the level.
    pub thought: Option<ThoughtLevel>,
}

/// Why a conversation is made shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// It does not fit. The last turns stay.
    Overflow,
    /// The user wants it, with what to keep in particular; that may be empty. No turn stays.
    Command {
        /// What the user wants kept, in their words.
        keep: String,
    },
}

/// How far a summary has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionProgress {
    /// One piece of the conversation is read, of so many; what was written about the one before is replaced.
    Piece {
        /// Which piece, from 1 on.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// More of the summary.
    Text(String),
}

/// Where progress is told.
#[derive(Clone, Debug, Default)]
pub struct ProgressSender(Option<mpsc::Sender<CompactionProgress>>);

impl ProgressSender {
    /// Tells it there.
    pub fn new(sender: mpsc::Sender<CompactionProgress>) -> Self {
        Self(Some(sender))
    }

    /// Waits for who shows it, so that nothing piles up.
    pub async fn tell(&self, progress: CompactionProgress) {
        if let Some(sender) = &self.0 {
            // Who went away needs no progress.
            drop(sender.send(progress).await);
        }
    }
}

/// A summary in the place of what was said before the tail.
#[derive(Clone, Debug, PartialEq)]
pub struct Compacted {
    /// What takes the place of everything before the tail.
    pub summary: String,
    /// The first message that is still sent as it was. `None`: none before the step under way.
    pub tail_start: Option<MessageId>,
    /// Of that message the step with this call is the first that is still sent. `None`: all of it.
    pub tail_call: Option<CallId>,
    /// How long the summary is, where that was counted.
    pub summary_tokens: Option<u64>,
    /// What making it used, by which model: paid like the steps of the turn.
    pub used: Usage,
    /// The model that wrote it.
    pub model: Option<Arc<ModelInfo>>,
}

/// Makes a conversation shorter.
pub trait Compaction: Send + Sync + Debug {
    /// Asked at most once per request to the model. `None` when nothing can be made shorter. Cancelling ends it
    /// at once.
    fn compact(
        &self,
        request: CompactionRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Option<Compacted>, ModelError>>;
}
