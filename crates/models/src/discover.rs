//! Asks servers which models they have: those of this machine by their usual ports, any other by its endpoint. Sends no
//! conversation and decides nothing.

use std::time::Duration;

use attache_core::ports::model::ModelInfo;
use futures_util::future::join_all;
use thiserror::Error;

use crate::endpoint::{BaseUrl, Endpoint};
use crate::http::Http;
use crate::vendors::{KeyNeed, VENDORS, Vendor};

pub(crate) mod ask;
pub(crate) mod lists;
mod own_server;
mod served;

use ask::Asking;
pub(crate) use lists::ModelList;
pub use served::served_as;

/// A server that answered on its usual port and has at least one model.
#[derive(Clone, Debug)]
pub struct Found {
    pub vendor: &'static Vendor,
    /// The one to use first; their provider is the vendor's id.
    pub models: Vec<ModelInfo>,
}

/// Why a server's models are not known, so that a person can be told what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DiscoverError {
    #[error("nothing answers at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{url} can't be trusted: {reason}")]
    Untrusted { url: String, reason: String },
    #[error("{url} asks for a valid key (status {status}){}", behind_colon(words))]
    KeyRefused { url: String, status: u16, words: String },
    #[error("the server is there, but it has no {url} (status 404){}", behind_colon(words))]
    NoSuchPath { url: String, words: String },
    #[error("{url} answered with status {status}{}", behind_colon(words))]
    Refused { url: String, status: u16, words: String },
    #[error("{url} gave an unexpected answer{}", behind_colon(words))]
    Nonsense { url: String, words: String },
    #[error("{url} did not answer within {} s", after.as_secs_f32())]
    TooSlow { url: String, after: Duration },
}

/// The servers of this machine that answer within the time, in the order of the vendors.
pub async fn local_servers(http: &Http, deadline: Duration) -> Vec<Found> {
    servers_at(http, usual_places(), deadline).await
}

/// The models behind an endpoint, as those of the configured provider. What the list does not say of a server on this machine
/// (the context it really has) is asked as well, as far as time allows.
pub async fn models_of(
    http: &Http,
    provider_id: &str,
    endpoint: &Endpoint,
    deadline: Duration,
) -> Result<Vec<ModelInfo>, DiscoverError> {
    let asking = Asking::new(http, endpoint, deadline);
    let models = endpoint.dialect.models();
    let list = asking.get(&asking.url(models.path)).await?;
    let listed = models.read(&list.body, provider_id).ok_or_else(|| list.nonsense(endpoint))?;
    if models.own_servers && endpoint.base_url.is_loopback() {
        return Ok(own_server::described(&asking, listed).await);
    }
    Ok(listed.into_iter().map(|listed| listed.info).collect())
}

fn usual_places() -> Vec<(&'static Vendor, BaseUrl)> {
    let own = VENDORS.iter().filter(|vendor| vendor.key == KeyNeed::Optional);
    own.filter_map(|vendor| Some((vendor, BaseUrl::parse(vendor.base_url).ok()?))).collect()
}

async fn servers_at(http: &Http, places: Vec<(&'static Vendor, BaseUrl)>, deadline: Duration) -> Vec<Found> {
    let asked = places.into_iter().map(|(vendor, base_url)| async move {
        let endpoint = Endpoint {
            dialect: vendor.dialect,
            base_url,
            auth: vendor.auth,
            key: None,
            compatibility: vendor.compatibility,
            key_hint: String::new(),
        };
        match models_of(http, vendor.id, &endpoint, deadline).await {
            Ok(models) if !models.is_empty() => Some(Found { vendor, models }),
            Ok(_) => None,
            Err(error) => {
                tracing::debug!(vendor = vendor.id, %error, "no server of this machine");
                None
            }
        }
    });
    join_all(asked).await.into_iter().flatten().collect()
}

fn behind_colon(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

#[cfg(test)]
mod tests;
