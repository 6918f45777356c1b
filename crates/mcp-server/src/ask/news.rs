//! Tells the client of a call what the agent does, a line each. News that are not read are left out: the next
//! ones say more.

use attache_rpc::Peer;
use serde_json::{Value, json};

use crate::conversation::McpCall;
use crate::limits::UNREAD_BYTES;

#[derive(Debug)]
pub(super) struct ProgressLines {
    /// `None`: they are not wanted.
    to: Option<(Peer, Value)>,
    told: u64,
}

impl ProgressLines {
    pub(super) fn of(call: &McpCall) -> Self {
        let to = call.progress.clone().map(|token| (call.peer.clone(), token));
        Self { to, told: 0 }
    }

    pub(super) async fn tell(&mut self, line: &str) {
        let Some((peer, token)) = &self.to else { return };
        // Below the bound of the queue, so that it never waits.
        if peer.queued_bytes() > UNREAD_BYTES {
            return;
        }
        self.told += 1;
        let news = json!({ "progressToken": token, "progress": self.told, "message": line });
        if let Err(error) = peer.notify("notifications/progress", &news).await {
            tracing::debug!(%error, "progress could not be told");
        }
    }
}
