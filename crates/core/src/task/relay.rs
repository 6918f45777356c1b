//! The parent of a child as its client: questions of the child go to the people of the parent.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::agents::Agent;
use crate::hub::SessionHandle;
use crate::ids::{CallId, SessionId};
use crate::ports::client::{Answer, Ask};
use crate::ports::{BoxFuture, Client, Delegate};
use crate::session::ClientSide;

/// Takes part in the child for as long as its task runs.
#[derive(Debug)]
pub(crate) struct ParentClient {
    parent: SessionHandle,
    child: SessionId,
    /// Agent and task, as the title of a question names them.
    label: String,
    /// What the client of the parent's prompt does itself, it does for the child, too.
    side: ClientSide,
    is_waited_for: bool,
}

/// A question of a child on its way to people.
#[derive(Debug)]
pub(crate) struct ChildQuestion {
    /// The call as the parent's clients know it; unique among all calls they are shown.
    pub(crate) call_id: CallId,
    pub(crate) label: String,
    pub(crate) ask: Arc<Ask>,
    /// Whether a call of the parent's turn waits for the child.
    pub(crate) is_waited_for: bool,
    pub(crate) reply: oneshot::Sender<Answer>,
}

impl ParentClient {
    pub(crate) fn new(
        parent: &SessionHandle,
        child: &SessionId,
        agent: &Agent,
        title: &str,
        side: ClientSide,
    ) -> Self {
        let label = format!("{} ({title})", agent.name);
        Self { parent: parent.clone(), child: child.clone(), label, side, is_waited_for: false }
    }

    /// The same for a child that the turn of its parent waits for.
    pub(crate) fn waited_for(self) -> Self {
        Self { is_waited_for: true, ..self }
    }
}

impl Client for ParentClient {
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer> {
        let (reply, answer) = oneshot::channel();
        let call_id = CallId::new(format!("{}/{}", self.child, ask.call_id));
        let withdrawn = Withdrawal { parent: self.parent.clone(), call_id: call_id.clone() };
        let (label, is_waited_for) = (self.label.clone(), self.is_waited_for);
        self.parent.ask_for_child(ChildQuestion { call_id, label, ask, is_waited_for, reply });
        Box::pin(async move {
            let _told_when_dropped = withdrawn;
            // A parent that is gone can't answer.
            answer.await.unwrap_or(Answer::Gone)
        })
    }

    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        self.side.clone()
    }
}

/// Whoever stops waiting for the answer takes the question back. After an answer this means nothing.
struct Withdrawal {
    parent: SessionHandle,
    call_id: CallId,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.parent.withdraw_for_child(self.call_id.clone());
    }
}
