//! The person behind a client, as the core asks them: by a form, where the client shows forms. Elsewhere nobody
//! is there, and what would be asked is denied.

use std::sync::Arc;

use attache_core::ports::BoxFuture;
use attache_core::ports::client::{About, Answer, Ask, Client};
use attache_core::ports::delegate::{
    Delegate, DelegateError, Form, FormAnswer, Lines, Offers, Terminal, TerminalCommand, TerminalLoss,
};
use attache_rpc::{Peer, RequestError, RequestId};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::conversation::McpCall;
use crate::forms;
use crate::parked::InputQuestion;
use crate::revision::Revision;

/// Under this key the parameters of a question name the request in whose course it is asked.
pub(crate) const ASKED_FOR: &str = "attache/requestId";

/// Whether a client puts forms to its user, and what they may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormSupport {
    None,
    Shown(Revision),
}

impl FormSupport {
    /// A client that names no mode of elicitation means forms: there was nothing else at first.
    pub(crate) fn of(capabilities: &Value, revision: Revision) -> Self {
        match capabilities.get("elicitation").and_then(Value::as_object) {
            Some(modes) if modes.is_empty() || modes.contains_key("form") => Self::Shown(revision),
            Some(_) | None => Self::None,
        }
    }
}

/// Takes part in a session while a call runs.
#[derive(Clone, Debug)]
pub(crate) struct McpPerson {
    peer: Peer,
    request: RequestId,
    forms: FormSupport,
    /// Stateless clients only: where questions are queued.
    input_requests: Option<mpsc::Sender<InputQuestion>>,
}

impl McpPerson {
    pub(crate) fn of(call: &McpCall) -> Arc<Self> {
        let McpCall { peer, request, forms, input_requests, .. } = call.clone();
        Arc::new(Self { peer, request, forms, input_requests })
    }

    /// Waits without a deadline; dropping the future withdraws the question.
    async fn fill_in(&self, mut form: Value) -> Result<Box<RawValue>, RequestError> {
        if let Some(input_requests) = &self.input_requests {
            let (answer, answered) = oneshot::channel();
            input_requests.send(InputQuestion { form, answer }).await.map_err(|_| RequestError::Closed)?;
            return answered.await.map_err(|_| RequestError::Closed);
        }
        let request: Value = serde_json::from_str(self.request.as_json()).unwrap_or_default();
        form["_meta"] = json!({ ASKED_FOR: request });
        self.peer.request("elicitation/create", &form, None).await
    }

    async fn answer(&self, ask: &Ask, revision: Revision) -> Answer {
        let form = match &ask.about {
            About::Permission(permission) => forms::permission(ask, permission, revision),
            About::ModeSwitch(proposal) => forms::mode_switch(proposal, revision),
            About::Questions(questions) => match forms::questions(questions, revision) {
                Some(form) => form,
                None => return Answer::Unable,
            },
        };
        match self.fill_in(form).await {
            Ok(response) => match &ask.about {
                About::Permission(permission) => forms::permitted(permission, &response),
                About::ModeSwitch(_) => forms::switched(&response),
                About::Questions(questions) => forms::said(questions, &response),
            },
            Err(RequestError::Closed) => Answer::Gone,
            Err(error @ (RequestError::Remote(_) | RequestError::Deadline | RequestError::Encode(_))) => {
                tracing::debug!(%error, "a question failed");
                Answer::Nobody
            }
        }
    }
}

impl Client for McpPerson {
    fn ask(&self, ask: Arc<Ask>) -> BoxFuture<'static, Answer> {
        let person = self.clone();
        Box::pin(async move {
            match person.forms {
                FormSupport::None => Answer::Nobody,
                FormSupport::Shown(revision) => person.answer(&ask, revision).await,
            }
        })
    }

    fn delegate(&self) -> Option<Arc<dyn Delegate>> {
        Some(Arc::new(self.clone()))
    }
}

/// Forms of servers that the session itself uses are passed on; files and commands are this machine's.
impl Delegate for McpPerson {
    fn offers(&self) -> Offers {
        Offers { forms: self.forms != FormSupport::None, ..Offers::default() }
    }

    fn read_text(
        &self,
        _path: &std::path::Path,
        _lines: Lines,
    ) -> BoxFuture<'static, Result<String, DelegateError>> {
        Box::pin(std::future::ready(Err(not_offered())))
    }

    fn write_text(
        &self,
        _path: &std::path::Path,
        _text: String,
    ) -> BoxFuture<'static, Result<(), DelegateError>> {
        Box::pin(std::future::ready(Err(not_offered())))
    }

    fn open_terminal(
        &self,
        _command: TerminalCommand,
    ) -> BoxFuture<'static, Result<Arc<dyn Terminal>, DelegateError>> {
        Box::pin(std::future::ready(Err(not_offered())))
    }

    fn fill(&self, form: Form) -> BoxFuture<'static, Result<FormAnswer, DelegateError>> {
        let person = self.clone();
        Box::pin(async move {
            let FormSupport::Shown(revision) = person.forms else { return Err(not_offered()) };
            match person.fill_in(forms::passed_on(&form, revision)).await {
                Ok(response) => Ok(forms::filled(&response)),
                Err(RequestError::Closed) => Err(DelegateError::Gone),
                Err(error) => Err(DelegateError::Refused(error.to_string())),
            }
        })
    }

    fn terminals_lost(&self, _loss: TerminalLoss) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn not_offered() -> DelegateError {
    DelegateError::Refused("this client does not offer that".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_that_show_forms_are_asked() {
        let revision = Revision::agreed("2025-11-25");
        for (capabilities, shows) in [
            (json!({}), false),
            (json!({ "elicitation": {} }), true),
            (json!({ "elicitation": { "form": {} } }), true),
            (json!({ "elicitation": { "url": {} } }), false),
            (json!({ "elicitation": { "url": {}, "form": {} } }), true),
            (json!({ "elicitation": true }), false),
            (json!(null), false),
        ] {
            let support = FormSupport::of(&capabilities, revision);
            assert_eq!(support == FormSupport::Shown(revision), shows, "{capabilities}");
        }
    }
}
