//! Fetches published model data for a refresh. Knows no format; `Catalogue::from_models_dev` reads the bytes.

use std::time::Duration;

use crate::discover::DiscoverError;
use crate::discover::ask::{AnswerLimits, bounded};
use crate::endpoint::BaseUrl;
use crate::failure::shortened;
use crate::http::Http;
use crate::limits::PUBLISHED_BYTES;

/// The bytes at that address, if they arrive in time. Sends no key and follows no redirect.
pub async fn fetch(http: &Http, address: &BaseUrl, deadline: Duration) -> Result<Vec<u8>, DiscoverError> {
    let url = address.join("");
    let client = http
        .client(address)
        .map_err(|error| DiscoverError::Unreachable { url: url.to_string(), reason: error.to_string() })?;
    bounded(client.get(url.clone()), &url, AnswerLimits::new(deadline, PUBLISHED_BYTES), &shortened).await
}
