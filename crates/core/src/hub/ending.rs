//! Ends what runs in all sessions: only the turns, or everything because the host ends.

use std::sync::atomic::Ordering;

use super::{Hub, SessionHandle};
use crate::events::{RunState, Runs};
use crate::limits::{REST_LOOK, SHUTDOWN};
use crate::session::SessionCommand;

impl Hub {
    /// Aborts the turns under way in all sessions, as if each client had cancelled its own. Queued prompts run
    /// after that.
    pub fn cancel_all(&self) {
        for commands in self.shared.open_sessions().values() {
            // If the session is gone, there is nothing to cancel.
            drop(commands.send(SessionCommand::Cancel));
        }
    }

    /// How many sessions are open here.
    pub fn open_count(&self) -> usize {
        self.shared.open_sessions().values().filter(|commands| !commands.is_closed()).count()
    }

    /// Resolves when no turn is under way in any session; a turn that waits for a person does not count,
    /// because it continues after a restart.
    pub async fn wait_until_at_rest(&self) {
        loop {
            let sessions: Vec<_> = {
                let open = self.shared.open_sessions();
                open.iter().map(|(id, commands)| (id.clone(), commands.clone())).collect()
            };
            let asked = sessions.into_iter().map(|(id, commands)| SessionHandle { id, commands }.status());
            let states = futures_util::future::join_all(asked).await;
            let is_busy = states.iter().flatten().any(|status| match status.state {
                RunState::Busy | RunState::Retrying { .. } => status.runs == Runs::Here,
                RunState::Idle
                | RunState::WaitingOnApproval
                | RunState::WaitingOnUserInput
                | RunState::Error { .. } => false,
            });
            if !is_busy {
                return;
            }
            tokio::time::sleep(REST_LOOK).await;
        }
    }

    /// Aborts all runs and closes their calls; keeps open approvals and queues. Call this when the host is
    /// about to end.
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
