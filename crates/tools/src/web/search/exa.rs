//! Exa: its request and its answer.

use reqwest::{Client, RequestBuilder};
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Asked, Hit, SearchError, SearchKey, below};
use crate::limits::SEARCH_SNIPPET_CHARACTERS;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    query: &'a str,
    num_results: usize,
    contents: Contents,
}

#[derive(Serialize)]
struct Contents {
    text: Text,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Text {
    max_characters: usize,
}

pub(super) fn request(
    client: &Client,
    address: &Url,
    key: &SearchKey,
    asked: &Asked<'_>,
) -> Result<RequestBuilder, SearchError> {
    // It would send whole pages otherwise.
    let contents = Contents { text: Text { max_characters: SEARCH_SNIPPET_CHARACTERS } };
    let body = Body { query: asked.query, num_results: asked.count, contents };
    let request = client.post(below(address, "/search")).header("x-api-key", key.header("")?);
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
    text: Option<String>,
}

pub(super) fn hits(body: &[u8]) -> Option<Vec<Hit>> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    Some(answer.results.into_iter().map(hit).collect())
}

fn hit(found: Found) -> Hit {
    Hit { title: found.title.unwrap_or_default(), url: found.url, snippet: found.text.unwrap_or_default() }
}
