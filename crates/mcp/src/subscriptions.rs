//! Resources that were read and whose server tells of changes: how often each has changed, and what of that a
//! session has told its model.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::{NAMED_RESOURCES, SUBSCRIPTIONS};
use crate::listing::shortened;

/// Changes of one server, through all of its connections.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(
    /// Why a lock: readers of connections count, calls and sessions look. Held for look-ups only.
    Mutex<BTreeMap<String, u64>>,
);

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server has to be asked to tell of it: not if it does already, nor when it tells of too many.
    pub(crate) fn begin(&self, uri: &str) -> bool {
        let mut all = self.lock();
        if all.contains_key(uri) || all.len() >= SUBSCRIPTIONS {
            return false;
        }
        all.insert(uri.to_owned(), 0);
        true
    }

    /// The server would not.
    pub(crate) fn forget(&self, uri: &str) {
        self.lock().remove(uri);
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// What was not asked for says nothing.
    pub(crate) fn changed(&self, uri: &str) {
        if let Some(count) = self.lock().get_mut(uri) {
            *count += 1;
        }
    }

    fn count(&self, uri: &str) -> u64 {
        self.lock().get(uri).copied().unwrap_or_default()
    }
}

/// What one session has read of a server, each in the state that the model knows.
#[derive(Debug, Default)]
pub(crate) struct ReadResources(
    /// Why a lock: calls of one turn run side by side.
    Mutex<BTreeMap<String, u64>>,
);

impl ReadResources {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before it is read: a change meanwhile is news.
    pub(crate) fn reading(&self, uri: &str, subscriptions: &Subscriptions) {
        let mut read = self.lock();
        if read.len() < SUBSCRIPTIONS || read.contains_key(uri) {
            read.insert(uri.to_owned(), subscriptions.count(uri));
        }
    }

    /// Resources that changed since they were read or reported, made harmless.
    pub(crate) fn news(&self, subscriptions: &Subscriptions) -> Vec<String> {
        let mut changed = Vec::new();
        for (uri, told) in self.lock().iter_mut() {
            let now = subscriptions.count(uri);
            if now != *told {
                *told = now;
                changed.push(shortened(uri, 300).replace(['<', '>'], "_"));
            }
        }
        let surplus = changed.len().saturating_sub(NAMED_RESOURCES);
        changed.truncate(NAMED_RESOURCES);
        if surplus > 0 {
            changed.push(format!("{surplus} more"));
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_to_each_that_has_read_it() {
        let (server, one, other) =
            (Subscriptions::default(), ReadResources::default(), ReadResources::default());
        assert!(server.begin("a://1") && !server.begin("a://1"));
        one.reading("a://1", &server);
        server.changed("a://1");
        server.changed("b://unasked");
        other.reading("a://1", &server);
        assert_eq!(one.news(&server), ["a://1"]);
        assert_eq!((one.news(&server).len(), other.news(&server).len()), (0, 0));
        server.changed("a://1");
        server.changed("a://1");
        assert_eq!((one.news(&server), other.news(&server)), (vec!["a://1".into()], vec!["a://1".into()]));
    }

    #[test]
    fn there_is_an_end_to_what_is_watched() {
        let (server, session) = (Subscriptions::default(), ReadResources::default());
        for number in 0..SUBSCRIPTIONS + 10 {
            let uri = format!("a://</note>{number:04}");
            assert_eq!(server.begin(&uri), number < SUBSCRIPTIONS);
            session.reading(&uri, &server);
            server.changed(&uri);
        }
        let news = session.news(&server);
        assert_eq!(news.len(), NAMED_RESOURCES + 1);
        assert_eq!(news[0], "a://_/note_0000");
        assert_eq!(news[NAMED_RESOURCES], format!("{} more", SUBSCRIPTIONS - NAMED_RESOURCES));
    }
}
