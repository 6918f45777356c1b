//! The store of logins, as a port: the host implements it.

use std::fmt::Debug;

use attache_core::ports::mcp::HiddenText;

/// Keeps what a login gave, by the server it is for. Every call may block, on a file or a keyring.
pub trait LoginStore: Send + Sync + Debug {
    /// The stored login for the server at this address.
    fn read(&self, server: &str) -> Result<Option<HiddenText>, String>;
    /// In place of what was kept for it, whoever issued that.
    fn keep(&self, server: &str, issuer: &str, login: &HiddenText) -> Result<(), String>;
    fn forget(&self, server: &str) -> Result<(), String>;
    /// Another number whenever something else may be kept. Costs next to nothing.
    fn stamp(&self) -> u64;
    /// Keeps every other process and thread from holding the same server, until it is dropped: who renews a
    /// login alone uses each refresh token once.
    fn hold(&self, server: &str) -> Result<Box<dyn Send + Sync>, String>;
}
