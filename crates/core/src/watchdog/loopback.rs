//! The localhost of a sandbox: a command in the full sandbox has its own. Judges nothing else.

use std::net::IpAddr;

use super::approval::{Approval, Containment};
use super::judge::Judge;
use super::rule::{BASH, NETWORK};
use crate::ports::tool::Access;

impl Judge<'_> {
    /// If no question is asked and no rule mentions it, a command may reach its own localhost, which gives it
    /// no network.
    pub(super) fn stays_in_its_sandbox(&self, access: &Access, tool: &str) -> bool {
        let Access::Network { host } = access else { return false };
        let is_alone = self.approval == Approval::All && self.containment.get() == Containment::Full;
        tool == BASH && is_alone && is_loopback(host) && self.rules.decide(NETWORK, host).is_none()
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.is_ok_and(|address| address.is_loopback() || address.is_unspecified()) || host == "localhost"
}
