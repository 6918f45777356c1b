//! One GET over http(s): each hop is resolved and judged, and connects only to the judged addresses.

use std::net::{IpAddr, SocketAddr};

use attache_core::ports::tool::NetworkGrant;
use attache_core::realm::{Realm, realm};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response};
use url::{Host, Url};

use super::HostResolver;
use super::address::{closed, may_open_own};
use crate::limits::{WEB_BYTES, WEB_CONNECT_TIME, WEB_HOPS};

#[derive(Debug, thiserror::Error)]
pub(crate) enum GetError {
    #[error("{0} is not fetched: only http and https are")]
    Scheme(String),
    #[error("an address with a user name is not fetched; its host would be {0}")]
    Credentials(String),
    #[error("{host} can't be fetched, and no grant changes that: it is {reason}")]
    Closed { host: String, reason: &'static str },
    #[error("{host} is not fetched: its address {address} is {reason}, not of the public internet; {way_on}")]
    Refused { host: String, address: IpAddr, reason: &'static str, way_on: &'static str },
    #[error("{host} can't be resolved: {source}")]
    Unresolved { host: String, source: std::io::Error },
    #[error("{host} has no address")]
    NoAddress { host: String },
    #[error("redirected to another host; ask for that one if it is wanted: {0}")]
    OtherHost(String),
    #[error("redirected from https to http, which is not followed: {0}")]
    Downgrade(String),
    #[error("redirected without a usable address")]
    BadRedirect,
    #[error("redirected more than {WEB_HOPS} times")]
    TooManyHops,
    #[error("answered {status}")]
    Status { status: reqwest::StatusCode },
    #[error("{0}")]
    Transport(String),
}

/// The response, up to the limit.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) url: Url,
    pub(crate) content_type: Option<String>,
    pub(crate) body: Vec<u8>,
    /// The server had more.
    pub(crate) is_cut: bool,
}

/// The grant is for the first host, and no hop may leave it.
pub(crate) async fn get(names: &dyn HostResolver, first: Url, grant: NetworkGrant) -> Result<Got, GetError> {
    let mut url = first.clone();
    for _ in 0..=WEB_HOPS {
        let response = ask(names, &url, grant).await?;
        if !response.status().is_redirection() {
            return read(url, response).await;
        }
        let next = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
        let next = next.and_then(|place| url.join(place).ok()).ok_or(GetError::BadRedirect)?;
        check(&next)?;
        if url.scheme() == "https" && next.scheme() == "http" {
            return Err(GetError::Downgrade(next.into()));
        }
        // The user was asked only about the first host.
        if next.host_str() != first.host_str() {
            return Err(GetError::OtherHost(next.into()));
        }
        url = next;
    }
    Err(GetError::TooManyHops)
}

/// What is wrong with an address before its name is resolved.
pub(crate) fn check(url: &Url) -> Result<(), GetError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(GetError::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(GetError::Credentials(url.host_str().unwrap_or_default().to_owned()));
    }
    if let Some(reason) = url.host().and_then(|host| closed(&host)) {
        return Err(GetError::Closed { host: url.host_str().unwrap_or_default().to_owned(), reason });
    }
    Ok(())
}

async fn ask(names: &dyn HostResolver, url: &Url, grant: NetworkGrant) -> Result<Response, GetError> {
    check(url)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let found = match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) => {
            names.lookup(name).await.map_err(|source| GetError::Unresolved { host: host.clone(), source })?
        }
        None => Vec::new(),
    };
    if found.is_empty() {
        return Err(GetError::NoAddress { host });
    }
    // A bad address among good ones is an attack, not an accident.
    for address in &found {
        judge(url, *address, grant)?;
    }
    let pinned: Vec<SocketAddr> =
        found.iter().map(|address| SocketAddr::new(names.dial(*address), 0)).collect();
    // A separate client for each hop: it connects to this host at these addresses and asks no name server.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = Client::builder()
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(WEB_CONNECT_TIME)
        .resolve_to_addrs(&host, &pinned)
        .build()
        .map_err(transport)?;
    let accepted = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5";
    client.get(url.clone()).header(ACCEPT, accepted).send().await.map_err(transport)
}

fn judge(url: &Url, address: IpAddr, grant: NetworkGrant) -> Result<(), GetError> {
    let may_open_own = url.host().is_some_and(|host| may_open_own(&host));
    let (reason, way_on) = match (realm(address), grant) {
        (Realm::Public, _) => return Ok(()),
        (Realm::Closed(reason), _) => (reason, "no grant reaches it"),
        (Realm::Own(reason), _) if !may_open_own => (reason, "the name is public, so no grant opens it"),
        (Realm::Own(_), NetworkGrant::GrantedByName) => return Ok(()),
        (Realm::Own(reason), NetworkGrant::Withheld | NetworkGrant::Granted) => {
            (reason, "only the user's answer, or a `network` rule of theirs with exactly this host, opens it")
        }
    };
    let host = url.host_str().unwrap_or_default().to_owned();
    Err(GetError::Refused { host, address, reason, way_on })
}

async fn read(url: Url, mut response: Response) -> Result<Got, GetError> {
    let status = response.status();
    if !status.is_success() {
        return Err(GetError::Status { status });
    }
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let mut got = Got { url, content_type: content_type.map(str::to_owned), body: Vec::new(), is_cut: false };
    // Counted after decompression, because a small response may be a large page.
    while let Some(bytes) = response.chunk().await.map_err(transport)? {
        let room = WEB_BYTES - got.body.len();
        got.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            got.is_cut = true;
            break;
        }
    }
    Ok(got)
}

fn transport(error: reqwest::Error) -> GetError {
    GetError::Transport(innermost(error))
}

/// The innermost error says the most, and contains no address.
pub(super) fn innermost(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
