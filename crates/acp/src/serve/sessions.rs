//! Sessions coming and going on a connection: new, fork, load, resume, close, delete, list.

use std::sync::Arc;

use attache_core::choices::Chosen;
use attache_core::hub::{AttachFrom, Attachment, HubError, NewSession, SessionHandle};
use attache_core::ids::SessionId;
use attache_core::ports::store::SessionQuery;
use attache_rpc::{ErrorObject, Responder};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::client::Asker;
use super::courier::{Errand, Leaving, Start};
use super::desk::{Phase, Shared, State};
use super::failure::{error_object, unknown_session};
use super::link::{Link, Opening, Order, Stage};
use super::{SameDirectory, Warning};
use crate::from_wire::{Invalid, ListSessions, Workplace, cursor, quoted};
use crate::limits::SESSIONS_PER_PAGE;
use crate::to_wire::{session_info, session_result};

impl Shared {
    /// A new session, or a copy of `origin`.
    pub(super) fn new_session(
        self: &Arc<Self>,
        origin: Option<SessionId>,
        workplace: Workplace,
        responder: Responder,
    ) {
        let shared = self.clone();
        tokio::spawn(async move {
            if let Err(error) = shared.check_directories(&workplace).await {
                return responder.error(error);
            }
            let servers = workplace.mcp_servers;
            let new = NewSession { root: workplace.cwd, additional: workplace.additional_directories };
            let made = match &origin {
                Some(origin) => shared.agent.hub.fork(origin, new).await,
                None => shared.agent.hub.create(new).await,
            };
            match made {
                Ok(handle) => shared.link_new(handle, &servers, responder).await,
                Err(error) => responder.error(error_object(&error)),
            }
        });
    }

    async fn link_new(self: &Arc<Self>, handle: SessionHandle, servers: &[String], responder: Responder) {
        let Some(client) = self.lock().phase.greeted() else { return };
        let link = Link::new(self, handle.id(), &client, Stage::Open(handle.clone()));
        let attachment = match handle.attach(Some(link.asker.clone()), AttachFrom::Now).await {
            Ok(attachment) => attachment,
            Err(error) => return responder.error(error_object(&error)),
        };
        let result = session_result(Some(handle.id()), &self.agent.hub.choices().get(), &attachment.chosen);
        let mut state = self.lock();
        if let Phase::Ready(_) = state.phase {
            send(&link.courier, Errand::Start(Box::new(Start { attachment, responder, result })));
            state.links.insert(handle.id().clone(), link);
            self.tell(&handle, servers);
        }
    }

    async fn check_directories(&self, workplace: &Workplace) -> Result<(), ErrorObject> {
        let cwd = self.agent.host.check_directory(&workplace.cwd).await;
        cwd.map_err(|reason| refused("cwd".to_owned(), reason))?;
        self.check_additional(workplace).await
    }

    async fn check_additional(&self, workplace: &Workplace) -> Result<(), ErrorObject> {
        for (index, path) in workplace.additional_directories.iter().enumerate() {
            let checked = self.agent.host.check_directory(path).await;
            checked.map_err(|reason| refused(format!("additionalDirectories[{index}]"), reason))?;
        }
        Ok(())
    }

    /// A load or resume: joins the link that is there, or makes one.
    pub(super) fn open(self: &Arc<Self>, session_id: &SessionId, opening: Opening) {
        self.open_in(&mut self.lock(), session_id, opening);
    }

    pub(super) fn open_in(self: &Arc<Self>, state: &mut State, session_id: &SessionId, opening: Opening) {
        if let Some(link) = state.links.get_mut(session_id) {
            return self.order(session_id, link, Order::Open(opening));
        }
        // Without a client the connection is over, and nobody is left to be answered.
        let Some(client) = state.phase.greeted() else { return };
        let link = Link::new(self, session_id, &client, Stage::Opening(Vec::new()));
        self.open_in_task(session_id.clone(), &link, None, opening);
        state.links.insert(session_id.clone(), link);
    }

    /// `open` is the session where this connection has it open: a bad request leaves it so.
    pub(super) fn open_in_task(
        self: &Arc<Self>,
        session_id: SessionId,
        link: &Link,
        open: Option<SessionHandle>,
        opening: Opening,
    ) {
        let (shared, courier, asker) = (self.clone(), link.courier.clone(), link.asker.clone());
        tokio::spawn(async move {
            let Opening { from, workplace, responder } = opening;
            if let Err(error) = shared.check_place(&session_id, &workplace).await {
                responder.error(error.clone());
                return match open {
                    Some(handle) => shared.keep_link(&session_id, &courier, handle),
                    None => shared.unlink(&session_id, &courier, &error),
                };
            }
            match shared.attach(&session_id, asker, from, &workplace).await {
                Ok((handle, attachment)) => {
                    let result = session_result(None, &shared.agent.hub.choices().get(), &attachment.chosen);
                    let start = Errand::Start(Box::new(Start { attachment, responder, result }));
                    shared.opened(&session_id, &courier, handle, start, &workplace.mcp_servers);
                }
                Err(error) => {
                    let error = error_object(&error);
                    responder.error(error.clone());
                    shared.unlink(&session_id, &courier, &error);
                }
            }
        });
    }

    /// A session works where it was made. A link to the same directory is the same place.
    async fn check_place(&self, session_id: &SessionId, workplace: &Workplace) -> Result<(), ErrorObject> {
        self.check_additional(workplace).await?;
        let root = self.agent.hub.root(session_id).await.map_err(|error| error_object(&error))?;
        let cwd = &workplace.cwd;
        if root == *cwd || self.agent.host.compare_directories(&root, cwd).await == SameDirectory::Same {
            return Ok(());
        }
        let [root, cwd] = [&root, cwd].map(|path| quoted(&path.to_string_lossy()));
        Err(Invalid::new("cwd", format!("the session works in {root}, not in {cwd}")).into())
    }

    async fn attach(
        &self,
        session_id: &SessionId,
        asker: Arc<Asker>,
        from: AttachFrom,
        workplace: &Workplace,
    ) -> Result<(SessionHandle, Attachment), HubError> {
        let handle = self.agent.hub.open_in(session_id, &workplace.additional_directories).await?;
        let attachment = handle.attach(Some(asker), from).await?;
        Ok((handle, attachment))
    }

    /// The session is open: start its courier, then do what has waited, in order.
    fn opened(
        self: &Arc<Self>,
        session_id: &SessionId,
        courier: &mpsc::UnboundedSender<Errand>,
        handle: SessionHandle,
        start: Errand,
        servers: &[String],
    ) {
        let mut state = self.lock();
        let Some(link) = state.links.get_mut(session_id).filter(|link| link.courier.same_channel(courier))
        else {
            drop(state);
            if let Errand::Start(start) = start {
                start.responder.error(unknown_session(session_id));
            }
            return;
        };
        send(courier, start);
        self.tell(&handle, servers);
        let waiting = match std::mem::replace(&mut link.stage, Stage::Open(handle)) {
            Stage::Opening(waiting) | Stage::Closing(waiting) => waiting,
            Stage::Open(_) => Vec::new(),
        };
        for order in waiting {
            self.order(session_id, link, order);
        }
    }

    /// Takes a link away, if it is still this one; what waits in it is refused.
    fn unlink(&self, session_id: &SessionId, courier: &mpsc::UnboundedSender<Errand>, error: &ErrorObject) {
        let mut state = self.lock();
        let same = state.links.get(session_id).is_some_and(|link| link.courier.same_channel(courier));
        let link = if same { state.links.remove(session_id) } else { None };
        drop(state);
        if let Some(Link { stage: Stage::Opening(waiting), .. }) = link {
            waiting.into_iter().for_each(|order| order.refuse(error));
        }
    }

    /// Resumed where it is attached already: answered, and nothing is sent again.
    pub(super) fn resume_again(
        self: &Arc<Self>,
        handle: SessionHandle,
        courier: mpsc::UnboundedSender<Errand>,
        opening: Opening,
    ) {
        let shared = self.clone();
        tokio::spawn(async move {
            let id = handle.id().clone();
            if let Err(error) = shared.check_place(&id, &opening.workplace).await {
                opening.responder.error(error);
                return shared.keep_link(&id, &courier, handle);
            }
            match shared.settle_in(&handle, &opening.workplace).await {
                Ok(chosen) => {
                    let choices = shared.agent.hub.choices().get();
                    opening.responder.ok(&session_result(None, &choices, &chosen));
                    shared.tell(&handle, &opening.workplace.mcp_servers);
                }
                // Somebody else closed it meanwhile: open it anew.
                Err(HubError::Closed(_)) => return shared.open_anew(&id, &courier, opening),
                Err(error) => opening.responder.error(error_object(&error)),
            }
            shared.keep_link(&id, &courier, handle);
        });
    }

    /// The directories of the request, and what is chosen there. A seat for a moment tells it.
    async fn settle_in(&self, handle: &SessionHandle, workplace: &Workplace) -> Result<Chosen, HubError> {
        handle.work_in(workplace.additional_directories.clone()).await?;
        Ok(handle.attach(None, AttachFrom::Now).await?.chosen)
    }

    /// A new link in the place of one whose session is closed, with what waited there behind it.
    fn open_anew(
        self: &Arc<Self>,
        session_id: &SessionId,
        courier: &mpsc::UnboundedSender<Errand>,
        opening: Opening,
    ) {
        let mut state = self.lock();
        let same = state.links.get(session_id).is_some_and(|link| link.courier.same_channel(courier));
        let waiting = match same.then(|| state.links.remove(session_id)).flatten() {
            Some(Link { stage: Stage::Opening(waiting) | Stage::Closing(waiting), .. }) => waiting,
            Some(Link { stage: Stage::Open(_), .. }) | None => Vec::new(),
        };
        self.open_in(&mut state, session_id, opening);
        if let Some(link) = state.links.get_mut(session_id) {
            waiting.into_iter().for_each(|order| self.order(session_id, link, order));
        }
    }

    /// What works less well than was asked for: clients may send servers that nothing here starts yet, and the host may have
    /// trouble of its own. Their user should not have to guess.
    fn tell(&self, handle: &SessionHandle, servers: &[String]) {
        if !servers.is_empty() {
            let description =
                format!("Requested: {}. The session continues without them.", servers.join(", "));
            let title = "This version does not start MCP servers".to_owned();
            handle.notice("warning", title, Some(description));
        }
        for Warning { title, description } in self.agent.host.take_warnings() {
            handle.notice("warning", title, Some(description));
        }
    }

    pub(super) fn close(self: &Arc<Self>, session_id: SessionId, responder: Responder) {
        let mut state = self.lock();
        if let Some(link) = state.links.get_mut(&session_id) {
            return self.order(&session_id, link, Order::Close(responder));
        }
        drop(state);
        let hub = self.agent.hub.clone();
        tokio::spawn(async move {
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
        let shared = self.clone();
        tokio::spawn(async move {
            match shared.agent.hub.delete(&session_id).await {
                Ok(()) => shared.leave(&session_id, responder),
                Err(error) => responder.error(error_object(&error)),
            }
        });
    }

    /// The session is gone for this connection: its courier answers what it owes, then this, and leaves.
    pub(super) fn leave(&self, session_id: &SessionId, responder: Responder) {
        let link = self.lock().links.remove(session_id);
        let Some(Link { courier, stage, .. }) = link else { return responder.ok(&json!({})) };
        if let Stage::Opening(waiting) | Stage::Closing(waiting) = stage {
            waiting.into_iter().for_each(|order| order.refuse(&unknown_session(session_id)));
        }
        let (left, _) = oneshot::channel();
        send(&courier, Errand::Leave(Leaving { responder, left }));
    }

    pub(super) fn list(self: &Arc<Self>, list: ListSessions, responder: Responder) {
        let hub = self.agent.hub.clone();
        tokio::spawn(async move {
            let query = SessionQuery {
                workspace_root: list.cwd,
                after: list.after,
                // One more than is shown tells whether another page follows.
                limit: SESSIONS_PER_PAGE + 1,
                include_archived: false,
            };
            match hub.list(query).await {
                Ok(mut rows) => {
                    let more = rows.len() > SESSIONS_PER_PAGE;
                    rows.truncate(SESSIONS_PER_PAGE);
                    let mut result = json!({ "sessions": rows.iter().map(session_info).collect::<Vec<_>>() });
                    if let (true, Some(last)) = (more, rows.last()) {
                        result["nextCursor"] = json!(cursor(last.updated_at, &last.id));
                    }
                    responder.ok(&result);
                }
                Err(error) => responder.error(error_object(&error)),
            }
        });
    }
}

/// A directory that can't be worked in.
fn refused(field: String, reason: String) -> ErrorObject {
    ErrorObject::from(Invalid::new(field, reason)).detailed()
}

/// A courier that has left answers what it is sent by dropping it; that happens only when the connection is gone.
pub(super) fn send(courier: &mpsc::UnboundedSender<Errand>, errand: Errand) {
    if courier.send(errand).is_err() {
        tracing::debug!("a courier has left already");
    }
}
