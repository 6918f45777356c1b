//! Queries the search service that the user configured: one request, one list of hits. Knows no session and no
//! rule.
//!
//! The user chose the address, so unlike those of `web_fetch` it may be on this machine.

mod brave;
mod budget;
mod exa;
mod hit;
mod key;
mod searxng;
mod tavily;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;
use std::time::Duration;

use attache_core::legible::visible;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde_json::Value;
use url::{Host, Url};

use super::get::innermost;
use crate::limits::{SEARCH_ANSWER_BYTES, SEARCH_SAID_CHARACTERS, WEB_CONNECT_TIME, WEB_SEARCH_TIME};

pub(crate) use budget::Budget;
pub(crate) use hit::SearchHit;
pub use key::SearchKey;

/// The supported services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchProvider {
    /// Brave Search.
    Brave,
    /// Tavily.
    Tavily,
    /// Exa.
    Exa,
    /// A SearXNG server of the user's own.
    Searxng,
}

impl SearchProvider {
    /// Every provider.
    pub const ALL: [Self; 4] = [Self::Brave, Self::Tavily, Self::Exa, Self::Searxng];

    /// The name that configurations use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Brave => "brave",
            Self::Tavily => "tavily",
            Self::Exa => "exa",
            Self::Searxng => "searxng",
        }
    }

    /// The public address of the service. `None`: users run their own.
    pub fn usual_address(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
            Self::Exa => Some("https://api.exa.ai"),
            Self::Searxng => None,
        }
    }

    /// The variable that usually holds its key. `None`: it needs none.
    pub fn usual_key_variable(self) -> Option<&'static str> {
        match self {
            Self::Brave => Some("BRAVE_API_KEY"),
            Self::Tavily => Some("TAVILY_API_KEY"),
            Self::Exa => Some("EXA_API_KEY"),
            Self::Searxng => None,
        }
    }
}

/// The service, its address and its key.
#[derive(Clone, Debug)]
pub struct SearchEndpoint {
    service: Service,
    address: Url,
}

#[derive(Clone, Debug)]
enum Service {
    Brave(SearchKey),
    Tavily(SearchKey),
    Exa(SearchKey),
    Searxng,
}

/// Why there can be no search.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum SearchEndpointError {
    #[error("{0} can't be asked without a key")]
    NoKey(&'static str),
    #[error("the address of {0} can't be used: {1}")]
    Address(&'static str, String),
}

impl SearchEndpoint {
    /// A service that needs no key does not get one.
    pub fn new(
        provider: SearchProvider,
        address: &str,
        key: Option<SearchKey>,
    ) -> Result<Self, SearchEndpointError> {
        let name = provider.as_str();
        let bad_address = |problem: String| SearchEndpointError::Address(name, problem);
        let address = Url::parse(address).map_err(|error| bad_address(error.to_string()))?;
        super::check(&address).map_err(|error| bad_address(error.to_string()))?;
        let key = key.ok_or(SearchEndpointError::NoKey(name));
        let service = match provider {
            SearchProvider::Brave => Service::Brave(key?),
            SearchProvider::Tavily => Service::Tavily(key?),
            SearchProvider::Exa => Service::Exa(key?),
            SearchProvider::Searxng => Service::Searxng,
        };
        Ok(Self { service, address })
    }

    /// The host, in lower case.
    pub(crate) fn host(&self) -> &str {
        self.address.host_str().unwrap_or_default()
    }

    pub(crate) fn provider(&self) -> SearchProvider {
        match self.service {
            Service::Brave(_) => SearchProvider::Brave,
            Service::Tavily(_) => SearchProvider::Tavily,
            Service::Exa(_) => SearchProvider::Exa,
            Service::Searxng => SearchProvider::Searxng,
        }
    }

    fn key(&self) -> Option<&SearchKey> {
        match &self.service {
            Service::Brave(key) | Service::Tavily(key) | Service::Exa(key) => Some(key),
            Service::Searxng => None,
        }
    }

    /// The text without the key, in case the service repeated it.
    fn without_key(&self, text: &str) -> String {
        self.key().map_or_else(|| text.to_owned(), |key| key.hide_in(text))
    }

    fn request(&self, client: &Client, asked: &WebQuery<'_>) -> Result<RequestBuilder, SearchError> {
        match &self.service {
            Service::Brave(key) => brave::request(client, &self.address, key, asked),
            Service::Tavily(key) => tavily::request(client, &self.address, key, asked),
            Service::Exa(key) => exa::request(client, &self.address, key, asked),
            Service::Searxng => Ok(searxng::request(client, &self.address, asked)),
        }
    }

    fn hits(&self, body: &[u8]) -> Result<Vec<SearchHit>, SearchError> {
        let answer: Value = serde_json::from_slice(body).map_err(|_| SearchError::Unreadable)?;
        let hits = match self.service {
            Service::Brave(_) => brave::hits(&answer),
            Service::Tavily(_) | Service::Searxng => hit::hits(&answer["results"], "content"),
            Service::Exa(_) => hit::hits(&answer["results"], "text"),
        };
        hits.ok_or(SearchError::Unreadable)
    }

    /// The meaning of a response that is not a success.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> SearchError {
        let said = self.said(body);
        let has_key = match self.service {
            Service::Brave(_) | Service::Tavily(_) | Service::Exa(_) => true,
            Service::Searxng => false,
        };
        match status.as_u16() {
            401 | 403 if has_key => SearchError::Key { status, said },
            403 => SearchError::JsonIsOff,
            429 => SearchError::TooMany { said },
            _ if status.is_redirection() => SearchError::Redirect { status },
            _ => SearchError::Status { status, said },
        }
    }

    /// The service's own message, if it is meant for programs; pages for people say no more than the status.
    fn said(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        if !text.starts_with('{') {
            return String::new();
        }
        // Hide the key before cutting: half a key would not be found any more.
        let text = hit::one_line(&self.without_key(text), SEARCH_SAID_CHARACTERS);
        format!(": {}", visible(&text))
    }
}

/// One search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WebQuery<'a> {
    pub(crate) query: &'a str,
    pub(crate) count: usize,
}

/// Continues "web_search: PROVIDER …".
#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    #[error("refused the key ({status}); the user has to correct it{said}")]
    Key { status: StatusCode, said: String },
    #[error("has a key that no request can carry; the user has to correct it")]
    BadKey,
    #[error(
        "answered 403 Forbidden: its JSON is off; the user has to add json to search.formats in its settings.yml"
    )]
    JsonIsOff,
    #[error("answered 429: too many searches for now; go on without, or try again later{said}")]
    TooMany { said: String },
    #[error("sends elsewhere ({status}), which is not followed; the user has to correct base_url")]
    Redirect { status: StatusCode },
    #[error("answered {status}{said}")]
    Status { status: StatusCode, said: String },
    #[error("answered something that is no list of results")]
    Unreadable,
    #[error("answered with more than {SEARCH_ANSWER_BYTES} bytes")]
    TooLong,
    #[error("did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("can't be asked: {0}")]
    Transport(String),
}

/// Queries one endpoint, any number of times.
#[derive(Debug)]
pub(crate) struct Searcher {
    pub(crate) endpoint: SearchEndpoint,
    /// Made on first use: reading the machine's certificates takes longer than starting the program.
    client: OnceLock<Client>,
    time: Duration,
}

impl Searcher {
    pub(crate) fn new(endpoint: SearchEndpoint) -> Self {
        Self { endpoint, client: OnceLock::new(), time: WEB_SEARCH_TIME }
    }

    /// Returns at most the wanted number of hits.
    pub(crate) async fn search(&self, asked: WebQuery<'_>) -> Result<Vec<SearchHit>, SearchError> {
        let answered = tokio::time::timeout(self.time, self.ask(asked)).await;
        answered.unwrap_or(Err(SearchError::TimedOut(self.time)))
    }

    async fn ask(&self, asked: WebQuery<'_>) -> Result<Vec<SearchHit>, SearchError> {
        let request = self.endpoint.request(self.client()?, &asked)?;
        let response = request.header(ACCEPT, "application/json").send().await.map_err(transport)?;
        let status = response.status();
        let body = read(response).await;
        if !status.is_success() {
            return Err(self.endpoint.refusal(status, &body.unwrap_or_default()));
        }
        let hits = self.endpoint.hits(&body?)?;
        let readable =
            hits.into_iter().filter_map(|hit| hit.readable(|text| self.endpoint.without_key(text)));
        Ok(readable.take(asked.count).collect())
    }

    fn client(&self) -> Result<&Client, SearchError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // A program that embeds attache may have installed another provider already; then that one is used.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = Client::builder()
            .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(WEB_CONNECT_TIME)
            // A redirect would carry the key to a place that is not configured.
            .redirect(reqwest::redirect::Policy::none());
        // Servers on this machine are never reached through a proxy.
        let builder = if is_loopback(&self.endpoint.address) { builder.no_proxy() } else { builder };
        let made = builder.build().map_err(transport)?;
        Ok(self.client.get_or_init(|| made))
    }
}

fn is_loopback(address: &Url) -> bool {
    match address.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The address with the service's path appended to its own.
fn below(address: &Url, path: &str) -> Url {
    let mut url = address.clone();
    let base = url.path().trim_end_matches('/').to_owned();
    url.set_path(&format!("{base}{path}"));
    url
}

/// The workspace's HTTP client is built without JSON support; the request is the same.
fn with_json(request: RequestBuilder, body: &impl Serialize) -> Result<RequestBuilder, SearchError> {
    let text = serde_json::to_string(body).map_err(|error| SearchError::Transport(error.to_string()))?;
    Ok(request.header(CONTENT_TYPE, "application/json").body(text))
}

async fn read(mut response: Response) -> Result<Vec<u8>, SearchError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(transport)? {
        if body.len() + bytes.len() > SEARCH_ANSWER_BYTES {
            return Err(SearchError::TooLong);
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

fn transport(error: reqwest::Error) -> SearchError {
    SearchError::Transport(innermost(error))
}
