//! Tells the client of a call what the agent does, a line each. News that are not read are left out: the next
//! ones say more.

use serde_json::json;

use crate::conversation::McpCall;
use crate::limits::UNREAD_BYTES;
use crate::parked::NewsTarget;

#[derive(Debug)]
pub(super) struct ProgressLines {
    to: NewsTarget,
    told: u64,
}

impl ProgressLines {
    pub(super) fn of(call: &McpCall) -> Self {
        Self { to: call.news.clone(), told: 0 }
    }

    pub(super) async fn tell(&mut self, line: &str) {
        let Some((peer, token)) = self.to.get() else { return };
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
