//! The stored record of a login: tokens, their audience, their issuer, and our client id there.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use attache_core::ports::mcp::HiddenText;
use serde::{Deserialize, Serialize};
use url::Url;

use super::web::EndpointUrl;
use super::{LoginStore, OAuthError};
use crate::limits::{RENEW_BEFORE, TOKEN_LIFE};

/// One login. Never printed: tokens are in it.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct ServerLogin {
    /// Another one for each login: who waits for one knows that it is there.
    pub(super) id: String,
    /// The address it is kept for.
    pub(super) server: String,
    /// The audience of the tokens, as the server names itself.
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) token_endpoint: EndpointUrl,
    pub(super) revocation_endpoint: Option<EndpointUrl>,
    pub(super) client: OAuthClient,
    /// `None` once they were revoked; the client stays known.
    pub(super) tokens: Option<IssuedTokens>,
    /// Scopes that the server asked for beyond those that were granted.
    #[serde(default)]
    pub(super) wanted_scopes: Vec<String>,
}

/// Our client registration at an authorization server.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct OAuthClient {
    pub(super) id: String,
    /// Of a registration. A configured secret is never stored: it is read when it is needed.
    pub(super) secret: Option<String>,
    pub(super) secret_until_ms: Option<u64>,
    pub(super) authentication: TokenAuthentication,
    pub(super) source: ClientSource,
    /// Where the browser comes back to, as it was registered.
    pub(super) redirect_port: Option<u16>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientSource {
    Configured,
    Registered,
}

/// How a client says who it is at the token endpoint.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TokenAuthentication {
    /// By its id alone.
    None,
    ClientSecretBasic,
    ClientSecretPost,
}

#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct IssuedTokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// From when on another one is fetched before it is used.
    pub(super) renew_at_ms: Option<u64>,
    pub(super) expires_at_ms: Option<u64>,
    pub(super) scopes: Vec<String>,
}

impl fmt::Debug for ServerLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLogin").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl fmt::Debug for OAuthClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthClient").field("source", &self.source).finish_non_exhaustive()
    }
}

impl fmt::Debug for IssuedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedTokens").field("expires_at_ms", &self.expires_at_ms).finish_non_exhaustive()
    }
}

impl ServerLogin {
    /// The record for a server; none if it can't be read or names another server.
    pub(super) fn read(store: &dyn LoginStore, server: &str) -> Result<Option<Self>, OAuthError> {
        let Some(text) = store.read(server).map_err(OAuthError::Store)? else { return Ok(None) };
        // The reason may quote a token.
        let read = serde_json::from_str::<Self>(text.expose()).map_err(drop);
        let read = read.map_err(|()| OAuthError::Store("what is kept of it is damaged".to_owned()))?;
        Ok(Some(read).filter(|login| login.server == server))
    }

    pub(super) fn keep(&self, store: &dyn LoginStore) -> Result<(), OAuthError> {
        let text = serde_json::to_string(self).map_err(|error| OAuthError::Store(error.to_string()))?;
        store.keep(&self.server, &self.issuer, &HiddenText::new(text)).map_err(OAuthError::Store)
    }
}

impl IssuedTokens {
    /// `life`: as the authorization server said, from now on.
    pub(super) fn new(
        access: String,
        refresh: Option<String>,
        life: Option<Duration>,
        scopes: Vec<String>,
    ) -> Self {
        let at = |life: Duration| now_ms().saturating_add(u64::try_from(life.as_millis()).unwrap_or(0));
        let life = life.map(|life| life.min(TOKEN_LIFE));
        Self {
            access,
            refresh,
            // A tenth of a short life: a new token with each request would be worse than a refusal now and
            // then.
            renew_at_ms: life.map(|life| at(life - RENEW_BEFORE.min(life / 10))),
            expires_at_ms: life.map(at),
            scopes,
        }
    }

    pub(super) fn should_be_renewed(&self) -> bool {
        self.renew_at_ms.is_some_and(|at| now_ms() >= at)
    }

    pub(super) fn has_expired(&self) -> bool {
        self.expires_at_ms.is_some_and(|at| now_ms() >= at)
    }
}

pub(super) fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// What a server is kept under: its address without what is beside the way to it. A query may hold a key, and
/// tokens are for all of a server.
pub(super) fn kept_address(url: &Url) -> Url {
    let mut address = url.clone();
    address.set_fragment(None);
    address.set_query(None);
    // Only an address without a host refuses, and that one has no user either.
    if address.set_username("").is_err() || address.set_password(None).is_err() {
        tracing::debug!("an address has no host");
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_login_is_printed() {
        let tokens = IssuedTokens::new(
            "canary-access".to_owned(),
            Some("canary-refresh".to_owned()),
            None,
            Vec::new(),
        );
        let client = OAuthClient {
            id: "canary-id".to_owned(),
            secret: Some("canary-secret".to_owned()),
            secret_until_ms: None,
            authentication: TokenAuthentication::None,
            source: ClientSource::Registered,
            redirect_port: None,
        };
        let printed = format!("{tokens:?}{client:?}");
        assert!(!printed.contains("canary"), "{printed}");
    }

    #[test]
    fn a_token_is_renewed_before_it_ends_but_not_at_once() {
        let of_life =
            |seconds| IssuedTokens::new("a".to_owned(), None, Some(Duration::from_secs(seconds)), Vec::new());
        assert!(!of_life(3600).should_be_renewed() && !of_life(60).should_be_renewed());
        assert!(of_life(0).should_be_renewed() && of_life(0).has_expired());
        let hour = of_life(3600);
        let margin = hour.expires_at_ms.unwrap() - hour.renew_at_ms.unwrap();
        assert!((29_000..=31_000).contains(&margin), "{margin}");
        assert!(of_life(u64::MAX).expires_at_ms.is_some(), "what is said to last for ever lasts long");
    }

    #[test]
    fn a_server_is_kept_without_what_may_be_a_key() {
        let url: Url = "https://me:canary@x.test/mcp?key=canary#canary".parse().unwrap();
        assert_eq!(kept_address(&url).as_str(), "https://x.test/mcp");
    }
}
