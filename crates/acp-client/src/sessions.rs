//! Sessions of an agent: opening, prompting, choosing, closing.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use agent_client_protocol_schema::v1::{
    CancelNotification, CloseSessionRequest, ContentBlock, DeleteSessionRequest, ForkSessionRequest,
    ForkSessionResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse,
    McpServer, NewSessionRequest, NewSessionResponse, PromptRequest, PromptResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionConfigOption, SessionConfigOptionValue, SessionId, SessionInfo,
    SessionModeState, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
};
use serde::de::IgnoredAny;

use crate::events::{ClientEvent, PromptTicket};
use crate::failure::{AgentEnd, ClientFailure};
use crate::limits::OPEN_TIME;
use crate::{AgentAbility, AgentClient};

/// Where a session works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStart {
    /// Absolute.
    pub directory: PathBuf,
    pub additional: Vec<PathBuf>,
    /// MCP servers that the agent connects to for this session.
    pub servers: Vec<McpServer>,
}

impl SessionStart {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), additional: Vec::new(), servers: Vec::new() }
    }
}

/// A session that can be prompted, with what can be chosen in it.
#[derive(Clone, Debug)]
pub struct OpenedSession {
    pub session_id: SessionId,
    pub modes: Option<SessionModeState>,
    pub config_options: Vec<SessionConfigOption>,
}

impl AgentClient {
    pub async fn new_session(&self, place: &SessionStart) -> Result<OpenedSession, ClientFailure> {
        let request = NewSessionRequest::new(&place.directory)
            .additional_directories(place.additional.clone())
            .mcp_servers(place.servers.clone());
        let NewSessionResponse { session_id, modes, config_options, .. } =
            self.request("session/new", &request, Some(OPEN_TIME)).await?;
        Ok(OpenedSession { session_id, modes, config_options: config_options.unwrap_or_default() })
    }

    /// Opens a stored session; everything in it comes as updates before this resolves.
    pub async fn load_session(
        &self,
        session_id: SessionId,
        place: &SessionStart,
    ) -> Result<OpenedSession, ClientFailure> {
        self.need(AgentAbility::Load, "load a session")?;
        let request = LoadSessionRequest::new(session_id.clone(), &place.directory)
            .additional_directories(place.additional.clone())
            .mcp_servers(place.servers.clone());
        let LoadSessionResponse { modes, config_options, .. } =
            self.request("session/load", &request, Some(OPEN_TIME)).await?;
        Ok(OpenedSession { session_id, modes, config_options: config_options.unwrap_or_default() })
    }

    /// Opens a stored session without its past.
    pub async fn resume_session(
        &self,
        session_id: SessionId,
        place: &SessionStart,
    ) -> Result<OpenedSession, ClientFailure> {
        self.need(AgentAbility::Resume, "resume a session")?;
        let request = ResumeSessionRequest::new(session_id.clone(), &place.directory)
            .additional_directories(place.additional.clone())
            .mcp_servers(place.servers.clone());
        let ResumeSessionResponse { modes, config_options, .. } =
            self.request("session/resume", &request, Some(OPEN_TIME)).await?;
        Ok(OpenedSession { session_id, modes, config_options: config_options.unwrap_or_default() })
    }

    /// A copy of a session under an id of its own.
    pub async fn fork_session(
        &self,
        session_id: SessionId,
        place: &SessionStart,
    ) -> Result<OpenedSession, ClientFailure> {
        self.need(AgentAbility::Fork, "fork a session")?;
        let request = ForkSessionRequest::new(session_id, &place.directory)
            .additional_directories(place.additional.clone())
            .mcp_servers(place.servers.clone());
        let ForkSessionResponse { session_id, modes, config_options, .. } =
            self.request("session/fork", &request, Some(OPEN_TIME)).await?;
        Ok(OpenedSession { session_id, modes, config_options: config_options.unwrap_or_default() })
    }

    /// One page, the newest first; `cursor` comes from the page before.
    pub async fn list_sessions(
        &self,
        directory: Option<&Path>,
        cursor: Option<String>,
    ) -> Result<ListSessionsResponse, ClientFailure> {
        self.need(AgentAbility::List, "list its sessions")?;
        let request = ListSessionsRequest::new().cwd(directory.map(Path::to_owned)).cursor(cursor);
        self.quick("session/list", &request).await
    }

    /// The session that was used last in a directory.
    pub async fn latest_session(&self, directory: &Path) -> Result<Option<SessionInfo>, ClientFailure> {
        let page = self.list_sessions(Some(directory), None).await?;
        Ok(page.sessions.into_iter().next())
    }

    /// The one session whose id begins so, wherever it works; several are an error.
    pub async fn find_session(&self, start: &str) -> Result<SessionMatch, ClientFailure> {
        let (mut found, mut cursor): (Option<SessionInfo>, Option<String>) = (None, None);
        loop {
            let page = self.list_sessions(None, cursor.clone()).await?;
            for session in page.sessions {
                if *session.session_id.0 == *start {
                    return Ok(SessionMatch::One(Box::new(session)));
                }
                if session.session_id.0.starts_with(start) && found.replace(session).is_some() {
                    return Ok(SessionMatch::Several);
                }
            }
            // An agent that gives the same page for ever must not be asked for ever.
            if page.next_cursor.is_none() || page.next_cursor == cursor {
                return Ok(found.map_or(SessionMatch::None, |session| SessionMatch::One(Box::new(session))));
            }
            cursor = page.next_cursor;
        }
    }

    /// Ends what runs in it and lets go of it; the session stays stored.
    pub async fn close_session(&self, session_id: SessionId) -> Result<(), ClientFailure> {
        self.need(AgentAbility::Close, "close a session")?;
        self.quick::<_, IgnoredAny>("session/close", &CloseSessionRequest::new(session_id)).await.map(drop)
    }

    pub async fn delete_session(&self, session_id: SessionId) -> Result<(), ClientFailure> {
        self.need(AgentAbility::Delete, "delete a session")?;
        self.quick::<_, IgnoredAny>("session/delete", &DeleteSessionRequest::new(session_id)).await.map(drop)
    }

    /// Sends a prompt and waits for the end of its turn. Dropping the future cancels the request.
    pub async fn prompt(
        &self,
        session_id: SessionId,
        prompt: Vec<ContentBlock>,
    ) -> Result<PromptResponse, ClientFailure> {
        self.request("session/prompt", &PromptRequest::new(session_id, prompt), None).await
    }

    /// Sends a prompt whose answer is an event, behind all updates of its turn. Several may be under way:
    /// attache queues them.
    pub fn start_prompt(&self, session_id: SessionId, prompt: Vec<ContentBlock>) -> PromptTicket {
        self.start_request(PromptRequest::new(session_id, prompt))
    }

    /// The same for a prompt with a name of its own, or one that steers the turn under way.
    pub fn start_request(&self, request: PromptRequest) -> PromptTicket {
        let ticket = PromptTicket(self.shared.tickets.fetch_add(1, Ordering::Relaxed));
        let client = self.clone();
        // Held while the answer is awaited, so that the stream of events does not end before it.
        let sender = self.shared.events.upgrade();
        tokio::spawn(async move {
            let answer = client.request("session/prompt", &request, None).await.map(Box::new);
            match sender {
                Some(sender) => {
                    client.shared.queue.push(&sender, 0, ClientEvent::PromptEnded { ticket, answer });
                }
                None => tracing::debug!("a prompt came after the end of its agent"),
            }
        });
        ticket
    }

    /// Ends the turn under way; its prompt is answered as cancelled.
    pub async fn cancel(&self, session_id: SessionId) -> Result<(), ClientFailure> {
        let told = self.shared.peer.notify("session/cancel", &CancelNotification::new(session_id)).await;
        told.map_err(|error| {
            tracing::debug!(%error, "a turn could not be cancelled");
            ClientFailure::Ended(AgentEnd::default())
        })
    }

    pub async fn set_mode(&self, session_id: SessionId, mode: &str) -> Result<(), ClientFailure> {
        let request = SetSessionModeRequest::new(session_id, mode.to_owned());
        self.quick::<_, IgnoredAny>("session/set_mode", &request).await.map(drop)
    }

    /// Gives all options as they are then.
    pub async fn set_config_option(
        &self,
        session_id: SessionId,
        option: &str,
        value: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>, ClientFailure> {
        let request = SetSessionConfigOptionRequest::new(session_id, option.to_owned(), value);
        let answer: SetSessionConfigOptionResponse =
            self.quick("session/set_config_option", &request).await?;
        Ok(answer.config_options)
    }
}

/// What the beginning of an id matches.
#[derive(Debug)]
pub enum SessionMatch {
    None,
    One(Box<SessionInfo>),
    Several,
}
