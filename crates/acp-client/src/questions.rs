//! Questions of an agent that a user answers, each exactly once.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAcceptAction, ElicitationAction,
    PermissionOptionId, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome,
};
use attache_rpc::Responder;
use tokio_util::sync::CancellationToken;

/// Whether a tool call may run. Dropped unanswered, it is answered as cancelled.
#[derive(Debug)]
pub struct PermissionQuestion {
    pub request: RequestPermissionRequest,
    responder: Option<Responder>,
}

impl PermissionQuestion {
    pub(crate) fn new(request: RequestPermissionRequest, responder: Responder) -> Self {
        Self { request, responder: Some(responder) }
    }

    /// Chooses one of the options of the request.
    pub fn choose(mut self, option: &PermissionOptionId) {
        let chosen = SelectedPermissionOutcome::new(option.clone());
        self.give(RequestPermissionOutcome::Selected(chosen));
    }

    /// For turns that are cancelled meanwhile.
    pub fn cancel(mut self) {
        self.give(RequestPermissionOutcome::Cancelled);
    }

    /// Fires when the agent does not wait for the answer any more.
    pub fn withdrawn(&self) -> CancellationToken {
        withdrawn(self.responder.as_ref())
    }

    fn give(&mut self, outcome: RequestPermissionOutcome) {
        if let Some(responder) = self.responder.take() {
            responder.ok(&RequestPermissionResponse::new(outcome));
        }
    }
}

impl Drop for PermissionQuestion {
    fn drop(&mut self) {
        self.give(RequestPermissionOutcome::Cancelled);
    }
}

/// A form to fill in, or an address to visit. Dropped unanswered, it is answered as cancelled.
#[derive(Debug)]
pub struct ElicitationQuestion {
    pub request: CreateElicitationRequest,
    responder: Option<Responder>,
}

impl ElicitationQuestion {
    pub(crate) fn new(request: CreateElicitationRequest, responder: Responder) -> Self {
        Self { request, responder: Some(responder) }
    }

    /// With what was filled in; nothing for an address.
    pub fn accept(mut self, filled_in: ElicitationAcceptAction) {
        self.give(ElicitationAction::Accept(filled_in));
    }

    /// The user said no.
    pub fn decline(mut self) {
        self.give(ElicitationAction::Decline);
    }

    /// The user said nothing.
    pub fn cancel(mut self) {
        self.give(ElicitationAction::Cancel);
    }

    /// Fires when the agent does not wait for the answer any more.
    pub fn withdrawn(&self) -> CancellationToken {
        withdrawn(self.responder.as_ref())
    }

    fn give(&mut self, action: ElicitationAction) {
        if let Some(responder) = self.responder.take() {
            responder.ok(&CreateElicitationResponse::new(action));
        }
    }
}

impl Drop for ElicitationQuestion {
    fn drop(&mut self) {
        self.give(ElicitationAction::Cancel);
    }
}

fn withdrawn(responder: Option<&Responder>) -> CancellationToken {
    responder.map(Responder::cancelled).unwrap_or_default()
}
