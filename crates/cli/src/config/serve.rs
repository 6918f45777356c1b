//! `[serve]`: where remote sessions may work, who may connect and how often, what the server logs of it, and
//! how it ends.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::token_table::ConfiguredToken;
use super::{SettingOrigin, Sourced};

/// How long runs may continue after someone asks the server to end: most answers finish within it.
const DRAIN: Duration = Duration::from_secs(30);

/// How long a shared server stays without a client: an editor that restarts finds its sessions still open.
const IDLE: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerSettings {
    /// `None` means the directory in which the user started the server.
    pub(crate) workspaces: Option<Sourced<Vec<PathBuf>>>,
    /// Further host names of the server, beside its address.
    pub(crate) hosts: Sourced<Vec<String>>,
    /// Origins of pages that may connect, beside the server's own.
    pub(crate) origins: Sourced<Vec<String>>,
    pub(crate) drain: Sourced<Duration>,
    /// How long the server that editors share stays without a client.
    pub(crate) idle: Sourced<Duration>,
    pub(crate) access_log: Sourced<AccessLogTarget>,
    /// Proxies that we trust to name the addresses of clients.
    pub(crate) proxies: Sourced<Vec<IpAddr>>,
    pub(crate) per_token: CallerBounds,
    pub(crate) per_address: CallerBounds,
    pub(crate) tokens: Vec<ConfiguredToken>,
}

/// Where the line for each request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessLogTarget {
    Stderr,
    Off,
    File(PathBuf),
}

/// `None` means the server's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallerBounds {
    pub(crate) connections: Option<Sourced<u32>>,
    pub(crate) prompts_per_minute: Option<Sourced<u32>>,
    pub(crate) bytes_per_minute: Option<Sourced<u64>>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        fn usual<T>(value: T) -> Sourced<T> {
            Sourced { value, origin: SettingOrigin::Default }
        }
        Self {
            workspaces: None,
            hosts: usual(Vec::new()),
            origins: usual(Vec::new()),
            drain: usual(DRAIN),
            idle: usual(IDLE),
            access_log: usual(AccessLogTarget::Stderr),
            proxies: usual(Vec::new()),
            per_token: CallerBounds::default(),
            per_address: CallerBounds::default(),
            tokens: Vec::new(),
        }
    }
}

impl ServerSettings {
    /// Whether the file states any of it, for code that prints it.
    pub(crate) fn is_stated(&self) -> bool {
        *self != Self::default()
    }
}

/// Whether it is a name or an address, with or without a port.
pub(super) fn is_host(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c))
}

/// Whether it is a scheme and a host, with nothing after them.
pub(super) fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(is_host)
}
