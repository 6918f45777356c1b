//! Who may come in: a request for one of the listener's own names, from no foreign page, with the token. In
//! this order, so that who has no token learns nothing else.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::Response;

use crate::token::BearerToken;

/// What every request is held to. A copy is the same check.
#[derive(Clone, Debug)]
pub struct AccessCheck(Arc<AccessRules>);

#[derive(Debug)]
struct AccessRules {
    token: BearerToken,
    /// `host:port` as clients may write it, in lower case.
    names: Vec<String>,
}

impl AccessCheck {
    pub fn new(token: BearerToken, names: Vec<String>) -> Self {
        Self(Arc::new(AccessRules { token, names }))
    }

    /// `None`: it may come in.
    fn refused(&self, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
        let named = |name: &str| self.0.names.iter().any(|known| name.eq_ignore_ascii_case(known));
        // A page elsewhere whose name leads to this machine asks for its own name.
        let host = only(headers, &HOST);
        let in_uri = uri.authority().is_none_or(|authority| named(authority.as_str()));
        if !in_uri || !host.is_some_and(named) {
            return Some(refusal(StatusCode::FORBIDDEN, "this is not the host that was asked for"));
        }
        let origin = headers.get_all(ORIGIN).iter().all(|origin| {
            origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")).is_some_and(named)
        });
        if !origin {
            return Some(refusal(StatusCode::FORBIDDEN, "pages of other origins may not come in"));
        }
        let mut given = headers.get_all(AUTHORIZATION).iter();
        match (given.next(), given.next()) {
            (Some(header), None) if self.0.token.is_brought_by(header) => None,
            (None | Some(_), _) => {
                let mut response = refusal(
                    StatusCode::UNAUTHORIZED,
                    "the token is missing or wrong: send `Authorization: Bearer TOKEN`",
                );
                response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                Some(response)
            }
        }
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Routes that only those reach who may come in; so are the paths that lead nowhere.
pub fn behind(check: AccessCheck, routes: Router) -> Router {
    routes.layer(middleware::from_fn_with_state(check, check_access))
}

async fn check_access(State(check): State<AccessCheck>, request: Request, next: Next) -> Response {
    match check.refused(request.uri(), request.headers()) {
        Some(refused) => refused,
        None => next.run(request).await,
    }
}

/// An answer that is only a reason.
pub fn refusal(status: StatusCode, reason: &str) -> Response {
    let mut response = Response::new(Body::from(format!("{reason}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(uri: &str, headers: &[(&str, &str)]) -> Option<StatusCode> {
        let token = BearerToken::parse(&"ab".repeat(32)).unwrap();
        let check = AccessCheck::new(token, vec!["127.0.0.1:7".to_owned(), "localhost:7".to_owned()]);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        check.refused(&uri.parse().unwrap(), &map).map(|response| response.status())
    }

    #[test]
    fn name_origin_and_token_have_to_be_right() {
        let token = format!("Bearer {}", "ab".repeat(32));
        let key = ("authorization", token.as_str());
        let here = ("host", "LocalHost:7");
        let (forbidden, wanted) = (Some(StatusCode::FORBIDDEN), Some(StatusCode::UNAUTHORIZED));
        assert_eq!(status("/x", &[here, key]), None);
        assert_eq!(status("http://127.0.0.1:7/x", &[here, key, ("origin", "http://localhost:7")]), None);
        for (uri, headers, expected) in [
            ("/x", vec![key], forbidden),
            ("/x", vec![here, here, key], forbidden),
            ("/x", vec![("host", "127.0.0.1"), key], forbidden),
            ("/x", vec![("host", "evil.example:7"), key], forbidden),
            ("http://evil.example/x", vec![here, key], forbidden),
            ("/x", vec![here, key, ("origin", "null")], forbidden),
            ("/x", vec![here, key, ("origin", "https://localhost:7")], forbidden),
            ("/x", vec![here, key, ("origin", "http://evil.example")], forbidden),
            ("/x", vec![here], wanted),
            ("/x", vec![here, key, key], wanted),
            ("/x", vec![here, ("authorization", "Bearer cd")], wanted),
        ] {
            assert_eq!(status(uri, &headers), expected, "{uri} {headers:?}");
        }
    }
}
