//! The children of a session: what their calls get, which run in the background, and their results as messages.
//! `child_questions` handles their questions to people.

use std::collections::VecDeque;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::child_questions::ChildQuestions;
use super::run::patch_message;
use super::{Session, SessionCommand};
use crate::agents::WhenDone;
use crate::chunk::{Chunk, FinishReason, Rest, replay};
use crate::events::RunState;
use crate::hub::{HubError, SessionPlace};
use crate::ids::SessionId;
use crate::journal::Author;
use crate::metadata::{BackgroundTask, MessageMeta};
use crate::part::{Part, Role};
use crate::ports::store::{Change, MessageRow};
use crate::prompt::{Prompt, PromptSource};
use crate::task::TaskTerms;
use crate::turn::TurnEnd;

/// The children that still run, and the results not delivered yet.
#[derive(Debug, Default)]
pub(crate) struct Children {
    background: Vec<BackgroundChild>,
    /// In the order in which they ended. They wait while a turn runs, because a message never comes in the
    /// middle of a step.
    results: VecDeque<TaskResult>,
    /// Their open questions to people.
    pub(super) questions: ChildQuestions,
}

#[derive(Debug)]
struct BackgroundChild {
    task: BackgroundTask,
    /// Also reaches a task that still waits for its slot.
    cancel: CancellationToken,
}

/// How a background task ended, in words.
#[derive(Debug)]
struct TaskResult {
    task: BackgroundTask,
    text: String,
    when_done: WhenDone,
}

impl Children {
    /// Whether to keep the lease although no turn runs: results are still to be delivered.
    pub(super) fn keep_the_lease(&self) -> bool {
        !self.background.is_empty()
    }

    /// Cancels all background tasks. Results of tasks that already ended do not begin a turn either: a user who
    /// says stop wants nothing to continue by itself.
    pub(super) fn cancel_background(&mut self) {
        for child in &self.background {
            child.cancel.cancel();
        }
        self.wake_nobody();
    }

    pub(super) fn in_background(&self) -> impl Iterator<Item = &SessionId> {
        self.background.iter().map(|child| &child.task.session_id)
    }

    pub(super) fn cancel_one(&self, id: &SessionId) {
        for child in self.background.iter().filter(|child| child.task.session_id == *id) {
            child.cancel.cancel();
        }
    }

    fn wake_nobody(&mut self) {
        for result in &mut self.results {
            result.when_done = WhenDone::TellOnly;
        }
    }

    fn knows(&self, id: &SessionId) -> bool {
        let running = self.background.iter().map(|child| &child.task.session_id);
        running.chain(self.results.iter().map(|result| &result.task.session_id)).any(|known| known == id)
    }
}

impl Session {
    /// What a call of the current turn gives its child.
    pub(super) fn task_terms(&self) -> Result<TaskTerms, HubError> {
        let Some(running) = self.activity.running() else {
            return Err(HubError::Invalid("a task needs a turn that waits for it".to_owned()));
        };
        let handle = &running.handle;
        Ok(TaskTerms {
            root: self.root_session().clone(),
            parent: self.id.clone(),
            message_id: handle.live.message_id.clone(),
            agent: handle.setup.agent.id.to_string(),
            model: handle.setup.model_ref(),
            directory: self.row.workspace_root.clone(),
            place: SessionPlace {
                additional: handle.setup.workspace.additional.clone(),
                servers: self.servers.requested().to_vec(),
            },
            client: handle.client.clone(),
        })
    }

    /// A child begins to work in the background; first stores that a result is due.
    pub(super) async fn background_started(
        &mut self,
        task: BackgroundTask,
        cancel: CancellationToken,
    ) -> Result<(), HubError> {
        let mut tasks = self.row.metadata.background_tasks();
        tasks.push(task.clone());
        self.store_background(&tasks).await?;
        self.children.background.push(BackgroundChild { task, cancel });
        Ok(())
    }

    async fn store_background(&mut self, tasks: &[BackgroundTask]) -> Result<(), HubError> {
        let mut patch = self.empty_patch();
        patch.metadata.set_background_tasks(tasks);
        self.journal.change(vec![Change::PatchSession(patch)])?;
        self.journal.settle().await?;
        self.row.metadata.set_background_tasks(tasks);
        Ok(())
    }

    pub(super) async fn background_ended(&mut self, id: &SessionId, text: String, when_done: WhenDone) {
        let place = self.children.background.iter().position(|child| child.task.session_id == *id);
        // A task that was given up has had its message.
        let Some(place) = place else { return };
        let BackgroundChild { task, cancel } = self.children.background.remove(place);
        // A cancelled task must not start a turn.
        let when_done = if cancel.is_cancelled() { WhenDone::TellOnly } else { when_done };
        self.children.results.push_back(TaskResult { task, text, when_done });
        self.go_on().await;
    }

    /// After a crash: the background tasks of the dead owner died with it.
    pub(super) fn find_lost_tasks(&mut self) {
        for task in self.row.metadata.background_tasks() {
            if !self.children.knows(&task.session_id) {
                let text = "aborted by host restart: attache ended while this ran; it may have had effects"
                    .to_owned();
                self.children.results.push_back(TaskResult { task, text, when_done: WhenDone::TellOnly });
            }
        }
    }

    /// The session is closed or its host ends: ends everything that works for it.
    pub(super) async fn end_background(&mut self, why: &str) {
        for BackgroundChild { task, cancel } in std::mem::take(&mut self.children.background) {
            cancel.cancel();
            let text = format!("cancelled: {why}");
            self.children.results.push_back(TaskResult { task, text, when_done: WhenDone::TellOnly });
        }
        self.children.wake_nobody();
        self.deliver_results().await;
    }

    /// Appends the results of background tasks to the conversation, unless a turn runs. If the manifest of one
    /// of them says so, one turn begins for all of them together.
    pub(super) async fn deliver_results(&mut self) {
        let (mut told, mut when_done) = (0, WhenDone::TellOnly);
        while let Some(result) = self.deliver_next().await {
            told += 1;
            if result.when_done == WhenDone::WakeParent {
                when_done = WhenDone::WakeParent;
            }
        }
        match when_done {
            WhenDone::TellOnly => {}
            WhenDone::WakeParent => self.wake(told),
        }
    }

    /// The next result, once it is delivered; `None` if there is none, or none can be delivered now.
    async fn deliver_next(&mut self) -> Option<TaskResult> {
        if self.activity.is_ours() || self.children.results.is_empty() {
            return None;
        }
        if let Err(error) = self.take_lease().await {
            tracing::warn!(%error, "the result of a background task waits");
            return None;
        }
        // Taking the lease may have found a turn, or delivered it already.
        if self.activity.is_ours() {
            return None;
        }
        let result = self.children.results.pop_front()?;
        if let Err(error) = self.deliver(&result).await {
            self.children.results.push_front(result);
            tracing::warn!(%error, "the result of a background task could not be stored");
            return None;
        }
        Some(result)
    }

    /// One commit: the message, and that the result is no longer due.
    async fn deliver(&mut self, result: &TaskResult) -> Result<(), HubError> {
        let mut tasks = self.row.metadata.background_tasks();
        let owed = tasks.len();
        tasks.retain(|task| task.session_id != result.task.session_id);
        if tasks.len() == owed {
            // Another process has delivered it.
            return Ok(());
        }
        let now = self.hub.ports.clock.now_ms();
        let (id, seq) = (self.hub.ports.ids.message(), self.conversation.next_seq());
        let parts =
            [Part::StepStart, Part::Text { text: said(result), state: None, provider_metadata: None }];
        let mut patch = self.empty_patch();
        patch.metadata.set_background_tasks(&tasks);
        let mut changes = vec![Change::InsertMessage(MessageRow {
            id: id.clone(),
            session_id: self.id.clone(),
            seq: Some(seq),
            role: Role::Assistant,
            metadata: MessageMeta::of_task_result(&result.task.session_id),
            created_at: now,
            updated_at: now,
        })];
        let rows = crate::rows::of_message(&self.id, &id, &parts, now, &self.hub.ports.ids)?;
        changes.extend(rows.into_iter().map(Change::PutPart));
        changes.push(patch_message(&id, MessageMeta::default(), now));
        changes.push(Change::PatchSession(patch));
        let start =
            Chunk::Start { message_id: Some(id.to_string()), message_metadata: None, rest: Rest::none() };
        let mut chunks = vec![start];
        replay::chunks(0, &parts, &mut chunks);
        chunks.push(Chunk::FinishStep { rest: Rest::none() });
        chunks.push(TurnEnd::Finished(FinishReason::Stop).chunk());
        let author = Author { message_id: id, role: Role::Assistant };
        self.journal.record_with(&author, chunks, changes)?;
        self.journal.settle().await?;
        self.row.metadata.set_background_tasks(&tasks);
        self.conversation.set_last_seq(seq);
        self.hub.histories.forget(&self.id);
        Ok(())
    }

    /// Begins a turn by itself if nothing else is to be done.
    fn wake(&self, told: usize) {
        if self.status.state != RunState::Idle || !self.queue.is_empty() {
            return;
        }
        let text = match told {
            1 => "A background task has ended; its result is the last message above. Go on with it.",
            _ => "Background tasks have ended; their results are the last messages above. Go on with them.",
        };
        let text = text.to_owned();
        let text = Part::Text { text, state: None, provider_metadata: None };
        let prompt = Prompt { parts: vec![text], source: PromptSource::Agent, ..Prompt::default() };
        let (accept, _) = oneshot::channel();
        let (answer, _) = oneshot::channel();
        self.tell_ourselves(SessionCommand::Prompt { client: None, prompt, accept, answer });
    }
}

/// The text of the message: which task it was, and its outcome.
fn said(result: &TaskResult) -> String {
    let BackgroundTask { session_id, agent, title } = &result.task;
    format!("Background task \u{201c}{title}\u{201d} ({agent}, {session_id}) has ended:\n\n{}", result.text)
}
