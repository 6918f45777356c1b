//! Limits how many children of one session work at once, at any depth. Later ones wait for a slot.
//!
//! A child that waits for a child of its own does nothing, so it releases its slot meanwhile: if waiting
//! children held all slots, none could ever continue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ids::SessionId;
use crate::limits::TASKS_AT_ONCE;

#[derive(Debug, Default)]
pub(crate) struct TaskSlots {
    /// Slots by the session at the top. Why a lock: tasks of different turns come and go. Held for look-ups
    /// only.
    roots: Mutex<HashMap<SessionId, Arc<Semaphore>>>,
    /// The children that have a slot.
    holders: Mutex<HashMap<SessionId, Arc<Slot>>>,
}

#[derive(Debug)]
struct Slot {
    places: Arc<Semaphore>,
    state: Mutex<SlotState>,
}

#[derive(Debug)]
struct SlotState {
    permit: Option<OwnedSemaphorePermit>,
    /// How many of its own children it waits for.
    waits_for: usize,
}

/// A child's slot; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct HeldSlot {
    slots: Arc<TaskSlots>,
    root: SessionId,
    child: SessionId,
}

/// A child that has released its slot while it waits for one of its own.
#[derive(Debug)]
pub(crate) struct SteppedAside(Option<Arc<Slot>>);

impl TaskSlots {
    /// Waits until fewer than `TASKS_AT_ONCE` children of the root work; first come, first served.
    pub(crate) async fn take(self: &Arc<Self>, root: &SessionId, child: &SessionId) -> HeldSlot {
        let places = lock(&self.roots)
            .entry(root.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(TASKS_AT_ONCE)))
            .clone();
        // The semaphore is never closed.
        let permit = places.clone().acquire_owned().await.ok();
        let slot = Arc::new(Slot { places, state: Mutex::new(SlotState { permit, waits_for: 0 }) });
        lock(&self.holders).insert(child.clone(), slot);
        HeldSlot { slots: self.clone(), root: root.clone(), child: child.clone() }
    }

    /// Releases the slot of a session that is about to wait for a child of its own. A session without a slot (a
    /// person prompted it) just waits.
    pub(crate) fn step_aside(&self, session: &SessionId) -> SteppedAside {
        let slot = lock(&self.holders).get(session).cloned();
        if let Some(slot) = &slot {
            let mut state = lock(&slot.state);
            state.waits_for += 1;
            state.permit = None;
        }
        SteppedAside(slot)
    }
}

impl SteppedAside {
    /// Waits for a slot again, unless the session still waits for another child.
    pub(crate) async fn come_back(mut self) {
        let Some(slot) = self.0.take() else { return };
        if !slot.waits_for_one_less() {
            return;
        }
        let permit = slot.places.clone().acquire_owned().await.ok();
        let mut state = lock(&slot.state);
        if state.waits_for == 0 && state.permit.is_none() {
            state.permit = permit;
        }
    }
}

impl Drop for SteppedAside {
    fn drop(&mut self) {
        if let Some(slot) = &self.0 {
            // Its turn was dropped, so it needs no slot any more.
            slot.waits_for_one_less();
        }
    }
}

impl Slot {
    /// Returns whether that was the last one.
    fn waits_for_one_less(&self) -> bool {
        let mut state = lock(&self.state);
        state.waits_for = state.waits_for.saturating_sub(1);
        state.waits_for == 0
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        drop(lock(&self.slots.holders).remove(&self.child));
        let mut roots = lock(&self.slots.roots);
        // No other child has or wants a slot: a host of many sessions must not keep them all.
        if roots.get(&self.root).is_some_and(|places| Arc::strong_count(places) == 1) {
            roots.remove(&self.root);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn id(name: &str) -> SessionId {
        SessionId::new(name)
    }

    async fn all_taken(slots: &Arc<TaskSlots>) -> Vec<HeldSlot> {
        let mut held = Vec::new();
        for number in 0..TASKS_AT_ONCE {
            held.push(slots.take(&id("root"), &id(&format!("child{number}"))).await);
        }
        held
    }

    #[tokio::test(start_paused = true)]
    async fn the_rest_waits_in_its_order() {
        let slots = Arc::new(TaskSlots::default());
        let mut held = all_taken(&slots).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for name in ["first", "second", "third"] {
            let (slots, order) = (slots.clone(), order.clone());
            waiting.push(tokio::spawn(async move {
                let _held = slots.take(&id("root"), &id(name)).await;
                lock(&order).push(name);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(lock(&order).is_empty());
        // Another session has slots of its own.
        drop(slots.take(&id("other"), &id("x")).await);
        drop(held.pop());
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*lock(&order), ["first", "second", "third"]);
        drop(held);
        assert!(lock(&slots.roots).is_empty() && lock(&slots.holders).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_child_of_its_own_leaves_it_the_place() {
        let slots = Arc::new(TaskSlots::default());
        let _held = all_taken(&slots).await;
        let aside = slots.step_aside(&id("child0"));
        let second = slots.step_aside(&id("child0"));
        let grandchild = slots.take(&id("root"), &id("grandchild")).await;
        second.come_back().await;
        let back = tokio::spawn(aside.come_back());
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(!back.is_finished(), "its place is taken by its child");
        drop(grandchild);
        back.await.unwrap();
        assert_eq!(lock(&slots.roots)[&id("root")].available_permits(), 0);
    }
}
