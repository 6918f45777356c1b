//! As whom we go to an authorization server: as the user configured it, as we were registered before, or as we
//! register ourselves now (RFC 7591).

use attache_core::legible::legible_line;
use attache_core::ports::mcp::OAuthSettings;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::OAuthError;
use super::discovery::AuthorizationServer;
use super::record::{ClientSource, OAuthClient, TokenAuthentication, now_ms};
use super::tokens::refusal;
use super::web::{OAuthBody, OAuthWeb, place};

/// Where the browser is sent back to, and what for: a registration is bound to both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registration<'a> {
    pub(super) redirect: &'a str,
    pub(super) redirect_port: u16,
    pub(super) scopes: &'a [String],
}

/// In the order of the specification of MCP. `kept`: from an earlier login at the same issuer.
pub(super) async fn client_for(
    web: OAuthWeb,
    server: &AuthorizationServer,
    settings: &OAuthSettings,
    kept: Option<&OAuthClient>,
    registration: Registration<'_>,
) -> Result<OAuthClient, OAuthError> {
    if let Some(id) = &settings.client_id {
        return configured(server, settings, id);
    }
    let is_usable = |client: &&OAuthClient| {
        client.source == ClientSource::Registered
            && client.redirect_port == Some(registration.redirect_port)
            && client.secret_until_ms.is_none_or(|until| now_ms() < until)
    };
    if let Some(client) = kept.filter(is_usable) {
        return Ok(client.clone());
    }
    match &server.registration_endpoint {
        Some(endpoint) => register(web, server, endpoint.url(), registration).await,
        None => Err(OAuthError::NoRegistration(legible_line(&server.issuer))),
    }
}

fn configured(
    server: &AuthorizationServer,
    settings: &OAuthSettings,
    id: &str,
) -> Result<OAuthClient, OAuthError> {
    let is_document = is_document_address(id);
    if is_document && server.client_id_metadata_document_supported != Some(true) {
        return Err(OAuthError::Failed(format!(
            "the authorization server {} reads no client metadata documents; its own registration gives another client_id",
            legible_line(&server.issuer)
        )));
    }
    let has_secret = settings.client_secret.is_some() && !is_document;
    Ok(OAuthClient {
        id: id.to_owned(),
        secret: None,
        secret_until_ms: None,
        authentication: if has_secret { with_secret(server) } else { TokenAuthentication::None },
        source: ClientSource::Configured,
        redirect_port: settings.redirect_port,
    })
}

/// A client may be known by the address of a document that describes it.
fn is_document_address(id: &str) -> bool {
    Url::parse(id).is_ok_and(|url| url.scheme() == "https" && url.path().len() > 1)
}

/// Missing fields have the defaults of RFC 8414.
fn with_secret(server: &AuthorizationServer) -> TokenAuthentication {
    let supported = server.token_endpoint_auth_methods_supported.as_deref();
    let has = |name: &str| supported.is_none_or(|methods| methods.iter().any(|method| method == name));
    match (has("client_secret_basic"), has("client_secret_post")) {
        (false, true) => TokenAuthentication::ClientSecretPost,
        (_, _) => TokenAuthentication::ClientSecretBasic,
    }
}

async fn register(
    web: OAuthWeb,
    server: &AuthorizationServer,
    endpoint: &Url,
    registration: Registration<'_>,
) -> Result<OAuthClient, OAuthError> {
    #[derive(Deserialize)]
    struct Registered {
        client_id: String,
        #[serde(default)]
        client_secret: Option<String>,
        #[serde(default)]
        client_secret_expires_at: Option<u64>,
        #[serde(default)]
        token_endpoint_auth_method: Option<TokenAuthentication>,
    }
    let supported = server.token_endpoint_auth_methods_supported.as_deref();
    let takes_public = supported.is_none_or(|methods| methods.iter().any(|method| method == "none"));
    let wanted = if takes_public { TokenAuthentication::None } else { with_secret(server) };
    let mut asked = json!({
        "client_name": "attache",
        // OpenID Connect takes redirects to this machine from native programs only.
        "application_type": "native",
        "redirect_uris": [registration.redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
    });
    if !registration.scopes.is_empty() {
        asked["scope"] = registration.scopes.join(" ").into();
    }
    let body = OAuthBody { kind: Some("application/json"), text: asked.to_string(), ..OAuthBody::default() };
    let answer = web.post(endpoint, body).await?;
    if !answer.status.is_success() {
        return Err(refusal(&answer, endpoint, &[]));
    }
    let bad = || OAuthError::BadAnswer {
        place: place(endpoint),
        problem: "to a registration without a client_id".to_owned(),
    };
    let registered: Registered = answer.json().ok_or_else(bad)?;
    let authentication = registered.token_endpoint_auth_method.unwrap_or(match registered.client_secret {
        Some(_) => with_secret(server),
        None => TokenAuthentication::None,
    });
    Ok(OAuthClient {
        id: registered.client_id,
        secret: registered.client_secret,
        // 0 is never.
        secret_until_ms: registered
            .client_secret_expires_at
            .filter(|until| *until > 0)
            .map(|until| until.saturating_mul(1000)),
        authentication,
        source: ClientSource::Registered,
        redirect_port: Some(registration.redirect_port),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(more: serde_json::Value) -> AuthorizationServer {
        let mut said = json!({
            "issuer": "https://a.test",
            "authorization_endpoint": "https://a.test/authorize",
            "token_endpoint": "https://a.test/token",
        });
        for (name, value) in more.as_object().unwrap() {
            said[name] = value.clone();
        }
        serde_json::from_value(said).unwrap()
    }

    fn known(id: &str, has_secret: bool) -> OAuthSettings {
        let client_secret = has_secret.then(|| attache_core::ports::mcp::HiddenText::new("s"));
        OAuthSettings { client_id: Some(id.to_owned()), client_secret, ..OAuthSettings::default() }
    }

    async fn chosen(
        server: &AuthorizationServer,
        settings: &OAuthSettings,
        kept: Option<&OAuthClient>,
    ) -> Result<OAuthClient, String> {
        let own: Url = "http://127.0.0.1:1/mcp".parse().unwrap();
        let web = OAuthWeb::of(&own, settings.private_addresses).await.unwrap();
        let registration =
            Registration { redirect: "http://127.0.0.1:5/callback", redirect_port: 5, scopes: &[] };
        client_for(web, server, settings, kept, registration).await.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_configured_client_comes_before_all_others() {
        for (methods, authentication) in [
            (json!({}), TokenAuthentication::ClientSecretBasic),
            (
                json!({ "token_endpoint_auth_methods_supported": ["client_secret_post", "none"] }),
                TokenAuthentication::ClientSecretPost,
            ),
        ] {
            let server = server(methods);
            let client = chosen(&server, &known("me", true), None).await.unwrap();
            assert_eq!((client.authentication, client.secret), (authentication, None), "none of it is kept");
            let client = chosen(&server, &known("me", false), None).await.unwrap();
            assert_eq!((client.id.as_str(), client.authentication), ("me", TokenAuthentication::None));
        }
    }

    #[tokio::test]
    async fn a_metadata_document_is_for_servers_that_read_them() {
        let id = "https://x.test/client.json";
        let refused = chosen(&server(json!({})), &known(id, false), None).await.unwrap_err();
        assert!(refused.contains("reads no client metadata documents"), "{refused}");
        let reads = server(json!({ "client_id_metadata_document_supported": true }));
        let client = chosen(&reads, &known(id, false), None).await.unwrap();
        assert_eq!((client.id.as_str(), client.authentication), (id, TokenAuthentication::None));
    }

    #[tokio::test]
    async fn a_registration_is_used_again_while_it_holds() {
        let kept = |redirect_port, secret_until_ms| OAuthClient {
            id: "kept".to_owned(),
            secret: Some("s".to_owned()),
            secret_until_ms,
            authentication: TokenAuthentication::ClientSecretPost,
            source: ClientSource::Registered,
            redirect_port,
        };
        let (server, settings) = (server(json!({})), OAuthSettings::default());
        for holds in [kept(Some(5), None), kept(Some(5), Some(now_ms() + 60_000))] {
            assert_eq!(chosen(&server, &settings, Some(&holds)).await, Ok(holds));
        }
        for over in [kept(Some(6), None), kept(None, None), kept(Some(5), Some(1))] {
            let error = chosen(&server, &settings, Some(&over)).await.unwrap_err();
            assert!(error.contains("does not let programs register themselves"), "{error}");
        }
    }

    #[test]
    fn a_document_has_an_https_address_with_a_path() {
        assert!(is_document_address("https://x.test/client.json"));
        for id in ["https://x.test", "https://x.test/", "http://x.test/client.json", "abc", "0oa1:x/y"] {
            assert!(!is_document_address(id), "{id}");
        }
    }
}
