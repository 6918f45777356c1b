//! Making room in a conversation that no longer fits its model: asked by the loop, done elsewhere.
//!
//! The one place where compaction joins the loop. A host without one ends such a turn with words that say what to do. Whoever
//! makes room also answers for the next turns: what is told here (a `data-compaction`) stands with the answer, and reading
//! a conversation back (`session::history`) has to honour it.

use std::fmt::Debug;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::BoxFuture;
use super::model::{ModelError, ModelInfo};
use crate::chunk::Chunk;
use crate::conversation::Conversation;
use crate::ids::{MessageId, SessionId};
use crate::part::Passage;

/// A conversation that its model refused as too long.
#[derive(Clone, Debug)]
pub struct Crowded {
    pub session_id: SessionId,
    pub info: Arc<ModelInfo>,
    pub system: Arc<str>,
    pub passages: Conversation,
    /// The prompt of the turn under way. It has to stay, and what followed it as far as it can.
    pub prompt: MessageId,
    /// The provider's own words.
    pub reason: String,
}

/// The conversation as it is sent from now on.
#[derive(Clone, Debug)]
pub struct Room {
    pub passages: Vec<Arc<Passage>>,
    /// Recorded with the answer before the next request.
    pub told: Vec<Chunk>,
}

pub trait Compaction: Send + Sync + Debug {
    /// Asked at most once per turn. `None` when nothing can be made shorter. Cancelling ends it at once.
    fn make_room(
        &self,
        crowded: Crowded,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Option<Room>, ModelError>>;
}
