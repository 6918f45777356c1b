//! A child's client is its parent: it passes the child's questions to the people of the parent.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::agents::Agent;
use crate::hub::SessionHandle;
use crate::ids::{CallId, SessionId};
use crate::ports::client::{Answer, Ask};
use crate::ports::{BoxFuture, Client, Delegate};
use crate::session::ClientSide;

/// Takes part in the child's session while its task runs.
#[derive(Debug)]
pub(crate) struct ParentClient {
    parent: SessionHandle,
    child: SessionId,
    /// Agent and task, for the titles of questions.
    label: String,
    /// The client of the parent's prompt; what it does itself, it does for the child, too.
    side: ClientSide,
    is_waited_for: bool,
}

/// A question of a child on its way to people.
#[derive(Debug)]
pub(crate) struct ChildQuestion {
    /// The call's id for the parent's clients; unique among all calls that they see.
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

    /// Marks that the parent's turn waits for the child.
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
            // If the parent is gone, it can't answer.
            answer.await.unwrap_or(Answer::Gone)
        })
    }

    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        self.side.clone()
    }
}

/// Withdraws the question when the child stops waiting for the answer. Has no effect after an answer.
struct Withdrawal {
    parent: SessionHandle,
    call_id: CallId,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        self.parent.withdraw_for_child(self.call_id.clone());
    }
}
