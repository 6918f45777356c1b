//! What works less well than was asked for: it stands in the log at once, and who opens the next session is told. Ends nothing.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_acp::Warning;

/// A cheap handle; all of a process are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Troubles(Arc<Mutex<Known>>);

/// Why a lock: keys and models are read again by whoever needs them, sessions are opened by others.
#[derive(Debug, Default)]
struct Known {
    untold: Vec<Warning>,
    /// Descriptions: what lasts is not told again whenever somebody looks.
    heard: HashSet<String>,
}

impl Troubles {
    pub(crate) fn report(&self, title: &str, description: String) {
        tracing::warn!("{title}: {description}");
        let mut known = self.lock();
        if known.heard.insert(description.clone()) {
            known.untold.push(Warning { title: title.to_owned(), description });
        }
    }

    /// What nobody was told yet.
    pub(crate) fn take(&self) -> Vec<Warning> {
        std::mem::take(&mut self.lock().untold)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
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
