//! The page: static files that are part of the binary, under a policy that lets nothing else in. Makes no
//! HTML: everything of others is put into the page by its own code, as text.

use std::sync::LazyLock;

use attache_core::prompt::digest;
use attache_http::{LOGIN_PATH, PageLogins, refusal};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::json;

/// Own scripts and styles alone; no text becomes code, whatever was overlooked; nobody frames the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Below this are files that are the same for everybody.
pub const STATIC_PATHS: &[&str] = &["/assets/"];

const INDEX: &str = include_str!("../page/index.html");

/// Name, kind and content.
const ASSETS: [(&str, &str, &str); 19] = [
    ("style.css", CSS, include_str!("../page/style.css")),
    ("icon.svg", SVG, include_str!("../page/icon.svg")),
    ("main.js", SCRIPT, include_str!("../page/main.js")),
    ("api.js", SCRIPT, include_str!("../page/api.js")),
    ("acp.js", SCRIPT, include_str!("../page/acp.js")),
    ("dom.js", SCRIPT, include_str!("../page/dom.js")),
    ("format.js", SCRIPT, include_str!("../page/format.js")),
    ("list.js", SCRIPT, include_str!("../page/list.js")),
    ("attachments.js", SCRIPT, include_str!("../page/attachments.js")),
    ("form.js", SCRIPT, include_str!("../page/form.js")),
    ("questions.js", SCRIPT, include_str!("../page/questions.js")),
    ("session.js", SCRIPT, include_str!("../page/session.js")),
    ("timeline.js", SCRIPT, include_str!("../page/timeline.js")),
    ("markdown.js", SCRIPT, include_str!("../page/markdown.js")),
    ("parts.js", SCRIPT, include_str!("../page/parts.js")),
    ("live.js", SCRIPT, include_str!("../page/live.js")),
    ("facts.js", SCRIPT, include_str!("../page/facts.js")),
    ("diff.js", SCRIPT, include_str!("../page/diff.js")),
    ("usage.js", SCRIPT, include_str!("../page/usage.js")),
];

/// What the addresses of this version's files have in them: another version has other addresses, so browsers
/// need not ask again for what they have.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: String = ASSETS.iter().map(|(name, _, content)| format!("{name}\n{content}\n")).collect();
    digest(all.as_bytes())[..16].to_owned()
});

static INDEX_OF_VERSION: LazyLock<String> =
    LazyLock::new(|| INDEX.replace("/assets/", &format!("/assets/{}/", *VERSION)));

/// How long an answer may be used again without asking.
#[derive(Clone, Copy, Debug)]
enum Reuse {
    /// The next version has another file at this address.
    Never,
    Always,
}

pub(crate) fn page_router(logins: PageLogins) -> Router {
    Router::new()
        .route("/", get(|| async { file(HTML, &INDEX_OF_VERSION, Reuse::Never) }))
        .route("/assets/{version}/{name}", get(asset))
        .route(LOGIN_PATH, post(new_link))
        .with_state(logins)
}

async fn asset(Path((version, name)): Path<(String, String)>) -> Response {
    match ASSETS.iter().find(|(known, _, _)| *known == name && version == *VERSION) {
        Some((_, kind, content)) => file(kind, content, Reuse::Always),
        None => refusal(StatusCode::NOT_FOUND, "the page has no such file"),
    }
}

fn file(kind: &'static str, content: &'static str, reuse: Reuse) -> Response {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (
            CACHE_CONTROL,
            match reuse {
                Reuse::Never => "no-cache",
                Reuse::Always => "private, max-age=31536000, immutable",
            },
        ),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// One more link, for who has the token itself: a page can't make its login last for ever.
async fn new_link(State(logins): State<PageLogins>, headers: HeaderMap) -> Response {
    if !headers.contains_key(AUTHORIZATION) {
        return refusal(
            StatusCode::FORBIDDEN,
            "send the token itself (`Authorization: Bearer TOKEN`): a page that is logged in makes no links",
        );
    }
    match logins.new_link() {
        Ok(link) => {
            let mut response = Response::new(Body::from(json!({ "link": link }).to_string()));
            *response.status_mut() = StatusCode::CREATED;
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(error) => {
            tracing::error!(%error, "no link");
            refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
        }
    }
}
