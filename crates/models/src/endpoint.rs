//! Where a provider is and how we speak to it: address, key, headers. Builds addresses of requests, sends
//! nothing.

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use thiserror::Error;
use url::Url;

use crate::dialect::Dialect;
use crate::secret::Secret;
use crate::vendors::{AuthHeader, Compatibility};

/// dialect × address × key.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The dialect the server speaks.
    pub dialect: Dialect,
    /// Where it is.
    pub base_url: BaseUrl,
    /// How the key travels.
    pub auth: AuthHeader,
    /// The key, if one is needed.
    pub key: Option<Secret>,
    /// How it differs from others of its dialect.
    pub compatibility: Compatibility,
    /// Errors about the key say this: what the user should do.
    pub key_hint: String,
}

/// An address a model's server may have: http or https, without a key in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(Url);

/// Whether the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Safety {
    Tls,
    Plain,
}

/// Why an address can't be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum BadUrl {
    #[error("is not an address: {0}")]
    NoUrl(String),
    #[error("must start with http:// or https://, not `{0}:`")]
    Scheme(String),
    #[error(
        "must not hold a user name or a password; keys belong in `attache auth login` or the environment"
    )]
    Credentials,
}

impl BaseUrl {
    /// An address with `http` or `https`, without user and password.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        let url = Url::parse(text.trim()).map_err(|error| match error {
            url::ParseError::RelativeUrlWithoutBase => {
                BadUrl::NoUrl("it must start with http:// or https://".to_owned())
            }
            other => BadUrl::NoUrl(other.to_string()),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(BadUrl::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadUrl::Credentials);
        }
        Ok(Self(url))
    }

    /// The address without a slash at its end.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// What follows the host, without a slash at its end.
    pub(crate) fn path(&self) -> &str {
        self.0.path().trim_end_matches('/')
    }

    /// The same server at another path; keeps the query.
    pub(crate) fn with_path(&self, path: &str) -> Self {
        let mut url = self.0.clone();
        url.set_path(path);
        Self(url)
    }

    /// Whether the host is this machine: we may ask such a server for its models at start.
    pub fn is_loopback(&self) -> bool {
        match self.0.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    pub(crate) fn safety(&self) -> Safety {
        match self.0.scheme() {
            "https" => Safety::Tls,
            _ => Safety::Plain,
        }
    }

    /// The address with this path added. A version that is in both appears once; keeps a query of the base.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.0.clone();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let base = url.path().trim_end_matches('/').to_owned();
        let version = path.split('/').nth(1).filter(|first| is_version(first));
        let path = match version {
            Some(version) if base.rsplit('/').next() == Some(version) => &path[version.len() + 1..],
            // Users may write `https://host/v1` where the vendor writes `https://host`.
            Some(version) if base.rsplit('/').next().is_some_and(is_version) => &path[version.len() + 1..],
            _ => path,
        };
        url.set_path(&format!("{base}{path}"));
        if !query.is_empty() {
            let joined = match url.query() {
                Some(own) if !own.is_empty() => format!("{own}&{query}"),
                _ => query.to_owned(),
            };
            url.set_query(Some(&joined));
        }
        url
    }
}

pub(crate) fn is_version(segment: &str) -> bool {
    let rest = segment.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|first: char| first.is_ascii_digit())
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

impl Endpoint {
    /// The headers of every request; marks the key's header as sensitive, so that no log shows it.
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in self.dialect.headers() {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        if let Some((name, value)) = self.key_header() {
            headers.insert(name, value);
        }
        headers
    }

    fn key_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let key = self.key.as_ref()?.expose();
        let (name, text) = match self.auth {
            AuthHeader::Bearer => (AUTHORIZATION, format!("Bearer {key}")),
            AuthHeader::XApiKey => (HeaderName::from_static("x-api-key"), key.to_owned()),
            AuthHeader::Goog => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
            AuthHeader::ApiKey => (HeaderName::from_static("api-key"), key.to_owned()),
        };
        // A header cannot hold a key with a line break. We leave it out, and the server's refusal tells the
        // user.
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_join_with_and_without_a_version() {
        for (base, path, expected) in [
            ("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1", "/v1/messages", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/", "/v1/messages", "https://api.anthropic.com/v1/messages"),
            ("https://gate.example/anthropic", "/v1/messages", "https://gate.example/anthropic/v1/messages"),
            ("http://127.0.0.1:8080/v1", "/chat/completions", "http://127.0.0.1:8080/v1/chat/completions"),
            (
                "https://generativelanguage.googleapis.com",
                "/v1beta/models/g:streamGenerateContent?alt=sse",
                "https://generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent?alt=sse",
            ),
            (
                "https://generativelanguage.googleapis.com/v1",
                "/v1beta/models/g:streamGenerateContent?alt=sse",
                "https://generativelanguage.googleapis.com/v1/models/g:streamGenerateContent?alt=sse",
            ),
            (
                "https://x.openai.azure.com/openai/v1?api-version=preview",
                "/responses",
                "https://x.openai.azure.com/openai/v1/responses?api-version=preview",
            ),
        ] {
            assert_eq!(BaseUrl::parse(base).unwrap().join(path).as_str(), expected);
        }
    }

    #[test]
    fn what_is_no_address_of_a_server_is_refused_in_words() {
        for (text, words) in [
            ("localhost:8080", "must start with http:// or https://, not `localhost:`"),
            ("ftp://x", "must start with http:// or https://, not `ftp:`"),
            ("", "is not an address: it must start with http:// or https://"),
            ("http://", "is not an address: empty host"),
            (
                "https://me:secret@x",
                "must not hold a user name or a password; keys belong in `attache auth login` or the environment",
            ),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap_err().to_string(), words);
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        let is = |text: &str| BaseUrl::parse(text).unwrap().is_loopback();
        assert!(is("http://localhost:1/v1") && is("http://127.0.0.9:1") && is("http://[::1]:1"));
        assert!(!is("http://10.0.0.1") && !is("https://localhost.example.com") && !is("http://0.0.0.0:1"));
    }
}
