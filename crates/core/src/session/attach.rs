//! Joining a session: where a reader starts, and how a follower of another process keeps up.

use std::sync::Arc;

use super::Session;
use super::choose::MissingModelNotice;
use crate::hub::{AttachFrom, Attachment, HubError, Participant};
use crate::journal::replay::Replay;
use crate::ports::Client;
use crate::ports::store::{Owner, SessionRecord};
use crate::slash_commands::CommandsFeed;

impl Session {
    pub(super) async fn attach(
        &mut self,
        client: Option<Arc<dyn Client>>,
        from: AttachFrom,
    ) -> Result<Attachment, HubError> {
        if client.is_some() {
            self.know_own_modes().await;
        }
        // Somebody else may have written since we looked, or died; or we could not settle it ourselves.
        self.recover().await?;
        match from {
            AttachFrom::Now => self.look_for_uncommitted(),
            AttachFrom::Beginning | AttachFrom::LiveRun => {}
        }
        let live = self.activity.live_run();
        let head = self.journal.durable();
        let start = match (from, live) {
            (AttachFrom::Beginning | AttachFrom::LiveRun, Some(live)) => live.first_index,
            (AttachFrom::Beginning | AttachFrom::LiveRun, None) | (AttachFrom::Now, _) => head,
        };
        let chosen = self.chosen()?;
        self.foreign.tells_mode(&chosen.agent);
        let replay = (from == AttachFrom::Beginning).then(|| {
            // Messages that get a seq from now on come through the journal.
            let before = live.map_or(self.conversation.next_seq(), |live| live.first_seq);
            let title = self.row.metadata.title().map(str::to_owned);
            let mode = (chosen.agent != self.row.agent).then_some(&chosen);
            Replay::new(self.hub.ports.store.clone(), self.id.clone(), Some(before), title, mode)
        });
        if client.is_some() {
            // Queued after this command, so that the notice comes live, after the answer.
            self.tell_of_missing_model(MissingModelNotice::Again);
            self.tell_of_missing_agent();
            self.tell_of_refused_approval();
            self.tell_of_project();
        }
        // A client that waits for an answer gets it first, and then calls `ready`.
        if client.is_none() {
            self.begin_to_know();
        }
        let number = self.participants.add(client);
        let ours = self.inbox.sender().ok_or_else(|| HubError::Closed(self.id.clone()))?;
        let participant = Participant { number, commands: ours };
        let (live, commands) = (self.journal.subscribe(start), CommandsFeed(self.knowledge.subscribe()));
        Ok(Attachment { replay, live, head, chosen, commands, participant })
    }

    pub(super) async fn read_record(&self) -> Result<SessionRecord, HubError> {
        let record = self.hub.ports.store.session(&self.id).await?;
        record.ok_or_else(|| HubError::unknown_session(&self.id))
    }

    /// Takes over the stored state while another process may be writing.
    pub(super) fn look_at(&mut self, record: SessionRecord) {
        self.journal.follow_to(record.next_index);
        self.activity.follow(match record.owner {
            Owner::Other => record.live_run.clone(),
            Owner::Nobody | Owner::Us | Owner::Dead => None,
        });
        // Keeps what the lease knows: the next grant must see that the epoch moved while we only looked.
        if self.lease.known() != Some(record.epoch) || self.activity.is_following() {
            self.adopt(record);
        }
    }

    /// Another process wrote: passes that on, and takes over when that process is gone.
    pub(super) async fn follow(&mut self) {
        let record = match self.read_record().await {
            Ok(record) => record,
            Err(error) => {
                tracing::debug!(%error, "the followed session can't be read");
                self.activity.follow(None);
                return;
            }
        };
        // After another process wrote to the queue of a dead owner's turn, no process holds the lease.
        let orphaned = record.owner != Owner::Other && record.live_run.is_some();
        self.look_at(record);
        if orphaned && let Err(error) = self.recover().await {
            tracing::warn!(%error, "a dead owner's turn could not be settled");
        }
    }
}
