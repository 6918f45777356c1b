//! Making room in a conversation that no longer fits its model: asked by the loop, done elsewhere.
//!
//! A host without one ends such a turn with words that say what to do. The loop stores what is given here as a
//! `data-compaction` part of the answer; from then on every request, also after a restart, is made of the
//! summary, the tail and what followed (`crate::compaction`).

use std::fmt::Debug;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::BoxFuture;
use super::model::{ModelError, ModelInfo, Usage};
use crate::conversation::Conversation;
use crate::ids::{MessageId, SessionId};

/// A conversation that is about to outgrow its model, or was refused as too long.
#[derive(Clone, Debug)]
pub struct CompactionRequest {
    pub session_id: SessionId,
    /// The model of the turn.
    pub info: Arc<ModelInfo>,
    pub system: Arc<str>,
    /// As it would be sent; the prompt of the turn under way is in it.
    pub conversation: Conversation,
    /// The prompt of the turn under way. Until it is answered it has to stay in the tail.
    pub prompt: MessageId,
    /// What the next request would take, and what it may take; `None` where only the provider knows.
    pub expected_tokens: Option<u64>,
    pub limit_tokens: u64,
    /// Why room is needed: our own figures, or the provider's words.
    pub reason: String,
}

/// A summary in the place of what was said before the tail.
#[derive(Clone, Debug, PartialEq)]
pub struct Compacted {
    pub summary: String,
    /// The first message that is still sent as it was. `None`: none before the step under way.
    pub tail_start: Option<MessageId>,
    pub summary_tokens: Option<u64>,
    /// What making it used, by which model: paid like the steps of the turn.
    pub used: Usage,
    pub model: Option<Arc<ModelInfo>>,
}

pub trait Compaction: Send + Sync + Debug {
    /// Asked at most once per request to the model. `None` when nothing can be made shorter. Cancelling ends it
    /// at once.
    fn compact(
        &self,
        request: CompactionRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Option<Compacted>, ModelError>>;
}
