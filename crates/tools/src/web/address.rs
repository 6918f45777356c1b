//! Which hosts are closed by name or address, and which names may lead to the user's own network. Pure.

use std::net::IpAddr;

use attache_core::realm::{Realm, realm};
use url::Host;

/// Names under which clouds give a machine its keys.
const METADATA_NAMES: [&str; 5] =
    ["instance-data", "instance-data.ec2.internal", "metadata", "metadata.google.internal", "metadata.goog"];

/// Endings of names that no public registry assigns: RFC 6761, 6762, 8375, and the one that ICANN reserves for
/// private use.
const OWN_ENDINGS: [&str; 4] = [".localhost", ".local", ".internal", ".home.arpa"];

/// Why a host is closed, before its name is resolved.
pub(super) fn closed(host: &Host<&str>) -> Option<&'static str> {
    let address = match host {
        Host::Domain(name) => {
            return METADATA_NAMES.contains(&plain(name)).then_some("the metadata service of a cloud");
        }
        Host::Ipv4(address) => IpAddr::from(*address),
        Host::Ipv6(address) => IpAddr::from(*address),
    };
    match realm(address) {
        Realm::Closed(reason) => Some(reason),
        Realm::Public | Realm::Own(_) => None,
    }
}

/// Whether the user's permission for this host opens addresses of the user's own network. For a public name it
/// does not, because its owner can lead it anywhere at any time.
pub(super) fn may_open_own(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = plain(name);
            !name.contains('.') || OWN_ENDINGS.iter().any(|ending| name.ends_with(ending))
        }
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    }
}

/// The name without the dot that may end a full name.
fn plain(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_can_register_open_own_networks() {
        for name in [
            "localhost",
            "localhost.",
            "nas",
            "app.localhost",
            "printer.local",
            "db.corp.internal",
            "x.home.arpa",
        ] {
            assert!(may_open_own(&Host::Domain(name)), "{name}");
        }
        for name in
            ["example.org", "localhost.evil.test", "127.0.0.1.evil.test", "evil.notlocal", "a.internal.evil"]
        {
            assert!(!may_open_own(&Host::Domain(name)), "{name}");
        }
        for name in METADATA_NAMES.into_iter().chain(["metadata.google.internal."]) {
            assert!(closed(&Host::Domain(name)).is_some(), "{name}");
        }
        assert_eq!(closed(&Host::Domain("metadata.example.org")), None);
    }
}
