//! The tokens of one server while it is talked to: given out, renewed before they end and once when they are
//! refused, by one at a time. Where that is over, it says what the user has to do.

use std::sync::{Arc, Mutex, PoisonError};

use attache_core::legible::legible_line;
use attache_core::ports::mcp::{HiddenText, OAuthSettings, ServerEntry, ServerOrigin};
use reqwest::header::HeaderValue;
use tokio::sync::Mutex as Turn;
use url::Url;

use super::login::{blocking, secret};
use super::record::{IssuedTokens, ServerLogin, kept_address};
use super::tokens::TokenClient;
use super::web::OAuthWeb;
use super::{BearerChallenge, LoginStore, OAuthError};
use crate::limits::{LOGIN_LOOK, SCOPES};

/// A token, as it goes into a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bearer(HiddenText);

impl Bearer {
    fn new(tokens: &IssuedTokens) -> Self {
        Self(HiddenText::new(tokens.access.as_str()))
    }

    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::from_str(&format!("Bearer {}", self.0.expose())).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

/// Why there is no token that the server takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessProblem {
    /// Only a login changes it.
    NeedsLogin(String),
    /// What was asked for needs a login with more rights; the rest goes on.
    NeedsMore(String),
    Passing(String),
}

/// That a login is needed: for people, and which login was of no use any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoginNeed {
    pub(crate) text: String,
    id: Option<String>,
}

#[derive(Debug)]
pub(crate) struct ServerAccess {
    server: Url,
    settings: OAuthSettings,
    /// The command that the user would type.
    command: String,
    logins: Arc<dyn LoginStore>,
    /// Why a lock: every request reads it, a renewal sets it. Held for a copy only.
    held: Mutex<Held>,
    /// Held while a renewal is under way: whoever comes in the meantime takes what it brings.
    renewing: Turn<()>,
}

#[derive(Debug, Default)]
struct Held {
    /// `None` until the store was read.
    login: Option<Option<ServerLogin>>,
    need: Option<LoginNeed>,
}

impl ServerAccess {
    /// `settings`: with references resolved.
    pub(crate) fn new(
        entry: &ServerEntry,
        url: &Url,
        settings: OAuthSettings,
        logins: Arc<dyn LoginStore>,
    ) -> Self {
        let server = kept_address(url);
        let named = match entry.origin {
            // The names of an editor are its own.
            ServerOrigin::Client => server.as_str(),
            ServerOrigin::User | ServerOrigin::Project(_) => &entry.name,
        };
        let command = format!("attache mcp login {}", as_word(named));
        Self { server, settings, command, logins, held: Mutex::default(), renewing: Turn::default() }
    }

    /// For the next request; `None` where nothing is kept. One that is about to end is renewed before.
    pub(crate) async fn bearer(self: &Arc<Self>) -> Result<Option<Bearer>, AccessProblem> {
        let Some(login) = self.login().await? else { return Ok(None) };
        let (Some(bearer), Some(tokens)) = (bearer_of(&login), &login.tokens) else { return Ok(None) };
        if tokens.refresh.is_none() || !tokens.should_be_renewed() {
            return Ok(Some(bearer));
        }
        match self.renewed(Some(bearer.clone())).await {
            Ok(renewed) => Ok(Some(renewed)),
            // It may do for a moment longer.
            Err(AccessProblem::Passing(problem)) if !tokens.has_expired() => {
                tracing::debug!(problem, "a token could not be renewed before its end");
                Ok(Some(bearer))
            }
            Err(problem) => Err(problem),
        }
    }

    /// The server has refused `used`: another token, if there is a way to one.
    pub(crate) async fn renewed(self: &Arc<Self>, used: Option<Bearer>) -> Result<Bearer, AccessProblem> {
        let this = self.clone();
        // Whoever asked may give up: a new refresh token must not be lost with them.
        let renewing = tokio::spawn(async move { this.renew(used).await });
        renewing.await.unwrap_or_else(|error| Err(AccessProblem::Passing(error.to_string())))
    }

    /// The server has refused what was renewed, too.
    pub(crate) fn refused(&self) -> AccessProblem {
        self.need(Some("it does not take the token of the last one"))
    }

    /// The server wants more rights than `used` has: what a login in the meantime gave, or the words to ask for
    /// one that asks for them.
    pub(crate) async fn with_more(
        &self,
        used: Option<&Bearer>,
        challenge: &BearerChallenge,
    ) -> Result<Bearer, AccessProblem> {
        let (logins, server, scopes) = (self.logins.clone(), self.server.clone(), challenge.scopes.clone());
        let refused = used.cloned();
        let noting = move || {
            let _held = logins.hold(server.as_str()).map_err(OAuthError::Store)?;
            let Some(mut login) = ServerLogin::read(&*logins, server.as_str())? else { return Ok(None) };
            let before = login.wanted_scopes.len();
            let is_same = bearer_of(&login) == refused;
            for scope in scopes.into_iter().filter(|_| is_same) {
                if login.wanted_scopes.len() < SCOPES && !login.wanted_scopes.contains(&scope) {
                    login.wanted_scopes.push(scope);
                }
            }
            if login.wanted_scopes.len() > before {
                login.keep(&*logins)?;
            }
            Ok(Some(login))
        };
        let noted = blocking(noting).await.map_err(|error| passing(&error))?;
        let Some(login) = noted else { return Err(self.need(None)) };
        let bearer = bearer_of(&login).filter(|bearer| Some(bearer) != used);
        self.hold(Some(login));
        let wanted = challenge.scopes.join(" ");
        let wanted = if wanted.is_empty() { wanted } else { format!(" ({wanted})") };
        let command = &self.command;
        let text = || format!("it wants a login with more rights{wanted}; run `{command}`");
        bearer.ok_or_else(|| AccessProblem::NeedsMore(text()))
    }

    /// What is missing for a login, once that is known.
    pub(crate) fn login_need(&self) -> Option<LoginNeed> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).need.clone()
    }

    /// Resolves after the next login.
    pub(crate) async fn logged_in_since(&self, need: &LoginNeed) {
        let mut seen = None;
        loop {
            let stamp = self.logins.stamp();
            if seen != Some(stamp) {
                seen = Some(stamp);
                let (logins, server) = (self.logins.clone(), self.server.clone());
                let login = blocking(move || ServerLogin::read(&*logins, server.as_str())).await;
                let is_other =
                    |login: &ServerLogin| login.tokens.is_some() && Some(&login.id) != need.id.as_ref();
                if login.is_ok_and(|login| login.as_ref().is_some_and(is_other)) {
                    return;
                }
            }
            tokio::time::sleep(LOGIN_LOOK).await;
        }
    }

    fn need(&self, why: Option<&str>) -> AccessProblem {
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let text = format!("needs a login{why}; run `{}`", self.command);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let id = held.login.as_ref().and_then(|login| login.as_ref()).map(|login| login.id.clone());
        held.need = Some(LoginNeed { text: text.clone(), id });
        AccessProblem::NeedsLogin(text)
    }

    fn hold(&self, login: Option<ServerLogin>) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).login = Some(login);
    }

    async fn login(&self) -> Result<Option<ServerLogin>, AccessProblem> {
        let known = self.held.lock().unwrap_or_else(PoisonError::into_inner).login.clone();
        if let Some(login) = known {
            return Ok(login);
        }
        let (logins, server) = (self.logins.clone(), self.server.clone());
        let login = blocking(move || ServerLogin::read(&*logins, server.as_str())).await;
        let login = login.map_err(|error| passing(&error))?;
        self.hold(login.clone());
        Ok(login)
    }

    async fn renew(&self, used: Option<Bearer>) -> Result<Bearer, AccessProblem> {
        let _turn = self.renewing.lock().await;
        if let Some(need) = self.login_need() {
            return Err(AccessProblem::NeedsLogin(need.text));
        }
        let another = |login: &ServerLogin| {
            let is_new = login.tokens.as_ref().is_some_and(|tokens| !tokens.should_be_renewed());
            bearer_of(login).filter(|bearer| is_new && Some(bearer) != used.as_ref())
        };
        if let Some(bearer) = self.login().await?.as_ref().and_then(another) {
            return Ok(bearer);
        }
        let (logins, server) = (self.logins.clone(), self.server.clone());
        let reading = move || {
            let held = logins.hold(server.as_str()).map_err(OAuthError::Store)?;
            Ok((held, ServerLogin::read(&*logins, server.as_str())?))
        };
        // Until the end: another process would use the same refresh token, and both would lose.
        let (_held, login) = blocking(reading).await.map_err(|error| passing(&error))?;
        self.hold(login.clone());
        let Some(mut login) = login else { return Err(self.need(None)) };
        if let Some(bearer) = another(&login) {
            return Ok(bearer);
        }
        let Some(tokens) = login.tokens.clone() else { return Err(self.need(None)) };
        let Some(refresh) = &tokens.refresh else { return Err(self.need(Some("the last one has ended"))) };
        let renewed = async {
            let asking = TokenClient {
                web: OAuthWeb::of(&self.server, self.settings.private_addresses).await?,
                endpoint: login.token_endpoint.url(),
                client: &login.client,
                secret: secret(&login.client, &self.settings),
                resource: &login.resource,
                issuer: &login.issuer,
            };
            asking.refresh(&tokens, refresh).await
        };
        match renewed.await {
            Ok(tokens) => {
                let bearer = Bearer::new(&tokens);
                login.tokens = Some(tokens);
                self.keep(login).await;
                Ok(bearer)
            }
            Err(error) if error.is_final() => {
                login.tokens = None;
                if error.is_about_client() {
                    // No port is this one: the next login registers anew.
                    login.client.redirect_port = None;
                }
                self.keep(login).await;
                Err(self.need(Some(&format!("the last one has ended: {error}"))))
            }
            Err(error) => Err(AccessProblem::Passing(format!("its login could not be renewed: {error}"))),
        }
    }

    /// In memory in any case: the tokens before are of no use any more.
    async fn keep(&self, login: ServerLogin) {
        self.hold(Some(login.clone()));
        let logins = self.logins.clone();
        if let Err(error) = blocking(move || login.keep(&*logins)).await {
            tracing::warn!(%error, "a renewed login is not kept");
        }
    }
}

fn bearer_of(login: &ServerLogin) -> Option<Bearer> {
    login.tokens.as_ref().map(Bearer::new)
}

fn passing(error: &OAuthError) -> AccessProblem {
    AccessProblem::Passing(format!("its login can't be used: {error}"))
}

/// As one word of a shell.
fn as_word(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    match !name.is_empty() && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", legible_line(name).replace('\'', "'\\''")),
    }
}
