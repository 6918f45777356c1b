//! A SearXNG server of the user's own: its request and its answer. It takes no key and knows no count.

use reqwest::{Client, RequestBuilder};
use serde::Deserialize;
use url::Url;

use super::{Asked, Hit, below};

pub(super) fn request(client: &Client, address: &Url, asked: &Asked<'_>) -> RequestBuilder {
    let mut url = below(address, "/search");
    url.query_pairs_mut().append_pair("q", asked.query).append_pair("format", "json");
    client.get(url)
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    title: Option<String>,
    url: String,
    content: Option<String>,
}

pub(super) fn hits(body: &[u8]) -> Option<Vec<Hit>> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    Some(answer.results.into_iter().map(hit).collect())
}

fn hit(found: Found) -> Hit {
    Hit { title: found.title.unwrap_or_default(), url: found.url, snippet: found.content.unwrap_or_default() }
}
