//! Leaving a session: closing it, ending with the host, and stopping a turn that can't continue.

use std::time::Duration;

use super::lease::LeaseAfter;
use super::{Session, ask::OpenQuestion};
use crate::hub::{HubError, TurnOutcome};
use crate::limits::SHUTDOWN;
use crate::ports::backend::{TurnLeftovers, TurnResult};
use crate::turn::TurnEnd;

/// How long an aborted task may take to notice; it notices at its next wait.
const NOTICE: Duration = Duration::from_millis(100);

impl Session {
    /// Whether the session is no longer needed.
    pub(super) fn is_done_with(&self) -> bool {
        let is_at_rest = !self.activity.is_ours() && self.queue.is_empty() && !self.children.keep_the_lease();
        is_at_rest && self.participants.allow_closing()
    }

    /// Closes the session: cancels what runs and what waits. The row stays.
    pub(super) async fn close(&mut self) {
        let waiting: Vec<_> = self.queue.ids().cloned().collect();
        for message_id in waiting {
            if let Err(error) = self.queue_cancel(&message_id).await {
                tracing::warn!(%error, "a waiting prompt could not be cancelled");
                let after_index = self.journal.durable();
                self.queue.withdraw(&message_id, |message_id| {
                    Ok(TurnOutcome { message_id, end: TurnEnd::Aborted, after_index })
                });
            }
        }
        self.stop_run().await;
        if self.mending().is_some()
            && let Err(error) = self.take_lease().await
        {
            tracing::warn!(%error, "the session is closed with its store out of order");
        }
        if self.activity.is_asking() {
            self.refuse_open_question("the session was closed", LeaseAfter::GiveBack).await;
        }
        self.end_background("the session was closed").await;
        self.leave().await;
    }

    /// The host ends: aborts the run and closes its calls; keeps an open question and the queue for the next
    /// owner.
    pub(super) async fn shut_down(&mut self) {
        self.queue.leave_to_store();
        self.stop_run().await;
        self.end_background("attache ended").await;
        self.leave().await;
    }

    /// Cancels the running turn and waits for its end. It may return with a question instead.
    pub(super) async fn stop_run(&mut self) {
        let Some(running) = self.activity.running() else { return };
        running.handle.cancel.cancel();
        let returned = tokio::time::timeout(SHUTDOWN, self.activity.returned()).await;
        let Some(mut running) = self.activity.take_running() else { return };
        match returned {
            Ok(Ok((turn, TurnResult::Suspended(ask)))) => {
                self.activity.ask(OpenQuestion::new(turn, running.handle, ask));
            }
            Ok(Ok((_, TurnResult::Ended(end)))) => {
                self.end_run(running.handle.live, end, TurnLeftovers::default(), LeaseAfter::GiveBack).await;
            }
            Ok(Err(_)) => self.end_crashed(running.handle.live, LeaseAfter::GiveBack).await,
            Err(_) => {
                running.abort(NOTICE).await;
                self.end_unclosed(running.handle.live, "aborted", TurnEnd::Aborted, LeaseAfter::GiveBack)
                    .await;
            }
        }
    }

    async fn give_back(&mut self) -> Result<(), HubError> {
        let Some(change) = self.release() else { return Ok(()) };
        self.journal.change(vec![change])?;
        self.journal.settle().await?;
        Ok(())
    }

    async fn leave(&mut self) {
        self.toolbox.session_ended(&self.id).await;
        self.hub.ports.backend.forget(&self.id);
        self.close_servers().await;
        if self.give_back().await.is_err() {
            // Tries once more: a store that failed may work again, and there is no later chance.
            let again = match self.take_lease().await {
                Ok(()) => self.give_back().await,
                Err(error) => Err(error),
            };
            if let Err(error) = again {
                tracing::warn!(%error, "the lease of a closed session could not be given back");
            }
        }
        self.hub.histories.forget(&self.id);
        self.hub.forget_authority(&self.id, &self.authority);
        let mut open = self.hub.open_sessions();
        // Removes only our own entry: a session opened again under the same id has another task.
        if open
            .get(&self.id)
            .is_some_and(|entry| self.inbox.sender().is_some_and(|own| own.same_channel(entry)))
        {
            open.remove(&self.id);
        }
    }
}
