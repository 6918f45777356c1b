//! The request to a SearXNG server of the user's own. It needs no key and has no count of results.

use reqwest::{Client, RequestBuilder};
use url::Url;

use super::{WebQuery, below};

pub(super) fn request(client: &Client, address: &Url, asked: &WebQuery<'_>) -> RequestBuilder {
    let mut url = below(address, "/search");
    url.query_pairs_mut().append_pair("q", asked.query).append_pair("format", "json");
    client.get(url)
}
