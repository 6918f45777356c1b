//! Conversations that sessions keep for their next turns, within one budget: drops those unused for longest;
//! sessions read them again from the store when they need them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::conversation::Conversation;
use crate::ids::SessionId;

#[derive(Debug)]
pub(crate) struct Histories {
    budget: usize,
    /// Why a lock: sessions put and take at the same time. Held for look-ups only.
    state: Mutex<HistoriesState>,
}

#[derive(Debug, Default)]
struct HistoriesState {
    kept: HashMap<SessionId, KeptHistory>,
    /// Rough bytes of all that is kept.
    weight: usize,
    /// Counts insertions: the entry with the smallest number is the oldest.
    clock: u64,
}

#[derive(Debug)]
struct KeptHistory {
    conversation: Conversation,
    put_at: u64,
}

impl Histories {
    pub(crate) fn new(budget: usize) -> Self {
        Self { budget, state: Mutex::default() }
    }

    /// Keeps a conversation, unless it alone exceeds the budget.
    pub(crate) fn put(&self, id: &SessionId, conversation: Conversation) {
        let mut state = self.lock();
        state.remove(id);
        if conversation.weight() > self.budget {
            return;
        }
        state.clock += 1;
        state.weight += conversation.weight();
        let put_at = state.clock;
        state.kept.insert(id.clone(), KeptHistory { conversation, put_at });
        while state.weight > self.budget {
            let oldest = state.kept.iter().min_by_key(|(_, kept)| kept.put_at).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { break };
            state.remove(&oldest);
        }
    }

    /// Removes it, so that the caller is its only holder and appends in place.
    pub(crate) fn take(&self, id: &SessionId) -> Option<Conversation> {
        self.lock().remove(id)
    }

    pub(crate) fn forget(&self, id: &SessionId) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HistoriesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoriesState {
    fn remove(&mut self, id: &SessionId) -> Option<Conversation> {
        let kept = self.kept.remove(id)?;
        self.weight = self.weight.saturating_sub(kept.conversation.weight());
        Some(kept.conversation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MessageId;
    use crate::part::{Part, Passage, Role};

    fn of(bytes: usize) -> Conversation {
        let part = Part::Text { text: "x".repeat(bytes), state: None, provider_metadata: None };
        let mut conversation = Conversation::default();
        conversation.push(Passage::new(MessageId::new("msg_1"), Role::User, vec![part]));
        conversation
    }

    #[test]
    fn the_one_not_used_for_longest_is_let_go() {
        let histories = Histories::new(2_500);
        let [a, b, c] = ["a", "b", "c"].map(SessionId::new);
        histories.put(&a, of(1_000));
        histories.put(&b, of(1_000));
        let used = histories.take(&a).unwrap();
        histories.put(&a, used);
        histories.put(&c, of(1_000));
        assert!(histories.take(&b).is_none());
        assert!(histories.take(&a).is_some() && histories.take(&c).is_some());
        assert_eq!(histories.lock().weight, 0);
    }

    #[test]
    fn one_that_is_too_large_costs_no_other_its_place() {
        let histories = Histories::new(2_500);
        let [a, b] = ["a", "b"].map(SessionId::new);
        histories.put(&a, of(1_000));
        histories.put(&b, of(3_000));
        assert!(histories.take(&b).is_none() && histories.take(&a).is_some());
    }

    #[test]
    fn what_is_put_again_is_counted_once() {
        let histories = Histories::new(2_500);
        let a = SessionId::new("a");
        for _ in 0..5 {
            histories.put(&a, of(1_000));
        }
        assert_eq!(histories.lock().weight, of(1_000).weight());
    }
}
