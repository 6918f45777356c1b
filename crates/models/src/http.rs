//! The HTTP clients of this process: made when first used, because reading the machine's certificates takes longer than
//! starting the whole program.

use std::sync::{Arc, OnceLock};

use attache_core::ports::ModelError;
use reqwest::{Client, ClientBuilder};

use crate::endpoint::BaseUrl;
use crate::limits::CONNECT;

/// Shared by all providers: connections are kept and used again.
#[derive(Clone, Debug, Default)]
pub struct Http {
    clients: Arc<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    outside: OnceLock<Client>,
    /// Servers on this machine are never asked through a proxy.
    loopback: OnceLock<Client>,
}

impl Http {
    pub(crate) fn client(&self, base_url: &BaseUrl) -> Result<&Client, ModelError> {
        let slot = if base_url.is_loopback() { &self.clients.loopback } else { &self.clients.outside };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let builder = if base_url.is_loopback() { builder().no_proxy() } else { builder() };
        let made = builder
            .build()
            .map_err(|error| ModelError::Permanent(format!("no HTTP client could be made: {error}")))?;
        Ok(slot.get_or_init(|| made))
    }
}

fn builder() -> ClientBuilder {
    // Somebody who embeds us may have chosen another provider already; then that one is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder()
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        // A redirect would carry the conversation, and with some servers the key, to a place nobody configured.
        .redirect(reqwest::redirect::Policy::none())
}
