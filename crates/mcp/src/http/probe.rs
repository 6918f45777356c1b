//! Asks a server without a token what it wants of who comes.

use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::json;
use url::Url;

use super::answers::unreachable;
use super::outgoing::{client, header_map};
use crate::limits::OAUTH_ANSWER;
use crate::oauth::BearerChallenge;

/// How a server is asked: as by its first message, or for its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeWay {
    Post,
    Get,
}

/// The challenge of its refusal; `None` if it does not refuse, or gives none.
pub(crate) async fn challenge(
    url: &Url,
    headers: &[(String, String)],
    way: ProbeWay,
) -> Result<Option<BearerChallenge>, String> {
    let client = client(url)?;
    let accepted = "application/json, text/event-stream";
    let request = match way {
        ProbeWay::Get => client.get(url.clone()),
        ProbeWay::Post => {
            let params = json!({
                "protocolVersion": crate::client::REVISION,
                "capabilities": {},
                "clientInfo": { "name": "attache", "version": env!("CARGO_PKG_VERSION") },
            });
            let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
            client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(hello.to_string())
        }
    };
    let request = request.headers(header_map(headers)?).header(ACCEPT, accepted);
    let asked = tokio::time::timeout(OAUTH_ANSWER, request.send()).await;
    let late = || format!("it did not answer within {} s", OAUTH_ANSWER.as_secs());
    let response = asked.map_err(|_| late())?.map_err(|error| unreachable(&error))?;
    Ok(match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => BearerChallenge::of(response.headers()),
        _ => None,
    })
}
