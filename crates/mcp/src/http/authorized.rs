//! Sends a request with the token of its server, and once more with another one when that is refused.

use std::sync::Arc;

use reqwest::header::AUTHORIZATION;
use reqwest::{RequestBuilder, Response, StatusCode};

use super::answers::unreachable;
use crate::oauth::{AccessProblem, Bearer, BearerChallenge, ServerAccess};

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unsent {
    /// The server wants a login, or rights, that are missing.
    NoAccess(String),
    Unreachable(String),
}

impl Unsent {
    pub(super) fn into_text(self) -> String {
        match self {
            Self::NoAccess(text) | Self::Unreachable(text) => text,
        }
    }
}

impl From<AccessProblem> for Unsent {
    fn from(problem: AccessProblem) -> Self {
        match problem {
            AccessProblem::NeedsLogin(text) | AccessProblem::NeedsMore(text) => Self::NoAccess(text),
            AccessProblem::Passing(text) => Self::Unreachable(text),
        }
    }
}

pub(super) async fn send(
    access: Option<&Arc<ServerAccess>>,
    request: impl Fn() -> RequestBuilder,
) -> Result<Response, Unsent> {
    let Some(access) = access else { return send_with(None, &request).await };
    let used = access.bearer().await?;
    let response = send_with(used.as_ref(), &request).await?;
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            let renewed = access.renewed(used).await?;
            let response = send_with(Some(&renewed), &request).await?;
            match response.status() {
                // Once: a token that is new and no good will not get better.
                StatusCode::UNAUTHORIZED => Err(access.refused().into()),
                _ => Ok(response),
            }
        }
        StatusCode::FORBIDDEN => {
            let challenge = BearerChallenge::of(response.headers()).filter(BearerChallenge::wants_more);
            let Some(challenge) = challenge else { return Ok(response) };
            let more = access.with_more(used.as_ref(), &challenge).await?;
            send_with(Some(&more), &request).await
        }
        _ => Ok(response),
    }
}

async fn send_with(
    bearer: Option<&Bearer>,
    request: &impl Fn() -> RequestBuilder,
) -> Result<Response, Unsent> {
    let mut request = request();
    if let Some(bearer) = bearer {
        let odd = || Unsent::NoAccess("its login can't be sent: it has odd characters".to_owned());
        request = request.header(AUTHORIZATION, bearer.header().ok_or_else(odd)?);
    }
    request.send().await.map_err(|error| Unsent::Unreachable(unreachable(&error)))
}
