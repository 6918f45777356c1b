//! Where spans go, with which headers, and what they say of this process. Sends nothing.

use std::fmt;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, InvalidHeaderName, InvalidHeaderValue};
use thiserror::Error;
use url::{Host, Url};

/// One address that takes `POST`s of spans.
#[derive(Clone)]
pub struct Collector {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

#[derive(Debug, Error)]
pub enum CollectorError {
    #[error("not an address: {0}")]
    Address(#[from] url::ParseError),
    #[error("only http and https are spoken, not {0}")]
    Scheme(String),
    #[error("a header name is not valid: {0}")]
    HeaderName(#[from] InvalidHeaderName),
    /// Without the value: it may be a key.
    #[error("the value of the header {name} is not valid")]
    HeaderValue { name: String, source: InvalidHeaderValue },
}

/// Resource attributes: facts of the process, sent with every request.
#[derive(Clone, Debug)]
pub struct ServiceResource {
    pub service_name: String,
    pub service_version: &'static str,
    /// Beside these two.
    pub attributes: Vec<(String, String)>,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

impl Collector {
    /// `address` is a collector; its traces go to `/v1/traces` below it.
    pub fn at(address: &str) -> Result<Self, CollectorError> {
        let mut collector = Self::exactly(address)?;
        let path = collector.url.path().trim_end_matches('/').to_owned();
        if !path.ends_with("/v1/traces") {
            collector.url.set_path(&format!("{path}/v1/traces"));
        }
        Ok(collector)
    }

    /// `address` is where traces go, as it is.
    pub fn exactly(address: &str) -> Result<Self, CollectorError> {
        let url = Url::parse(address)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(CollectorError::Scheme(url.scheme().to_owned()));
        }
        Ok(Self { url, headers: HeaderMap::new() })
    }

    /// A header of the same name is replaced.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, CollectorError> {
        let header = HeaderName::try_from(name)?;
        let mut value = HeaderValue::try_from(value)
            .map_err(|source| CollectorError::HeaderValue { name: name.to_owned(), source })?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// For people: without a query or a user name, which may hold keys.
    pub fn shown(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        // Only addresses without a host have none; ours was checked.
        if url.set_username("").and_then(|()| url.set_password(None)).is_err() {
            return url.scheme().to_owned();
        }
        url.to_string()
    }

    /// Which headers go along; their values stay secret.
    pub fn header_names(&self) -> Vec<String> {
        self.headers.keys().map(ToString::to_string).collect()
    }

    /// On this very machine: no proxy is asked.
    pub(crate) fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }
}

/// `key=value,key=value` as OpenTelemetry's variables have it; values may be percent-encoded. What is no pair
/// is left out.
pub fn parse_pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(key, value)| (decoded(key), decoded(value)));
    pairs.filter(|(key, _)| !key.is_empty()).collect()
}

fn decoded(text: &str) -> String {
    let text = text.trim();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let escaped = match (first, behind) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_below_a_collector_and_exactly_where_they_are_told() {
        for (address, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
            ("https://example.com/otlp", "https://example.com/otlp/v1/traces"),
            ("https://example.com/v1/traces", "https://example.com/v1/traces"),
        ] {
            assert_eq!(Collector::at(address).unwrap().url.as_str(), url, "{address}");
        }
        assert_eq!(Collector::exactly("http://h/x").unwrap().url.as_str(), "http://h/x");
        for bad in ["", "127.0.0.1:4318", "grpc://h:4317", "http://"] {
            assert!(Collector::at(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_may_hold_a_key_is_not_shown() {
        let told = Collector::exactly("https://me:secret@h/v1/traces?key=secret").unwrap();
        assert_eq!(told.shown(), "https://h/v1/traces");
        let told = told.with_header("authorization", "Bearer secret").unwrap();
        assert!(!format!("{told:?}").contains("Bearer"), "{told:?}");
        let error = told.with_header("x", "sec\nret").unwrap_err();
        assert!(!error.to_string().contains("ret\n") && !error.to_string().contains("sec"), "{error}");
    }

    #[test]
    fn loopback_is_known_by_every_name_it_has() {
        for (address, is_loopback) in [
            ("http://127.0.0.1:1", true),
            ("http://[::1]:1", true),
            ("http://localhost:1", true),
            ("http://collector.localhost:1", true),
            ("http://localhost.example.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Collector::at(address).unwrap().is_loopback(), is_loopback, "{address}");
        }
    }

    #[test]
    fn pairs_are_read_as_opentelemetry_writes_them() {
        let pairs = |text| parse_pairs(text).into_iter().map(|(k, v)| format!("{k}:{v}")).collect::<Vec<_>>();
        assert_eq!(pairs("a=1, b = 2 ,c=x%20y%2Cz=="), ["a:1", "b:2", "c:x y,z=="]);
        assert_eq!(pairs("authorization=Basic%20YTpi"), ["authorization:Basic YTpi"]);
        assert_eq!(pairs("no pair,,=x,d="), ["d:"]);
        assert_eq!(pairs("p=100%,q=%zz,r=%4"), ["p:100%", "q:%zz", "r:%4"]);
    }
}
