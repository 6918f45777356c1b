//! Servers without a hello (revisions of the protocol from 2026-07-28 on): each request says who asks and
//! what for, and what has changed is told in the answer to one long request.

use std::time::Duration;

use attache_core::legible::legible_line;
use attache_core::ports::mcp::ServerSampling;
use attache_rpc::{ErrorObject, Peer, RequestError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Capabilities, ServerClient, ServerOffers, said};
use crate::handler::ServerEvents;
use crate::limits::LISTEN_AGAIN;

/// Those that this client knows, the newest first.
pub(crate) const STATELESS_REVISIONS: [&str; 1] = ["2026-07-28"];

/// The code of an error that says which revisions there are instead.
const OTHER_REVISIONS: i32 = -32022;

/// What goes with every request.
#[derive(Debug)]
pub(super) struct RequestMeta(Map<String, Value>);

impl RequestMeta {
    fn new(events: &ServerEvents) -> Self {
        let mut capabilities = json!({
            "roots": {},
            "elicitation": { "form": {}, "url": {} },
            "extensions": { "io.modelcontextprotocol/tasks": {} },
        });
        if events.sampling() == ServerSampling::Asked {
            capabilities["sampling"] = json!({});
        }
        let client = json!({ "name": "attache", "title": "attache", "version": env!("CARGO_PKG_VERSION") });
        let said = [
            ("protocolVersion", json!(STATELESS_REVISIONS[0])),
            ("clientInfo", client),
            ("clientCapabilities", capabilities),
            ("logLevel", json!("info")),
        ];
        let key = |name: &str| format!("io.modelcontextprotocol/{name}");
        Self(said.into_iter().map(|(name, value)| (key(name), value)).collect())
    }

    /// Beside what is there already, such as the token for progress.
    pub(super) fn with(&self, params: &Value) -> Value {
        let mut params = params.clone();
        let own = self.0.iter().map(|(name, value)| (name.clone(), value.clone()));
        match params.get_mut("_meta").and_then(Value::as_object_mut) {
            Some(meta) => meta.extend(own),
            None => params["_meta"] = own.collect(),
        }
        params
    }
}

/// Asks a server that refused the hello what it has. `refusal`: what it said to that.
pub(super) async fn discover(
    peer: &Peer,
    events: &ServerEvents,
    deadline: Duration,
    refusal: ErrorObject,
) -> Result<(ServerOffers, RequestMeta), String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovered {
        #[serde(default)]
        supported_versions: Vec<String>,
        #[serde(default)]
        capabilities: Capabilities,
    }
    let meta = RequestMeta::new(events);
    let answer = match peer.request("server/discover", &meta.with(&json!({})), Some(deadline)).await {
        Ok(answer) => answer,
        Err(RequestError::Remote(error)) if error.code == OTHER_REVISIONS => {
            let supported = error.data.as_ref().and_then(|data| data.get("supported"));
            let supported = supported.and_then(|list| Vec::<String>::deserialize(list).ok());
            return Err(unknown_revisions(&supported.unwrap_or_default()));
        }
        // It knows neither way: what it said first is why.
        Err(_) => return Err(said(&RequestError::Remote(refusal), "initialize", deadline)),
    };
    let found: Discovered = serde_json::from_str(answer.get())
        .map_err(|error| format!("its answer to server/discover is not understood: {error}"))?;
    if !found.supported_versions.iter().any(|version| version == STATELESS_REVISIONS[0]) {
        return Err(unknown_revisions(&found.supported_versions));
    }
    Ok((found.capabilities.offers(), meta))
}

fn unknown_revisions(supported: &[String]) -> String {
    let theirs: Vec<String> =
        supported.iter().take(8).map(|name| legible_line(name).chars().take(20).collect()).collect();
    let theirs = if theirs.is_empty() { "none that it names".to_owned() } else { theirs.join(", ") };
    format!(
        "it speaks other revisions of the protocol ({theirs}) than attache ({} and 2024-11-05 to {})",
        STATELESS_REVISIONS[0],
        super::REVISION
    )
}

impl ServerClient {
    /// Asks a server without a hello to tell what has changed, for as long as it is there. Never ends; what it
    /// tells comes as notifications.
    pub(crate) async fn listen(&self) {
        let tells = self.has.list_changes || self.has.subscriptions;
        if self.meta.is_none() || !tells {
            return std::future::pending().await;
        }
        loop {
            let wanted = json!({
                "toolsListChanged": true,
                "promptsListChanged": true,
                "resourceSubscriptions": self.events.subscriptions().all(),
            });
            let params = json!({ "notifications": wanted });
            let ended = tokio::select! {
                ended = self.ask("subscriptions/listen", &params, None) => ended,
                // Dropping the request ends the stream, which the server sees.
                () = self.events.watched_others.notified() => continue,
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "an MCP server does not tell of changes");
                return std::future::pending().await;
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_that_nobody_knows_are_named() {
        let said = unknown_revisions(&["2099-01-01\u{202e}".to_owned()]);
        assert_eq!(
            said,
            r"it speaks other revisions of the protocol (2099-01-01\u{202e}) than attache (2026-07-28 and 2024-11-05 to 2025-11-25)"
        );
        assert!(unknown_revisions(&[]).contains("(none that it names)"));
    }
}
