//! Content types that a client accepts.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};

/// By its name, or by a wildcard for it.
pub fn is_accepted(headers: &HeaderMap, kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    headers.get_all(ACCEPT).iter().filter_map(|accepted| accepted.to_str().ok()).any(|accepted| {
        accepted.split(',').any(|one| {
            let one = one.split(';').next().unwrap_or_default().trim();
            one.eq_ignore_ascii_case(kind) || one == "*/*" || one.strip_suffix("/*") == Some(family)
        })
    })
}

/// Whether the body is JSON, as its header says.
pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}
