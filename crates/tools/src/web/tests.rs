//! Addresses, hops and pages, tested against our own server in place of the public internet.

use std::io;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use attache_core::ports::BoxFuture;
use attache_core::ports::tool::NetworkGrant;
use attache_testkit::http_server::{Answer, HttpServer};
use url::Url;

use super::{Got, HostResolver, get, readable};

const PUBLIC: &str = "93.184.216.34";

/// An address of the user's own network.
const OWN: &str = "10.0.0.7";

/// Returns these answers in order, repeating the last; all addresses lead to our server, and no other is
/// contacted.
#[derive(Debug)]
struct Fake(Mutex<Vec<Vec<IpAddr>>>);

impl Fake {
    fn new(answers: &[&[&str]]) -> Self {
        let parsed = |list: &&[&str]| list.iter().map(|address| address.parse().unwrap()).collect();
        Self(Mutex::new(answers.iter().rev().map(parsed).collect()))
    }
}

impl HostResolver for Fake {
    fn lookup(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut left = self.0.lock().unwrap();
        let answer = if left.len() > 1 { left.pop().unwrap() } else { left[0].clone() };
        Box::pin(async move { Ok(answer) })
    }

    fn dial(&self, address: IpAddr) -> IpAddr {
        let known = [PUBLIC, OWN, "127.0.0.1", "::1"];
        assert!(known.contains(&address.to_string().as_str()), "dialled what was not allowed: {address}");
        "127.0.0.1".parse().unwrap()
    }
}

async fn fetch(names: &Fake, url: &str) -> Result<Got, String> {
    fetch_with(names, url, NetworkGrant::Granted).await
}

/// As if the user had permitted the host of this address.
async fn fetch_granted(names: &Fake, url: &str) -> Result<Got, String> {
    fetch_with(names, url, NetworkGrant::GrantedByName).await
}

async fn fetch_with(names: &Fake, url: &str, grant: NetworkGrant) -> Result<Got, String> {
    get(names, Url::parse(url).unwrap(), grant).await.map_err(|error| error.to_string())
}

fn to(place: &str) -> Answer {
    Answer::new(302, "text/plain", "").with_header("location", place)
}

#[tokio::test]
async fn a_public_page_comes_with_the_host_it_was_asked_for() {
    let server = HttpServer::in_order([Answer::new(200, "text/plain", "hello")]).await;
    let got =
        fetch(&Fake::new(&[&[PUBLIC]]), &format!("http://site.test:{}/x", server.port())).await.unwrap();
    assert_eq!((got.body.as_slice(), got.is_cut), (b"hello".as_slice(), false));
    assert_eq!(server.requests()[0].header("host").unwrap(), format!("site.test:{}", server.port()));
}

/// Hosts that no grant opens.
const CLOSED: [&str; 9] = [
    "169.254.169.254",
    "2852039166",
    "0xa9.254.0251.0376",
    "[::ffff:127.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[fe80::1]",
    "[fd00:ec2::254]",
    "0.0.0.0",
    "metadata.google.internal",
];

#[tokio::test]
async fn no_private_address_is_dialled_however_it_is_written() {
    let server = HttpServer::in_order([Answer::new(200, "text/plain", "secret")]).await;
    let port = server.port();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::1]", "127.1", "127.0.0.1."] {
        for grant in [NetworkGrant::Withheld, NetworkGrant::Granted] {
            let url = format!("http://{host}:{port}/");
            let error = fetch_with(&Fake::new(&[&[PUBLIC]]), &url, grant).await.unwrap_err();
            assert!(
                error.contains("is loopback, not of the public internet; only the user's answer"),
                "{error}"
            );
        }
    }
    for host in CLOSED {
        let error = fetch(&Fake::new(&[&[PUBLIC]]), &format!("http://{host}:{port}/")).await.unwrap_err();
        assert!(error.contains("can't be fetched, and no grant changes that"), "{host}: {error}");
    }
    for addresses in [&["10.0.0.1"][..], &[PUBLIC, "169.254.169.254"], &["::ffff:127.0.0.1"], &["fd00::1"]] {
        let error = fetch(&Fake::new(&[addresses]), &format!("http://site.test:{port}/")).await.unwrap_err();
        assert!(error.contains("not of the public internet"), "{error}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_host_that_the_user_named_is_dialled_in_each_of_its_spellings() {
    let server = HttpServer::in_order([Answer::new(200, "text/plain", "ours")]).await;
    let port = server.port();
    let own = Fake::new(&[&[OWN]]);
    let hosts =
        ["127.0.0.1", "2130706433", "0177.0.0.1", "localhost", "nas", "nas.local", "db.corp.internal"];
    for host in hosts {
        let got = fetch_granted(&own, &format!("http://{host}:{port}/")).await.unwrap();
        assert_eq!(got.body, b"ours", "{host}");
    }
    assert_eq!(server.requests().len(), hosts.len());
}

#[tokio::test]
async fn the_users_word_opens_no_public_name_and_nothing_that_is_closed() {
    let server = HttpServer::in_order([Answer::new(200, "text/plain", "secret")]).await;
    let port = server.port();
    for host in CLOSED {
        let error =
            fetch_granted(&Fake::new(&[&[PUBLIC]]), &format!("http://{host}:{port}/")).await.unwrap_err();
        assert!(error.contains("can't be fetched, and no grant changes that"), "{host}: {error}");
    }
    for (name, addresses, expected) in [
        ("site.test", &["127.0.0.1"][..], "the name is public"),
        ("127.0.0.1.site.test", &["127.0.0.1"], "the name is public"),
        ("localhost.site.test", &["::1"], "the name is public"),
        ("site.test", &[PUBLIC, OWN], "the name is public"),
        ("nas.local", &["169.254.169.254"], "link-local, not of the public internet; no grant reaches it"),
        ("nas.local", &[OWN, "fe80::1"], "link-local"),
        ("nas.local", &["::ffff:10.0.0.7"], "in disguise"),
        ("nas", &["100.100.100.200"], "the metadata service of a cloud"),
    ] {
        let error =
            fetch_granted(&Fake::new(&[addresses]), &format!("http://{name}:{port}/")).await.unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
    for host in ["127.0.0.1@site.test", "127.0.0.1:x@site.test"] {
        let error =
            fetch_granted(&Fake::new(&[&[PUBLIC]]), &format!("http://{host}:{port}/")).await.unwrap_err();
        assert!(error.contains("its host would be site.test"), "{error}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_granted_host_leads_to_no_other_own_host() {
    for place in ["http://127.0.0.1/", "http://localhost/", "http://10.0.0.1/", "http://nas.local.evil/"] {
        let server = HttpServer::in_order([to(place)]).await;
        let url = format!("http://nas.local:{}/", server.port());
        let error = fetch_granted(&Fake::new(&[&[OWN]]), &url).await.unwrap_err();
        assert_eq!(error, format!("redirected to another host; ask for that one if it is wanted: {place}"));
    }
    let server = HttpServer::in_order([to("http://169.254.169.254/latest")]).await;
    let url = format!("http://nas.local:{}/", server.port());
    let error = fetch_granted(&Fake::new(&[&[OWN]]), &url).await.unwrap_err();
    assert_eq!(error, "169.254.169.254 can't be fetched, and no grant changes that: it is link-local");
    // Each hop is resolved and judged again.
    let server = HttpServer::in_order([to("/again"), Answer::new(200, "text/plain", "secret")]).await;
    let url = format!("http://nas.local:{}/", server.port());
    let error = fetch_granted(&Fake::new(&[&[OWN], &["169.254.169.254"]]), &url).await.unwrap_err();
    assert!(error.contains("no grant reaches it"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_name_that_changes_after_the_check_is_not_asked_again_within_a_hop() {
    let server = HttpServer::in_order([to("/again"), Answer::new(200, "text/plain", "secret")]).await;
    let url = format!("http://site.test:{}/", server.port());
    let rebinding = Fake::new(&[&[PUBLIC], &["127.0.0.1"]]);
    let error = fetch(&rebinding, &url).await.unwrap_err();
    assert!(error.contains("127.0.0.1 is loopback"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn redirects_stay_with_the_host() {
    for (place, expected) in [
        (
            "http://127.0.0.1/",
            "redirected to another host; ask for that one if it is wanted: http://127.0.0.1/",
        ),
        ("http://site.test.evil/", "redirected to another host"),
        ("http://site.test@evil/", "with a user name is not fetched; its host would be evil"),
        ("file:///etc/passwd", "file is not fetched"),
    ] {
        let server = HttpServer::in_order([to(place)]).await;
        let url = format!("http://site.test:{}/", server.port());
        let error = fetch(&Fake::new(&[&[PUBLIC]]), &url).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let server = HttpServer::in_order([to("/round")]).await;
    let url = format!("http://site.test:{}/", server.port());
    let error = fetch(&Fake::new(&[&[PUBLIC]]), &url).await.unwrap_err();
    assert_eq!(error, "redirected more than 10 times");
    assert_eq!(server.requests().len(), 11);
}

#[tokio::test]
async fn five_megabytes_are_read_and_failures_told() {
    let server = HttpServer::in_order([
        Answer::new(200, "text/plain", vec![b'x'; 6_000_000]),
        Answer::new(404, "text/plain", "gone"),
    ])
    .await;
    let url = format!("http://site.test:{}/", server.port());
    let got = fetch(&Fake::new(&[&[PUBLIC]]), &url).await.unwrap();
    assert_eq!((got.body.len(), got.is_cut), (5_000_000, true));
    let error = fetch(&Fake::new(&[&[PUBLIC]]), &url).await.unwrap_err();
    assert_eq!(error, "answered 404 Not Found");
}

fn page(content_type: &str, body: impl Into<Vec<u8>>) -> Result<String, String> {
    let url = Url::parse("https://site.test/").unwrap();
    readable(&Got { url, content_type: Some(content_type.to_owned()), body: body.into(), is_cut: false })
}

#[test]
fn pages_become_text_and_the_rest_is_refused() {
    let html = format!(
        "<html><head><title>T</title><script>evil()</script></head><body><article><h2>Head</h2>{}</article></body></html>",
        "<p>A sentence with a <a href=\"/x\">link</a>, long enough, with commas, to be text.</p>".repeat(8)
    );
    let text = page("text/html; charset=utf-8", html).unwrap();
    assert!(text.contains("Head") && text.contains("](https://site.test/x)"), "{text}");
    assert!(!text.contains("evil") && !text.contains("<p>"), "{text}");
    assert_eq!(page("text/plain; charset=ISO-8859-1", b"caf\xe9".to_vec()).unwrap(), "café");
    assert_eq!(page("application/problem+json", "{}").unwrap(), "{}");
    assert!(page("image/png", "x").unwrap_err().starts_with("is image/png, not a text"));
    assert!(page("text/plain", b"a\0b".to_vec()).unwrap_err().contains("binary"));
}

#[test]
fn what_programmers_read_keeps_its_form() {
    let code = "<pre><code class=\"language-rust\">fn main() {\n    let a_b = 1 < 2;\n}\n</code></pre>";
    let list = "<ul><li>one<ul><li>below</li></ul></li><li>two</li></ul>";
    let table = "<table><thead><tr><th>flag</th><th>means</th></tr></thead><tbody><tr><td>quiet</td><td>says less</td></tr></tbody></table>";
    let text = "<p>A paragraph with <code>snake_case</code>, commas, and enough words, so that it counts as text.</p>";
    let html = format!(
        "<html><body><article><h2>Use</h2>{0}{code}{0}{list}{0}{table}{0}</article></body></html>",
        text
    );
    let markdown = page("text/html", html).unwrap();
    for expected in [
        "## Use\n",
        "`snake_case`",
        "```rust\nfn main() {\n    let a_b = 1 < 2;\n}\n```",
        "- one\n    - below\n- two",
        "| flag | means |",
        "| quiet | says less |",
    ] {
        assert!(markdown.contains(expected), "{expected:?} is not in {markdown}");
    }
}

#[test]
fn a_page_without_an_article_is_shown_whole() {
    let form = page("text/html", "<script>evil()</script><a href=\"/in\">Sign in</a>").unwrap();
    assert!(form.contains("[Sign in](") && !form.contains("evil"), "{form}");
}

#[test]
fn a_page_of_nothing_but_levels_ends_as_an_answer() {
    for level in
        ["<div>", "<div></x>", "<div><!-- </div> -->", "<div title='</div>'>", "<div><table><td></div>"]
    {
        let told = page("text/html", level.repeat(50_000)).unwrap_err();
        assert!(told.contains("levels deep"), "{level}: {told}");
    }
    let foreign = format!("<svg>{}", "<td>".repeat(50_000));
    assert!(page("text/html", foreign).unwrap_err().contains("levels deep"));
    // The parser compares each attribute with all previous ones; levels in templates do not count as the
    // page's.
    let attributes: String = (0..400_000).map(|number| format!(" a{number}")).collect();
    for slow in [format!("<p{attributes}>"), format!("<template>{}", "<div>".repeat(400_000))] {
        let told = super::page::parse(&slow, Duration::from_millis(200)).map(|_| ()).unwrap_err();
        assert_eq!(told, "takes longer than 200ms to read");
    }
    assert!(page("text/html", format!("{}deep", "<div>".repeat(490))).unwrap().contains("deep"));
}
