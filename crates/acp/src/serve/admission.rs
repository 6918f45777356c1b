//! Which sessions the clients of a host may know of: if the host is restricted to some directories, only the
//! sessions that work there. Opening a session also checks its directories.

use attache_core::hub::HubError;
use attache_core::ids::SessionId;
use attache_core::ports::store::SessionRow;
use attache_rpc::ErrorObject;

use super::failure::error_object;
use super::router::ClientConnection;

impl ClientConnection {
    /// For requests about a session that need not be open: one outside the allowed directories counts as
    /// missing.
    pub(super) async fn check_known(&self, session_id: &SessionId) -> Result<(), ErrorObject> {
        if self.agent.host.admitted(Vec::new()).is_none() {
            return Ok(());
        }
        // The code that looks for the session reports a missing one.
        let Ok(root) = self.agent.hub.root(session_id).await else { return Ok(()) };
        let Some(admitted) = self.agent.host.admitted(vec![root]) else { return Ok(()) };
        match admitted.await[..] {
            [true] => Ok(()),
            _ => Err(error_object(&HubError::UnknownSession { id: session_id.clone(), nearest: None })),
        }
    }

    pub(super) async fn known_of(&self, rows: Vec<SessionRow>) -> Vec<SessionRow> {
        let roots = rows.iter().map(|row| row.workspace_root.clone()).collect();
        let Some(admitted) = self.agent.host.admitted(roots) else { return rows };
        let admitted = admitted.await;
        rows.into_iter().zip(admitted).filter_map(|(row, admitted)| admitted.then_some(row)).collect()
    }
}
