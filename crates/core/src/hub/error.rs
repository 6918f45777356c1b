//! Why the hub can't do what a caller asked. The adapters turn these errors into answers.

use thiserror::Error;

use super::Shared;
use crate::ids::SessionId;
use crate::limits::SESSIONS_COMPARED;
use crate::nearest::nearest_id;
use crate::ports::store::{ModelRef, SessionQuery, StoreError};

/// Why a session can't do what a caller asked.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "each says in its message what it means")]
pub enum HubError {
    #[error("there is no session {id}{}", did_you_mean(.nearest))]
    UnknownSession { id: SessionId, nearest: Option<SessionId> },
    #[error(
        "session {0} is running in another process; wait for its turn to end there, or load it to follow it"
    )]
    RunningElsewhere(SessionId),
    #[error("session {0} is closed; load or resume it first")]
    Closed(SessionId),
    #[error("session {0} has a turn under way; wait for it or cancel it first")]
    Busy(SessionId),
    #[error("{0}")]
    Invalid(String),
    /// With the problem of each configured provider; empty if the user has configured none.
    #[error("{}", no_model(.0))]
    NoModel(Vec<String>),
    /// The chosen model, with what the user can do about it.
    #[error("{model} can't be used: {why}")]
    UnusableModel { model: ModelRef, why: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("internal error: {0}")]
    Internal(String),
}

impl HubError {
    pub(crate) fn unknown_session(id: &SessionId) -> Self {
        Self::UnknownSession { id: id.clone(), nearest: None }
    }
}

fn did_you_mean(nearest: &Option<SessionId>) -> String {
    nearest.as_ref().map(|near| format!(" (did you mean {near}?)")).unwrap_or_default()
}

fn no_model(problems: &[String]) -> String {
    match problems {
        [] => "no model is available yet. Set an API key variable (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, …), or run \
               `attache auth login PROVIDER`, or start a local server (ollama, llama.cpp, LM Studio, vLLM); then try again. `attache doctor` checks all of it"
            .to_owned(),
        problems => format!("no model is available. {} Then try again", problems.join(" ")),
    }
}

impl Shared {
    /// The error for a session that is not stored, with the id that the caller may have meant. Only one search
    /// runs at a time: thousands of wrong ids at once load no more rows than one.
    pub(super) async fn unknown_session(&self, id: &SessionId) -> HubError {
        let Ok(_alone) = self.comparing_ids.try_lock() else { return HubError::unknown_session(id) };
        let query = SessionQuery { limit: SESSIONS_COMPARED, ..SessionQuery::default() };
        // The session is unknown, even if the search for similar ids fails.
        let rows = self.ports.store.list_sessions(query).await.unwrap_or_default();
        let ids: Vec<SessionId> = rows.into_iter().map(|row| row.id).collect();
        let nearest = nearest_id(id.as_str(), &ids).cloned();
        HubError::UnknownSession { id: id.clone(), nearest }
    }
}
