//! Where the browser comes back to: a listener on this machine that takes one answer, the one to our question,
//! and shows a plain page. Any other is refused.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;
use url::form_urlencoded;

use super::OAuthError;
use super::tokens::said;
use crate::limits::{REDIRECT_BYTES, REDIRECT_CONNECTIONS, REDIRECT_STRAYS, REDIRECT_TIME};

const PATH: &str = "/callback";

#[derive(Debug)]
pub(super) struct RedirectListener {
    listener: TcpListener,
    port: u16,
}

/// What marks an answer as ours.
#[derive(Debug)]
pub(super) struct ExpectedAnswer<'a> {
    pub(super) state: &'a str,
    pub(super) issuer: &'a str,
    /// The authorization server has said that its answers name it.
    pub(super) names_issuer: NamesIssuer,
}

/// Whether answers say who they are from (RFC 9207).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamesIssuer {
    Always,
    Perhaps,
}

impl RedirectListener {
    /// `wanted`: registered somewhere; `None` where any free one will do.
    pub(super) async fn open(wanted: Option<u16>) -> Result<Self, OAuthError> {
        let failed = |error: std::io::Error| {
            let port = wanted.map(|port| format!(" {port}")).unwrap_or_default();
            OAuthError::Failed(format!(
                "the port{port} for the answer of the browser can't be opened: {error}"
            ))
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, wanted.unwrap_or(0)));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self { listener, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The redirect URI: where the authorization server sends the browser.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the answer; gives the code that it brings.
    pub(super) async fn code(self, expected: &ExpectedAnswer<'_>) -> Result<String, OAuthError> {
        let mut reading: JoinSet<Option<(TcpStream, String)>> = JoinSet::new();
        let mut strays = 0;
        loop {
            let (mut stream, request) = tokio::select! {
                accepted = self.listener.accept(), if reading.len() < REDIRECT_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        reading.spawn(read(stream));
                    }
                    continue;
                }
                // Connections that browsers open in advance say nothing for a while.
                Some(read) = reading.join_next() => match read {
                    Ok(Some(read)) => read,
                    Ok(None) | Err(_) => continue,
                },
            };
            match self.judge(&request, expected) {
                JudgedRequest::Answer(answer) => {
                    let page = if answer.is_ok() { &DONE } else { &NOT_DONE };
                    show(&mut stream, page).await;
                    return answer;
                }
                JudgedRequest::Stray(page) => {
                    show(&mut stream, page).await;
                    strays += 1;
                    if strays > REDIRECT_STRAYS {
                        let what = "too many answers came that were none to our question".to_owned();
                        return Err(OAuthError::Failed(what));
                    }
                }
            }
        }
    }

    fn judge(&self, request: &str, expected: &ExpectedAnswer<'_>) -> JudgedRequest {
        let mut lines = request.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some("GET"), Some(target)) = (words.next(), words.next()) else {
            return JudgedRequest::Stray(&NOT_FOUND);
        };
        // A page elsewhere whose name leads to this machine would come with that name.
        let host = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then_some(value.trim())
        });
        let own = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let is_own = host.is_some_and(|host| own.iter().any(|own| own == host));
        let Some((path, query)) = target.split_once('?').filter(|_| is_own) else {
            return JudgedRequest::Stray(&NOT_FOUND);
        };
        if path != PATH {
            return JudgedRequest::Stray(&NOT_FOUND);
        }
        let parameter = |name: &str| {
            let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(known, _)| known == name);
            values.next().map(|(_, value)| value.into_owned()).filter(|_| values.next().is_none())
        };
        if parameter("state").as_deref() != Some(expected.state) {
            return JudgedRequest::Stray(&NOT_OURS);
        }
        let from = parameter("iss");
        let is_named = form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "iss");
        let is_from = match &from {
            Some(issuer) => issuer == expected.issuer,
            None => !is_named && expected.names_issuer == NamesIssuer::Perhaps,
        };
        if !is_from {
            let other = from.unwrap_or_else(|| "it does not say whose it is".to_owned());
            let other: String = attache_core::legible::legible_line(&other).chars().take(200).collect();
            return JudgedRequest::Answer(Err(OAuthError::MixedUp(other)));
        }
        if let Some(error) = parameter("error") {
            let description = parameter("error_description");
            return JudgedRequest::Answer(Err(said(&error, description.as_deref(), &[expected.state])));
        }
        let missing = || OAuthError::Failed("the answer of the browser has no code".to_owned());
        JudgedRequest::Answer(parameter("code").filter(|code| !code.is_empty()).ok_or_else(missing))
    }
}

/// The address that begins a login, with our question.
pub(super) fn question(endpoint: &Url, parameters: &[(&str, &str)]) -> Url {
    let mut address = endpoint.clone();
    address.query_pairs_mut().extend_pairs(parameters);
    address
}

enum JudgedRequest {
    Answer(Result<String, OAuthError>),
    Stray(&'static BrowserPage),
}

/// The head of a request; `None` if it does not come in time or has no end.
async fn read(mut stream: TcpStream) -> Option<(TcpStream, String)> {
    let mut head = Vec::new();
    let reading = async {
        let mut piece = [0; 4096];
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut piece).await {
                Ok(count @ 1..) if head.len() + count <= REDIRECT_BYTES => {
                    head.extend_from_slice(&piece[..count]);
                }
                Ok(_) | Err(_) => return None,
            }
        }
        Some(())
    };
    tokio::time::timeout(REDIRECT_TIME, reading).await.ok()??;
    Some((stream, String::from_utf8(head).ok()?))
}

/// The page that the browser shows.
struct BrowserPage {
    status: &'static str,
    title: &'static str,
    text: &'static str,
}

const DONE: BrowserPage = BrowserPage {
    status: "200 OK",
    title: "Logged in",
    text: "The answer has arrived. You can close this page; the terminal says how it went.",
};

const NOT_DONE: BrowserPage = BrowserPage {
    status: "400 Bad Request",
    title: "Not logged in",
    text: "The login was not completed. The terminal says why.",
};

const NOT_OURS: BrowserPage = BrowserPage {
    status: "400 Bad Request",
    title: "Not expected",
    text: "This is not the answer to a login that was begun here. Begin it again from the terminal.",
};

const NOT_FOUND: BrowserPage =
    BrowserPage { status: "404 Not Found", title: "Not found", text: "There is nothing here." };

/// Without scripts, and nothing of the answer on it. The browser may have gone already.
async fn show(stream: &mut TcpStream, page: &BrowserPage) {
    let BrowserPage { status, title, text } = page;
    let body = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>attache: {title}</title>\
         <h1>{title}</h1><p>{text}</p></html>\n"
    );
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let showing = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    if tokio::time::timeout(REDIRECT_TIME, showing).await.is_err() {
        tracing::debug!("a browser does not take its page");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXPECTED: ExpectedAnswer<'static> =
        ExpectedAnswer { state: "right-state", issuer: "https://a.test", names_issuer: NamesIssuer::Perhaps };

    async fn asked(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    fn get(port: u16, target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")
    }

    /// What comes of one answer, after all strays were refused.
    async fn answered(strays: &[String], target: &str) -> Result<String, OAuthError> {
        let listener = RedirectListener::open(None).await.unwrap();
        let port = listener.port();
        let waiting = tokio::spawn(async move { listener.code(&EXPECTED).await });
        // One that says nothing holds up no other.
        let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        for stray in strays {
            let page = asked(port, &stray.replace("PORT", &port.to_string())).await;
            assert!(page.starts_with("HTTP/1.1 40") && !waiting.is_finished(), "{stray}: {page}");
        }
        let page = asked(port, &get(port, target)).await;
        assert!(!page.contains("script") && page.contains("default-src 'none'"), "{page}");
        waiting.await.unwrap()
    }

    #[tokio::test]
    async fn one_answer_counts_and_strays_do_not() {
        let strays = [
            "GET /callback?code=x&state=wrong HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
            "GET /callback?code=x HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
            "GET /callback?code=x&state=right-state&state=right-state HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
            "GET /callback?code=x&state=right-state HTTP/1.1\r\nHost: evil.test:PORT\r\n\r\n",
            "GET /callback?code=x&state=right-state HTTP/1.1\r\n\r\n",
            "POST /callback?code=x&state=right-state HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
            "GET /favicon.ico HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
        ];
        let strays = strays.map(str::to_owned);
        let code = answered(&strays, "/callback?code=c%2B1&state=right-state").await;
        assert_eq!(code.as_deref(), Ok("c+1"));
    }

    #[tokio::test]
    async fn an_answer_of_another_issuer_and_a_refusal_are_told() {
        let mixed = answered(&[], "/callback?code=x&state=right-state&iss=https%3A%2F%2Fevil.test").await;
        assert_eq!(mixed, Err(OAuthError::MixedUp("https://evil.test".to_owned())));
        let slash = answered(&[], "/callback?code=x&state=right-state&iss=https%3A%2F%2Fa.test%2F").await;
        assert!(matches!(slash, Err(OAuthError::MixedUp(_))), "letter by letter");
        let twice = "/callback?code=x&state=right-state&iss=https%3A%2F%2Fa.test&iss=https%3A%2F%2Fa.test";
        assert!(matches!(answered(&[], twice).await, Err(OAuthError::MixedUp(_))));
        let right = answered(&[], "/callback?code=x&state=right-state&iss=https%3A%2F%2Fa.test").await;
        assert_eq!(right.as_deref(), Ok("x"));
        let refused =
            answered(&[], "/callback?error=access_denied&error_description=no%0A&state=right-state");
        assert_eq!(
            refused.await.unwrap_err().to_string(),
            "the authorization server refused: access_denied: no"
        );
        assert!(answered(&[], "/callback?state=right-state").await.is_err());
    }

    #[tokio::test]
    async fn who_says_that_its_answers_name_it_has_to() {
        let listener = RedirectListener::open(None).await.unwrap();
        let expected = ExpectedAnswer { names_issuer: NamesIssuer::Always, ..EXPECTED };
        let request = get(listener.port(), "/callback?code=x&state=right-state");
        let judged = listener.judge(&request, &expected);
        assert!(matches!(judged, JudgedRequest::Answer(Err(OAuthError::MixedUp(_)))));
    }

    proptest! {
        #[test]
        fn no_other_request_is_taken_for_the_answer(request in "\\PC{0,300}", query in "[a-z=&%+0-9]{0,60}") {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let listener = runtime.block_on(RedirectListener::open(None)).unwrap();
            let built = get(listener.port(), &format!("/callback?{query}"));
            for request in [request, built] {
                let is_stray = matches!(listener.judge(&request, &EXPECTED), JudgedRequest::Stray(_));
                prop_assert!(is_stray);
            }
        }
    }
}
