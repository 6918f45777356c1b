//! Finds out where to log in to a server: what it says of itself (RFC 9728), and what its authorization server
//! says of itself (RFC 8414, OpenID Connect Discovery). Every word is checked against what was asked for.

use attache_core::legible::legible_line;
use serde::Deserialize;
use url::Url;

use super::challenge::scopes;
use super::web::{EndpointUrl, OAuthWeb, place};
use super::{BearerChallenge, OAuthError};
use crate::limits::{AUTHORIZATION_SERVERS, SCOPES};

/// Where to log in to a server, and what for.
#[derive(Clone, Debug)]
pub(super) struct LoginPlace {
    /// What tokens are asked for: the server, in its own words, letter by letter.
    pub(super) resource: String,
    pub(super) authorization: AuthorizationServer,
    /// The scopes to request; empty: the authorization server decides.
    pub(super) scopes: Vec<String>,
}

/// Metadata of an authorization server (RFC 8414).
#[derive(Clone, Debug, Deserialize)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: EndpointUrl,
    pub(super) token_endpoint: EndpointUrl,
    #[serde(default)]
    pub(super) registration_endpoint: Option<EndpointUrl>,
    #[serde(default)]
    pub(super) revocation_endpoint: Option<EndpointUrl>,
    #[serde(default)]
    pub(super) scopes_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: Option<bool>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: Option<bool>,
}

/// Metadata of a protected resource (RFC 9728).
#[derive(Clone, Debug, Deserialize)]
struct ProtectedResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Option<Vec<String>>,
    #[serde(default)]
    scopes_supported: Option<Vec<String>>,
}

/// `server`: the address as it is kept. `known`: an issuer that is preferred where the server still names it.
pub(super) async fn discover(
    web: OAuthWeb,
    server: &Url,
    challenge: Option<&BearerChallenge>,
    known: Option<&str>,
) -> Result<LoginPlace, OAuthError> {
    let told = challenge.and_then(|challenge| challenge.resource_metadata.as_deref());
    let described = match told {
        Some(told) => Some(described_at(web, server, told).await?),
        None => well_known(web, server).await?,
    };
    let asked = challenge.map(|challenge| challenge.scopes.clone()).filter(|scopes| !scopes.is_empty());
    let Some(described) = described else {
        // As it was before servers described themselves: the place of the server is the issuer.
        let issuer = server.origin().ascii_serialization();
        let authorization = match authorization_server(web, &issuer).await {
            Err(OAuthError::BadAnswer { .. }) => return Err(OAuthError::NoLogin),
            found => found?,
        };
        let resource = server.as_str().trim_end_matches('/').to_owned();
        return Ok(LoginPlace { resource, authorization, scopes: asked.unwrap_or_default() });
    };
    let ProtectedResource { resource, authorization_servers, scopes_supported } = described;
    let mut authorization_servers = authorization_servers.unwrap_or_default();
    authorization_servers.sort_by_key(|issuer| Some(issuer.as_str()) != known);
    let scopes = asked.unwrap_or_else(|| scopes(&scopes_supported.unwrap_or_default().join(" ")));
    let mut problem = None;
    for issuer in authorization_servers.iter().take(AUTHORIZATION_SERVERS) {
        match authorization_server(web, issuer).await {
            Ok(authorization) => return Ok(LoginPlace { resource, authorization, scopes }),
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.unwrap_or(OAuthError::NoLogin))
}

/// Fetches the resource's metadata from the address that it named.
async fn described_at(web: OAuthWeb, server: &Url, told: &str) -> Result<ProtectedResource, OAuthError> {
    let bad = |place: String, problem: &str| OAuthError::BadAnswer { place, problem: problem.to_owned() };
    let url = Url::parse(told).map_err(|_| bad(place(server), "with an address that is none"))?;
    let found: Option<ProtectedResource> = web.document(&url).await?;
    let found = found.ok_or_else(|| bad(place(&url), "without the description of the server"))?;
    of_server(found, server)
}

/// At the well-known addresses, if none is named: that of the path, then that of the host.
async fn well_known(web: OAuthWeb, server: &Url) -> Result<Option<ProtectedResource>, OAuthError> {
    for url in resource_places(server) {
        if let Some(found) = web.document::<ProtectedResource>(&url).await? {
            return of_server(found, server).map(Some);
        }
    }
    Ok(None)
}

fn resource_places(server: &Url) -> Vec<Url> {
    const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
    let mut paths =
        vec![format!("{WELL_KNOWN}{}", server.path().trim_end_matches('/')), WELL_KNOWN.to_owned()];
    paths.dedup();
    paths.iter().map(|path| at(server, path)).collect()
}

fn at(url: &Url, path: &str) -> Url {
    let mut at = url.clone();
    at.set_path(path);
    at.set_query(None);
    at
}

/// A server that speaks for another one would be given the tokens of that.
fn of_server(described: ProtectedResource, server: &Url) -> Result<ProtectedResource, OAuthError> {
    let is_server = |resource: &Url| {
        let (path, own) = (server.path(), resource.path().trim_end_matches('/'));
        let is_below = path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_plain = resource.fragment().is_none() && resource.username().is_empty();
        resource.origin() == server.origin() && is_below && is_plain
    };
    match Url::parse(&described.resource).is_ok_and(|resource| is_server(&resource)) {
        true => Ok(described),
        false => {
            let said = described.resource.chars().take(200).collect::<String>();
            Err(OAuthError::OtherResource { said: legible_line(&said) })
        }
    }
}

/// Fetches the metadata of the authorization server with this name.
async fn authorization_server(web: OAuthWeb, issuer: &str) -> Result<AuthorizationServer, OAuthError> {
    let shown = || legible_line(&issuer.chars().take(200).collect::<String>());
    let bad = |problem: &str| OAuthError::BadAnswer { place: shown(), problem: problem.to_owned() };
    let url = Url::parse(issuer).map_err(|_| bad("with an address that is none"))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("with an address that no authorization server has"));
    }
    for place in issuer_places(&url) {
        let Some(found) = web.document::<AuthorizationServer>(&place).await? else { continue };
        if !is_same_issuer(&found.issuer, issuer) {
            return Err(OAuthError::OtherIssuer { place: shown(), said: legible_line(&found.issuer) });
        }
        return checked(web, found).await;
    }
    Err(bad("without the description of an authorization server"))
}

/// In the order of the specification of MCP.
fn issuer_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let (oauth, openid) = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration");
    let mut paths = vec![format!("{oauth}{path}"), format!("{openid}{path}"), format!("{path}{openid}")];
    paths.dedup();
    paths.iter().map(|path| at(issuer, path)).collect()
}

/// Equal but for the `/` that some libraries write after a host.
fn is_same_issuer(said: &str, wanted: &str) -> bool {
    said == wanted || said.strip_suffix('/') == Some(wanted) || wanted.strip_suffix('/') == Some(said)
}

async fn checked(web: OAuthWeb, found: AuthorizationServer) -> Result<AuthorizationServer, OAuthError> {
    let methods = found.code_challenge_methods_supported.as_deref().unwrap_or_default();
    if !methods.iter().any(|method| method == "S256") {
        return Err(OAuthError::NoProof(legible_line(&found.issuer)));
    }
    let optional = [&found.registration_endpoint, &found.revocation_endpoint];
    let endpoints = [&found.authorization_endpoint, &found.token_endpoint];
    for endpoint in endpoints.into_iter().chain(optional.into_iter().flatten()) {
        web.judge(endpoint.url()).await?;
    }
    Ok(found)
}

impl AuthorizationServer {
    /// Those of the server, and the one that lets it be asked again without a person.
    pub(super) fn with_offline_access(&self, mut scopes: Vec<String>) -> Vec<String> {
        const OFFLINE: &str = "offline_access";
        let is_known = self.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE);
        if is_known && scopes.len() < SCOPES && !scopes.iter().any(|scope| scope == OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
        scopes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(found: Vec<Url>) -> Vec<String> {
        found.into_iter().map(String::from).collect()
    }

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn well_known_places_are_tried_in_the_order_of_the_specification() {
        assert_eq!(
            places(resource_places(&url("https://x.test:8/public/mcp"))),
            [
                "https://x.test:8/.well-known/oauth-protected-resource/public/mcp",
                "https://x.test:8/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            places(resource_places(&url("https://x.test/"))),
            ["https://x.test/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            places(issuer_places(&url("https://a.test/tenant1"))),
            [
                "https://a.test/.well-known/oauth-authorization-server/tenant1",
                "https://a.test/.well-known/openid-configuration/tenant1",
                "https://a.test/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            places(issuer_places(&url("https://a.test"))),
            [
                "https://a.test/.well-known/oauth-authorization-server",
                "https://a.test/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn a_server_speaks_for_itself_only() {
        let server = url("https://x.test/public/mcp");
        let said = |resource: &str| {
            let described = ProtectedResource {
                resource: resource.to_owned(),
                authorization_servers: None,
                scopes_supported: None,
            };
            of_server(described, &server).is_ok()
        };
        for own in ["https://x.test/public/mcp", "https://x.test", "https://x.test/public/"] {
            assert!(said(own), "{own}");
        }
        for other in [
            "https://y.test/public/mcp",
            "http://x.test/public/mcp",
            "https://x.test:444/public/mcp",
            "https://x.test/pub",
            "https://x.test/public/mcp/more",
            "https://x.test/public/mcp#a",
            "https://x.test@y.test/public/mcp",
            "",
        ] {
            assert!(!said(other), "{other}");
        }
    }

    #[test]
    fn issuers_are_the_same_but_for_a_last_slash() {
        assert!(is_same_issuer("https://a.test/", "https://a.test"));
        assert!(is_same_issuer("https://a.test", "https://a.test/"));
        for other in ["https://a.test.evil", "http://a.test", "https://a.test/x", "https://a.test//", ""] {
            assert!(!is_same_issuer(other, "https://a.test"), "{other}");
        }
    }
}
