//! Which network an address belongs to: the public internet, this machine or the network around it, or out of
//! reach. Pure; every crate that reaches the network asks here first.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which network an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Realm {
    /// The public internet.
    Public,
    /// This machine or the network around it: the user may grant it.
    Own(&'static str),
    /// No grant reaches it.
    Closed(&'static str),
}

/// Which network this address belongs to.
pub fn realm(address: IpAddr) -> Realm {
    match address {
        IpAddr::V4(address) => realm_v4(address),
        IpAddr::V6(address) => realm_v6(address),
    }
}

fn realm_v4(address: Ipv4Addr) -> Realm {
    match address.octets() {
        // Addresses of cloud services, within public or shared ranges.
        [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => {
            Realm::Closed("the metadata service of a cloud")
        }
        [0, ..] => Realm::Closed("unspecified"),
        [127, ..] => Realm::Own("loopback"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Realm::Own("private"),
        [169, 254, ..] => Realm::Closed("link-local"),
        [100, 64..=127, ..] => Realm::Own("shared by a carrier"),
        [192, 0, 0 | 2, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] => {
            Realm::Closed("reserved")
        }
        [224..=239, ..] => Realm::Closed("multicast"),
        [240..=255, ..] => Realm::Closed("reserved"),
        [..] => Realm::Public,
    }
}

fn realm_v6(address: Ipv6Addr) -> Realm {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Realm::Closed("unspecified"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Realm::Own("loopback"),
        // An IPv4 address embedded in IPv6 is judged as IPv4: mapped, compatible, NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, ..] => Realm::Closed("reserved"),
        [0xfd00, 0xec2, ..] | [0xfd20, 0xce, ..] => Realm::Closed("the metadata service of a cloud"),
        [0xfc00..=0xfdff, ..] => Realm::Own("private"),
        [0xfe80..=0xfebf, ..] => Realm::Closed("link-local"),
        [0xff00..=0xffff, ..] => Realm::Closed("multicast"),
        [0x2000..=0x3fff, ..] => Realm::Public,
        [..] => Realm::Closed("reserved"),
    }
}

/// A person can only grant what they can read: private addresses can be granted only in their usual form.
fn embedded(high: u16, low: u16) -> Realm {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    match realm_v4(Ipv4Addr::new(a, b, c, d)) {
        Realm::Public => Realm::Public,
        Realm::Own(_) => Realm::Closed("an address of an own network in disguise"),
        closed @ Realm::Closed(_) => closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_networks_can_be_granted() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "::1",
            "fc00::1",
            "fd12:3456::1",
        ] {
            assert!(matches!(realm(address.parse().unwrap()), Realm::Own(_)), "{address}");
        }
    }

    #[test]
    fn what_nobody_reaches_is_no_own_network() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "169.254.170.2",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2001::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "100::1",
        ] {
            assert!(matches!(realm(address.parse().unwrap()), Realm::Closed(_)), "{address}");
        }
    }

    #[test]
    fn the_rest_is_public() {
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "169.253.1.1",
            "168.63.129.17",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert_eq!(realm(address.parse().unwrap()), Realm::Public, "{address}");
        }
    }
}
