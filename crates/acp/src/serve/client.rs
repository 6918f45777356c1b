//! The person behind a connection, in the form the core asks them.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ClientCapabilities, RequestPermissionOutcome, RequestPermissionResponse,
};
use attache_core::ids::SessionId;
use attache_core::ports::client::{
    About, Answer, Ask, CallArguments, Client, ModeProposal, Permission, Question, Said, WhenAsked,
};
use attache_core::ports::projects::{ConsentAnswer, ConsentRequest};
use attache_core::ports::{BoxFuture, Delegate};
use attache_rpc::{Peer, RequestError};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::delegate::ClientDelegate;
use super::forwarder::ForwarderCommand;
use crate::from_wire::{self, EditedArguments, Picked};
use crate::limits::FORM_TRIES;
use crate::to_wire::{
    EDIT_ARGUMENTS, argument_form, choice_request, consent_form, fits_options, form_request, has_form,
    mode_request, permission_request,
};

#[derive(Debug)]
pub(super) struct AcpClient {
    peer: Peer,
    /// Weak, because the session holds this client, and the forwarder keeps the client in the session.
    forwarder: mpsc::WeakUnboundedSender<ForwarderCommand>,
    /// What the client does itself, such as files and terminals.
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
    pub(super) fn shows_forms(&self) -> bool {
        self.forms == Forms::Shown
    }

    /// The user's answer about a project's own configuration; `None` if there is no answer.
    pub(super) async fn consent(
        &self,
        session: &SessionId,
        request: &ConsentRequest,
    ) -> Option<ConsentAnswer> {
        let form = consent_form(session, request);
        let response = put(&self.peer, "elicitation/create", form, Answer::Unsaid).await.ok()?;
        from_wire::consent(&response)
    }

    /// Waits until the client has received every entry below this index; does not wait if nothing is being
    /// shown.
    pub(super) async fn shown_up_to(&self, index: u64) {
        let (go, shown) = oneshot::channel();
        let Some(forwarder) = self.forwarder.upgrade() else { return };
        if forwarder.send(ForwarderCommand::Shown(index, go)).is_ok() {
            // A forwarder that has ended drops the sender, which ends the wait.
            drop(shown.await);
        }
    }
}

impl Client for AcpClient {
    /// Asks after the updates that show the question's call. Dropping the future withdraws the question from
    /// the client.
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer> {
        let shown = self.forwarder.upgrade().map(|forwarder| when_shown(&forwarder, &ask));
        let (peer, forms) = (self.peer.clone(), self.forms);
        Box::pin(async move {
            let Some(shown) = shown else { return Answer::Gone };
            if shown.await.is_err() {
                return Answer::Gone;
            }
            let answer = match &ask.about {
                About::Permission(about) => permission(&peer, forms, &ask, about).await,
                About::Questions(questions) => said(&peer, forms, &ask, questions).await,
                About::ModeSwitch(proposal) => mode_switch(&peer, &ask, proposal).await,
            };
            answer.unwrap_or_else(|unanswered| unanswered)
        })
    }

    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        Some(Arc::new(self.side.clone()))
    }
}

/// `Err` is an answer that the client did not give itself.
async fn permission(peer: &Peer, forms: Forms, ask: &Ask, about: &Permission) -> Result<Answer, Answer> {
    let mut about = about.clone();
    if forms == Forms::None || !has_form(&ask.input) {
        about.arguments = CallArguments::Fixed;
    }
    loop {
        let question = permission_request(ask, &about);
        let response = put(peer, "session/request_permission", question, Answer::RejectOnce).await?;
        if !wants_to_edit(&about, &response) {
            return Ok(answer(&response, about.rule_name.as_deref(), about.edits_name.as_deref()));
        }
        if let Some(edited) = edited(peer, ask).await? {
            return Ok(edited);
        }
        // Whoever puts the form aside has decided nothing; it is not offered for ever.
        about.arguments = CallArguments::Fixed;
    }
}

fn wants_to_edit(about: &Permission, response: &RawValue) -> bool {
    let response = serde_json::from_str::<RequestPermissionResponse>(response.get());
    let Ok(RequestPermissionOutcome::Selected(selected)) = response.map(|response| response.outcome) else {
        return false;
    };
    about.arguments == CallArguments::Editable && *selected.option_id.0 == *EDIT_ARGUMENTS
}

/// The arguments as the user wants them; `None`: the form was put aside.
async fn edited(peer: &Peer, ask: &Ask) -> Result<Option<Answer>, Answer> {
    let (mut typed, mut wrong) = (Map::new(), Vec::new());
    for _ in 0..FORM_TRIES {
        let form = argument_form(ask, &typed, &wrong);
        let response = put(peer, "elicitation/create", form, Answer::RejectOnce).await?;
        match from_wire::arguments(&ask.input, &response) {
            EditedArguments::Given(same) if same == ask.input => return Ok(Some(Answer::AllowOnce)),
            EditedArguments::Given(arguments) => return Ok(Some(Answer::AllowEdited(arguments))),
            EditedArguments::Wrong { typed: before, wrong: fields } => (typed, wrong) = (before, fields),
            EditedArguments::PutAside => return Ok(None),
        }
    }
    Ok(None)
}

async fn mode_switch(peer: &Peer, ask: &Ask, proposal: &ModeProposal) -> Result<Answer, Answer> {
    let question = mode_request(ask, proposal);
    let response = put(peer, "session/request_permission", question, Answer::RejectOnce).await?;
    Ok(answer(&response, None, None))
}

/// One form if the client supports forms; else questions with few choices one after the other, as options. The
/// model must ask other questions in its text.
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
                said.push(chosen(peer, ask, question).await?);
            }
            Ok(Answer::Said(said))
        }
        Forms::None => Ok(Answer::Unable),
    }
}

/// One question with its choices as options, some at a time.
async fn chosen(peer: &Peer, ask: &Ask, question: &Question) -> Result<Said, Answer> {
    let mut first = 0;
    loop {
        let request = choice_request(ask, question, first);
        let response = put(peer, "session/request_permission", request, Answer::Unsaid).await?;
        match from_wire::choice(question, first, &response)? {
            Picked::Said(said) => return Ok(said),
            Picked::More => first += 1,
        }
    }
}

/// Sends a question to the client; a failure counts as `failed`, a lost connection as no answer.
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

fn when_shown(forwarder: &mpsc::UnboundedSender<ForwarderCommand>, ask: &Ask) -> oneshot::Receiver<()> {
    let (go, shown) = oneshot::channel();
    let command = match ask.when {
        WhenAsked::CallAsked => ForwarderCommand::Question { call_id: ask.call_id.clone(), go },
        WhenAsked::Shown(index) => ForwarderCommand::Shown(index, go),
    };
    // A forwarder that has ended drops the command, which ends the wait.
    drop(forwarder.send(command));
    shown
}

/// Only an option that we offered counts; anything else rejects.
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
