//! The way to the web: addresses judged before they are used, pages made readable. Knows no tool and no rule.

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

/// Where names lead. A seam: the tests answer for servers that are not there.
pub(crate) trait HostResolver: Send + Sync + Debug {
    fn lookup(&self, host: &str) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
    /// The address that is really dialled for one that was found to be allowed.
    fn dial(&self, address: IpAddr) -> IpAddr {
        address
    }
}

/// As the machine resolves them.
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
