//! The request to Brave Search, and its response.

use reqwest::{Client, RequestBuilder};
use serde_json::Value;
use url::Url;

use super::{SearchError, SearchHit, SearchKey, WebQuery, below, hit};

pub(super) fn request(
    client: &Client,
    address: &Url,
    key: &SearchKey,
    asked: &WebQuery<'_>,
) -> Result<RequestBuilder, SearchError> {
    let mut url = below(address, "/res/v1/web/search");
    url.query_pairs_mut().append_pair("q", asked.query).append_pair("count", &asked.count.to_string());
    Ok(client.get(url).header("x-subscription-token", key.header("")?))
}

pub(super) fn hits(answer: &Value) -> Option<Vec<SearchHit>> {
    let results = match (&answer["web"], answer["type"].as_str()) {
        // A response without hits lacks this part.
        (Value::Null, Some("search")) => return Some(Vec::new()),
        (web, _) => hit::hits(&web["results"], "description")?,
    };
    let unmarked =
        |hit: SearchHit| SearchHit { title: plain(&hit.title), url: hit.url, snippet: plain(&hit.snippet) };
    Some(results.into_iter().map(unmarked).collect())
}

/// The plain text: Brave marks the words of the query and escapes the rest as HTML.
fn plain(text: &str) -> String {
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#39;", "'")];
    let unmarked = text.replace("<strong>", "").replace("</strong>", "");
    let unescaped = escapes.iter().fold(unmarked, |text, (escape, plain)| text.replace(escape, plain));
    // Last, so that an escaped escape is not unescaped twice.
    unescaped.replace("&amp;", "&")
}
