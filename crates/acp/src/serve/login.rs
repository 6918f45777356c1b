//! Login and logout: passes them on to the host, then has the hub read the choices again. Never sees a key.

use std::sync::Arc;

use agent_client_protocol_schema::v1::ClientCapabilities;
use attache_rpc::{ErrorObject, Responder};
use serde_json::json;

use super::router::ClientConnection;
use crate::accounts::{Accounts, Login, LoginWay};
use crate::from_wire::LoginTerminals;

impl ClientConnection {
    /// The logins that this client can use; `None` if the host manages no credentials.
    pub(super) fn logins_for(&self, client: &ClientCapabilities) -> Option<Vec<Login>> {
        let accounts = self.agent.accounts.as_ref()?;
        let mut logins = accounts.logins();
        let terminals = LoginTerminals::of(client);
        logins.retain(|login| match login.way {
            LoginWay::Agent => true,
            LoginWay::Terminal { .. } => terminals.any(),
        });
        Some(logins)
    }

    pub(super) fn authenticate(&self, method_id: String, responder: Responder) {
        let known = self.agent.accounts.as_ref().filter(|accounts| knows(accounts, &method_id));
        let Some(accounts) = known else {
            return responder.error(self.unknown_login(&method_id));
        };
        let (login, hub) = (accounts.authenticate(&method_id), self.agent.hub.clone());
        tokio::spawn(async move {
            match login.await {
                Ok(()) => {
                    hub.refresh_choices().await;
                    responder.ok(&json!({}));
                }
                Err(what_to_do) => responder.error(ErrorObject::auth_required(what_to_do)),
            }
        });
    }

    pub(super) fn log_out(&self, responder: Responder) {
        // The host keeps no credentials, so there is nothing to forget.
        let Some(accounts) = &self.agent.accounts else { return responder.ok(&json!({})) };
        let (logout, hub) = (accounts.logout(), self.agent.hub.clone());
        tokio::spawn(async move {
            let left = logout.await;
            // Also after a failure, because logout may have forgotten some credentials.
            hub.refresh_choices().await;
            match left {
                Ok(()) => responder.ok(&json!({})),
                Err(reason) => responder.error(ErrorObject::internal(reason)),
            }
        });
    }

    fn unknown_login(&self, method_id: &str) -> ErrorObject {
        let offered = self.lock().phase.client().map(|client| client.login_methods).unwrap_or_default();
        let reason = format!("methodId: there is no authentication method {method_id:?}");
        ErrorObject::invalid_params(match offered.is_empty() {
            true => format!("{reason}; this agent offers none"),
            false => format!("{reason}; offered: {}", offered.join(", ")),
        })
    }
}

/// Also terminal logins: clients should not send them here, but if one does, we must find the new key.
fn knows(accounts: &Arc<dyn Accounts>, method_id: &str) -> bool {
    accounts.logins().iter().any(|login| login.id == method_id)
}
