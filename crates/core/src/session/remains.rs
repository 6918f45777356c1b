//! What a turn leaves to its session when it ends. A value; what becomes of it is decided by `run`.

use crate::conversation::Conversation;
use crate::turn::{LeftOut, Turn};

/// What is left of a turn when it ends.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    pub(crate) passages: Option<Conversation>,
    /// The passages lack the last step; they are no history for the next turn.
    pub(crate) last_step_left_out: bool,
    pub(crate) left_out: Option<LeftOut>,
}

impl Remains {
    pub(crate) fn of(turn: &Turn) -> Self {
        Self {
            passages: Some(turn.passages.clone()),
            last_step_left_out: turn.last_step_left_out,
            left_out: turn.left_out,
        }
    }
}
