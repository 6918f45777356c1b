//! The life of a connection's links to its sessions: opening, open, closing. Pure: starts no task and answers
//! no request. Requests to a session that is opening or closing wait here, in order.
//!
//! The caller that begins an opening or a closing gets a token, and only the token ends it. A token names a
//! generation, so a token that outlived its link (the session was deleted, perhaps loaded again since) changes
//! nothing.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, OccupiedEntry, VacantEntry};

use attache_core::ids::SessionId;

/// `L` is the content of a link, `S` the open session, `R` a request to it.
#[derive(Debug)]
pub(super) struct LinkTable<L, S, R> {
    links: HashMap<SessionId, Linked<L, S, R>>,
    /// The last generation that we gave out.
    generation: u64,
}

#[derive(Debug)]
struct Linked<L, S, R> {
    link: L,
    state: LinkState<S, R>,
}

#[derive(Debug)]
enum LinkState<S, R> {
    Open(S),
    Changing {
        generation: u64,
        /// The session, if it was open before; after a refused change it stays open.
        before: Option<S>,
        waiting: Vec<R>,
    },
}

/// The right to end one opening. Not `Clone`, so it ends only once.
#[derive(Debug)]
#[must_use = "the link waits until its opening ends"]
pub(super) struct OpeningToken(LinkChange);

/// The right to end one closing.
#[derive(Debug)]
#[must_use = "the link waits until its closing ends"]
pub(super) struct ClosingToken(LinkChange);

#[derive(Debug)]
struct LinkChange {
    session_id: SessionId,
    generation: u64,
}

impl OpeningToken {
    pub(super) fn session_id(&self) -> &SessionId {
        &self.0.session_id
    }
}

impl ClosingToken {
    pub(super) fn session_id(&self) -> &SessionId {
        &self.0.session_id
    }
}

/// What happens to a request to a session.
#[derive(Debug)]
pub(super) enum Submitted<'a, L, S, R> {
    /// The session is open: handle it now.
    Now(OpenLinkGuard<'a, L, S, R>, R),
    /// We keep it until the session is open or closed.
    Waits,
    /// There is no link.
    Unlinked(VacantLinkGuard<'a, L, S, R>, R),
}

/// The state after a refused change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterRefusal<R> {
    /// The session is open as before; handle these waiting requests now.
    Open(Vec<R>),
    /// The session was not open before: the link is gone, and these requests have no session.
    Unlinked(Vec<R>),
}

#[derive(Debug)]
pub(super) struct OpenLinkGuard<'a, L, S, R> {
    linked: OccupiedEntry<'a, SessionId, Linked<L, S, R>>,
    session: S,
    generation: &'a mut u64,
}

#[derive(Debug)]
pub(super) struct VacantLinkGuard<'a, L, S, R> {
    entry: VacantEntry<'a, SessionId, Linked<L, S, R>>,
    generation: &'a mut u64,
}

impl<L, S, R> Default for LinkTable<L, S, R> {
    fn default() -> Self {
        Self { links: HashMap::new(), generation: 0 }
    }
}

impl<L, S: Clone, R> LinkTable<L, S, R> {
    pub(super) fn contains(&self, session_id: &SessionId) -> bool {
        self.links.contains_key(session_id)
    }

    /// Links a session that is already open.
    pub(super) fn insert(&mut self, session_id: SessionId, link: L, session: S) {
        self.links.insert(session_id, Linked { link, state: LinkState::Open(session) });
    }

    pub(super) fn submit(&mut self, session_id: &SessionId, request: R) -> Submitted<'_, L, S, R> {
        let generation = &mut self.generation;
        match self.links.entry(session_id.clone()) {
            Entry::Vacant(entry) => Submitted::Unlinked(VacantLinkGuard { entry, generation }, request),
            Entry::Occupied(mut linked) => match &mut linked.get_mut().state {
                LinkState::Changing { waiting, .. } => {
                    waiting.push(request);
                    Submitted::Waits
                }
                LinkState::Open(session) => {
                    let session = session.clone();
                    Submitted::Now(OpenLinkGuard { linked, session, generation }, request)
                }
            },
        }
    }

    /// The session is open. Returns the link and the waiting requests; nothing if the link is gone.
    pub(super) fn opened(&mut self, token: OpeningToken, session: S) -> Option<(&L, Vec<R>)> {
        let linked = self.current(token.0)?.into_mut();
        let waiting = std::mem::replace(&mut linked.state, LinkState::Open(session)).into_waiting();
        Some((&linked.link, waiting))
    }

    /// The request to open was wrong: the link is as before.
    pub(super) fn refuse_opening(&mut self, token: OpeningToken) -> Option<AfterRefusal<R>> {
        self.refuse(token.0)
    }

    /// The session could not be opened: the link is gone. Returns the waiting requests.
    pub(super) fn fail_opening(&mut self, token: OpeningToken) -> Option<Vec<R>> {
        self.current(token.0).map(|linked| linked.remove().state.into_waiting())
    }

    /// The session has closed: the link is gone. Returns the waiting requests.
    pub(super) fn closed(&mut self, token: ClosingToken) -> Option<Vec<R>> {
        self.current(token.0).map(|linked| linked.remove().state.into_waiting())
    }

    /// The session does not close: the link is as before.
    pub(super) fn refuse_closing(&mut self, token: ClosingToken) -> Option<AfterRefusal<R>> {
        self.refuse(token.0)
    }

    /// Removes the link in any state: from now on its token changes nothing.
    pub(super) fn remove(&mut self, session_id: &SessionId) -> Option<(L, Vec<R>)> {
        self.links.remove(session_id).map(|linked| (linked.link, linked.state.into_waiting()))
    }

    /// The client has left: what is open is let go at once, what is being opened or closed once that is over,
    /// with what waits for it.
    pub(super) fn let_go(&mut self) {
        self.links.retain(|_, linked| matches!(linked.state, LinkState::Changing { .. }));
    }

    fn refuse(&mut self, change: LinkChange) -> Option<AfterRefusal<R>> {
        let mut linked = self.current(change)?;
        Some(match linked.get().state.before() {
            Some(session) => {
                let open = LinkState::Open(session);
                AfterRefusal::Open(std::mem::replace(&mut linked.get_mut().state, open).into_waiting())
            }
            None => AfterRefusal::Unlinked(linked.remove().state.into_waiting()),
        })
    }

    /// The only check of generations.
    fn current(&mut self, change: LinkChange) -> Option<OccupiedEntry<'_, SessionId, Linked<L, S, R>>> {
        let Entry::Occupied(linked) = self.links.entry(change.session_id) else { return None };
        match linked.get().state {
            LinkState::Changing { generation, .. } if generation == change.generation => Some(linked),
            LinkState::Changing { .. } | LinkState::Open(_) => None,
        }
    }
}

impl<S: Clone, R> LinkState<S, R> {
    fn into_waiting(self) -> Vec<R> {
        match self {
            Self::Open(_) => Vec::new(),
            Self::Changing { waiting, .. } => waiting,
        }
    }

    fn before(&self) -> Option<S> {
        match self {
            Self::Open(session) => Some(session.clone()),
            Self::Changing { before, .. } => before.clone(),
        }
    }
}

impl<L, S, R> OpenLinkGuard<'_, L, S, R> {
    pub(super) fn link(&self) -> &L {
        &self.linked.get().link
    }

    pub(super) fn session(&self) -> &S {
        &self.session
    }

    /// A load or a resume opens the session once more.
    pub(super) fn open_again(self) -> OpeningToken {
        OpeningToken(self.change())
    }

    pub(super) fn close(self) -> ClosingToken {
        ClosingToken(self.change())
    }

    fn change(mut self) -> LinkChange {
        *self.generation += 1;
        let generation = *self.generation;
        self.linked.get_mut().state =
            LinkState::Changing { generation, before: Some(self.session), waiting: Vec::new() };
        LinkChange { session_id: self.linked.key().clone(), generation }
    }
}

impl<L, S, R> VacantLinkGuard<'_, L, S, R> {
    pub(super) fn open(self, link: L) -> OpeningToken {
        *self.generation += 1;
        let generation = *self.generation;
        let session_id = self.entry.key().clone();
        let state = LinkState::Changing { generation, before: None, waiting: Vec::new() };
        self.entry.insert(Linked { link, state });
        OpeningToken(LinkChange { session_id, generation })
    }
}

#[cfg(test)]
mod tests;
