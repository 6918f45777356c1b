//! What works less well than was asked for: it is logged at once, and the client that opens the next session is
//! told. Ends nothing.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_acp::Warning;

/// A cheap handle; all of a process are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Troubles(Arc<Mutex<ReportedTroubles>>);

/// Why a lock: keys and models are read again by several tasks, and others open sessions.
#[derive(Debug, Default)]
struct ReportedTroubles {
    untold: Vec<Warning>,
    /// Descriptions: a trouble that lasts is told once.
    heard: HashSet<String>,
}

impl Troubles {
    pub(crate) fn report(&self, title: &str, description: String) {
        let mut known = self.lock();
        if known.heard.insert(description.clone()) {
            tracing::warn!("{title}: {description}");
            known.untold.push(Warning { title: title.to_owned(), description });
        }
    }

    /// What no client was told yet.
    pub(crate) fn take(&self) -> Vec<Warning> {
        std::mem::take(&mut self.lock().untold)
    }

    fn lock(&self) -> MutexGuard<'_, ReportedTroubles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trouble_is_told_once() {
        let troubles = Troubles::default();
        let again = troubles.clone();
        troubles.report("Stored keys are not used", "a".to_owned());
        again.report("Stored keys are not used", "a".to_owned());
        again.report("Stored keys are not used", "b".to_owned());
        let told: Vec<_> = troubles.take().into_iter().map(|warning| warning.description).collect();
        assert_eq!(told, ["a", "b"]);
        again.report("Stored keys are not used", "a".to_owned());
        assert_eq!(troubles.take(), []);
    }
}
