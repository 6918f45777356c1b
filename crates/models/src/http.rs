//! The HTTP clients of this process. Each is built on first use, because reading the machine's certificates
//! takes longer than starting the whole program, and a server without TLS needs none.

use std::sync::{Arc, OnceLock};

use attache_core::ports::ModelError;
use reqwest::{Client, ClientBuilder};

use crate::endpoint::{BaseUrl, Safety};
use crate::limits::CONNECT;
use crate::transport_error;

/// All providers share it, so that connections are kept and reused.
#[derive(Clone, Debug, Default)]
pub struct Http {
    clients: Arc<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    outside: OnceLock<Client>,
    outside_plain: OnceLock<Client>,
    /// Never uses a proxy for servers on this machine.
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
            // A proxy may itself use TLS. If there are no certificates, plain requests still work.
            (false, Safety::Plain) => builder().build().or_else(|_| without_certificates(builder()).build()),
            (true, Safety::Tls) => builder().no_proxy().build(),
            (true, Safety::Plain) => without_certificates(builder()).no_proxy().build(),
        };
        let made = made.map_err(|error| ModelError::Permanent(transport_error::no_client(&error)))?;
        Ok(slot.get_or_init(|| made))
    }
}

fn builder() -> ClientBuilder {
    // A program that embeds us may have installed another provider already; then we use that one.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder()
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        // A redirect would carry the conversation, and with some servers the key, to an address that is not
        // configured.
        .redirect(reqwest::redirect::Policy::none())
}

/// Trusts no certificate, which is enough without TLS.
fn without_certificates(builder: ClientBuilder) -> ClientBuilder {
    builder.tls_certs_only([])
}
