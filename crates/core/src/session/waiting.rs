//! The messages that wait for their turn, and the callers that wait for the end of a turn. Only in memory;
//! `queue` and `admit` store messages.
//!
//! A withdrawn message no longer waits, and its callers have an answer.

use std::collections::{HashMap, HashSet, VecDeque};

use super::{ClientSide, Reply};
use crate::hub::{HubError, TurnOutcome};
use crate::ids::MessageId;
use crate::prompt::Arrival;
use crate::turn::TurnEnd;

/// A message that waits for its turn.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) message_id: MessageId,
    pub(crate) queued_at: i64,
    /// In memory only: the protocol says that it does not survive a restart.
    pub(crate) runtime_context: Vec<(Option<String>, String)>,
    /// The sender's client; does not survive a restart either.
    pub(crate) client: ClientSide,
    /// In memory only: after a restart no turn runs that it could steer.
    pub(crate) arrival: Arrival,
}

#[derive(Debug, Default)]
pub(crate) struct PromptQueue {
    waiting: VecDeque<Queued>,
    /// Messages whose callers were told that they failed. They must not run later, so they are deleted from the
    /// stored queue as soon as the store accepts writes again.
    withdrawn: HashSet<MessageId>,
    /// The callers that wait for the end of a message's turn, whether the message waits or its turn runs.
    callers: HashMap<MessageId, Vec<Reply<TurnOutcome>>>,
}

impl PromptQueue {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// In the order in which they fire: steering prompts come first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &MessageId> {
        let arrived = |arrival| self.waiting.iter().filter(move |queued| queued.arrival == arrival);
        arrived(Arrival::Steers).chain(arrived(Arrival::Waits)).map(|queued| &queued.message_id)
    }

    /// Whether the current turn has to end for a steering prompt.
    pub(crate) fn steers(&self) -> bool {
        self.waiting.iter().any(|queued| queued.arrival == Arrival::Steers)
    }

    pub(crate) fn contains(&self, id: &MessageId) -> bool {
        self.ids().any(|waiting| waiting == id)
    }

    /// The time for a message that begins to wait now. Strictly increasing: ids of the same millisecond, some
    /// made by clients, do not tell which came first.
    pub(crate) fn time_behind(&self, now: i64) -> i64 {
        now.max(self.waiting.back().map_or(i64::MIN, |last| last.queued_at + 1))
    }

    pub(crate) fn push(&mut self, queued: Queued) {
        self.waiting.push_back(queued);
    }

    /// Removes a message that fires, was cancelled, or is put back in the order of the store.
    pub(crate) fn remove(&mut self, id: &MessageId) -> Option<Queued> {
        let index = self.waiting.iter().position(|queued| queued.message_id == *id)?;
        self.waiting.remove(index)
    }

    /// Replaces the queue by the stored one.
    pub(crate) fn replace(&mut self, waiting: Vec<Queued>) {
        self.waiting = waiting.into();
    }

    pub(crate) fn set_runtime_context(&mut self, id: &MessageId, context: Vec<(Option<String>, String)>) {
        if let Some(queued) = self.waiting.iter_mut().find(|queued| queued.message_id == *id) {
            queued.runtime_context = context;
        }
    }

    /// The host ends: waiting messages stay in the store for the next owner.
    pub(crate) fn leave_to_store(&mut self) {
        self.waiting.clear();
    }

    /// The waiting message that fires after such an end: after an error only one whose caller still waits.
    pub(crate) fn next_after(&self, end: &TurnEnd) -> Option<&MessageId> {
        match end {
            TurnEnd::Failed { .. } => self.ids().find(|id| self.has_caller(id)),
            TurnEnd::Finished(_) | TurnEnd::StepLimit | TurnEnd::Aborted => self.ids().next(),
        }
    }

    pub(crate) fn take_next_after(&mut self, end: &TurnEnd) -> Option<Queued> {
        let next = self.next_after(end)?.clone();
        self.remove(&next)
    }

    pub(crate) fn add_caller(&mut self, id: MessageId, caller: Reply<TurnOutcome>) {
        self.callers.entry(id).or_default().push(caller);
    }

    pub(crate) fn has_caller(&self, id: &MessageId) -> bool {
        self.callers.contains_key(id)
    }

    /// Answers all callers that wait for the end of this turn.
    pub(crate) fn answer(
        &mut self,
        id: &MessageId,
        outcome: impl Fn(MessageId) -> Result<TurnOutcome, HubError>,
    ) {
        for caller in self.callers.remove(id).unwrap_or_default() {
            super::answer(caller, outcome(id.clone()));
        }
    }

    /// Withdraws a message, so that it will not run, and answers its callers.
    pub(crate) fn withdraw(
        &mut self,
        id: &MessageId,
        outcome: impl Fn(MessageId) -> Result<TurnOutcome, HubError>,
    ) {
        self.remove(id);
        self.withdrawn.insert(id.clone());
        self.answer(id, outcome);
    }

    /// The same for all messages with callers.
    pub(crate) fn withdraw_awaited(&mut self, error: &HubError) {
        let awaited: Vec<_> = self.ids().filter(|id| self.has_caller(id)).cloned().collect();
        for id in &awaited {
            self.withdraw(id, |_| Err(error.clone()));
        }
    }

    /// The messages to delete from the stored queue.
    pub(crate) fn withdrawn(&self) -> &HashSet<MessageId> {
        &self.withdrawn
    }

    /// A message that fired after all is a run to settle; only messages still stored as waiting stay withdrawn.
    pub(crate) fn keep_withdrawn(&mut self, stored: &[MessageId]) {
        self.withdrawn.retain(|id| stored.contains(id));
    }

    /// The stored queue has none of them any more.
    pub(crate) fn withdrawn_are_gone(&mut self) {
        self.withdrawn.clear();
    }
}

#[cfg(test)]
mod tests;
