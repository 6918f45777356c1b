//! What answers of people allow in a session, and how much passes there without asking. The sessions that work
//! for it share it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ports::store::SessionRow;
use crate::watchdog::{Action, Always, Approval, Rules};

/// Why shared: a turn under way has to follow a change at its next call, above all to a stricter one, and so
/// have the turns of children.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionAuthority(Arc<Mutex<AuthorityState>>);

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AuthorityState {
    pub(crate) rules: Rules,
    /// Directories outside the roots, granted by "always" answers.
    pub(crate) granted: Vec<PathBuf>,
    /// What is in force.
    pub(crate) approval: Approval,
}

impl SessionAuthority {
    pub(crate) fn get(&self) -> AuthorityState {
        self.lock().clone()
    }

    pub(crate) fn approval(&self) -> Approval {
        self.lock().approval
    }

    /// Whether it is the very same, not one like it.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether it is still this.
    pub(crate) fn is(&self, known: &AuthorityState) -> bool {
        *self.lock() == *known
    }

    pub(crate) fn set_approval(&self, approval: Approval) {
        self.lock().approval = approval;
    }

    /// Takes what is stored.
    pub(crate) fn adopt(&self, row: &SessionRow) {
        let mut state = self.lock();
        state.rules = Rules::from_json(&row.permissions);
        state.granted = row.metadata.granted_directories();
    }

    /// Adds what an "always" answer means.
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

    /// Takes back what was said for always about this.
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
