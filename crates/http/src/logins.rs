//! Logins of a page: a link that works once becomes a cookie and a key that work for hours. Browsers send the
//! cookie to every port of the host; the key is the page's own, which no other origin can read. Both are kept
//! in memory alone: a server that starts anew knows none.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, ORIGIN, SET_COOKIE, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::limits::{COOKIE_TIME, COOKIES, LINK_TIME, LINKS, LOGIN_BYTES};
use crate::token::random_name;

/// Where links lead.
pub const LOGIN_PATH: &str = "/login";

/// The header in which the page brings its key; a WebSocket, for which browsers set none, brings it as `page=`
/// in its address.
const PAGE_KEY: HeaderName = HeaderName::from_static("x-attache-page");
const PAGE_KEY_PARAMETER: &str = "page=";

/// What a link or a cookie of one listener is checked against. A copy is the same.
#[derive(Clone, Debug)]
pub struct PageLogins(Arc<LoginTable>);

#[derive(Debug)]
struct LoginTable {
    /// Of the cookie. Browsers know no ports: servers beside each other need names of their own.
    name: String,
    /// Beginnings of paths that hold nothing of anybody, such as the page's scripts: the cookie is enough
    /// there, and at `/`.
    static_paths: &'static [&'static str],
    /// Why a lock: requests are served side by side. Held for look-ups only.
    known: Mutex<KnownLogins>,
}

#[derive(Default)]
struct KnownLogins {
    links: Vec<TimedSecret>,
    cookies: Vec<TimedSecret>,
}

/// The cookie that goes with a key: who sees the cookie does not know the key.
fn cookie_of(key: &str) -> String {
    Sha256::digest(format!("cookie of {key}")).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl std::fmt::Debug for KnownLogins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KnownLogins({} links, {} cookies)", self.links.len(), self.cookies.len())
    }
}

struct TimedSecret {
    digits: String,
    until: Instant,
}

impl PageLogins {
    /// `mark` tells the servers of one host apart, such as its port. Below `static_paths` is nothing of
    /// anybody.
    pub fn new(mark: &str, static_paths: &'static [&'static str]) -> Self {
        let name = format!("attache_login_{mark}");
        Self(Arc::new(LoginTable { name, static_paths, known: Mutex::default() }))
    }

    fn known(&self) -> MutexGuard<'_, KnownLogins> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The path of a link that works once, for a minute.
    pub fn new_link(&self) -> io::Result<String> {
        let key = random_name(LOGIN_BYTES)?;
        keep(&mut self.known().links, key.clone(), LINK_TIME, LINKS);
        Ok(format!("{LOGIN_PATH}?key={key}"))
    }

    /// The answer to a link that is followed for the first time; `None`: this is no such request.
    pub(crate) fn follow(&self, request: &Request) -> Option<Response> {
        if request.uri().path() != LOGIN_PATH || request.method() != Method::GET {
            return None;
        }
        let key = request.uri().query()?.strip_prefix("key=")?;
        let mut known = self.known();
        drop_old(&mut known.links);
        let place = place_of(&known.links, key)?;
        known.links.swap_remove(place);
        let page_key = match random_name(LOGIN_BYTES) {
            Ok(key) => key,
            Err(error) => {
                tracing::error!(%error, "no name for a login");
                return None;
            }
        };
        let cookie = cookie_of(&page_key);
        keep(&mut known.cookies, cookie.clone(), COOKIE_TIME, COOKIES);
        drop(known);
        welcome(&self.0.name, &cookie, &page_key)
    }

    /// Whether the request comes from a page of ours whose user has logged in.
    pub(crate) fn admit(&self, request: &Request) -> bool {
        if !is_from_own_page(request) {
            return false;
        }
        let wanted = match self.is_static(request) {
            true => None,
            false => match key_of(request) {
                Some(key) => Some(cookie_of(key)),
                None => return false,
            },
        };
        let goes_with_key = |given: &str| match &wanted {
            Some(wanted) => bool::from(wanted.as_bytes().ct_eq(given.as_bytes())),
            None => true,
        };
        self.cookies_of(request.headers()).any(|given| goes_with_key(given) && self.is_known(given))
    }

    fn is_static(&self, request: &Request) -> bool {
        let path = request.uri().path();
        let is_below = |beginning: &&str| path.starts_with(*beginning);
        request.method() == Method::GET && (path == "/" || self.0.static_paths.iter().any(is_below))
    }

    fn cookies_of<'a>(&'a self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(name, _)| *name == self.0.name).map(|(_, value)| value)
    }

    fn is_known(&self, given: &str) -> bool {
        let mut known = self.known();
        drop_old(&mut known.cookies);
        place_of(&known.cookies, given).is_some()
    }
}

/// Where it is among them. Looks at all of them, each in a time that says nothing about where two differ.
fn place_of(secrets: &[TimedSecret], given: &str) -> Option<usize> {
    let mut found = None;
    for (place, secret) in secrets.iter().enumerate() {
        if bool::from(secret.digits.as_bytes().ct_eq(given.as_bytes())) {
            found = Some(place);
        }
    }
    found
}

/// The oldest makes room.
fn keep(secrets: &mut Vec<TimedSecret>, digits: String, time: Duration, most: usize) {
    drop_old(secrets);
    while secrets.len() >= most {
        secrets.remove(0);
    }
    secrets.push(TimedSecret { digits, until: Instant::now() + time });
}

fn drop_old(secrets: &mut Vec<TimedSecret>) {
    let now = Instant::now();
    secrets.retain(|secret| secret.until > now);
}

/// The key that a request brings, once.
fn key_of(request: &Request) -> Option<&str> {
    let headers = request.headers();
    if headers.contains_key(UPGRADE) {
        let pairs = request.uri().query()?.split('&');
        let mut keys = pairs.filter_map(|pair| pair.strip_prefix(PAGE_KEY_PARAMETER));
        let key = keys.next()?;
        return keys.next().is_none().then_some(key);
    }
    let mut keys = headers.get_all(PAGE_KEY).iter();
    let key = keys.next()?.to_str().ok()?;
    keys.next().is_none().then_some(key)
}

/// A cookie goes with every request to this host, whatever page made it. Browsers say who did: what changes
/// something has to bring its origin (which is checked before), and nobody else's page may ask for anything.
fn is_from_own_page(request: &Request) -> bool {
    let headers = request.headers();
    let only_reads =
        matches!(*request.method(), Method::GET | Method::HEAD) && !headers.contains_key(UPGRADE);
    let site = headers.get(HeaderName::from_static("sec-fetch-site")).map(HeaderValue::as_bytes);
    let is_own = matches!(site, None | Some(b"same-origin" | b"none"));
    is_own && (only_reads || headers.contains_key(ORIGIN))
}

/// A page of its own and no redirect: what follows then comes from this host, wherever the link was clicked,
/// and brings the cookie. What is behind `#` goes to no server: the page takes its key from there.
const WELCOME: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
     <meta http-equiv=\"refresh\" content=\"0; url=/#login=KEY\">\n<title>attache</title>\n</head>\n\
     <body>\n<p>You are logged in. <a href=\"/#login=KEY\">Go on</a></p>\n</body>\n</html>\n";

fn welcome(name: &str, cookie: &str, page_key: &str) -> Option<Response> {
    let seconds = COOKIE_TIME.as_secs();
    let cookie = format!("{name}={cookie}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict");
    let mut response = Response::new(WELCOME.replace("KEY", page_key).into());
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, HeaderValue::from_str(&cookie).ok()?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer"));
    Some(response)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    fn request(method: Method, uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().unwrap();
        for (name, value) in headers {
            request.headers_mut().append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        request
    }

    /// The cookie and the key.
    fn logged_in(logins: &PageLogins) -> (String, String) {
        let link = logins.new_link().unwrap();
        let answer = logins.follow(&request(Method::GET, &link, &[])).unwrap();
        let cookie = answer.headers()[SET_COOKIE].to_str().unwrap().to_owned();
        assert!(cookie.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let body = answer.into_body().collect().now_or_never().unwrap().unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        let key = body.split("#login=").nth(1).unwrap().split('"').next().unwrap().to_owned();
        assert!(!cookie.contains(&key) && key.len() == 2 * LOGIN_BYTES, "{cookie} {key}");
        (cookie, key)
    }

    #[test]
    fn a_link_works_once() {
        let logins = PageLogins::new("7", &["/assets/"]);
        let link = logins.new_link().unwrap();
        assert!(logins.follow(&request(Method::POST, &link, &[])).is_none());
        assert!(logins.follow(&request(Method::GET, &format!("{link}0"), &[])).is_none());
        assert!(logins.follow(&request(Method::GET, "/login", &[])).is_none());
        assert!(logins.follow(&request(Method::GET, "/login?key=", &[])).is_none());
        assert!(logins.follow(&request(Method::GET, &link, &[])).is_some());
        assert!(logins.follow(&request(Method::GET, &link, &[])).is_none());
        assert!(!format!("{logins:?}").contains(&link[11..]));
    }

    #[test]
    fn old_links_and_cookies_are_forgotten() {
        let logins = PageLogins::new("7", &["/assets/"]);
        let link = logins.new_link().unwrap();
        let (cookie, _) = logged_in(&logins);
        let past = Instant::now();
        let mut known = logins.known();
        let KnownLogins { links, cookies } = &mut *known;
        links.iter_mut().chain(cookies).for_each(|secret| secret.until = past);
        drop(known);
        assert!(logins.follow(&request(Method::GET, &link, &[])).is_none());
        assert!(!logins.admit(&request(Method::GET, "/", &[("cookie", &cookie)])));
        let (first, _) = logged_in(&logins);
        (0..COOKIES).for_each(|_| drop(logged_in(&logins)));
        assert!(!logins.admit(&request(Method::GET, "/", &[("cookie", &first)])));
    }

    #[test]
    fn a_cookie_is_good_for_our_own_page_alone() {
        let logins = PageLogins::new("7", &["/assets/"]);
        let (cookie, key) = logged_in(&logins);
        let with = |method: Method, headers: &[(&str, &str)]| {
            let mut all = vec![("cookie", cookie.as_str()), ("x-attache-page", key.as_str())];
            all.extend_from_slice(headers);
            let is_socket = headers.iter().any(|(name, _)| *name == "upgrade");
            let uri = if is_socket { format!("/acp?page={key}") } else { "/acp".to_owned() };
            logins.admit(&request(method, &uri, &all))
        };
        assert!(with(Method::GET, &[]));
        assert!(with(Method::GET, &[("sec-fetch-site", "none")]));
        assert!(with(Method::POST, &[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:7")]));
        assert!(!with(Method::POST, &[]));
        assert!(!with(Method::GET, &[("upgrade", "websocket")]));
        assert!(with(Method::GET, &[("upgrade", "websocket"), ("origin", "http://localhost:7")]));
        for site in ["same-site", "cross-site", "x"] {
            assert!(!with(Method::GET, &[("sec-fetch-site", site)]), "{site}");
        }
        let many = format!("a=b; {cookie}; c=d");
        assert!(logins.admit(&request(Method::GET, "/", &[("cookie", &many)])));
        for wrong in [String::new(), format!("{cookie}0"), cookie.replace("_7=", "_8=")] {
            assert!(!logins.admit(&request(Method::GET, "/", &[("cookie", &wrong)])), "{wrong}");
        }
    }

    /// Whoever else gets the cookie, such as a server at another port of this host, has nothing of it.
    #[test]
    fn the_cookie_alone_opens_nothing_but_the_files_of_the_page() {
        let logins = PageLogins::new("7", &["/assets/"]);
        let ((cookie, key), (_, another)) = (logged_in(&logins), logged_in(&logins));
        let is_admitted = |method: Method, uri: &str, headers: &[(&str, &str)]| {
            let mut all = vec![("cookie", cookie.as_str()), ("origin", "http://localhost:7")];
            all.extend_from_slice(headers);
            logins.admit(&request(method, uri, &all))
        };
        let socket = ("upgrade", "websocket");
        assert!(is_admitted(Method::GET, "/", &[]) && is_admitted(Method::GET, "/assets/1/main.js", &[]));
        assert!(is_admitted(Method::GET, "/api/sessions", &[("x-attache-page", &key)]));
        assert!(is_admitted(Method::GET, &format!("/acp?page={key}"), &[socket]));
        let (known, wrong) = (("x-attache-page", key.as_str()), ("x-attache-page", another.as_str()));
        for (method, uri, headers) in [
            (Method::GET, "/api/sessions".to_owned(), vec![]),
            (Method::GET, "/api/sessions".to_owned(), vec![wrong]),
            (Method::GET, "/api/sessions".to_owned(), vec![known, known]),
            (Method::GET, format!("/api/sessions?page={key}"), vec![]),
            (Method::POST, "/".to_owned(), vec![]),
            (Method::POST, "/assets/1/main.js".to_owned(), vec![]),
            (Method::GET, "/acp".to_owned(), vec![socket]),
            (Method::GET, "/acp".to_owned(), vec![socket, known]),
            (Method::GET, format!("/acp?page={another}"), vec![socket]),
            (Method::GET, format!("/acp?page={key}&page={key}"), vec![socket]),
        ] {
            assert!(!is_admitted(method, &uri, &headers), "{uri} {headers:?}");
        }
    }
}
