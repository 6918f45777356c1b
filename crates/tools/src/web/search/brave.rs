//! Brave Search: its request and its answer.

use reqwest::{Client, RequestBuilder};
use serde::Deserialize;
use url::Url;

use super::{Asked, Hit, SearchError, SearchKey, below};

pub(super) fn request(
    client: &Client,
    address: &Url,
    key: &SearchKey,
    asked: &Asked<'_>,
) -> Result<RequestBuilder, SearchError> {
    let mut url = below(address, "/res/v1/web/search");
    url.query_pairs_mut().append_pair("q", asked.query).append_pair("count", &asked.count.to_string());
    Ok(client.get(url).header("x-subscription-token", key.header("")?))
}

#[derive(Deserialize)]
struct Answer {
    #[serde(rename = "type")]
    kind: Option<String>,
    web: Option<Web>,
}

#[derive(Deserialize)]
struct Web {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    title: Option<String>,
    url: String,
    description: Option<String>,
}

pub(super) fn hits(body: &[u8]) -> Option<Vec<Hit>> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    let results = match (answer.web, answer.kind.as_deref()) {
        (Some(web), _) => web.results,
        // A search without hits has no such part at all.
        (None, Some("search")) => Vec::new(),
        (None, _) => return None,
    };
    Some(results.into_iter().map(hit).collect())
}

fn hit(found: Found) -> Hit {
    Hit {
        title: plain(&found.title.unwrap_or_default()),
        url: found.url,
        snippet: plain(&found.description.unwrap_or_default()),
    }
}

/// It marks the words that were searched for and escapes the rest for a page.
fn plain(text: &str) -> String {
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#39;", "'")];
    let unmarked = text.replace("<strong>", "").replace("</strong>", "");
    let unescaped = escapes.iter().fold(unmarked, |text, (escape, plain)| text.replace(escape, plain));
    // Last, so that an escaped escape stays what it was.
    unescaped.replace("&amp;", "&")
}
