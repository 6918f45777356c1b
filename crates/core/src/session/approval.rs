//! The approval level of a session: its user chooses it, its host limits it.

use super::lineage::Lineage;
use super::{Session, SessionCommand};
use crate::choices::Chosen;
use crate::hub::HubError;
use crate::metadata::SessionMeta;
use crate::watchdog::Approval;

impl Session {
    /// The chosen level, else the host's initial one, limited to what the host allows.
    pub(super) fn approval(&self) -> Approval {
        match &self.lineage {
            Lineage::Root | Lineage::Lost(_) => self.permitted_approval(&self.row.metadata),
            // The current level of the session that it works for.
            Lineage::Child(_) => self.authority.approval(),
        }
    }

    /// The same for another session's row in the same directory.
    pub(super) fn permitted_approval(&self, metadata: &SessionMeta) -> Approval {
        let wanted = self.wanted_approval(metadata);
        match self.hub.ports.settings.containment.permit(wanted) {
            Ok(()) => wanted,
            Err(_) => Approval::Ask,
        }
    }

    fn wanted_approval(&self, metadata: &SessionMeta) -> Approval {
        let of_project = || self.project.settings().and_then(|settings| settings.approval);
        let chosen = metadata.approval().or_else(of_project);
        chosen.unwrap_or(self.hub.ports.settings.approval)
    }

    /// Applies the level of a row that has changed.
    pub(super) fn enforce_approval(&self) {
        if self.row.metadata.child_of().is_none() {
            self.authority.set_approval(self.approval());
        }
    }

    pub(super) async fn set_approval(&mut self, approval: Approval) -> Result<Chosen, HubError> {
        if self.row.metadata.child_of().is_some() {
            return Err(HubError::Invalid(
                "a session that a task made has the approval of the session it works for; set it there"
                    .to_owned(),
            ));
        }
        let permitted = self.hub.ports.settings.containment.permit(approval);
        permitted.map_err(|reason| HubError::Invalid(reason.to_owned()))?;
        if self.wanted_approval(&self.row.metadata) == approval {
            return self.chosen();
        }
        let mut patch = self.empty_patch();
        patch.metadata.set_approval(approval);
        let chosen = self.choose(patch, |session| session.row.metadata.set_approval(approval)).await;
        self.enforce_approval();
        chosen
    }

    /// Tells people why the level in force is lower than the chosen one.
    pub(super) fn tell_of_refused_approval(&self) {
        if self.row.metadata.child_of().is_some() {
            return;
        }
        let wanted = self.wanted_approval(&self.row.metadata);
        let Err(reason) = self.hub.ports.settings.containment.permit(wanted) else { return };
        self.tell_ourselves(SessionCommand::Notice {
            severity: "warning",
            title: "attache asks before changes and commands here".into(),
            description: Some(format!("The approval of this session, {reason}.")),
        });
    }
}
