//! The life of a connection's links to its sessions: being opened, open, being closed. Pure: starts no task and
//! answers no request. What is asked of a session that is being opened or closed waits here, in order.
//!
//! Whoever begins an opening or a closing holds a token, and only the token ends it. A token names a
//! generation: one that outlived its link (the session was deleted, perhaps loaded again since) changes
//! nothing.

use std::collections::HashMap;
use std::collections::hash_map::{Entry, OccupiedEntry, VacantEntry};

use attache_core::ids::SessionId;

/// `L` is what a link consists of, `S` the open session, `R` what is asked of it.
#[derive(Debug)]
pub(super) struct LinkTable<L, S, R> {
    links: HashMap<SessionId, Linked<L, S, R>>,
    /// The generation that was given out last.
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
        /// The session, where it was open before; a change that is refused leaves it so.
        before: Option<S>,
        waiting: Vec<R>,
    },
}

/// The right to end one opening. Not `Clone`: it ends once.
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

/// What becomes of something that is asked of a session.
#[derive(Debug)]
pub(super) enum Submitted<'a, L, S, R> {
    /// The session is open: do it now.
    Now(OpenLinkGuard<'a, L, S, R>, R),
    /// It is kept until the session is open or closed.
    Waits,
    /// There is no link.
    Unlinked(VacantLinkGuard<'a, L, S, R>, R),
}

/// What a refused change leaves.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterRefusal<R> {
    /// The session is open as before; this has waited and can be done now.
    Open(Vec<R>),
    /// It was not open before: the link is gone, and with it what this was asked of.
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

    /// Links a session that is open already.
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

    /// The session is open. Gives the link and what has waited; nothing if the link is gone.
    pub(super) fn opened(&mut self, token: OpeningToken, session: S) -> Option<(&L, Vec<R>)> {
        let linked = self.current(token.0)?.into_mut();
        let waiting = std::mem::replace(&mut linked.state, LinkState::Open(session)).into_waiting();
        Some((&linked.link, waiting))
    }

    /// The request to open was wrong: all is as before it.
    pub(super) fn refuse_opening(&mut self, token: OpeningToken) -> Option<AfterRefusal<R>> {
        self.refuse(token.0)
    }

    /// The session could not be opened: the link is gone. Gives what has waited.
    pub(super) fn fail_opening(&mut self, token: OpeningToken) -> Option<Vec<R>> {
        self.current(token.0).map(|linked| linked.remove().state.into_waiting())
    }

    /// The session is closed: the link is gone. Gives what has waited.
    pub(super) fn closed(&mut self, token: ClosingToken) -> Option<Vec<R>> {
        self.current(token.0).map(|linked| linked.remove().state.into_waiting())
    }

    /// The session does not close: all is as before.
    pub(super) fn refuse_closing(&mut self, token: ClosingToken) -> Option<AfterRefusal<R>> {
        self.refuse(token.0)
    }

    /// Takes the link away in any state: from now on its token changes nothing.
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

    /// The one check of generations.
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

    /// The session is opened once more, by a load or a resume.
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
