//! What people's answers allow in a session, and its approval level. Its child sessions share both.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ports::store::SessionRow;
use crate::watchdog::{Action, Always, Approval, Rules};

/// Why shared: the current turn and the turns of children have to apply a change at their next call, above all
/// a stricter one.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionAuthority(Arc<Mutex<AuthorityState>>);

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AuthorityState {
    pub(crate) rules: Rules,
    /// Directories outside the roots that "always" answers granted.
    pub(crate) granted: Vec<PathBuf>,
    /// The approval level in force.
    pub(crate) approval: Approval,
}

impl SessionAuthority {
    pub(crate) fn get(&self) -> AuthorityState {
        self.lock().clone()
    }

    pub(crate) fn approval(&self) -> Approval {
        self.lock().approval
    }

    /// Whether both are the same object, not only equal.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the state is still this one.
    pub(crate) fn is(&self, known: &AuthorityState) -> bool {
        *self.lock() == *known
    }

    pub(crate) fn set_approval(&self, approval: Approval) {
        self.lock().approval = approval;
    }

    /// Takes over the stored state.
    pub(crate) fn adopt(&self, row: &SessionRow) {
        let mut state = self.lock();
        state.rules = Rules::from_json(&row.permissions);
        state.granted = row.metadata.granted_directories();
    }

    /// Adds the meaning of an "always" answer.
    pub(crate) fn remember(&self, always: &Always, action: Action) {
        let mut state = self.lock();
        for rule in always.rules(action) {
            state.rules.add(rule);
        }
        if action == Action::Allow {
            let new: Vec<_> =
                always.directories.iter().filter(|path| !state.granted.contains(path)).cloned().collect();
            state.granted.extend(new);
        }
    }

    /// Removes what "always" answers said about this permission.
    pub(crate) fn forget(&self, permission: &str) {
        self.lock().rules.remove(permission);
    }

    #[cfg(test)]
    pub(crate) fn set(&self, rules: Rules, granted: Vec<PathBuf>, approval: Approval) {
        *self.lock() = AuthorityState { rules, granted, approval };
    }

    fn lock(&self) -> MutexGuard<'_, AuthorityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
