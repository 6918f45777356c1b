//! `[serve]`: where remote sessions may work, who may come in and how often, what is written down of it, and
//! how an end is waited for.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::token_table::ConfiguredToken;
use super::{SettingOrigin, Sourced};

/// How long runs may go on once the server is asked to end: most answers are over by then.
const DRAIN: Duration = Duration::from_secs(30);

/// How long a shared server without a client stays: an editor that is restarted finds its sessions open.
const IDLE: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerSettings {
    /// `None`: the directory that the server was started in.
    pub(crate) workspaces: Option<Sourced<Vec<PathBuf>>>,
    /// Names of the server beside its address.
    pub(crate) hosts: Sourced<Vec<String>>,
    /// Origins of pages that may come in beside its own.
    pub(crate) origins: Sourced<Vec<String>>,
    pub(crate) drain: Sourced<Duration>,
    /// How long the server that editors share stays without a client.
    pub(crate) idle: Sourced<Duration>,
    pub(crate) access_log: Sourced<AccessLogTarget>,
    /// Proxies whose word about the addresses of clients counts.
    pub(crate) proxies: Sourced<Vec<IpAddr>>,
    pub(crate) per_token: CallerBounds,
    pub(crate) per_address: CallerBounds,
    pub(crate) tokens: Vec<ConfiguredToken>,
}

/// Where a line for each request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessLogTarget {
    Stderr,
    Off,
    File(PathBuf),
}

/// `None`: what the server has.
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
