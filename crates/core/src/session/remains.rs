//! What a turn leaves to its session when it ends. A value; what becomes of it is decided by `run`.

use std::sync::Arc;

use crate::part::Passage;
use crate::ports::model::Usage;
use crate::turn::Turn;

/// What is left of a turn when it ends.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    pub(crate) usage: Usage,
    pub(crate) passages: Option<Arc<Vec<Arc<Passage>>>>,
    /// The passages lack the last step; they are no history for the next turn.
    pub(crate) last_step_left_out: bool,
}

impl Remains {
    pub(crate) fn of(turn: &Turn) -> Self {
        Self {
            usage: turn.usage,
            passages: Some(turn.passages.clone()),
            last_step_left_out: turn.last_step_left_out,
        }
    }

    /// Of a turn that did not come back: only what it used is known.
    pub(crate) fn used(usage: Usage) -> Self {
        Self { usage, ..Self::default() }
    }
}
