//! Asks a server which models it has. Sends no conversation and decides nothing.

use std::time::Duration;

use attache_core::ports::model::ModelInfo;
use thiserror::Error;

use crate::endpoint::Endpoint;
use crate::http::Http;

pub(crate) mod ask;
pub(crate) mod lists;
mod own_server;
mod served;

use ask::ServerQuery;
pub(crate) use lists::ModelList;
pub use served::served_as;

/// Why we do not know a server's models, in a form that lets us tell a person what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum DiscoverError {
    #[error("nothing answers at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{url} can't be trusted: {reason}")]
    Untrusted { url: String, reason: String },
    #[error("{url} asks for a valid key (status {status}){}", behind_colon(words))]
    KeyRefused { url: String, status: u16, words: String },
    #[error("the server answers, but does not know {url} (status 404){}", behind_colon(words))]
    NoSuchPath { url: String, words: String },
    #[error("{url} answered with status {status}{}", behind_colon(words))]
    Refused { url: String, status: u16, words: String },
    #[error("{url} gave an unexpected answer{}", behind_colon(words))]
    Nonsense { url: String, words: String },
    #[error("{url} did not answer within {} s", after.as_secs_f32())]
    TooSlow { url: String, after: Duration },
}

/// How long we wait for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListWait {
    /// For everything together.
    pub deadline: Duration,
    /// The part of it that a server on this machine gets for what it says beside its list: a slow answer there
    /// must not cost us the list.
    pub details: Duration,
}

impl From<Duration> for ListWait {
    fn from(deadline: Duration) -> Self {
        Self { deadline, details: deadline }
    }
}

/// The address of an endpoint's list of models.
pub fn list_address(endpoint: &Endpoint) -> String {
    endpoint.base_url.join(endpoint.dialect.models().path).to_string()
}

/// The models behind an endpoint, as models of the configured provider. If a server on this machine has more to
/// say than its list (the context it really has), we ask for that too, as far as time allows.
pub async fn models_of(
    http: &Http,
    provider_id: &str,
    endpoint: &Endpoint,
    wait: impl Into<ListWait>,
) -> Result<Vec<ModelInfo>, DiscoverError> {
    let wait = wait.into();
    let asking = ServerQuery::new(http, endpoint, wait.deadline);
    let models = endpoint.dialect.models();
    let list = asking.get(&asking.url(models.path)).await?;
    let listed = models.read(&list.body, provider_id).ok_or_else(|| list.nonsense(endpoint))?;
    if models.own_servers && endpoint.base_url.is_loopback() {
        return Ok(own_server::described(&asking.within(wait.details), listed).await);
    }
    Ok(listed.into_iter().map(|listed| listed.info).collect())
}

fn behind_colon(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

#[cfg(test)]
mod tests;
