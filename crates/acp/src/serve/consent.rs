//! Asks the client of a session, once, whether the project's own configuration may take effect. Asks only
//! clients that show forms: a permission request belongs to a call, and there is none. Tells other clients
//! about `/trust`.

use std::sync::Arc;

use attache_core::hub::{Hub, SessionHandle};
use attache_core::ports::projects::ConsentAnswer;

use super::client::AcpClient;

/// Asks after the answer to the request that opened the session; nothing waits for it.
pub(super) fn ask(hub: Hub, handle: SessionHandle, client: Arc<AcpClient>) {
    tokio::spawn(async move {
        if !client.shows_forms() {
            return;
        }
        let Some(request) = hub.consent_to_ask(handle.id()).await else { return };
        client.shown_up_to(0).await;
        let Some(consent) = client.consent(handle.id(), &request).await else { return };
        let project = request.project.display().to_string();
        if let Err(error) = handle.decide(request, consent).await {
            let title = "Your answer about the project can't be kept".to_owned();
            return handle.notice("warning", title, Some(error.to_string()));
        }
        let (title, description) = match consent {
            ConsentAnswer::Given => (
                "You trust the project",
                format!("{project}: its configuration counts from the next turn on."),
            ),
            ConsentAnswer::Declined => (
                "The project's configuration is not used",
                format!("You are not asked again. To trust {project} later: /trust"),
            ),
        };
        handle.notice("info", title.to_owned(), Some(description));
    });
}
