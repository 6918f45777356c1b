//! Requests to authorization servers: each address judged and then dialled at exactly what was judged, every
//! answer bounded in size and time, no redirect to another place followed.

use std::net::{IpAddr, SocketAddr};

use attache_core::legible::legible_line;
use attache_core::ports::mcp::PrivateAddresses;
use attache_core::realm::{Realm, realm};
use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Method, StatusCode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::OAuthError;
use crate::http::{limited, unreachable};
use crate::limits::{HTTP_CONNECT, OAUTH_ANSWER, OAUTH_BYTES, OAUTH_REDIRECTS};

/// Which addresses a login may lead to: those that the server itself is among, and public ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedAddresses {
    Public,
    /// Of this machine and the network around it as well.
    Own,
    Anywhere,
}

/// Speaks to authorization servers for one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct OAuthWeb {
    allowed: AllowedAddresses,
}

#[derive(Debug)]
pub(super) struct OAuthAnswer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

impl OAuthAnswer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// The parts of a request beside its address.
#[derive(Debug, Default)]
pub(super) struct OAuthBody {
    pub(super) kind: Option<&'static str>,
    pub(super) text: String,
    pub(super) authorization: Option<HeaderValue>,
}

impl OAuthWeb {
    /// For the server at this address, which the user has chosen: what it leads to was not chosen.
    pub(super) async fn of(server: &Url, private: PrivateAddresses) -> Result<Self, OAuthError> {
        if private == PrivateAddresses::Allowed {
            return Ok(Self { allowed: AllowedAddresses::Anywhere });
        }
        let kind = |address: &IpAddr| match realm(*address) {
            Realm::Public => AllowedAddresses::Public,
            Realm::Own(_) => AllowedAddresses::Own,
            Realm::Closed(_) => AllowedAddresses::Anywhere,
        };
        let kinds: Vec<AllowedAddresses> = addresses(server).await?.iter().map(kind).collect();
        // A name with addresses of several kinds counts as public, which is the strictest.
        let all = |wanted: AllowedAddresses| kinds.iter().all(|kind| *kind == wanted).then_some(wanted);
        Ok(Self {
            allowed: all(AllowedAddresses::Own)
                .or_else(|| all(AllowedAddresses::Anywhere))
                .unwrap_or(AllowedAddresses::Public),
        })
    }

    /// Whether an address that a server named may be used at all, by us or by a browser. The addresses it has.
    pub(super) async fn judge(self, url: &Url) -> Result<Vec<IpAddr>, OAuthError> {
        let refused = |reason: String| Err(OAuthError::Refused { place: place(url), reason });
        if !matches!(url.scheme(), "http" | "https") {
            return refused("only http and https are".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("its address has a user name".to_owned());
        }
        let found = addresses(url).await?;
        for address in &found {
            let is_allowed = match (realm(*address), self.allowed) {
                (Realm::Public, _)
                | (_, AllowedAddresses::Anywhere)
                | (Realm::Own(_), AllowedAddresses::Own) => Ok(()),
                (
                    Realm::Own(reason) | Realm::Closed(reason),
                    AllowedAddresses::Public | AllowedAddresses::Own,
                ) => Err(reason),
            };
            if let Err(reason) = is_allowed {
                return refused(format!(
                    "its address {address} is {reason}, not of the public internet, and the server is elsewhere; \
                     allow_private = true in [mcp.NAME.oauth] allows it"
                ));
            }
            if url.scheme() == "http" && realm(*address) == Realm::Public {
                return refused("what is said there could be read on the way; it must be https".to_owned());
            }
        }
        Ok(found)
    }

    /// A document, `None` where there is none.
    pub(super) async fn document<T: DeserializeOwned>(self, url: &Url) -> Result<Option<T>, OAuthError> {
        let mut url = url.clone();
        for _ in 0..=OAUTH_REDIRECTS {
            let (answer, headers) = self.ask(Method::GET, &url, OAuthBody::default()).await?;
            if !answer.status.is_redirection() {
                // Pages for people are answers, too, to servers that know no such document.
                return Ok(Some(answer).filter(|answer| answer.status.is_success()).and_then(|a| a.json()));
            }
            let next = headers.get(LOCATION).and_then(|next| next.to_str().ok());
            match next.and_then(|next| url.join(next).ok()).filter(|next| next.origin() == url.origin()) {
                Some(next) => url = next,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    pub(super) async fn post(self, url: &Url, body: OAuthBody) -> Result<OAuthAnswer, OAuthError> {
        Ok(self.ask(Method::POST, url, body).await?.0)
    }

    async fn ask(
        self,
        method: Method,
        url: &Url,
        body: OAuthBody,
    ) -> Result<(OAuthAnswer, HeaderMap), OAuthError> {
        let failed = |reason: String| OAuthError::Unreachable { place: place(url), reason };
        let asking = async {
            let found = self.judge(url).await?;
            let client = client(url, &found).map_err(|error| failed(unreachable(&error)))?;
            let OAuthBody { kind, text, authorization } = body;
            let mut request = client.request(method, url.clone()).header(ACCEPT, "application/json");
            if let Some(kind) = kind {
                request = request.header(CONTENT_TYPE, kind).body(text);
            }
            if let Some(authorization) = authorization {
                request = request.header(AUTHORIZATION, authorization);
            }
            let response = request.send().await.map_err(|error| failed(unreachable(&error)))?;
            let (status, headers) = (response.status(), response.headers().clone());
            let body = limited(response, OAUTH_BYTES).await;
            let body = body.map_err(|problem| OAuthError::BadAnswer { place: place(url), problem })?;
            Ok((OAuthAnswer { status, body }, headers))
        };
        let late = || failed(format!("it did not answer within {} s", OAUTH_ANSWER.as_secs()));
        tokio::time::timeout(OAUTH_ANSWER, asking).await.map_err(|_| late())?
    }
}

/// An address in a document, checked to be one.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct EndpointUrl(Url);

impl EndpointUrl {
    pub(super) fn url(&self) -> &Url {
        &self.0
    }
}

impl TryFrom<String> for EndpointUrl {
    type Error = url::ParseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Url::parse(&text).map(Self)
    }
}

impl From<EndpointUrl> for String {
    fn from(endpoint: EndpointUrl) -> Self {
        endpoint.0.into()
    }
}

/// Scheme and host, for people.
pub(super) fn place(url: &Url) -> String {
    legible_line(&url.origin().ascii_serialization())
}

async fn addresses(url: &Url) -> Result<Vec<IpAddr>, OAuthError> {
    let failed = |reason: String| OAuthError::Unreachable { place: place(url), reason };
    let found = match url.host() {
        Some(Host::Ipv4(address)) => vec![address.into()],
        Some(Host::Ipv6(address)) => vec![address.into()],
        Some(Host::Domain(name)) => {
            let looking = tokio::time::timeout(OAUTH_ANSWER, tokio::net::lookup_host((name, 0))).await;
            let found = looking.map_err(|_| failed("its name is not resolved in time".to_owned()))?;
            let found = found.map_err(|error| failed(format!("its name can't be resolved: {error}")))?;
            found.map(|address| address.ip()).collect()
        }
        None => Vec::new(),
    };
    match found.is_empty() {
        true => Err(failed("it has no address".to_owned())),
        false => Ok(found),
    }
}

/// A client of its own for each request: it knows this host at these addresses and asks no name server.
fn client(url: &Url, addresses: &[IpAddr]) -> Result<Client, reqwest::Error> {
    // A host that embeds us may have chosen a provider already; then that one is used.
    drop(rustls::crypto::ring::default_provider().install_default());
    let pinned: Vec<SocketAddr> = addresses.iter().map(|address| SocketAddr::new(*address, 0)).collect();
    let builder = Client::builder()
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(HTTP_CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .resolve_to_addrs(url.host_str().unwrap_or_default(), &pinned);
    let is_public = addresses.iter().all(|address| realm(*address) == Realm::Public);
    let builder = if is_public { builder } else { builder.no_proxy() };
    match url.scheme() {
        // Reading the machine's certificates takes longer than everything else.
        "http" => builder.tls_certs_only([]).build(),
        _ => builder.build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    async fn judged(server: &str, private: PrivateAddresses, other: &str) -> Result<(), String> {
        let web = OAuthWeb::of(&url(server), private).await.unwrap();
        web.judge(&url(other)).await.map(drop).map_err(|error| error.to_string())
    }

    const PUBLIC: &str = "https://93.184.216.34/mcp";

    #[tokio::test]
    async fn a_public_server_leads_to_no_private_address() {
        for other in [
            "https://127.0.0.1/x",
            "https://10.0.0.1/x",
            "https://192.168.1.1/x",
            "https://169.254.169.254/latest",
            "https://[::1]/x",
            "https://[::ffff:10.0.0.1]/x",
            "https://[fe80::1]/x",
            "https://0x7f000001/x",
            "https://localhost/x",
        ] {
            let error = judged(PUBLIC, PrivateAddresses::Refused, other).await.unwrap_err();
            assert!(error.contains("not of the public internet"), "{other}: {error}");
            assert_eq!(judged(PUBLIC, PrivateAddresses::Allowed, other).await, Ok(()), "{other}");
        }
        assert_eq!(judged(PUBLIC, PrivateAddresses::Refused, "https://1.1.1.1/x").await, Ok(()));
    }

    #[tokio::test]
    async fn a_server_of_this_network_leads_into_it_and_to_no_keys_of_a_cloud() {
        for server in ["http://127.0.0.1:1/mcp", "http://192.168.1.5/mcp"] {
            assert_eq!(judged(server, PrivateAddresses::Refused, "http://10.0.0.1:2/x").await, Ok(()));
            let error =
                judged(server, PrivateAddresses::Refused, "http://169.254.169.254/x").await.unwrap_err();
            assert!(error.contains("link-local"), "{error}");
        }
    }

    #[tokio::test]
    async fn what_could_be_read_on_the_way_or_is_no_page_is_refused() {
        for (other, reason) in [
            ("http://1.1.1.1/x", "must be https"),
            ("file:///etc/passwd", "only http and https"),
            ("javascript:alert(1)", "only http and https"),
            ("https://you@1.1.1.1/x", "user name"),
        ] {
            for private in [PrivateAddresses::Refused, PrivateAddresses::Allowed] {
                let error = judged(PUBLIC, private, other).await.unwrap_err();
                assert!(error.contains(reason), "{other}: {error}");
            }
        }
    }
}
