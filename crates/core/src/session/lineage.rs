//! The limits of a child session: the sessions above it, up to the one that a person opened. It has their
//! authority, and may do no more than each of their agents.

use super::Session;
use super::authority::SessionAuthority;
use crate::agents::Agent;
use crate::hub::HubError;
use crate::ids::SessionId;
use crate::limits::TASK_DEPTH;
use crate::metadata::ChildOf;
use crate::ports::store::SessionRow;

/// The place of a session in its family.
#[derive(Clone, Debug, Default)]
pub(crate) enum Lineage {
    /// Not determined yet, or a session that a person opened.
    #[default]
    Root,
    Child(Box<ChildLineage>),
    /// A child that can't continue, and why: its limits are unknown.
    Lost(String),
}

#[derive(Clone, Debug)]
pub(crate) struct ChildLineage {
    /// The session at the top.
    pub(crate) root: SessionId,
    pub(crate) depth: usize,
    /// The agents that started it, the parent's first.
    pub(crate) above: Vec<Agent>,
}

impl Session {
    /// Publishes what this session allows, so that its children find it.
    pub(super) fn publish_authority(&self) {
        if self.row.metadata.child_of().is_none() {
            self.hub.put_authority(&self.id, &self.authority);
        }
    }

    /// The session at the top: this one, unless it works for another.
    pub(super) fn root_session(&self) -> &SessionId {
        match &self.lineage {
            Lineage::Root | Lineage::Lost(_) => &self.id,
            Lineage::Child(child) => &child.root,
        }
    }

    pub(super) fn depth(&self) -> usize {
        match &self.lineage {
            Lineage::Root => 0,
            Lineage::Lost(_) => TASK_DEPTH,
            Lineage::Child(child) => child.depth,
        }
    }

    /// The agents of the sessions above it.
    pub(super) fn agents_above(&self) -> &[Agent] {
        match &self.lineage {
            Lineage::Root | Lineage::Lost(_) => &[],
            Lineage::Child(child) => &child.above,
        }
    }

    /// A child with unknown limits runs nothing.
    pub(super) fn check_lineage(&self) -> Result<(), HubError> {
        let reason = match &self.lineage {
            Lineage::Child(_) => return Ok(()),
            Lineage::Root if self.row.metadata.child_of().is_none() => return Ok(()),
            Lineage::Root => "the sessions it works for are not known",
            Lineage::Lost(reason) => reason,
        };
        Err(HubError::Invalid(format!("this session was made by a task and can only be read: {reason}")))
    }

    /// Finds the sessions above. Called when the session is opened, before rules decide anything.
    pub(super) async fn learn_lineage(&mut self) {
        let Some(child_of) = self.row.metadata.child_of() else { return };
        if let Lineage::Child(child) = &self.lineage
            && self.hub.authority(&child.root).is_some_and(|live| live.same_as(&self.authority))
        {
            return;
        }
        self.lineage = match self.find_lineage(child_of).await {
            Ok((lineage, authority)) => {
                self.authority = authority;
                Lineage::Child(Box::new(lineage))
            }
            Err(reason) => Lineage::Lost(reason),
        };
        // The setup was made with other limits.
        self.setup.forget();
    }

    async fn find_lineage(&self, nearest: ChildOf) -> Result<(ChildLineage, SessionAuthority), String> {
        let (mut above, mut id) = (Vec::new(), self.row.parent_id.clone());
        let mut child_of = Some(nearest);
        let mut top = None;
        while let Some(link) = child_of.take() {
            let agent = self.agents().get(&link.started_by).cloned();
            above.push(agent.ok_or_else(|| format!("there is no agent `{}` any more", link.started_by))?);
            let parent = id.take().ok_or("it does not say for which session")?;
            let record = self.hub.ports.store.session(&parent).await.map_err(|error| error.to_string())?;
            let row = record.ok_or_else(|| format!("session {parent} is gone"))?.row;
            if above.len() > TASK_DEPTH {
                return Err("the sessions it works for never end".to_owned());
            }
            child_of = row.metadata.child_of();
            id.clone_from(&row.parent_id);
            top = Some(row);
        }
        let top: SessionRow = top.ok_or("it works for no session")?;
        let live = self.hub.authority(&top.id);
        let authority = live.unwrap_or_else(|| {
            let stored = SessionAuthority::default();
            stored.adopt(&top);
            stored.set_approval(self.permitted_approval(&top.metadata));
            stored
        });
        Ok((ChildLineage { root: top.id, depth: above.len(), above }, authority))
    }
}
