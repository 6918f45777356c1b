//! The HTTP clients of this process: made when first used, because reading the machine's certificates takes
//! longer than starting the whole program. A server without TLS needs none.

use std::sync::{Arc, OnceLock};

use attache_core::ports::ModelError;
use reqwest::{Client, ClientBuilder};

use crate::endpoint::{BaseUrl, Safety};
use crate::limits::CONNECT;
use crate::transport_error;

/// Shared by all providers: connections are kept and used again.
#[derive(Clone, Debug, Default)]
pub struct Http {
    clients: Arc<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    outside: OnceLock<Client>,
    outside_plain: OnceLock<Client>,
    /// Servers on this machine are never asked through a proxy.
    loopback: OnceLock<Client>,
    loopback_plain: OnceLock<Client>,
}

impl Http {
    pub(crate) fn client(&self, base_url: &BaseUrl) -> Result<&Client, ModelError> {
        let clients = &self.clients;
        let slot = match (base_url.is_loopback(), base_url.safety()) {
            (false, Safety::Tls) => &clients.outside,
            (false, Safety::Plain) => &clients.outside_plain,
            (true, Safety::Tls) => &clients.loopback,
            (true, Safety::Plain) => &clients.loopback_plain,
        };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let made = match (base_url.is_loopback(), base_url.safety()) {
            (false, Safety::Tls) => builder().build(),
            // A proxy may speak TLS itself; without certificates there is still the plain one.
            (false, Safety::Plain) => builder().build().or_else(|_| without_certificates(builder()).build()),
            (true, Safety::Tls) => builder().no_proxy().build(),
            (true, Safety::Plain) => without_certificates(builder()).no_proxy().build(),
        };
        let made = made.map_err(|error| ModelError::Permanent(transport_error::no_client(&error)))?;
        Ok(slot.get_or_init(|| made))
    }
}

fn builder() -> ClientBuilder {
    // Somebody who embeds us may have chosen another provider already; then that one is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder()
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        // A redirect would carry the conversation, and with some servers the key, to a place that is not
        // configured.
        .redirect(reqwest::redirect::Policy::none())
}

/// Trusts no certificate, which is enough where there is no TLS.
fn without_certificates(builder: ClientBuilder) -> ClientBuilder {
    builder.tls_certs_only([])
}
