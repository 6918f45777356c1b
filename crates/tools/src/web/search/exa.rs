//! The request to Exa.

use reqwest::{Client, RequestBuilder};
use serde::Serialize;
use url::Url;

use super::{SearchError, SearchKey, WebQuery, below};
use crate::limits::SEARCH_SNIPPET_CHARACTERS;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExaRequest<'a> {
    query: &'a str,
    num_results: usize,
    contents: ExaContents,
}

#[derive(Serialize)]
struct ExaContents {
    text: ExaText,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExaText {
    max_characters: usize,
}

pub(super) fn request(
    client: &Client,
    address: &Url,
    key: &SearchKey,
    asked: &WebQuery<'_>,
) -> Result<RequestBuilder, SearchError> {
    // Without this it would send whole pages.
    let contents = ExaContents { text: ExaText { max_characters: SEARCH_SNIPPET_CHARACTERS } };
    let body = ExaRequest { query: asked.query, num_results: asked.count, contents };
    let request = client.post(below(address, "/search")).header("x-api-key", key.header("")?);
    super::with_json(request, &body)
}
