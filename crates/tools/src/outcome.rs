//! How every call ends: bounded text for the model, what clients are shown, the time it took. Runs nothing.

use std::path::PathBuf;
use std::time::Instant;

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{FoundPicture, OutcomeMetadata, Presentation};
use attache_core::seen::{SeenFiles, Sight};
use attache_core::work_state::{BackgroundMark, TodoMark};
use attache_sandbox::limits::ERROR_BYTES;
use serde_json::Value;

use crate::bounded::Bounded;

/// A call under way: what it looked like when planned, and since when it runs.
#[derive(Debug)]
pub(crate) struct RunningCall {
    started: Instant,
    pub(crate) presentation: Presentation,
    pub(crate) truncated: bool,
    pub(crate) output_path: Option<PathBuf>,
    /// Files it read or changed.
    pub(crate) seen: Vec<Sight>,
    pub(crate) exit_code: Option<i32>,
    /// Commands in the background that it tells of.
    pub(crate) background: Vec<BackgroundMark>,
    /// The task list, where it became another.
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

    /// For errors that carry output: they may be longer than a reason is.
    pub(crate) fn failed_within(mut self, text: impl Into<String>, limit: usize) -> ToolOutcome {
        let text = Bounded::whole(text, limit).into_text();
        // The text itself is shown by whoever shows the call.
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

/// Keeps in mind what a call has seen, for the calls behind it.
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

/// Arguments that were wrong already when the call was planned.
pub(crate) fn refused(text: String) -> ToolOutcome {
    ToolOutcome::Error { text: Bounded::whole(text, ERROR_BYTES).into_text(), presentation: None }
}
