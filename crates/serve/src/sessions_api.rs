//! What the page (and any program) reads of stored sessions: lists, searches, pages of a conversation, sums.
//! Never a whole session at once but in an export, which streams. Writes nothing, opens nothing.

mod conversation;
mod diff;
mod export;
mod list;
mod parameters;
mod usage;

use std::path::PathBuf;
use std::sync::Arc;

use attache_acp::AgentServices;
use attache_core::hub::HubError;
use attache_core::ids::SessionId;
use attache_core::ports::store::{SessionRecord, StoreError};
use attache_core::ports::{SessionFigures, SessionSearch, Store};
use attache_http::refusal;
use attache_rpc::ErrorObject;
use axum::Router;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::limits::SESSION_ID_BYTES;

/// What is read from. A copy is the same.
#[derive(Clone, Debug)]
pub(crate) struct SessionsApi {
    pub(crate) agent: AgentServices,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) search: Arc<dyn SessionSearch>,
    pub(crate) figures: Arc<dyn SessionFigures>,
    /// Where new sessions work whose client names no directory.
    pub(crate) usual_workspace: PathBuf,
    /// Exports that may be read at once: each holds a thread.
    pub(crate) exports: Arc<Semaphore>,
}

pub(crate) fn sessions_router(api: SessionsApi) -> Router {
    Router::new()
        .route("/api/sessions", get(list::list))
        .route("/api/sessions/search", get(list::search))
        .route("/api/sessions/usage", get(usage::usage))
        .route("/api/sessions/diff", get(diff::diff))
        .route("/api/sessions/{id}", get(conversation::head))
        .route("/api/sessions/{id}/outline", get(conversation::outline))
        .route("/api/sessions/{id}/turns", get(conversation::turns))
        .route("/api/sessions/{id}/prompts/{digest}", get(conversation::system_prompt))
        .route("/api/sessions/{id}/children", get(list::children))
        .route("/api/sessions/{id}/export", get(export::export))
        .with_state(api)
}

/// Why there is no answer.
#[derive(Debug)]
enum ApiError {
    UnknownSession,
    NotThere(&'static str),
    Busy(&'static str),
    Invalid(String),
    Failed(String),
}

type ApiReply = Result<Response, ApiError>;

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<HubError> for ApiError {
    fn from(error: HubError) -> Self {
        match error {
            HubError::UnknownSession { .. } | HubError::Closed(_) => Self::UnknownSession,
            HubError::Invalid(reason) => Self::Invalid(reason),
            HubError::RunningElsewhere(_)
            | HubError::Busy(_)
            | HubError::NoModel(_)
            | HubError::UnusableModel { .. }
            | HubError::Store(_)
            | HubError::Internal(_) => Self::Failed(error.to_string()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match self {
            Self::UnknownSession => {
                refusal(StatusCode::NOT_FOUND, "there is no such session: GET /api/sessions lists them")
            }
            Self::NotThere(what) => refusal(StatusCode::NOT_FOUND, what),
            Self::Busy(why) => refusal(StatusCode::TOO_MANY_REQUESTS, why),
            Self::Invalid(reason) => refusal(StatusCode::BAD_REQUEST, &reason),
            Self::Failed(reason) => {
                refusal(StatusCode::INTERNAL_SERVER_ERROR, &ErrorObject::internal(&reason).message)
            }
        }
    }
}

impl SessionsApi {
    /// One that works elsewhere than this server may is as good as none.
    async fn record(&self, id: &str) -> Result<SessionRecord, ApiError> {
        if id.len() > SESSION_ID_BYTES {
            return Err(ApiError::UnknownSession);
        }
        let record = self.store.session(&SessionId::new(id)).await?.ok_or(ApiError::UnknownSession)?;
        match self.admitted(vec![record.row.workspace_root.clone()]).await[..] {
            [true] => Ok(record),
            _ => Err(ApiError::UnknownSession),
        }
    }

    /// Which of these roots clients of this server may know of.
    async fn admitted(&self, roots: Vec<PathBuf>) -> Vec<bool> {
        let count = roots.len();
        match self.agent.host.admitted(roots) {
            Some(admitted) => admitted.await,
            None => vec![true; count],
        }
    }
}

/// What is answered must not be kept, nor taken for something else.
fn answer(body: impl Into<Body>, kind: &'static str) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn json_answer(value: &impl Serialize) -> ApiReply {
    let text = serde_json::to_vec(value).map_err(|error| ApiError::Failed(error.to_string()))?;
    Ok(answer(text, "application/json"))
}
