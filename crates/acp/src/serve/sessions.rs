//! Sessions that come and go on a connection: new, fork, close, delete, list.

use std::path::PathBuf;
use std::sync::Arc;

use attache_core::hub::{AttachFrom, ForkPoint, NewSession, SessionHandle};
use attache_core::ids::SessionId;
use attache_core::ports::store::SessionQuery;
use attache_rpc::{ErrorObject, Responder};
use serde_json::json;
use tokio::sync::oneshot;

use super::consent;
use super::failure::{error_object, unknown_session};
use super::forwarder::{ForwarderCommand, StartForwarding, StopForwarding, send};
use super::link::{OpenRequest, SessionLink, SessionRequest};
use super::router::{ClientConnection, ConnectionPhase};
use crate::from_wire::{Invalid, ListSessions, Workplace, cursor};
use crate::limits::SESSIONS_PER_PAGE;
use crate::to_wire::{session_info, session_result};

impl ClientConnection {
    /// A new session, or a copy of `origin` up to a point of it.
    pub(super) fn new_session(
        self: &Arc<Self>,
        origin: Option<(SessionId, ForkPoint)>,
        workplace: Workplace,
        responder: Responder,
    ) {
        let connection = self.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.check_directories(&workplace).await {
                return responder.error(error);
            }
            if let Some((origin, _)) = &origin
                && let Err(error) = connection.check_known(origin).await
            {
                return responder.error(error);
            }
            let new = NewSession { root: workplace.cwd.clone(), place: workplace.into() };
            let directories: Vec<PathBuf> =
                std::iter::once(&new.root).chain(&new.place.additional).cloned().collect();
            let made = match &origin {
                Some((origin, point)) => connection.agent.hub.fork_at(origin, point, new).await,
                None => connection.agent.hub.create(new).await,
            };
            match made {
                Ok(handle) => {
                    let host = &connection.agent.host;
                    match host.check_places(handle.id(), directories).await {
                        Ok(()) => connection.link_new(handle, responder).await,
                        Err(reason) => responder.error(refused("cwd".to_owned(), reason)),
                    }
                }
                Err(error) => responder.error(error_object(&error)),
            }
        });
    }

    async fn link_new(self: &Arc<Self>, handle: SessionHandle, responder: Responder) {
        // Nobody makes anything before `initialize`.
        let Some(client) = self.lock().phase.client() else { return };
        let link = SessionLink::new(self, handle.id(), &client);
        let attachment = match handle.attach(Some(link.client.clone()), AttachFrom::Now).await {
            Ok(attachment) => attachment,
            Err(error) => return responder.error(error_object(&error)),
        };
        let result = session_result(Some(handle.id()), &self.agent.hub.choices().get(), &attachment.chosen);
        let mut state = self.lock();
        send(
            &link.forwarder,
            ForwarderCommand::Start(Box::new(StartForwarding { attachment, responder, result })),
        );
        if let ConnectionPhase::Ready(_) = state.phase {
            consent::ask(self.agent.hub.clone(), handle.clone(), link.client.clone());
            state.links.insert(handle.id().clone(), link, handle.clone());
            self.tell(&handle, None);
        }
    }

    async fn check_directories(&self, workplace: &Workplace) -> Result<(), ErrorObject> {
        let cwd = self.agent.host.check_directory(&workplace.cwd).await;
        cwd.map_err(|reason| refused("cwd".to_owned(), reason))?;
        self.check_additional(workplace).await
    }

    pub(super) async fn check_additional(&self, workplace: &Workplace) -> Result<(), ErrorObject> {
        for (index, path) in workplace.additional_directories.iter().enumerate() {
            let checked = self.agent.host.check_directory(path).await;
            checked.map_err(|reason| refused(format!("additionalDirectories[{index}]"), reason))?;
        }
        Ok(())
    }

    /// A load or resume: uses the existing link, or makes one.
    pub(super) fn open(self: &Arc<Self>, session_id: &SessionId, request: OpenRequest) {
        self.submit(&mut self.lock(), session_id, SessionRequest::Open(request));
    }

    pub(super) fn close(self: &Arc<Self>, session_id: SessionId, responder: Responder) {
        let mut state = self.lock();
        if state.links.contains(&session_id) {
            return self.submit(&mut state, &session_id, SessionRequest::Close(responder));
        }
        drop(state);
        let (connection, hub) = (self.clone(), self.agent.hub.clone());
        tokio::spawn(async move {
            if let Err(error) = connection.check_known(&session_id).await {
                return responder.error(error);
            }
            let closed = match hub.find(&session_id).await {
                Ok(found) => found.close().await,
                Err(error) => Err(error),
            };
            match closed {
                Ok(()) => responder.ok(&json!({})),
                Err(error) => responder.error(error_object(&error)),
            }
        });
    }

    pub(super) fn delete(self: &Arc<Self>, session_id: SessionId, responder: Responder) {
        let connection = self.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.check_known(&session_id).await {
                return responder.error(error);
            }
            match connection.agent.hub.delete(&session_id).await {
                Ok(()) => connection.leave(&session_id, responder),
                Err(error) => responder.error(error_object(&error)),
            }
        });
    }

    /// The session is gone for this connection: its forwarder sends the answers it owes, then this one, and
    /// ends.
    pub(super) fn leave(&self, session_id: &SessionId, responder: Responder) {
        let removed = self.lock().links.remove(session_id);
        let Some((SessionLink { forwarder, .. }, waited)) = removed else { return responder.ok(&json!({})) };
        waited.into_iter().for_each(|request| request.refuse(&unknown_session(session_id)));
        let (left, _) = oneshot::channel();
        send(&forwarder, ForwarderCommand::Stop(StopForwarding { responder, left }));
    }

    pub(super) fn list(self: &Arc<Self>, list: ListSessions, responder: Responder) {
        let connection = self.clone();
        tokio::spawn(async move {
            let query = SessionQuery {
                workspace_root: list.cwd,
                after: list.after,
                // One more than we show tells whether there is another page.
                limit: SESSIONS_PER_PAGE + 1,
                include_archived: false,
                listed: list.listed,
            };
            match connection.agent.hub.list(query).await {
                Ok(mut rows) => {
                    let more = rows.len() > SESSIONS_PER_PAGE;
                    rows.truncate(SESSIONS_PER_PAGE);
                    let next = rows.last().filter(|_| more).map(|last| cursor(last.updated_at, &last.id));
                    let rows = connection.known_of(rows).await;
                    let mut result = json!({ "sessions": rows.iter().map(session_info).collect::<Vec<_>>() });
                    if let Some(next) = next {
                        result["nextCursor"] = json!(next);
                    }
                    responder.ok(&result);
                }
                Err(error) => responder.error(error_object(&error)),
            }
        });
    }
}

/// A directory that a session cannot work in.
fn refused(field: String, reason: String) -> ErrorObject {
    ErrorObject::from(Invalid::new(field, reason)).detailed()
}
