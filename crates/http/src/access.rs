//! Who may come in: a request for one of the listener's own names, from no foreign page, with the token. In
//! this order, so that who has no token learns nothing else.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION,
    CONTENT_TYPE, HOST, ORIGIN, UPGRADE, VARY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use axum::middleware::{self, Next};
use axum::response::Response;

use crate::accepted::is_accepted;
use crate::logins::{LOGIN_PATH, PageLogins};
use crate::token::BearerToken;
use crate::tokens::{PAGE_NAME, Requester, TokenScope, TokenTable};

/// What every request is checked for. Clones share the check.
#[derive(Clone, Debug)]
pub struct AccessCheck(Arc<AccessRules>);

#[derive(Clone, Debug)]
pub struct AccessRules {
    pub tokens: TokenTable,
    /// `host:port` as clients may write it, in lower case.
    pub names: Vec<String>,
    /// Origins of pages that may come in beside the listener's own, such as `https://app.example`. Their
    /// browsers are told so (CORS).
    pub origins: Vec<String>,
    /// Paths that answer without the token.
    pub open_paths: &'static [&'static str],
    /// Beginnings of paths where a signature takes the place of the token: who serves them checks it.
    pub signed_paths: &'static [&'static str],
    pub query_token: QueryToken,
    /// Of the listener's own page, if it has one.
    pub logins: Option<PageLogins>,
}

/// Whether the token may stand in the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryToken {
    Never,
    /// As `token=`, where a browser can't set a header: on streams of events at these paths. `*` is a segment.
    OnEventStreams(&'static [&'static str]),
}

/// What a request is told that may not come in, and what to do. Names nothing that would be right: who asks
/// may be a page that guesses.
struct AccessWording {
    host: &'static str,
    origin: &'static str,
    token: &'static str,
}

/// Of a listener for programs of its own machine.
const OF_PROGRAMS: AccessWording = AccessWording {
    host: "`Host` is no name of this server: connect to the address that it printed when it started",
    origin: "pages may not come in: programs send no `Origin`",
    token: "the token is missing or wrong: send `Authorization: Bearer TOKEN`",
};

/// Of `attache serve`, which has a page and a configuration.
const OF_THE_SERVER: AccessWording = AccessWording {
    host: "`Host` is no name of this server: connect to the address that it printed when it started, or add this name to \
           `serve.hosts` in its configuration",
    origin: "pages of this `Origin` may not come in: add it to `serve.origins` in the server's configuration; programs send \
             none",
    token: "the token is missing or wrong: send `Authorization: Bearer TOKEN` (`attache serve --show-token` prints it), or \
            open the page with a link of `attache serve --open`",
};

/// Of a link that was followed before, or is too old.
const USED_LINK: &str = "this link does not work any more: each works once, within a minute. Have the server make another: \
     `attache serve --open`, or a POST to /login with the token";

/// Headers of ours that a page of another origin may send and see.
const SHOWN_HEADERS: &str = "acp-connection-id, acp-session-id, last-event-id, x-vercel-ai-ui-message-stream";
const SENT_HEADERS: &str = "authorization, content-type, acp-connection-id, acp-session-id, last-event-id";

impl AccessCheck {
    /// The token in its header and the listener's own names, nothing else.
    pub fn new(token: BearerToken, names: Vec<String>) -> Self {
        let rules = AccessRules {
            tokens: TokenTable::new(&token, []),
            names,
            origins: Vec::new(),
            open_paths: &[],
            signed_paths: &[],
            query_token: QueryToken::Never,
            logins: None,
        };
        Self::of(rules)
    }

    pub fn of(rules: AccessRules) -> Self {
        Self(Arc::new(rules))
    }

    /// Who it is that may come in; `None` where nobody has to say so. The error is the answer: a refusal, or
    /// the welcome of a link that was followed.
    fn admitted(&self, request: &Request) -> Result<Option<Requester>, Box<Response>> {
        let rules = &*self.0;
        // A page elsewhere whose name leads to this machine asks for its own name.
        if !rules.is_for_us(request) {
            return Err(Box::new(refusal(StatusCode::FORBIDDEN, rules.wording().host)));
        }
        if !request.headers().get_all(ORIGIN).iter().all(|origin| rules.is_own(origin) || rules.knows(origin))
        {
            return Err(Box::new(refusal(StatusCode::FORBIDDEN, rules.wording().origin)));
        }
        let path = request.uri().path();
        if rules.open_paths.contains(&path) || rules.signed_paths.iter().any(|below| path.starts_with(below))
        {
            return Ok(None);
        }
        if let Some(requester) = rules.requester(request) {
            return Ok(Some(requester.clone()));
        }
        if let Some(logins) = &rules.logins {
            if !request.headers().contains_key(AUTHORIZATION) && logins.admit(request) {
                let requester = Requester { name: PAGE_NAME.into(), scope: TokenScope::All };
                return Ok(Some(requester));
            }
            if let Some(welcome) = logins.follow(request) {
                return Err(Box::new(welcome));
            }
        }
        let mut response = refusal(
            StatusCode::UNAUTHORIZED,
            match request.uri().path() {
                LOGIN_PATH if rules.logins.is_some() && request.method() == Method::GET => USED_LINK,
                _ => rules.wording().token,
            },
        );
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        Err(Box::new(response))
    }

    /// The origin for the CORS headers of the answer.
    fn shared_with(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next().filter(|origin| self.0.knows(origin))?;
        origins.next().is_none().then(|| origin.clone())
    }
}

impl AccessRules {
    fn wording(&self) -> &'static AccessWording {
        match self.logins {
            Some(_) => &OF_THE_SERVER,
            None => &OF_PROGRAMS,
        }
    }

    /// Every name that the request goes by has to be one of ours. HTTP/2 has it in the address alone.
    fn is_for_us(&self, request: &Request) -> bool {
        let named = |name: &str| self.names.iter().any(|known| name.eq_ignore_ascii_case(known));
        let authority = request.uri().authority().map(|authority| authority.as_str());
        if !authority.is_none_or(named) {
            return false;
        }
        match only(request.headers(), &HOST) {
            Some(host) => named(host),
            None => {
                let absent = !request.headers().contains_key(HOST);
                absent && request.version() == Version::HTTP_2 && authority.is_some()
            }
        }
    }

    fn is_own(&self, origin: &HeaderValue) -> bool {
        let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        host.is_some_and(|host| self.names.iter().any(|known| host.eq_ignore_ascii_case(known)))
    }

    fn knows(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().unwrap_or_default();
        self.origins.iter().any(|known| origin.eq_ignore_ascii_case(known))
    }

    fn requester(&self, request: &Request) -> Option<&Requester> {
        let mut given = request.headers().get_all(AUTHORIZATION).iter();
        match (given.next(), given.next()) {
            (Some(header), None) => self.tokens.brought_by(header),
            (Some(_), Some(_)) => None,
            (None, _) => match self.query_token {
                QueryToken::Never => None,
                QueryToken::OnEventStreams(paths) => {
                    let path = request.uri().path();
                    let reads_events = request.method() == Method::GET
                        && paths.iter().any(|pattern| is_at(path, pattern))
                        && !request.headers().contains_key(UPGRADE)
                        && is_accepted(request.headers(), "text/event-stream");
                    let token = query_token(request).filter(|_| reads_events)?;
                    self.tokens.find(token.as_bytes())
                }
            },
        }
    }
}

/// Whether a path is of this pattern, segment by segment.
fn is_at(path: &str, pattern: &str) -> bool {
    let (mut given, mut wanted) = (path.split('/'), pattern.split('/'));
    loop {
        match (given.next(), wanted.next()) {
            (None, None) => return true,
            (Some(segment), Some("*")) if !segment.is_empty() => {}
            (Some(segment), Some(name)) if segment == name => {}
            (_, _) => return false,
        }
    }
}

/// The one `token=` of an address.
fn query_token(request: &Request) -> Option<&str> {
    let mut tokens = request.uri().query()?.split('&').filter_map(|pair| pair.strip_prefix("token="));
    let token = tokens.next()?;
    tokens.next().is_none().then_some(token)
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

async fn check_access(State(check): State<AccessCheck>, mut request: Request, next: Next) -> Response {
    let shared_with = check.shared_with(request.headers());
    let asks_first = shared_with.is_some()
        && request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match asks_first && check.0.is_for_us(&request) {
        // A preflight request, which browsers send without any token.
        true => preflight(),
        false => match check.admitted(&request) {
            Err(refused) => *refused,
            Ok(None) => next.run(request).await,
            Ok(Some(requester)) => {
                request.extensions_mut().insert(requester.clone());
                let mut response = next.run(request).await;
                response.extensions_mut().insert(requester);
                response
            }
        },
    };
    if let Some(origin) = shared_with {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(SHOWN_HEADERS));
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
    response
}

fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT_HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
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

    const FORBIDDEN: Option<StatusCode> = Some(StatusCode::FORBIDDEN);
    const WANTED: Option<StatusCode> = Some(StatusCode::UNAUTHORIZED);

    fn check() -> AccessCheck {
        AccessCheck::of(AccessRules {
            tokens: TokenTable::new(&BearerToken::parse(&"ab".repeat(32)).unwrap(), []),
            names: vec!["127.0.0.1:7".to_owned(), "localhost:7".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            open_paths: &["/healthz"],
            signed_paths: &["/hooks/"],
            query_token: QueryToken::OnEventStreams(&["/x", "/chat/*/stream"]),
            logins: None,
        })
    }

    fn request(version: Version, uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = uri.parse().unwrap();
        *request.version_mut() = version;
        for (name, value) in headers {
            request.headers_mut().append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        request
    }

    fn status(uri: &str, headers: &[(&str, &str)]) -> Option<StatusCode> {
        check().admitted(&request(Version::HTTP_11, uri, headers)).err().map(|response| response.status())
    }

    #[test]
    fn name_origin_and_token_have_to_be_right() {
        let token = format!("Bearer {}", "ab".repeat(32));
        let key = ("authorization", token.as_str());
        let here = ("host", "LocalHost:7");
        assert_eq!(status("/x", &[here, key]), None);
        assert_eq!(status("http://127.0.0.1:7/x", &[here, key, ("origin", "http://localhost:7")]), None);
        assert_eq!(status("/x", &[here, key, ("origin", "https://app.example")]), None);
        for (uri, headers, expected) in [
            ("/x", vec![key], FORBIDDEN),
            ("/x", vec![here, here, key], FORBIDDEN),
            ("/x", vec![("host", "127.0.0.1"), key], FORBIDDEN),
            ("/x", vec![("host", "evil.example:7"), key], FORBIDDEN),
            ("http://evil.example/x", vec![here, key], FORBIDDEN),
            ("http://localhost:7/x", vec![key], FORBIDDEN),
            ("/x", vec![here, key, ("origin", "null")], FORBIDDEN),
            ("/x", vec![here, key, ("origin", "https://localhost:7")], FORBIDDEN),
            ("/x", vec![here, key, ("origin", "http://evil.example")], FORBIDDEN),
            ("/x", vec![here, key, ("origin", "https://app.example.evil")], FORBIDDEN),
            ("/x", vec![here], WANTED),
            ("/x", vec![here, key, key], WANTED),
            ("/x", vec![here, ("authorization", "Bearer cd")], WANTED),
        ] {
            assert_eq!(status(uri, &headers), expected, "{uri} {headers:?}");
        }
    }

    #[test]
    fn in_http_2_the_address_names_the_host() {
        let token = format!("Bearer {}", "ab".repeat(32));
        let key = ("authorization", token.as_str());
        let asked = |uri: &str, headers: &[(&str, &str)]| {
            check().admitted(&request(Version::HTTP_2, uri, headers)).err().map(|response| response.status())
        };
        assert_eq!(asked("http://localhost:7/x", &[key]), None);
        assert_eq!(asked("http://localhost:7/x", &[key, ("host", "localhost:7")]), None);
        assert_eq!(asked("http://evil.example/x", &[key]), FORBIDDEN);
        assert_eq!(asked("http://localhost:7/x", &[key, ("host", "evil.example")]), FORBIDDEN);
        assert_eq!(asked("/x", &[key]), FORBIDDEN);
    }

    #[test]
    fn the_address_brings_the_token_on_event_streams_alone() {
        let here = ("host", "localhost:7");
        let events = ("accept", "text/event-stream");
        let with = |rest: &str| format!("/x?{rest}");
        let token = format!("token={}", "ab".repeat(32));
        assert_eq!(status(&with(&token), &[here, events]), None);
        assert_eq!(status(&with(&format!("a=b&{token}")), &[here, events]), None);
        assert_eq!(status(&format!("/chat/7/stream?{token}"), &[here, events]), None);
        for (uri, headers) in [
            (format!("/sessions?{token}"), vec![here, events]),
            (format!("/x/y?{token}"), vec![here, events]),
            (format!("/chat//stream?{token}"), vec![here, events]),
            (format!("/chat/7/stop?{token}"), vec![here, events]),
            (with(&token), vec![here, events, ("upgrade", "websocket")]),
            (with(&token), vec![here]),
            (with(&token), vec![here, ("accept", "application/json")]),
            (with(&format!("{token}&{token}")), vec![here, events]),
            (with(&format!("{token}0")), vec![here, events]),
            (with(&format!("x{token}")), vec![here, events]),
            (with(&token), vec![here, events, ("authorization", "Bearer cd")]),
        ] {
            assert_eq!(status(&uri, &headers), WANTED, "{uri} {headers:?}");
        }
        let mut posted = request(Version::HTTP_11, &with(&token), &[here, events]);
        *posted.method_mut() = Method::POST;
        assert_eq!(check().admitted(&posted).err().map(|response| response.status()), WANTED);
    }

    #[test]
    fn an_open_path_needs_no_token_but_the_right_host() {
        let here = ("host", "localhost:7");
        assert_eq!(status("/healthz", &[here]), None);
        assert_eq!(status("/healthz/x", &[here]), WANTED);
        assert_eq!(status("/hooks/x", &[here]), None);
        assert_eq!(status("/hooks", &[here]), WANTED);
        assert_eq!(status("/hooks/x", &[("host", "evil.example")]), FORBIDDEN);
        assert_eq!(status("/healthz", &[("host", "evil.example")]), FORBIDDEN);
        assert_eq!(status("/healthz", &[here, ("origin", "http://evil.example")]), FORBIDDEN);
    }
}
