//! Ends what is under way in all sessions: the turns alone, or everything because the host ends.

use std::sync::atomic::Ordering;

use super::{Hub, SessionHandle};
use crate::limits::SHUTDOWN;
use crate::session::SessionCommand;

impl Hub {
    /// Aborts the turns under way in all sessions, as if each client had cancelled its own. What waits goes on
    /// after them.
    pub fn cancel_all(&self) {
        for commands in self.shared.open_sessions().values() {
            // A session that is gone has nothing to cancel.
            drop(commands.send(SessionCommand::Cancel));
        }
    }

    /// Aborts all runs, closes their calls, keeps open approvals and queues. The host is about to end.
    pub async fn shutdown(&self) {
        let sessions: Vec<_> = {
            let open = self.shared.open_sessions();
            self.shared.ending.store(true, Ordering::SeqCst);
            open.iter().map(|(id, commands)| (id.clone(), commands.clone())).collect()
        };
        let mut ends = Vec::new();
        for (id, commands) in sessions {
            let handle = SessionHandle { id, commands };
            ends.push(async move { drop(handle.ask(SessionCommand::Shutdown).await) });
        }
        drop(tokio::time::timeout(SHUTDOWN, futures_util::future::join_all(ends)).await);
    }
}
