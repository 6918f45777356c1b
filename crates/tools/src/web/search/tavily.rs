//! Tavily: its request and its answer.

use reqwest::header::AUTHORIZATION;
use reqwest::{Client, RequestBuilder};
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Asked, Hit, SearchError, SearchKey, below};

#[derive(Serialize)]
struct Body<'a> {
    query: &'a str,
    max_results: usize,
}

pub(super) fn request(
    client: &Client,
    address: &Url,
    key: &SearchKey,
    asked: &Asked<'_>,
) -> Result<RequestBuilder, SearchError> {
    let body = Body { query: asked.query, max_results: asked.count };
    let request = client.post(below(address, "/search")).header(AUTHORIZATION, key.header("Bearer ")?);
    super::with_json(request, &body)
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
