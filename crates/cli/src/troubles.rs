//! What works less well than requested: logs it at once, and tells the client that opens the next session. Ends
//! nothing.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_acp::Warning;

/// A cheap handle; all handles of a process share one list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Troubles(Arc<Mutex<ReportedTroubles>>);

/// A lock, because several tasks read keys and models again while others open sessions.
#[derive(Debug, Default)]
struct ReportedTroubles {
    untold: Vec<Warning>,
    /// Descriptions, so that we report a lasting trouble only once.
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

    /// What we have told no client yet.
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
