//! The two streams of a message of a model: its text, and what it thinks.

use attache_core::chunk::{Chunk, Rest, StreamId};

use super::messages::ToldMessage;

/// How far a stream of a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StreamPhase {
    #[default]
    Unsaid,
    Open,
    Closed,
}

/// The two streams of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum MessageStream {
    Text,
    Reasoning,
}

impl MessageStream {
    pub(super) fn phase(self, told: &mut ToldMessage) -> &mut StreamPhase {
        match self {
            Self::Text => &mut told.text,
            Self::Reasoning => &mut told.reasoning,
        }
    }

    pub(super) fn id(self, message: &str) -> StreamId {
        match self {
            Self::Text => format!("text-{message}").into(),
            Self::Reasoning => format!("reasoning-{message}").into(),
        }
    }

    pub(super) fn start(self, id: StreamId) -> Chunk {
        match self {
            Self::Text => Chunk::TextStart { id, rest: Rest::none() },
            Self::Reasoning => Chunk::ReasoningStart { id, rest: Rest::none() },
        }
    }

    pub(super) fn more(self, id: &StreamId, text: &str) -> Chunk {
        match self {
            Self::Text => Chunk::text_delta(id, text),
            Self::Reasoning => Chunk::reasoning_delta(id, text),
        }
    }

    pub(super) fn end(self, id: StreamId) -> Chunk {
        match self {
            Self::Text => Chunk::TextEnd { id, rest: Rest::none() },
            Self::Reasoning => Chunk::ReasoningEnd { id, rest: Rest::none() },
        }
    }
}
