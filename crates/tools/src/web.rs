//! Access to the web: judges addresses before use, and makes pages readable. Knows no tool and no rule.

mod address;
mod get;
mod page;
pub(crate) mod search;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::net::IpAddr;

use attache_core::ports::BoxFuture;

pub(crate) use get::{Got, check, get};
pub(crate) use page::readable;

/// Resolves names. An interface, so that tests can answer for servers that do not exist.
pub(crate) trait HostResolver: Send + Sync + Debug {
    fn lookup(&self, host: &str) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
    /// The address to connect to in place of an allowed one; only tests change it.
    fn dial(&self, address: IpAddr) -> IpAddr {
        address
    }
}

/// Resolves like the machine.
#[derive(Debug)]
pub(crate) struct SystemResolver;

impl HostResolver for SystemResolver {
    fn lookup(&self, host: &str) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
