//! Runs a child to its end: waits for its slot, sends its prompt, shows what it does, and checks its last
//! message against the schema of its agent.

use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::progress::ChildView;
use super::relay::ParentClient;
use super::result::{self, LastMessage};
use crate::agents::{Agent, Transcript};
use crate::hub::{AttachFrom, Attachment, Hub, HubError, SessionHandle, Ticket, TurnOutcome};
use crate::ids::SessionId;
use crate::json_schema::Schema;
use crate::limits::{SCHEMA_RETRIES, TASK_VIEW};
use crate::part::Part;
use crate::ports::Client;
use crate::ports::tool::{DeniedWithin, OutcomeMetadata, Presentation, Progress, Shown, ToolOutcome};
use crate::prompt::{Prompt, PromptSource};
use crate::turn::TurnEnd;
use crate::work_state::ChangesMark;

/// Appended to the prompt of a child whose last message has to match a schema; the schema follows.
const ONLY_JSON: &str = "Your last message has to be nothing but one JSON value that fits a JSON Schema.";

const NEVER_BEGAN: &str = "cancelled before it began";

/// An open child that has not begun to work.
#[derive(Debug)]
pub(super) struct ChildRun {
    pub(super) hub: Hub,
    pub(super) root: SessionId,
    pub(super) child: SessionHandle,
    pub(super) agent: Agent,
    pub(super) client: Arc<ParentClient>,
    pub(super) prompt: String,
    /// The presentation of its call.
    pub(super) call: Presentation,
    /// How much of the parent's context its result may take.
    pub(super) result_bytes: usize,
}

/// How a child ended.
#[derive(Debug)]
pub(super) struct TaskReport {
    child: SessionId,
    name: String,
    summary: String,
    transcript: Option<String>,
    result: Result<Value, String>,
    result_bytes: usize,
    changes: ChangesMark,
    denied: Vec<DeniedWithin>,
}

impl ChildRun {
    /// If cancelled, ends the child first; its session keeps what it said until then.
    pub(super) async fn run(
        self,
        progress: Option<Arc<dyn Progress>>,
        cancel: CancellationToken,
    ) -> TaskReport {
        // Even if this future is dropped: a child must not continue without a parent.
        let mut ends_with_us = EndsWithUs(Some(self.child.clone()));
        let mut view = ChildView::new(self.call.clone(), self.agent.name.to_string());
        let result = self.work(&mut view, progress, &cancel).await;
        ends_with_us.0 = None;
        let transcript = match self.agent.transcript {
            Transcript::OwnSession => None,
            Transcript::Nested => result::transcript(&self.hub, self.child.id()).await,
        };
        let changes = result::changes(&self.hub, self.child.id()).await;
        self.child.close_unattended();
        TaskReport {
            changes,
            child: self.child.id().clone(),
            name: self.agent.name.to_string(),
            summary: view.summary(),
            denied: view.denied().to_vec(),
            transcript,
            result: result.unwrap_or_else(|error| Err(error.to_string())),
            result_bytes: self.result_bytes,
        }
    }

    /// The inner `Err` is the text for the model if the child brought nothing.
    async fn work(
        &self,
        view: &mut ChildView,
        progress: Option<Arc<dyn Progress>>,
        cancel: &CancellationToken,
    ) -> Result<Result<Value, String>, HubError> {
        let mut shown = Display { progress, due: None };
        if cancel.is_cancelled() {
            return Ok(Err(NEVER_BEGAN.to_owned()));
        }
        let slots = self.hub.task_slots();
        let mut taking = pin!(slots.take(&self.root, self.child.id()));
        let _place = match taking.as_mut().now_or_never() {
            Some(place) => place,
            None => {
                shown.now(view);
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => return Ok(Err(NEVER_BEGAN.to_owned())),
                    place = taking => place,
                }
            }
        };
        view.begins();
        shown.now(view);
        let client: Arc<dyn Client> = self.client.clone();
        let mut attachment = self.child.attach(Some(client), AttachFrom::Now).await?;
        attachment.participant.ready();
        let schema = self.agent.output_schema.as_ref().map(|schema| format!("\n\nThe schema:\n{schema}"));
        let mut prompt = match &schema {
            None => self.prompt.clone(),
            Some(schema) => format!("{}\n\n{ONLY_JSON}{schema}", self.prompt),
        };
        let mut tries = 0;
        loop {
            let ticket = self.child.prompt_of(Some(self.client.clone()), prompt_of(prompt));
            let outcome = self.watch(ticket, &mut attachment, view, &mut shown, cancel).await?;
            let last = result::last_message(&self.hub, self.child.id()).await?;
            let said = match said(&outcome.end, last) {
                Ok(said) => said,
                Err(failure) => return Ok(Err(failure)),
            };
            let mistakes = match &self.agent.output_schema {
                None => return Ok(Ok(Value::String(said))),
                Some(schema) => match fitting(schema, &said) {
                    Ok(value) => return Ok(Ok(value)),
                    Err(mistakes) => mistakes,
                },
            };
            if tries == SCHEMA_RETRIES {
                return Ok(Err(format!(
                    "its last message does not fit its output schema: {mistakes}. It said:\n{said}"
                )));
            }
            tries += 1;
            prompt = asked_again(&mistakes, schema.as_deref().unwrap_or_default());
        }
    }

    /// Waits for the end of a turn of the child, and meanwhile shows what it does.
    async fn watch(
        &self,
        mut ticket: Ticket,
        attachment: &mut Attachment,
        view: &mut ChildView,
        shown: &mut Display,
        cancel: &CancellationToken,
    ) -> Result<TurnOutcome, HubError> {
        let mut cancelled = false;
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    self.child.cancel();
                }
                outcome = &mut ticket.outcome => {
                    let outcome = outcome.unwrap_or_else(|_| Err(HubError::Closed(self.child.id().clone())))?;
                    // Reads all entries, because everything that the child said counts.
                    while attachment.live.cursor() < outcome.after_index {
                        view.take(&attachment.live.next().await?);
                    }
                    return Ok(outcome);
                }
                segment = attachment.live.next() => {
                    if view.take(&segment?) {
                        shown.soon();
                    }
                }
                () = shown.is_due() => shown.now(view),
            }
        }
    }
}

/// A prompt that no person typed: it is never a command.
fn prompt_of(text: String) -> Prompt {
    let text = Part::Text { text, state: None, provider_metadata: None };
    Prompt { parts: vec![text], source: PromptSource::Agent, ..Prompt::default() }
}

/// What the parent gets from a turn with this end.
fn said(end: &TurnEnd, last: LastMessage) -> Result<String, String> {
    let so_far = |why: String| match last.text.is_empty() {
        true => why,
        false => format!("{why}. It had said:\n{}", last.text),
    };
    match end {
        TurnEnd::Finished(_) if last.text.is_empty() => Err("it ended without a word".to_owned()),
        TurnEnd::Finished(_) => Ok(last.text),
        TurnEnd::StepLimit => Err(so_far("it reached its step limit before it was done".to_owned())),
        TurnEnd::Aborted => Err(so_far("it was cancelled".to_owned())),
        TurnEnd::Failed { message, .. } => Err(so_far(format!("it failed: {message}"))),
    }
}

/// The value in a message, if it matches a schema; else its mistakes.
fn fitting(schema: &Value, said: &str) -> Result<Value, String> {
    // A manifest with an unsupported schema would not have been loaded.
    let schema = Schema::read(schema)?;
    let value = result::json_in(said)?;
    schema.check(&value).map_err(|mistakes| mistakes.join("; "))?;
    Ok(value)
}

impl TaskReport {
    /// The result of the call.
    pub(super) fn outcome(self) -> ToolOutcome {
        let place = match &self.transcript {
            None => format!(", session {}", self.child),
            // The result has all of it, and no list shows the child's session.
            Some(_) => String::new(),
        };
        let mut content = vec![Shown::Text { text: format!("{}: {}{place}", self.name, self.summary) }];
        if let Some(transcript) = &self.transcript {
            content.push(Shown::Text { text: transcript.clone() });
        }
        let changes = Some(self.changes.clone()).filter(|changes| *changes != ChangesMark::default());
        let metadata =
            changes.map(|changes| OutcomeMetadata { changes: Some(changes), ..OutcomeMetadata::default() });
        let denied_within = self.denied.clone();
        let presentation =
            |content| Presentation { content, metadata, denied_within, ..Presentation::default() };
        match self.bounded() {
            Ok(data) => {
                let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
                content.push(Shown::Text { text });
                ToolOutcome::Output { data, presentation: presentation(content) }
            }
            Err(text) => ToolOutcome::Error { text, presentation: Some(presentation(content)) },
        }
    }

    /// The same as text for a message.
    pub(super) fn told(self) -> String {
        match self.bounded() {
            Ok(Value::String(text)) => text,
            Ok(value) => value.to_string(),
            Err(text) => text,
        }
    }

    fn bounded(&self) -> Result<Value, String> {
        let cut = |text: &str| result::bounded(text, self.result_bytes, &self.child);
        match &self.result {
            Ok(Value::String(text)) => Ok(Value::String(cut(text))),
            Ok(value) => Ok(value.clone()),
            Err(text) => Err(cut(&format!("{}: {text}\n(its session: {})", self.name, self.child))),
        }
    }
}

/// Updates the view, but not too often.
struct Display {
    progress: Option<Arc<dyn Progress>>,
    due: Option<Instant>,
}

impl Display {
    fn soon(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + TASK_VIEW);
    }

    async fn is_due(&self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    fn now(&mut self, view: &ChildView) {
        self.due = None;
        if let Some(progress) = &self.progress {
            progress.show(view.presentation());
        }
    }
}

/// Cancels the child when the run is dropped.
struct EndsWithUs(Option<SessionHandle>);

impl Drop for EndsWithUs {
    fn drop(&mut self) {
        if let Some(child) = self.0.take() {
            child.cancel();
            child.close_unattended();
        }
    }
}

fn asked_again(mistakes: &str, schema: &str) -> String {
    format!(
        "Your last message does not fit the JSON Schema that it has to: {mistakes}. Answer again with nothing but the \
         JSON value.{schema}"
    )
}
