//! `[serve]`: where remote sessions may work, which names and pages may come in, and how an end is waited for.

use std::path::PathBuf;
use std::time::Duration;

use super::{Origin, Sourced};

/// How long runs may go on once the server is asked to end: most answers are over by then.
const DRAIN: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerSettings {
    /// `None`: the directory that the server was started in.
    pub(crate) workspaces: Option<Sourced<Vec<PathBuf>>>,
    /// Names of the server beside its address.
    pub(crate) hosts: Sourced<Vec<String>>,
    /// Origins of pages that may come in beside its own.
    pub(crate) origins: Sourced<Vec<String>>,
    pub(crate) drain: Sourced<Duration>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        fn usual<T>(value: T) -> Sourced<T> {
            Sourced { value, origin: Origin::Default }
        }
        Self { workspaces: None, hosts: usual(Vec::new()), origins: usual(Vec::new()), drain: usual(DRAIN) }
    }
}

impl ServerSettings {
    /// For who shows it.
    pub(crate) fn is_stated(&self) -> bool {
        *self != Self::default()
    }
}

/// A name or an address, with a port if it has one.
pub(super) fn is_host(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c))
}

/// A scheme with a host, and nothing behind it.
pub(super) fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(is_host)
}
