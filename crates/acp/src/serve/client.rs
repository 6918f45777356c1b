//! The person behind a connection, as the core asks them.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ClientCapabilities, RequestPermissionOutcome, RequestPermissionResponse,
};
use attache_core::ids::CallId;
use attache_core::ports::client::{About, Answer, Ask, Client, Permission, Question};
use attache_core::ports::{BoxFuture, Delegate};
use attache_rpc::{Peer, RequestError};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::delegate::ClientDelegate;
use super::forwarder::ForwarderCommand;
use crate::from_wire;
use crate::to_wire::{choice_request, fits_options, form_request, permission_request};

#[derive(Debug)]
pub(super) struct AcpClient {
    peer: Peer,
    /// Weak: the session holds this client, and the forwarder keeps it in the session.
    forwarder: mpsc::WeakUnboundedSender<ForwarderCommand>,
    /// What the client does itself.
    side: ClientDelegate,
    forms: Forms,
}

/// Whether the client shows forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forms {
    Shown,
    None,
}

impl Forms {
    pub(super) fn of(capabilities: &ClientCapabilities) -> Self {
        match capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.supports_form()) {
            true => Self::Shown,
            false => Self::None,
        }
    }
}

impl AcpClient {
    pub(super) fn new(
        peer: Peer,
        forwarder: &mpsc::UnboundedSender<ForwarderCommand>,
        side: ClientDelegate,
        forms: Forms,
    ) -> Arc<Self> {
        Arc::new(Self { peer, forwarder: forwarder.downgrade(), side, forms })
    }
}

impl AcpClient {
    /// Waits until the client was shown every entry below this index; not at all where nothing is shown.
    pub(super) async fn shown_up_to(&self, index: u64) {
        let (go, shown) = oneshot::channel();
        let Some(forwarder) = self.forwarder.upgrade() else { return };
        if forwarder.send(ForwarderCommand::Shown(index, go)).is_ok() {
            // A forwarder that has left drops it, which ends the wait.
            drop(shown.await);
        }
    }
}

impl Client for AcpClient {
    /// The question follows the updates that show its call. Dropping the future withdraws it from the client.
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer> {
        let shown = self.forwarder.upgrade().map(|forwarder| when_shown(&forwarder, ask.call_id.clone()));
        let (peer, forms) = (self.peer.clone(), self.forms);
        Box::pin(async move {
            let Some(shown) = shown else { return Answer::Gone };
            if shown.await.is_err() {
                return Answer::Gone;
            }
            let answer = match &ask.about {
                About::Permission(about) => permission(&peer, &ask, about).await,
                About::Questions(questions) => said(&peer, forms, &ask, questions).await,
            };
            answer.unwrap_or_else(|unanswered| unanswered)
        })
    }

    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        Some(Arc::new(self.side.clone()))
    }
}

/// `Err` is an answer that the client did not give itself.
async fn permission(peer: &Peer, ask: &Ask, about: &Permission) -> Result<Answer, Answer> {
    let question = permission_request(ask, about);
    let response = put(peer, "session/request_permission", question, Answer::RejectOnce).await?;
    Ok(answer(&response, about.rule_name.as_deref(), about.edits_name.as_deref()))
}

/// One form where the client has them; else a few choices each, one after the other, as options. Other
/// questions are for the model to ask in its text.
async fn said(peer: &Peer, forms: Forms, ask: &Ask, questions: &[Question]) -> Result<Answer, Answer> {
    match forms {
        Forms::Shown => {
            let response =
                put(peer, "elicitation/create", form_request(ask, questions), Answer::Unsaid).await?;
            Ok(from_wire::form(questions, &response))
        }
        Forms::None if questions.iter().all(fits_options) => {
            let mut said = Vec::with_capacity(questions.len());
            for question in questions {
                let request = choice_request(ask, question);
                let response = put(peer, "session/request_permission", request, Answer::Unsaid).await?;
                said.push(from_wire::choice(question, &response)?);
            }
            Ok(Answer::Said(said))
        }
        Forms::None => Ok(Answer::Unable),
    }
}

/// Puts a question to the client; a failure counts as `failed`, a lost connection as none.
async fn put(
    peer: &Peer,
    method: &str,
    question: Result<Value, serde_json::Error>,
    failed: Answer,
) -> Result<Box<RawValue>, Answer> {
    let question = question.map_err(|error| {
        tracing::error!(%error, method, "a question could not be made");
        failed.clone()
    })?;
    peer.request(method, &question, None).await.map_err(|error| match error {
        RequestError::Closed => Answer::Gone,
        RequestError::Remote(_) | RequestError::Deadline | RequestError::Encode(_) => {
            tracing::debug!(%error, method, "a question failed");
            failed
        }
    })
}

fn when_shown(forwarder: &mpsc::UnboundedSender<ForwarderCommand>, call_id: CallId) -> oneshot::Receiver<()> {
    let (go, shown) = oneshot::channel();
    // A forwarder that has left drops the command, which ends the wait.
    drop(forwarder.send(ForwarderCommand::Question { call_id, go }));
    shown
}

/// Only an option that we offered is an answer; anything else rejects.
fn answer(response: &RawValue, rule_name: Option<&str>, edits_name: Option<&str>) -> Answer {
    let Ok(response) = serde_json::from_str::<RequestPermissionResponse>(response.get()) else {
        return Answer::RejectOnce;
    };
    match response.outcome {
        RequestPermissionOutcome::Cancelled => Answer::Cancelled,
        RequestPermissionOutcome::Selected(selected) => match &*selected.option_id.0 {
            "allow_once" => Answer::AllowOnce,
            "allow_always" if rule_name.is_some() => Answer::AllowAlways,
            "allow_edits" if edits_name.is_some() => Answer::AllowEdits,
            "reject_always" if rule_name.is_some() => Answer::RejectAlways,
            _ => Answer::RejectOnce,
        },
        _ => Answer::RejectOnce,
    }
}
