//! The user's decision about the project's own configuration, made in the session: `/trust`, or the answer to a
//! question. The user agrees to exactly what was shown.

use super::{Session, SessionCommand, SessionProject};
use crate::hub::HubError;
use crate::ports::projects::{ConsentAnswer, ConsentRequest};

const NO_NEED: &str = "Nothing needs your consent: the project has no configuration of its own, or you already \
                       trust it as it is.";

pub(crate) async fn trust(session: &mut Session, arguments: &str) -> Result<String, HubError> {
    let Some(projects) = session.hub.ports.projects.clone() else { return Ok(NO_NEED.to_owned()) };
    let shown_before = session.project.shown.take();
    let Some(request) = projects.consent(&session.row.workspace_root).await else {
        return Ok(NO_NEED.to_owned());
    };
    let consent = match arguments {
        "" => return Ok(shown(session, request)),
        "yes" => ConsentAnswer::Given,
        "no" => ConsentAnswer::Declined,
        _ => return Err(HubError::Invalid("`/trust` takes `yes`, `no` or nothing".to_owned())),
    };
    let was_shown = shown_before.is_some_and(|before| before.content == request.content);
    if consent == ConsentAnswer::Given && !was_shown {
        return Ok(format!("You have not seen it as it is now.\n\n{}", shown(session, request)));
    }
    session.decide(request, consent).await?;
    Ok(match consent {
        ConsentAnswer::Given => {
            "You trust the project as it is now. Its configuration counts from the next turn on."
        }
        ConsentAnswer::Declined => "The project's configuration is not used, and you are not asked again.",
    }
    .to_owned())
}

fn shown(session: &mut Session, request: ConsentRequest) -> String {
    let text = request.text.clone();
    session.project.shown = Some(request);
    format!("{text}\n\n`/trust yes` agrees to exactly this, `/trust no` declines.")
}

impl Session {
    /// Stores the decision, and applies it from the next turn on.
    pub(super) async fn decide(
        &mut self,
        request: ConsentRequest,
        consent: ConsentAnswer,
    ) -> Result<(), HubError> {
        let Some(projects) = self.hub.ports.projects.clone() else { return Ok(()) };
        let kept = projects.decide(request, consent).await;
        kept.map_err(|problem| HubError::Internal(format!("your answer can't be kept: {problem}")))?;
        let modes = self.agents().modes();
        self.project = SessionProject::default();
        self.setup.forget();
        self.learn_project().await;
        self.reopen_changed_servers();
        if self.agents().modes() != modes {
            // A project can bring agents, too.
            self.tell_ourselves(SessionCommand::ChoicesChanged);
        }
        Ok(())
    }
}
