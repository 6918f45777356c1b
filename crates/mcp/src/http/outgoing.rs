//! What requests to a server are made with: its address, a client for it, its headers.

use std::sync::OnceLock;

use attache_core::legible::legible_line;
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::answers::unreachable;
use crate::limits::{HTTP_CONNECT, HTTP_REDIRECTS};

/// Only http and https; others would be opened by something else.
pub(crate) fn address(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url).map_err(|error| format!("its url is not one: {error}"))?;
    match parsed.scheme() {
        "http" | "https" if parsed.has_host() => Ok(parsed),
        scheme => Err(format!("its url must be http or https, not {}", legible_line(scheme))),
    }
}

/// Servers on this machine are never asked through a proxy.
pub(super) fn client(url: &Url) -> Result<Client, String> {
    static OUTSIDE: OnceLock<Client> = OnceLock::new();
    static INSIDE: OnceLock<Client> = OnceLock::new();
    let is_here = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let slot = if is_here { &INSIDE } else { &OUTSIDE };
    if let Some(client) = slot.get() {
        return Ok(client.clone());
    }
    // A host that embeds us may have chosen a provider already; then that one is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = Client::builder()
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(HTTP_CONNECT)
        .redirect(reqwest::redirect::Policy::custom(|attempt| {
            let is_same =
                attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
            match (is_same, attempt.previous().len() < HTTP_REDIRECTS) {
                (true, true) => attempt.follow(),
                // A redirect would carry what is said, and keys, to a place that is not configured.
                (_, _) => attempt.stop(),
            }
        }));
    let builder = match (is_here, url.scheme()) {
        // Reading the machine's certificates takes longer than the whole start.
        (true, "http") => return builder.no_proxy().tls_certs_only([]).build().map_err(|e| unreachable(&e)),
        (true, _) => builder.no_proxy(),
        (false, _) => builder,
    };
    let made = builder.build().map_err(|error| unreachable(&error))?;
    Ok(slot.get_or_init(|| made).clone())
}

pub(super) fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let shown = legible_line(name);
        let name: HeaderName = name.parse().map_err(|_| format!("`{shown}` is no name of a header"))?;
        let mut value: HeaderValue =
            value.parse().map_err(|_| format!("the header `{shown}` has characters that can't be sent"))?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

/// Whether an entry says itself who we are.
pub(crate) fn has_authorization(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION.as_str()))
}
