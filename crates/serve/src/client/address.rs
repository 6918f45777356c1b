//! How a server elsewhere is named.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;
use url::{Host, Url};

use crate::acp::ACP_PATH;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// With the path that ACP has there.
    Http(Url),
    Unix(PathBuf),
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} names no server: give http://HOST:PORT, https://HOST, ws://HOST:PORT/acp, wss://HOST/acp or unix:PATH"
)]
pub struct AddressError(String);

impl ServerAddress {
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(wrong()) } else { Ok(Self::Unix(path.into())) };
        }
        let plain = match text.split_once("://") {
            Some(("ws", rest)) => format!("http://{rest}"),
            Some(("wss", rest)) => format!("https://{rest}"),
            Some(("http" | "https", _)) => text.to_owned(),
            Some(_) | None => return Err(wrong()),
        };
        let mut url = Url::parse(&plain).map_err(|_| wrong())?;
        let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        if !is_bare || url.fragment().is_some() || url.host().is_none() {
            return Err(wrong());
        }
        if url.path() == "/" {
            url.set_path(ACP_PATH);
        }
        Ok(Self::Http(url))
    }

    /// Whether it is on this very machine.
    pub fn is_near(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Http(url) => match url.host() {
                Some(Host::Ipv4(ip)) => ip.is_loopback(),
                Some(Host::Ipv6(ip)) => ip.is_loopback(),
                Some(Host::Domain(name)) => name == "localhost",
                None => false,
            },
        }
    }

    /// The port of a server that is reached over TCP.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Unix(_) => None,
            Self::Http(url) => url.port_or_known_default(),
        }
    }

    /// Whether others on the way can read what is said, the token included.
    pub fn is_readable_on_the_way(&self) -> bool {
        match self {
            Self::Unix(_) => false,
            Self::Http(url) => url.scheme() == "http" && !self.is_near(),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => url.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_an_address_or_a_socket() {
        let shown = |text: &str| ServerAddress::parse(text).map(|address| address.to_string());
        for (text, expected) in [
            ("http://127.0.0.1:7766", "http://127.0.0.1:7766/acp"),
            ("https://agent.example", "https://agent.example/acp"),
            ("ws://localhost:1/acp", "http://localhost:1/acp"),
            ("wss://agent.example/proxied/acp", "https://agent.example/proxied/acp"),
            ("unix:/run/a b.sock", "unix:/run/a b.sock"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected));
        }
        for wrong in
            ["", "127.0.0.1:1", "ftp://a", "http://", "unix:", "http://u:p@h", "http://h/?token=x", "ws:/x"]
        {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
        let far = |text: &str| ServerAddress::parse(text).unwrap().is_readable_on_the_way();
        assert!(far("http://10.0.0.1:7766") && !far("https://10.0.0.1") && !far("http://[::1]:7766"));
    }
}
