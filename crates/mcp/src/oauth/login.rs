//! A login from its beginning to its end, and its end: finds out where, waits for the browser, keeps what came
//! of it; tells the authorization server when it is no longer wanted. Opens no browser.

use std::path::PathBuf;
use std::sync::Arc;

use attache_core::legible::legible_line;
use attache_core::ports::mcp::{OAuthSettings, ServerEntry, ServerTransport};
use url::Url;

use super::client::{Registration, client_for};
use super::discovery::{LoginPlace, discover};
use super::record::{ClientSource, OAuthClient, ServerLogin, kept_address};
use super::redirect::{ExpectedAnswer, NamesIssuer, RedirectListener, question};
use super::secrets::{code_challenge, random_word};
use super::tokens::{CodeGrant, TokenClient};
use super::web::OAuthWeb;
use super::{LoginStore, OAuthError};
use crate::http;
use crate::limits::LOGIN_TIME;
use crate::pool::Variables;
use crate::program::{self, ResolvedServer};

/// What logging in to a server and out of it needs.
#[derive(Clone, Debug)]
pub struct LoginPlan {
    pub entry: ServerEntry,
    /// Where relative names of its entry begin.
    pub root: PathBuf,
    pub variables: Variables,
    pub logins: Arc<dyn LoginStore>,
}

/// A login that waits for its user.
#[derive(Debug)]
pub struct PendingLogin {
    address: Url,
    listener: RedirectListener,
    place: LoginPlace,
    web: OAuthWeb,
    server: Url,
    client: OAuthClient,
    settings: OAuthSettings,
    scopes: Vec<String>,
    proof: Proof,
    logins: Arc<dyn LoginStore>,
}

/// What ties an answer to our question. Never printed.
struct Proof {
    state: String,
    verifier: String,
}

impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Proof")
    }
}

/// Who issued the tokens, and what they are good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedLogin {
    pub issuer: String,
    pub scopes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logout {
    NothingKept,
    Forgotten(Revocation),
}

/// Whether the authorization server knows that the tokens are of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revocation {
    Done,
    /// It has no endpoint for that; the tokens expire by themselves.
    NotOffered,
    Failed(OAuthError),
}

/// What logging in needs to know of a server.
struct RemoteServer {
    /// Where it is asked what it wants.
    url: Url,
    kept: Url,
    headers: Vec<(String, String)>,
    way: http::ProbeWay,
    settings: OAuthSettings,
}

const PROGRAM: &str = "it is a program of this machine; only servers with a url have logins";

impl LoginPlan {
    fn server(&self) -> Result<RemoteServer, OAuthError> {
        let Self { entry, root, variables, .. } = self;
        let (url, headers, way) =
            match program::resolve(entry, root, variables).map_err(OAuthError::Failed)? {
                ResolvedServer::Program(_) => {
                    return Err(OAuthError::Failed(PROGRAM.to_owned()));
                }
                ResolvedServer::Http { url, headers } => (url, headers, http::ProbeWay::Post),
                ResolvedServer::Sse { url, headers } => (url, headers, http::ProbeWay::Get),
            };
        if http::has_authorization(&headers) {
            let what = "its entry has an Authorization header of its own, which is sent instead of a login";
            return Err(OAuthError::Failed(what.to_owned()));
        }
        let url = http::address(&url).map_err(OAuthError::Failed)?;
        let settings = program::resolve_oauth(entry, variables).map_err(OAuthError::Failed)?;
        Ok(RemoteServer { kept: kept_address(&url), url, headers, way, settings })
    }

    /// Up to the address that the user has to open.
    pub async fn begin(&self) -> Result<PendingLogin, OAuthError> {
        let RemoteServer { url, kept: server, headers, way, settings } = self.server()?;
        let web = OAuthWeb::of(&server, settings.private_addresses).await?;
        web.judge(&server).await?;
        let challenge = http::challenge(&url, &headers, way).await.map_err(OAuthError::Failed)?;
        let before = self.kept(&server).await?;
        let known = before.as_ref().map(|login| login.issuer.as_str());
        let place = discover(web, &server, challenge.as_ref(), known).await?;
        let before = before.filter(|login| login.issuer == place.authorization.issuer);
        let listener = listener(&settings, before.as_ref()).await?;
        let scopes = wanted_scopes(&place, &settings, before.as_ref());
        let redirect = listener.address();
        let registration =
            Registration { redirect: &redirect, redirect_port: listener.port(), scopes: &scopes };
        let kept = before.as_ref().map(|login| &login.client);
        let client = client_for(web, &place.authorization, &settings, kept, registration).await?;
        let proof = Proof { state: random_word()?, verifier: random_word()? };
        let (challenge, list) = (code_challenge(&proof.verifier), scopes.join(" "));
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", &redirect),
            ("state", &proof.state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &place.resource),
        ];
        if !list.is_empty() {
            parameters.push(("scope", &list));
        }
        if scopes.iter().any(|scope| scope == "offline_access") {
            // OpenID Connect gives it after a question only.
            parameters.push(("prompt", "consent"));
        }
        let address = question(place.authorization.authorization_endpoint.url(), &parameters);
        let logins = self.logins.clone();
        Ok(PendingLogin { address, listener, place, web, server, client, settings, scopes, proof, logins })
    }

    /// Under which address a login is kept. Nothing else of the entry need be usable: it has served.
    fn kept_under(&self) -> Result<Url, OAuthError> {
        let Self { entry, root, variables, .. } = self;
        let mut entry = entry.clone();
        if let ServerTransport::Http { headers, .. } | ServerTransport::Sse { headers, .. } =
            &mut entry.transport
        {
            headers.clear();
        }
        let can_name =
            |reason| format!("{reason}; the address of the server will do: attache mcp logout URL");
        let resolved = program::resolve(&entry, root, variables).map_err(can_name);
        match resolved.map_err(OAuthError::Failed)? {
            ResolvedServer::Program(_) => Err(OAuthError::Failed(PROGRAM.to_owned())),
            ResolvedServer::Http { url, .. } | ResolvedServer::Sse { url, .. } => {
                Ok(kept_address(&http::address(&url).map_err(OAuthError::Failed)?))
            }
        }
    }

    /// Forgets a login; revokes it at the authorization server first, if that has an endpoint for it.
    pub async fn log_out(&self) -> Result<Logout, OAuthError> {
        let server = self.kept_under()?;
        let settings = program::resolve_oauth(&self.entry, &self.variables).map_err(OAuthError::Failed);
        let before = self.kept(&server).await;
        // What can't be read is forgotten all the same.
        let revocation = match (&before, &settings) {
            (Ok(None), _) => return Ok(Logout::NothingKept),
            (Ok(Some(login)), Ok(settings)) => revoke(login, &server, settings).await,
            (Ok(Some(_)), Err(error)) | (Err(error), _) => Revocation::Failed(error.clone()),
        };
        let logins = self.logins.clone();
        blocking(move || logins.forget(server.as_str()).map_err(OAuthError::Store)).await?;
        Ok(Logout::Forgotten(revocation))
    }

    async fn kept(&self, server: &Url) -> Result<Option<ServerLogin>, OAuthError> {
        let (logins, server) = (self.logins.clone(), server.clone());
        blocking(move || ServerLogin::read(&*logins, server.as_str())).await
    }
}

/// At the port that is configured, or at the one that is registered already, or at any.
async fn listener(
    settings: &OAuthSettings,
    before: Option<&ServerLogin>,
) -> Result<RedirectListener, OAuthError> {
    if settings.redirect_port.is_some() {
        return RedirectListener::open(settings.redirect_port).await;
    }
    let registered = before.and_then(|login| login.client.redirect_port);
    match RedirectListener::open(registered).await {
        Ok(listener) => Ok(listener),
        Err(_) if registered.is_some() => RedirectListener::open(None).await,
        Err(error) => Err(error),
    }
}

/// Those that are configured; or what the server asks for, and has asked for since the last login.
fn wanted_scopes(place: &LoginPlace, settings: &OAuthSettings, before: Option<&ServerLogin>) -> Vec<String> {
    if !settings.scopes.is_empty() {
        return settings.scopes.clone();
    }
    let mut scopes = place.scopes.clone();
    let more = before.filter(|login| !login.wanted_scopes.is_empty());
    let given = more.and_then(|login| login.tokens.as_ref()).map(|tokens| tokens.scopes.as_slice());
    let wanted = more.map(|login| login.wanted_scopes.as_slice());
    for scope in given.into_iter().chain(wanted).flatten() {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    place.authorization.with_offline_access(scopes)
}

impl PendingLogin {
    /// The address that the user opens in a browser: http or https.
    pub fn address(&self) -> &Url {
        &self.address
    }

    /// The key under which the login will be stored.
    pub fn server(&self) -> &str {
        self.server.as_str()
    }

    /// Waits for the browser, for a while; then the login is kept.
    pub async fn finish(self) -> Result<FinishedLogin, OAuthError> {
        let Self { listener, place, web, server, client, settings, scopes, proof, logins, .. } = self;
        let LoginPlace { resource, authorization, .. } = place;
        let redirect = listener.address();
        let always = authorization.authorization_response_iss_parameter_supported == Some(true);
        let expected = ExpectedAnswer {
            state: &proof.state,
            issuer: &authorization.issuer,
            names_issuer: if always { NamesIssuer::Always } else { NamesIssuer::Perhaps },
        };
        let late = |_| OAuthError::Late(LOGIN_TIME.as_secs() / 60);
        let code = tokio::time::timeout(LOGIN_TIME, listener.code(&expected)).await.map_err(late)??;
        let asking = TokenClient {
            web,
            endpoint: authorization.token_endpoint.url(),
            client: &client,
            secret: secret(&client, &settings),
            resource: &resource,
            issuer: &authorization.issuer,
        };
        let grant =
            CodeGrant { code: &code, verifier: &proof.verifier, redirect: &redirect, scopes: &scopes };
        let tokens = asking.exchange(grant).await?;
        let finished = FinishedLogin {
            issuer: legible_line(&authorization.issuer),
            scopes: tokens.scopes.iter().map(|scope| legible_line(scope)).collect(),
        };
        let login = ServerLogin {
            id: random_word()?,
            server: server.into(),
            resource,
            issuer: authorization.issuer,
            token_endpoint: authorization.token_endpoint,
            revocation_endpoint: authorization.revocation_endpoint,
            client,
            tokens: Some(tokens),
            wanted_scopes: Vec::new(),
        };
        let keeping = move || {
            // A renewal that is under way would put the old one back.
            let _held = logins.hold(&login.server).map_err(OAuthError::Store)?;
            login.keep(&*logins)
        };
        blocking(keeping).await?;
        Ok(finished)
    }
}

/// From a registration, or from the configuration.
pub(super) fn secret<'a>(client: &'a OAuthClient, settings: &'a OAuthSettings) -> Option<&'a str> {
    match client.source {
        ClientSource::Configured => settings.client_secret.as_ref().map(|secret| secret.expose()),
        ClientSource::Registered => client.secret.as_deref(),
    }
}

async fn revoke(login: &ServerLogin, server: &Url, settings: &OAuthSettings) -> Revocation {
    let (Some(at), Some(tokens)) = (&login.revocation_endpoint, &login.tokens) else {
        return Revocation::NotOffered;
    };
    let revoking = async {
        let asking = TokenClient {
            web: OAuthWeb::of(server, settings.private_addresses).await?,
            endpoint: login.token_endpoint.url(),
            client: &login.client,
            secret: secret(&login.client, settings),
            resource: &login.resource,
            issuer: &login.issuer,
        };
        if let Some(refresh) = &tokens.refresh {
            asking.revoke(at.url(), refresh, "refresh_token").await?;
        }
        asking.revoke(at.url(), &tokens.access, "access_token").await
    };
    match revoking.await {
        Ok(()) => Revocation::Done,
        Err(error) => Revocation::Failed(error),
    }
}

/// Stores block: on a file, on a keyring, on another process.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OAuthError> + Send + 'static,
) -> Result<T, OAuthError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| OAuthError::Store(error.to_string()))?
}
