//! What a user can choose for a session, and what is chosen: agents as modes, and models.

use std::sync::Arc;

use crate::ports::model::ModelInfo;
use crate::ports::store::ModelRef;

/// One agent that can be a session's mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    pub id: String,
    pub name: String,
    pub description: String,
}

/// Constant for the life of a process.
#[derive(Clone, Debug)]
pub struct Choices {
    pub modes: Vec<Mode>,
    pub models: Arc<[ModelInfo]>,
}

/// The current choice of one session; `data-mode` carries it as `{agent, model}`, the model as `provider/model`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub agent: String,
    pub model: ModelRef,
}
