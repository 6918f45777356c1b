//! Which scope a request needs: by its route, and by the method of a message.

use attache_http::{LOGIN_PATH, TokenScope};
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;

use super::{CallerRefusal, RemoteCaller};
use crate::acp::ACP_PATH;
use crate::server::{HOOKS_PATH, OPEN_PATHS};

/// What is not named needs everything: a method that is new here is nobody's by accident. `load` and `resume`
/// start servers that their client names, so they are more than reading.
pub(super) fn needed_for(method: &str) -> TokenScope {
    match method {
        "initialize"
        | "session/list"
        | "_attache/session/status"
        | "_attache/session/export"
        | "_attache/commands/complete"
        | "_attache/queue/list"
        | "$/cancel_request" => TokenScope::Read,
        "session/new"
        | "session/load"
        | "session/resume"
        | "session/fork"
        | "session/close"
        | "session/prompt"
        | "session/cancel"
        | "session/set_mode"
        | "session/set_config_option"
        | "_attache/session/compact"
        | "_attache/session/rewind"
        | "_attache/session/unrewind"
        | "_attache/queue/cancel"
        | "_attache/queue/edit" => TokenScope::Talk,
        _ => TokenScope::All,
    }
}

/// Messages of ACP are looked at one by one; of everything else, what changes nothing may be read.
pub(crate) async fn check_scope(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let needed = match *request.method() {
        Method::GET | Method::HEAD => TokenScope::Read,
        _ if path == ACP_PATH => TokenScope::Read,
        // Who logs in by a link may do everything.
        _ if path == LOGIN_PATH => TokenScope::All,
        _ => TokenScope::Talk,
    };
    let is_open = OPEN_PATHS.contains(&path) || path.starts_with(HOOKS_PATH);
    let requester = RemoteCaller::of(request.extensions()).requester;
    if !is_open && requester.scope < needed {
        return CallerRefusal::Scope { name: requester.name, scope: requester.scope }.response();
    }
    next.run(request).await
}
