//! Admits prompts and runs the queue: one turn at a time, in order of arrival, idempotent by message id; and
//! what cancelling means at each stage.

use tokio::sync::oneshot;

use super::choose::aside;
use super::knowledge::ResolvedPrompt;
use super::lease::LeaseAfter;
use super::queue::tombstone;
use super::run::{Firing, TurnHandle};
use super::servers::ServersAwaited;
use super::waiting::Queued;
use super::{ClientSide, Reply, Session};
use crate::environment::is_news;
use crate::events::RunState;
use crate::hooks;
use crate::hub::{HubError, TurnOutcome};
use crate::ids::MessageId;
use crate::journal::replay::parts_of;
use crate::limits::QUEUED_MESSAGES;
use crate::metadata::MessageMeta;
use crate::notice;
use crate::part::{Part, Role};
use crate::ports::store::{Change, MessageRow, PartRow, StoreResult};
use crate::prompt::{Arrival, Prompt, PromptSource, media};
use crate::rows::{self, PartPlace};
use crate::slash_commands;
use crate::task::TASK_TRIGGER;
use crate::turn::{FailureKind, TurnEnd};

impl Session {
    /// Stores the prompt and either starts its turn or queues it. The answer comes when its turn ends, or at
    /// once if it is refused.
    pub(super) async fn admit(
        &mut self,
        prompt: Prompt,
        client: ClientSide,
        accept: oneshot::Sender<MessageId>,
        answer: Reply<TurnOutcome>,
    ) {
        let answered = match self.try_admit(prompt, client, accept).await {
            Ok(Admitted::Waits(message_id)) => {
                self.queue.add_caller(message_id, answer);
                None
            }
            Ok(Admitted::Done(outcome)) => Some((answer, Ok(outcome))),
            Err(error) => Some((answer, Err(error))),
        };
        self.go_on().await;
        // Last, so that a caller with an answer finds the session at rest.
        if let Some((answer, result)) = answered {
            super::answer(answer, result);
        }
    }

    async fn try_admit(
        &mut self,
        prompt: Prompt,
        client: ClientSide,
        accept: oneshot::Sender<MessageId>,
    ) -> Result<Admitted, HubError> {
        self.take_lease().await?;
        let Prompt { parts, message_id, runtime_context, arrival, source } = prompt;
        let parts = match source {
            PromptSource::Person => self.resolve_any_command(parts, message_id.as_ref()).await?,
            PromptSource::OtherAgent | PromptSource::Agent => Some(parts),
        };
        let Some(parts) = parts else {
            let message_id = message_id.unwrap_or_else(|| self.hub.ports.ids.message());
            return Ok(self.turned_away(message_id, accept));
        };
        if let Some(message_id) = &message_id
            && let Some(admitted) = self.admitted_before(message_id, &parts).await?
        {
            drop(accept.send(message_id.clone()));
            return Ok(admitted);
        }
        if self.queue.len() >= QUEUED_MESSAGES {
            return Err(HubError::Invalid(format!("{QUEUED_MESSAGES} prompts are waiting already")));
        }
        let message_id = message_id.unwrap_or_else(|| self.hub.ports.ids.message());
        // A model that is not known yet is checked when the message fires.
        let model = self.current_model();
        let Some(parts) = self.take_in(parts, model, Some(&message_id)).await? else {
            return Ok(self.turned_away(message_id, accept));
        };
        let asked = match source {
            PromptSource::Person | PromptSource::OtherAgent => {
                self.ask_prompt_hooks(parts, Some(&message_id)).await?
            }
            PromptSource::Agent => Some(parts),
        };
        let Some(parts) = asked else {
            return Ok(self.turned_away(message_id, accept));
        };
        // A turn that ended meanwhile has released it.
        self.take_lease().await?;
        if self.activity.is_asking() {
            // A new prompt instead of an answer counts as an answer: the call is denied and the new prompt
            // takes over.
            self.refuse_open_question("superseded by a new prompt", LeaseAfter::Keep).await;
            if let Some(failure) = self.journal.failure() {
                return Err(failure.into());
            }
        }
        if let (Some(running), Some(_)) = (self.activity.running(), self.children.questions.state()) {
            // The same for a child's question that the turn waits for.
            running.handle.cancel.cancel();
        }
        // The sender must know its id before any client can see the message.
        drop(accept.send(message_id.clone()));
        let queued_at = self.queue.time_behind(self.hub.ports.clock.now_ms());
        let queued = Queued { message_id, queued_at, runtime_context, client, arrival };
        self.fire_or_enqueue(queued, parts, source).await
    }

    /// Starts its turn if nothing is before it; otherwise queues it.
    async fn fire_or_enqueue(
        &mut self,
        queued: Queued,
        parts: Vec<Part>,
        source: PromptSource,
    ) -> Result<Admitted, HubError> {
        let message_id = queued.message_id.clone();
        let is_command = slash_commands::invocation(&parts).is_some();
        if self.activity.is_running() || !self.queue.is_empty() {
            // A command can't steer, because no turn continues from a command.
            let arrival = if is_command { Arrival::Waits } else { queued.arrival };
            self.enqueue(Queued { arrival, ..queued }, &parts, source).await?;
            return Ok(Admitted::Waits(message_id));
        }
        if !is_command && self.await_servers(&message_id).await == ServersAwaited::Cancelled {
            return Ok(Admitted::Done(self.cancelled(message_id)));
        }
        let mut changes = self.insertion(&message_id, &parts, None, source)?;
        let place = Box::new(move |seq| {
            if let Some(Change::InsertMessage(row)) = changes.first_mut() {
                row.seq = Some(seq);
            }
            changes
        });
        let Queued { runtime_context, client, .. } = queued;
        self.fire(Firing { message_id: message_id.clone(), parts, runtime_context, client, place }).await?;
        Ok(Admitted::Waits(message_id))
    }

    /// Answers a prompt that was cancelled on its way in; its sender still learns its id.
    fn turned_away(&self, message_id: MessageId, accept: oneshot::Sender<MessageId>) -> Admitted {
        drop(accept.send(message_id.clone()));
        Admitted::Done(self.cancelled(message_id))
    }

    /// The outcome of a prompt whose turn never started.
    fn cancelled(&self, message_id: MessageId) -> TurnOutcome {
        TurnOutcome { message_id, end: TurnEnd::Aborted, after_index: self.journal.durable() }
    }

    /// The same id with the same content is the same message; with other content it is an error.
    async fn admitted_before(
        &mut self,
        id: &MessageId,
        parts: &[Part],
    ) -> Result<Option<Admitted>, HubError> {
        let Some((row, rows)) = self.hub.ports.store.message(id).await? else { return Ok(None) };
        let Some(shelved) = self.take_in(parts.to_vec(), None, Some(id)).await? else {
            return Ok(Some(Admitted::Done(self.cancelled(id.clone()))));
        };
        let sent = parts_of(&rows)?.into_iter().filter(|part| !is_news(part) && !hooks::is_word(part));
        let sent: Vec<_> = sent.map(media::as_sent).map(slash_commands::as_typed).collect();
        let shelved = shelved.into_iter().map(media::as_sent).map(slash_commands::as_typed);
        let shelved: Vec<_> = shelved.collect();
        if row.session_id != self.id || sent != shelved {
            return Err(HubError::Invalid(format!("message id {id} was used already for other content")));
        }
        if row.metadata.is_hidden() && !row.metadata.is_cancelled_in_queue() {
            return Err(HubError::Invalid(format!(
                "message id {id} belongs to a message that was rewound; send it again under another id"
            )));
        }
        let live = self.activity.live_run().is_some_and(|live| live.user_message_id == *id);
        if live || self.queue.contains(id) {
            return Ok(Some(Admitted::Waits(id.clone())));
        }
        // Without a recorded end it was cancelled in the queue, or its turn never started.
        let end = row.metadata.turn_end().unwrap_or(TurnEnd::Aborted);
        let after_index = self.journal.durable();
        Ok(Some(Admitted::Done(TurnOutcome { message_id: id.clone(), end, after_index })))
    }

    async fn enqueue(
        &mut self,
        queued: Queued,
        parts: &[Part],
        source: PromptSource,
    ) -> Result<(), HubError> {
        let changes = self.insertion(&queued.message_id, parts, Some(queued.queued_at), source)?;
        self.journal.change(changes)?;
        self.journal.settle().await?;
        self.queue.push(queued);
        self.steer_running();
        Ok(())
    }

    /// Tells the current turn whether to end before its next model call.
    pub(super) fn steer_running(&self) {
        if let Some(running) = self.activity.running() {
            self.steer(&running.handle);
        }
    }

    pub(super) fn steer(&self, turn: &TurnHandle) {
        match self.queue.steers() {
            true => turn.steering.want(),
            false => turn.steering.forget(),
        }
    }

    /// The changes that insert the message, then its parts.
    fn insertion(
        &self,
        id: &MessageId,
        parts: &[Part],
        queued_at: Option<i64>,
        source: PromptSource,
    ) -> StoreResult<Vec<Change>> {
        let now = self.hub.ports.clock.now_ms();
        let mut metadata = MessageMeta::of_prompt();
        if let Some(queued_at) = queued_at {
            metadata.set_queued(queued_at, now);
        }
        match source {
            PromptSource::Person | PromptSource::OtherAgent => {}
            PromptSource::Agent => metadata.set_trigger(TASK_TRIGGER),
        }
        let of_command = slash_commands::choice(parts).agent;
        let agent = of_command.as_deref().or_else(|| self.row.metadata.mode());
        if let Some(agent) = agent.filter(|agent| *agent != self.row.agent) {
            metadata.set_agent(agent);
        }
        let mut changes = vec![Change::InsertMessage(MessageRow {
            id: id.clone(),
            session_id: self.id.clone(),
            seq: None,
            role: Role::User,
            metadata,
            created_at: now,
            updated_at: now,
        })];
        changes.extend(self.part_rows(id, parts, now)?.into_iter().map(Change::PutPart));
        Ok(changes)
    }

    fn part_rows(&self, id: &MessageId, parts: &[Part], now: i64) -> StoreResult<Vec<PartRow>> {
        crate::rows::of_message(&self.id, id, parts, now, &self.hub.ports.ids)
    }

    /// Fires waiting prompts until a turn runs or none may. Delivers results of background tasks first, so that
    /// the model sees them.
    pub(super) async fn drain(&mut self) {
        self.deliver_results().await;
        while !self.activity.is_ours() && self.queue.next_after(&self.last_end()).is_some() {
            if let Err(error) = self.take_lease().await {
                self.queue.withdraw_awaited(&error);
                return;
            }
            // Taking the lease may have found a different queue, or a turn.
            if self.activity.is_ours() {
                return;
            }
            let Some(queued) = self.queue.take_next_after(&self.last_end()) else { return };
            let message_id = queued.message_id.clone();
            let Err(error) = self.fire_queued(queued).await else { return };
            let is_awaited = self.queue.has_caller(&message_id);
            let can_be_written = self.journal.failure().is_none();
            if is_awaited || can_be_written {
                self.queue.withdraw(&message_id, |_| Err(error.clone()));
            }
            if can_be_written {
                // It can't be started at all, and would block the queue for ever.
                if !is_awaited {
                    self.tell_withdrawn(&error);
                }
                if let Err(error) = self.bury_withdrawn().await {
                    tracing::warn!(%error, "a message that can't be started stays in the queue");
                }
            } else if !is_awaited {
                return;
            }
        }
    }

    /// No caller waits for its answer, so tell all clients.
    fn tell_withdrawn(&self, error: &HubError) {
        let why = error.to_string();
        let notice = notice::passing("error", "A waiting message could not be sent", Some(&why));
        if let Err(error) = self.journal.record_with(&aside(), vec![notice], Vec::new()) {
            tracing::warn!(%error, "a notice was lost");
        }
    }

    /// Removes withdrawn messages from the stored queue.
    pub(super) async fn bury_withdrawn(&mut self) -> Result<(), HubError> {
        let changes: Vec<_> =
            self.queue.withdrawn().iter().map(|message_id| tombstone(&self.hub, message_id)).collect();
        self.journal.change(changes)?;
        self.journal.settle().await?;
        self.queue.withdrawn_are_gone();
        Ok(())
    }

    fn last_end(&self) -> TurnEnd {
        match &self.status.state {
            RunState::Error { message } => TurnEnd::failed(FailureKind::Model, message.clone()),
            RunState::Idle
            | RunState::Busy
            | RunState::Retrying { .. }
            | RunState::WaitingOnApproval
            | RunState::WaitingOnUserInput => TurnEnd::Aborted,
        }
    }

    async fn fire_queued(&mut self, queued: Queued) -> Result<(), HubError> {
        let stored = self.hub.ports.store.message(&queued.message_id).await?;
        let Some((_, rows)) = stored else {
            return Err(HubError::Internal(format!("queued message {} is gone", queued.message_id)));
        };
        let stored = parts_of(&rows)?;
        // A client that edited it while the session was not open did not know its commands.
        let parts = match self.resolve_command(stored.clone()).await? {
            ResolvedPrompt::Parts(parts) => parts,
            ResolvedPrompt::OfServer(prompt, _) => {
                let text = format!("`/{}` is for its server to write out: send it again", prompt.command);
                return Err(HubError::Invalid(text));
            }
        };
        let id = queued.message_id.clone();
        let now = self.hub.ports.clock.now_ms();
        let mut changes = Vec::new();
        if let (Some(row), Some(part)) = (rows.first(), parts.first().filter(|_| parts != stored)) {
            let place = PartPlace { session_id: &self.id, message_id: &id, index: 0 };
            let row = rows::of_part(place, row.id.clone(), part, row.created_at, now)?;
            changes.push(Change::PutPart(row));
        }
        let place = Box::new(move |seq| {
            changes.push(Change::PatchMessage {
                id,
                seq: Some(seq),
                metadata: MessageMeta::default(),
                updated_at: now,
            });
            changes
        });
        self.fire(Firing {
            message_id: queued.message_id,
            parts,
            runtime_context: queued.runtime_context,
            client: queued.client,
            place,
        })
        .await
    }

    /// Aborts the current turn. The run settles its calls and returns by itself.
    pub(super) async fn cancel(&mut self) {
        self.children.cancel_background();
        if let Some(running) = self.activity.running() {
            running.handle.cancel.cancel();
        } else if self.activity.is_asking() {
            self.refuse_open_question("the user cancelled the turn", LeaseAfter::GiveBack).await;
            self.go_on().await;
        }
    }

    pub(super) async fn cancel_prompt(&mut self, message_id: MessageId) {
        if self.activity.live_run().is_some_and(|live| live.user_message_id == message_id) {
            self.cancel().await;
        } else if let Err(error) = self.queue_cancel(&message_id).await {
            tracing::debug!(%error, "nothing to cancel");
        }
    }
}

enum Admitted {
    Waits(MessageId),
    Done(TurnOutcome),
}
