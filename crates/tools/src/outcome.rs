//! The end of every call: bounded text for the model, a presentation for clients, the time it took. Runs
//! nothing.

use std::path::PathBuf;
use std::time::Instant;

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{FoundPicture, OutcomeMetadata, Presentation};
use attache_core::seen::{SeenFiles, Sight};
use attache_core::work_state::{BackgroundMark, TodoMark};
use attache_sandbox::limits::ERROR_BYTES;
use serde_json::Value;

use crate::bounded::Bounded;

/// A running call: its planned presentation, and when it began.
#[derive(Debug)]
pub(crate) struct RunningCall {
    started: Instant,
    pub(crate) presentation: Presentation,
    pub(crate) truncated: bool,
    pub(crate) output_path: Option<PathBuf>,
    /// The files it read or changed.
    pub(crate) seen: Vec<Sight>,
    pub(crate) exit_code: Option<i32>,
    /// The background commands that it mentions.
    pub(crate) background: Vec<BackgroundMark>,
    /// The task list, if it has changed.
    pub(crate) todos: Option<Vec<TodoMark>>,
}

impl RunningCall {
    pub(crate) fn started(presentation: Presentation) -> Self {
        Self {
            started: Instant::now(),
            presentation,
            truncated: false,
            output_path: None,
            seen: Vec::new(),
            exit_code: None,
            background: Vec::new(),
            todos: None,
        }
    }

    pub(crate) fn done(mut self, data: impl Into<Value>) -> ToolOutcome {
        self.presentation.metadata = Some(self.metadata());
        ToolOutcome::Output { data: data.into(), presentation: self.presentation }
    }

    pub(crate) fn pictured(mut self, found: FoundPicture) -> ToolOutcome {
        self.presentation.metadata = Some(self.metadata());
        ToolOutcome::Picture { found, presentation: self.presentation }
    }

    pub(crate) fn failed(self, text: impl Into<String>) -> ToolOutcome {
        self.failed_within(text, ERROR_BYTES)
    }

    /// For errors that contain output: they may be longer than a mere reason.
    pub(crate) fn failed_within(mut self, text: impl Into<String>, limit: usize) -> ToolOutcome {
        let text = Bounded::whole(text, limit).into_text();
        // Clients show the error's text anyway.
        self.presentation.metadata = Some(self.metadata());
        ToolOutcome::Error { text, presentation: Some(self.presentation) }
    }

    fn metadata(&self) -> OutcomeMetadata {
        OutcomeMetadata {
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            truncated: self.truncated,
            output_path: self.output_path.clone(),
            seen: self.seen.clone(),
            exit_code: self.exit_code,
            background: self.background.clone(),
            todos: self.todos.clone(),
            changes: None,
        }
    }
}

/// Records what a call has seen, for later calls.
pub(crate) fn noted(outcome: ToolOutcome, seen: &SeenFiles) -> ToolOutcome {
    let presentation = match &outcome {
        ToolOutcome::Output { presentation, .. } | ToolOutcome::Picture { presentation, .. } => {
            Some(presentation)
        }
        ToolOutcome::Error { presentation, .. } => presentation.as_ref(),
    };
    let metadata = presentation.and_then(|presentation| presentation.metadata.as_ref());
    metadata
        .into_iter()
        .flat_map(|metadata| metadata.seen.iter().cloned())
        .for_each(|sight| seen.note(sight));
    outcome
}

/// For arguments that were already wrong when the call was planned.
pub(crate) fn refused(text: String) -> ToolOutcome {
    ToolOutcome::Error { text: Bounded::whole(text, ERROR_BYTES).into_text(), presentation: None }
}
