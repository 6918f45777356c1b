//! A terminal that a client has opened for a command: reads its output, waits for its end, kills and releases
//! it.

use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol_schema::v1::{
    KillTerminalRequest, ReleaseTerminalRequest, TerminalExitStatus, TerminalOutputRequest,
    TerminalOutputResponse, WaitForTerminalExitRequest, WaitForTerminalExitResponse,
};
use attache_core::ports::BoxFuture;
use attache_core::ports::delegate::{DelegateError, Terminal, TerminalExit, TerminalOutput};
use tokio::sync::oneshot;

use super::delegate::{DelegateRequests, read};
use crate::limits::TERMINAL_DEADLINE;

#[derive(Debug)]
pub(super) struct ClientTerminal {
    requests: Arc<DelegateRequests>,
    id: String,
    /// Ends when the client has received the terminal. A lock, because only the caller that releases takes it,
    /// once.
    shown: Mutex<Option<oneshot::Receiver<()>>>,
}

impl ClientTerminal {
    pub(super) fn new(requests: Arc<DelegateRequests>, id: String, shown: oneshot::Receiver<()>) -> Self {
        Self { requests, id, shown: Mutex::new(Some(shown)) }
    }

    fn names(&self) -> (Arc<DelegateRequests>, String, String) {
        (self.requests.clone(), self.requests.session_id().as_str().to_owned(), self.id.clone())
    }
}

impl Terminal for ClientTerminal {
    fn id(&self) -> &str {
        &self.id
    }

    fn output(&self) -> BoxFuture<'static, Result<TerminalOutput, DelegateError>> {
        let (requests, session, id) = self.names();
        Box::pin(async move {
            let request = TerminalOutputRequest::new(session, id);
            let response = requests.ask("terminal/output", &request, Some(TERMINAL_DEADLINE)).await?;
            let TerminalOutputResponse { output, truncated, exit_status, .. } = read(&response)?;
            Ok(TerminalOutput { text: output, truncated, exit: exit_status.map(exit) })
        })
    }

    fn wait_for_exit(&self) -> BoxFuture<'static, Result<TerminalExit, DelegateError>> {
        let (requests, session, id) = self.names();
        Box::pin(async move {
            let request = WaitForTerminalExitRequest::new(session, id);
            let response = requests.ask("terminal/wait_for_exit", &request, None).await?;
            Ok(exit(read::<WaitForTerminalExitResponse>(&response)?.exit_status))
        })
    }

    fn kill(&self) -> BoxFuture<'static, Result<(), DelegateError>> {
        let (requests, session, id) = self.names();
        Box::pin(async move {
            let request = KillTerminalRequest::new(session, id);
            requests.ask("terminal/kill", &request, Some(TERMINAL_DEADLINE)).await.map(drop)
        })
    }

    /// A client forgets a terminal when we release it, so it must receive the terminal before: requests and
    /// updates take different ways out, and a short command ends before its update has left.
    fn release(&self) -> BoxFuture<'static, Result<(), DelegateError>> {
        let (requests, session, id) = self.names();
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            if let Some(shown) = shown {
                // The client never received it, or not in time: release it all the same.
                drop(tokio::time::timeout(TERMINAL_DEADLINE, shown).await);
            }
            let request = ReleaseTerminalRequest::new(session, id);
            requests.ask("terminal/release", &request, Some(TERMINAL_DEADLINE)).await.map(drop)
        })
    }
}

fn exit(status: TerminalExitStatus) -> TerminalExit {
    TerminalExit { code: status.exit_code, signal: status.signal }
}
