//! How much happens in a session without asking: chosen by its user, bounded by what its host may.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Session, SessionCommand};
use crate::choices::Chosen;
use crate::hub::HubError;
use crate::watchdog::Approval;

/// What is in force. Why shared: a turn under way has to follow a change at its next call, above all to a
/// stricter one.
#[derive(Clone, Debug, Default)]
pub(crate) struct InForce(Arc<Mutex<Approval>>);

impl InForce {
    pub(crate) fn get(&self) -> Approval {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, approval: Approval) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = approval;
    }
}

impl Session {
    /// What was chosen, else what the host was started with, as far as it may be here.
    pub(super) fn approval(&self) -> Approval {
        let wanted = self.wanted_approval();
        match self.hub.ports.settings.containment.permit(wanted) {
            Ok(()) => wanted,
            Err(_) => Approval::Ask,
        }
    }

    fn wanted_approval(&self) -> Approval {
        let of_project = || self.project.settings().and_then(|settings| settings.approval);
        let chosen = self.row.metadata.approval().or_else(of_project);
        chosen.unwrap_or(self.hub.ports.settings.approval)
    }

    /// The row has become another.
    pub(super) fn enforce_approval(&self) {
        self.in_force.set(self.approval());
    }

    pub(super) async fn set_approval(&mut self, approval: Approval) -> Result<Chosen, HubError> {
        let permitted = self.hub.ports.settings.containment.permit(approval);
        permitted.map_err(|reason| HubError::Invalid(reason.to_owned()))?;
        if self.wanted_approval() == approval {
            return self.chosen();
        }
        let mut patch = self.empty_patch();
        patch.metadata.set_approval(approval);
        let chosen = self.choose(patch, |session| session.row.metadata.set_approval(approval)).await;
        self.enforce_approval();
        chosen
    }

    /// Says why less passes than was chosen.
    pub(super) fn tell_of_refused_approval(&self) {
        let permitted = self.hub.ports.settings.containment.permit(self.wanted_approval());
        let Err(reason) = permitted else { return };
        self.tell_ourselves(SessionCommand::Notice {
            severity: "warning",
            title: "attache asks before changes and commands here".into(),
            description: Some(format!("The approval of this session, {reason}.")),
        });
    }
}
