//! Logins that are begun in a session: its user is shown where to go, and told what came of it.

use std::sync::Arc;

use attache_core::ports::Delegate;
use attache_core::ports::delegate::{AddressOffer, FormAnswer};
use attache_core::ports::mcp::ServerNotices;

use super::OpenedServers;
use crate::elicitation::offer_id;
use crate::listing::shortened;
use crate::oauth::{OAuthError, PendingLogin};

impl OpenedServers {
    /// The session goes on meanwhile: a person may take minutes.
    pub(super) fn begin_login(&self, name: &str, client: Option<Arc<dyn Delegate>>) -> Result<(), String> {
        let plan = {
            let members = self.lock();
            let known = members.list.iter().find(|member| member.name == name);
            let Some(member) = known else {
                let names: Vec<String> =
                    members.list.iter().map(|member| shortened(&member.name, 40)).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(format!(
                    "there is no MCP server `{}` here; there are: {names}",
                    shortened(name, 40)
                ));
            };
            match &member.login {
                Some(plan) => plan.clone(),
                None => return Err("it waits for your consent first; `/trust` shows what for".to_owned()),
            }
        };
        let (notices, shown) = (self.notices.clone(), shortened(name, 40));
        let logging_in = async move {
            let login = async { finished(plan.begin().await?, client, &notices, &shown).await };
            match login.await {
                Ok(Some(issuer)) => notices.say(format!("Logged in to {shown}"), format!("at {issuer}")),
                Ok(None) => notices.say(format!("Not logged in to {shown}"), "as you wanted".to_owned()),
                Err(error) => notices.tell(format!("Not logged in to {shown}"), error.to_string()),
            }
        };
        tokio::spawn(self.over.clone().run_until_cancelled_owned(logging_in));
        Ok(())
    }
}

/// Who issued the tokens; `None` if the user would not go there.
async fn finished(
    pending: PendingLogin,
    client: Option<Arc<dyn Delegate>>,
    notices: &ServerNotices,
    name: &str,
) -> Result<Option<String>, OAuthError> {
    let url = pending.address().as_str().to_owned();
    let place = pending.address().origin().ascii_serialization();
    let (id, message) = (offer_id(), format!("Log in to the MCP server {name} at {place}"));
    let Some(client) = client else {
        notices.say(format!("Open this address in a browser to log in to {name}"), url);
        return Ok(Some(pending.finish().await?.issuer));
    };
    let offer = AddressOffer { call_id: None, id: id.clone(), message, url: url.clone() };
    let asking = client.offer_address(offer);
    // The answer of the browser may be there before that of the client.
    let mut finishing = Box::pin(pending.finish());
    let login = tokio::select! {
        login = &mut finishing => login,
        answer = asking => match answer {
            Ok(FormAnswer::Declined | FormAnswer::Dismissed) => return Ok(None),
            Ok(FormAnswer::Filled(_)) => finishing.await,
            Err(error) => {
                tracing::debug!(%error, "the address of a login was not shown");
                notices.say(format!("Open this address in a browser to log in to {name}"), url);
                finishing.await
            }
        },
    };
    client.address_done(id).await;
    Ok(Some(login?.issuer))
}
