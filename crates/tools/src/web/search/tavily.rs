//! The request to Tavily.

use reqwest::header::AUTHORIZATION;
use reqwest::{Client, RequestBuilder};
use serde::Serialize;
use url::Url;

use super::{SearchError, SearchKey, WebQuery, below};

#[derive(Serialize)]
struct TavilyRequest<'a> {
    query: &'a str,
    max_results: usize,
}

pub(super) fn request(
    client: &Client,
    address: &Url,
    key: &SearchKey,
    asked: &WebQuery<'_>,
) -> Result<RequestBuilder, SearchError> {
    let body = TavilyRequest { query: asked.query, max_results: asked.count };
    let request = client.post(below(address, "/search")).header(AUTHORIZATION, key.header("Bearer ")?);
    super::with_json(request, &body)
}
