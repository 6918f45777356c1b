//! Load and resume: open a session on this connection, for the first time or again.

use std::sync::Arc;

use attache_core::choices::Chosen;
use attache_core::hub::{AttachFrom, Attachment, HubError, SessionHandle};
use attache_core::ids::SessionId;
use attache_rpc::ErrorObject;

use super::client::AcpClient;
use super::consent;
use super::failure::{error_object, unknown_session};
use super::forwarder::{ForwarderCommand, StartForwarding, send};
use super::link::{OpenRequest, SessionRequest};
use super::links::OpeningToken;
use super::router::ClientConnection;
use super::{SameDirectory, Warning};
use crate::from_wire::{Invalid, PlaceChoice, Workplace, quoted};
use crate::to_wire::session_result;

impl ClientConnection {
    /// Opens a session from the store, or again: loading an open session replays it from its beginning.
    pub(super) fn open_in_task(
        self: &Arc<Self>,
        token: OpeningToken,
        client: Arc<AcpClient>,
        request: OpenRequest,
    ) {
        let connection = self.clone();
        tokio::spawn(async move {
            let session_id = token.session_id().clone();
            let OpenRequest { from, workplace, responder } = request;
            let warning = match connection.check_place(&session_id, &workplace).await {
                Ok(warning) => warning,
                Err(error) => {
                    responder.error(error.clone());
                    return connection.refuse_opening(token, &error);
                }
            };
            match connection.attach(&session_id, client, from, &workplace).await {
                Ok((handle, attachment)) => {
                    let choices = connection.agent.hub.choices().get();
                    let result = session_result(None, &choices, &attachment.chosen);
                    let start = StartForwarding { attachment, responder, result };
                    connection.opened(token, handle, start, warning);
                }
                Err(error) => {
                    let error = error_object(&error);
                    responder.error(error.clone());
                    let waited = connection.lock().links.fail_opening(token).unwrap_or_default();
                    waited.into_iter().for_each(|request| request.refuse(&error));
                }
            }
        });
    }

    /// Resumes a session that is already open: answers, and sends nothing again.
    pub(super) fn resume_again(
        self: &Arc<Self>,
        token: OpeningToken,
        handle: SessionHandle,
        request: OpenRequest,
    ) {
        let connection = self.clone();
        tokio::spawn(async move {
            let session_id = token.session_id().clone();
            let error = match connection.check_place(&session_id, &request.workplace).await {
                Err(error) => error,
                Ok(warning) => match connection.settle_in(&handle, &request.workplace).await {
                    Ok(chosen) => {
                        let choices = connection.agent.hub.choices().get();
                        request.responder.ok(&session_result(None, &choices, &chosen));
                        connection.tell(&handle, warning);
                        return connection.keep_open(token, handle);
                    }
                    // Another client has closed it meanwhile, so open it anew.
                    Err(HubError::Closed(_)) => return connection.open_anew(token, request),
                    Err(error) => error_object(&error),
                },
            };
            request.responder.error(error.clone());
            connection.refuse_opening(token, &error);
        });
    }

    /// A session works where it was created. A link to the same directory counts as the same place. A session
    /// whose directory is gone is still readable, but its client gets a warning.
    async fn check_place(
        &self,
        session_id: &SessionId,
        workplace: &Workplace,
    ) -> Result<Option<Warning>, ErrorObject> {
        self.check_additional(workplace).await?;
        let root = self.agent.hub.root(session_id).await.map_err(|error| error_object(&error))?;
        let cwd = &workplace.cwd;
        let usable = self.agent.host.check_directory(&root).await;
        let shown = quoted(&root.to_string_lossy());
        if root != *cwd && self.agent.host.compare_directories(&root, cwd).await == SameDirectory::Different {
            let cwd = quoted(&cwd.to_string_lossy());
            let gone = usable.err().map(|reason| format!("; {reason}")).unwrap_or_default();
            let reason = format!("the session works in {shown}, not in {cwd}{gone}");
            return Err(Invalid::new("cwd", reason).into());
        }
        let directories = std::iter::once(root).chain(workplace.additional_directories.clone()).collect();
        let places = self.agent.host.check_places(session_id, directories).await;
        places.map_err(|reason| Invalid::new("cwd", reason))?;
        Ok(usable.err().map(|reason| Warning {
            title: "The directory of this session can't be used".to_owned(),
            description: format!(
                "{reason}. You can read the session; its tools fail until the directory is back."
            ),
        }))
    }

    async fn attach(
        &self,
        session_id: &SessionId,
        client: Arc<AcpClient>,
        from: AttachFrom,
        workplace: &Workplace,
    ) -> Result<(SessionHandle, Attachment), HubError> {
        let handle = match workplace.place {
            PlaceChoice::Requested => self.agent.hub.open_in(session_id, &workplace.clone().into()).await?,
            PlaceChoice::Kept => self.agent.hub.open(session_id).await?,
        };
        let attachment = handle.attach(Some(client), from).await?;
        Ok((handle, attachment))
    }

    /// Sets the directories of the request and returns the session's choices; joining for a moment reveals
    /// them.
    async fn settle_in(&self, handle: &SessionHandle, workplace: &Workplace) -> Result<Chosen, HubError> {
        match workplace.place {
            PlaceChoice::Requested => handle.work_in(workplace.clone().into()).await?,
            PlaceChoice::Kept => {}
        }
        Ok(handle.attach(None, AttachFrom::Now).await?.chosen)
    }

    /// The session is open: starts its forwarder, then handles the waiting requests, in order.
    fn opened(
        self: &Arc<Self>,
        token: OpeningToken,
        handle: SessionHandle,
        start: StartForwarding,
        warning: Option<Warning>,
    ) {
        let session_id = token.session_id().clone();
        let state = &mut *self.lock();
        let Some((link, waited)) = state.links.opened(token, handle.clone()) else {
            return start.responder.error(unknown_session(&session_id));
        };
        send(&link.forwarder, ForwarderCommand::Start(Box::new(start)));
        consent::ask(self.agent.hub.clone(), handle.clone(), link.client.clone());
        self.tell(&handle, warning);
        self.submit_all(state, &session_id, waited);
    }

    /// The session continues unchanged; handles the requests that came after this one.
    fn keep_open(self: &Arc<Self>, token: OpeningToken, handle: SessionHandle) {
        let session_id = token.session_id().clone();
        let state = &mut *self.lock();
        let waited = state.links.opened(token, handle).map(|(_, waited)| waited).unwrap_or_default();
        self.submit_all(state, &session_id, waited);
    }

    /// The request was wrong: handles the waiting requests in the session as it was before, or refuses them.
    fn refuse_opening(self: &Arc<Self>, token: OpeningToken, error: &ErrorObject) {
        let session_id = token.session_id().clone();
        let state = &mut *self.lock();
        let after = state.links.refuse_opening(token);
        self.settle_refusal(state, &session_id, after, error);
    }

    /// Replaces the link of a closed session by a new one, which keeps the waiting requests.
    fn open_anew(self: &Arc<Self>, token: OpeningToken, request: OpenRequest) {
        let session_id = token.session_id().clone();
        let state = &mut *self.lock();
        let waited = state.links.fail_opening(token).unwrap_or_default();
        self.submit(state, &session_id, SessionRequest::Open(request));
        self.submit_all(state, &session_id, waited);
    }

    /// Reports what works less well than requested, including trouble of the host, so that users need not
    /// guess.
    pub(super) fn tell(&self, handle: &SessionHandle, about_place: Option<Warning>) {
        for Warning { title, description } in about_place.into_iter().chain(self.agent.host.take_warnings()) {
            handle.notice("warning", title, Some(description));
        }
    }
}
