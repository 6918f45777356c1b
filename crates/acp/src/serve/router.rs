//! The router of one connection: takes every request, refuses invalid ones, and passes on the others.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_core::choices::Chosen;
use attache_core::export::Format;
use attache_core::hub::{AttachFrom, FoundSession, HubError, SessionHandle};
use attache_core::ids::SessionId;
use attache_core::ports::delegate::Offers;
use attache_core::ports::model::ThoughtLevel;
use attache_core::ports::store::ModelRef;
use attache_core::slash_commands::compact_prompt;
use attache_core::watchdog::Approval;
use attache_rpc::{ErrorObject, Handler, IncomingRequest, Notification, Peer, Responder};
use serde_json::json;

use super::client::Forms;
use super::delegate::offers;
use super::failure::error_object;
use super::link::{OpenRequest, SessionLinks, SessionRequest};
use super::{AgentServices, SessionPace};
use crate::from_wire::{self, ClientRequest, ConfigValue, Initialize, LoginTerminals};
use crate::to_wire::{
    AGENT_OPTION, APPROVAL_OPTION, DEFAULT_THOUGHT, Logins, MODE_OPTION, MODEL_OPTION, THOUGHT_OPTION,
    WireView, completed_commands, config_options, initialize_response, queue_entry, rewind_result,
    status_result, unrewind_result,
};

pub(super) struct Router {
    connection: Arc<ClientConnection>,
}

pub(super) struct ClientConnection {
    pub(super) agent: AgentServices,
    pub(super) peer: Peer,
    /// `None` if all sessions share one pace.
    pub(super) pace: Option<Arc<dyn SessionPace>>,
    /// A lock, because the reader routes requests while tasks add sessions that have just opened. Its holders
    /// only send; it keeps requests to one session in order.
    state: Mutex<ConnectionState>,
}

pub(super) struct ConnectionState {
    pub(super) phase: ConnectionPhase,
    pub(super) links: SessionLinks,
}

pub(super) enum ConnectionPhase {
    New,
    Ready(InitializedClient),
    /// What its client has said before is still done.
    Closed(Option<InitializedClient>),
}

/// What a client's `initialize` said about it, for all of its sessions.
#[derive(Clone)]
pub(super) struct InitializedClient {
    pub(super) view: Arc<WireView>,
    /// What the client does itself.
    pub(super) offers: Offers,
    pub(super) forms: Forms,
    /// Ids of the login methods in our answer to `initialize`.
    pub(super) login_methods: Arc<[String]>,
}

impl ConnectionPhase {
    pub(super) fn client(&self) -> Option<InitializedClient> {
        match self {
            Self::Ready(client) => Some(client.clone()),
            Self::Closed(client) => client.clone(),
            Self::New => None,
        }
    }
}

impl Router {
    pub(super) fn new(agent: AgentServices, peer: Peer, pace: Option<Arc<dyn SessionPace>>) -> Arc<Self> {
        let state = ConnectionState { phase: ConnectionPhase::New, links: SessionLinks::default() };
        Arc::new(Self {
            connection: Arc::new(ClientConnection { agent, peer, pace, state: Mutex::new(state) }),
        })
    }
}

impl Handler for Router {
    fn request(&self, incoming: IncomingRequest) {
        let IncomingRequest { method, params, responder } = incoming;
        let before = match (&self.connection.lock().phase, method.as_str()) {
            (ConnectionPhase::New, "initialize")
            | (ConnectionPhase::Ready(_) | ConnectionPhase::Closed(_), _) => None,
            (ConnectionPhase::New, _) => Some("the connection has to be initialized first"),
        };
        if let Some(reason) = before {
            return responder.error(ErrorObject::invalid_request(reason));
        }
        match from_wire::request(&method, params) {
            Ok(request) => self.connection.route(request, responder),
            Err(error) => responder.error(error),
        }
    }

    fn notification(&self, notification: Notification) {
        if notification.method != from_wire::CANCEL {
            let method = notification.method;
            return match from_wire::is_request(&method) {
                true => tracing::warn!(method, "a request without an id was ignored: send it with one"),
                false => tracing::debug!(method, "a notification was ignored"),
            };
        }
        match from_wire::cancel(notification.params) {
            Ok(session_id) => {
                let mut state = self.connection.lock();
                self.connection.submit(&mut state, &session_id, SessionRequest::Cancel);
            }
            Err(error) => tracing::debug!(%error, "a cancellation was ignored"),
        }
    }

    /// The sessions go on; their forwarders leave when they owe no answer any more. What waits for a session
    /// that is being opened or closed was said before, and is done.
    fn closed(&self) {
        let mut state = self.connection.lock();
        state.phase = ConnectionPhase::Closed(state.phase.client());
        state.links.let_go();
    }
}

impl ClientConnection {
    pub(super) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn route(self: &Arc<Self>, request: ClientRequest, responder: Responder) {
        match request {
            ClientRequest::Initialize(initialize) => self.initialize(&initialize, responder),
            ClientRequest::Authenticate { method_id } => self.authenticate(method_id, responder),
            ClientRequest::Logout => self.log_out(responder),
            ClientRequest::NewSession(workplace) => self.new_session(None, workplace, responder),
            ClientRequest::ForkSession { session_id, point, workplace } => {
                self.new_session(Some((session_id, point)), workplace, responder);
            }
            ClientRequest::LoadSession { session_id, workplace } => {
                self.open(&session_id, OpenRequest { from: AttachFrom::Beginning, workplace, responder });
            }
            ClientRequest::ResumeSession { session_id, workplace } => {
                self.open(&session_id, OpenRequest { from: AttachFrom::LiveRun, workplace, responder });
            }
            ClientRequest::ListSessions(list) => self.list(list, responder),
            ClientRequest::DeleteSession { session_id } => self.delete(session_id, responder),
            ClientRequest::CloseSession { session_id } => self.close(session_id, responder),
            ClientRequest::Prompt { session_id, prompt } => {
                self.linked(&session_id, SessionRequest::Prompt { prompt, responder })
            }
            ClientRequest::SetMode { session_id, mode_id } => self.set_mode(&session_id, mode_id, responder),
            ClientRequest::SetConfigOption { session_id, config_id, value } => {
                self.set_config_option(&session_id, &config_id, value, responder);
            }
            ClientRequest::Status { session_id } => {
                let containment = self.agent.host.containment();
                self.with_session(session_id, responder, |found| async move {
                    Ok(status_result(&found.status().await?, containment.await))
                })
            }
            ClientRequest::Export { session_id, format } => self.export(session_id, format, responder),
            ClientRequest::Compact { session_id, keep } => {
                let prompt = compact_prompt(&keep);
                self.linked(&session_id, SessionRequest::Prompt { prompt, responder });
            }
            ClientRequest::Rewind { session_id, message_id } => {
                let operation = SessionRequest::operation_of_client(responder, |handle, client| {
                    let rewound = handle.rewind(Some(client.clone()), message_id);
                    async move {
                        let rewound = rewound.await?;
                        client.shown_up_to(rewound.after_index).await;
                        Ok(rewind_result(&rewound))
                    }
                });
                self.linked(&session_id, operation);
            }
            ClientRequest::Unrewind { session_id } => {
                let operation = SessionRequest::operation_of_client(responder, |handle, client| {
                    let unrewound = handle.unrewind(Some(client.clone()));
                    async move {
                        let unrewound = unrewound.await?;
                        client.shown_up_to(unrewound.after_index).await;
                        Ok(unrewind_result(&unrewound))
                    }
                });
                self.linked(&session_id, operation);
            }
            ClientRequest::CompleteCommand { session_id, text } => {
                self.with_session(session_id, responder, |found| {
                    let completed = found.complete_command(text);
                    async move { completed.await.map(|completed| completed_commands(&completed)) }
                });
            }
            ClientRequest::QueueList { session_id } => {
                self.with_session(session_id, responder, |found| {
                    let queued = found.queued();
                    async move {
                        let queued = queued.await?;
                        Ok(json!({ "queued": queued.iter().map(queue_entry).collect::<Vec<_>>() }))
                    }
                });
            }
            ClientRequest::QueueCancel { session_id, message_id } => {
                self.with_session(session_id, responder, move |found| {
                    let cancelled = found.cancel_queued(message_id);
                    async move { cancelled.await.map(|()| json!({})) }
                });
            }
            ClientRequest::QueueEdit { session_id, message_id, prompt } => {
                self.with_session(session_id, responder, move |found| {
                    let edited = found.edit_queued(message_id, prompt);
                    async move { edited.await.map(|()| json!({})) }
                });
            }
        }
    }
}

impl ClientConnection {
    fn initialize(&self, initialize: &Initialize, responder: Responder) {
        let choices = self.agent.hub.choices();
        let mut state = self.lock();
        match state.phase {
            ConnectionPhase::New => {}
            ConnectionPhase::Ready(_) | ConnectionPhase::Closed(_) => {
                let error = ErrorObject::invalid_request("the connection has been initialized already");
                return responder.error(error);
            }
        }
        let logins = self.logins_for(&initialize.capabilities);
        let login_methods = logins.iter().flatten().map(|login| login.id.clone()).collect();
        let version = self.agent.version;
        let logins =
            Logins { ways: logins.as_deref(), terminals: LoginTerminals::of(&initialize.capabilities) };
        match initialize_response(initialize.version, &choices.get(), logins, version) {
            Ok(response) => {
                let view = WireView::new(choices.clone(), &initialize.capabilities, self.agent.thoughts);
                let offers = offers(&initialize.capabilities, self.agent.client_fs);
                state.phase = ConnectionPhase::Ready(InitializedClient {
                    view: Arc::new(view),
                    offers,
                    forms: Forms::of(&initialize.capabilities),
                    login_methods,
                });
                responder.ok(&response);
            }
            Err(error) => responder.error(ErrorObject::internal(error.to_string())),
        }
    }

    fn export(self: &Arc<Self>, session_id: SessionId, format: Format, responder: Responder) {
        let connection = self.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.check_known(&session_id).await {
                return responder.error(error);
            }
            match connection.agent.hub.export(&session_id, format).await {
                Ok(content) => responder.ok(&json!({ "format": format.as_str(), "content": content })),
                Err(error) => responder.error(error_object(&error)),
            }
        });
    }

    /// For sessions that this connection has opened.
    fn linked(self: &Arc<Self>, session_id: &SessionId, request: SessionRequest) {
        self.submit(&mut self.lock(), session_id, request);
    }

    /// For any session: in order with this connection's other requests if it is open here, independently if
    /// not. Opens nothing.
    fn with_session<F>(
        self: &Arc<Self>,
        session_id: SessionId,
        responder: Responder,
        ask: impl FnOnce(FoundSession) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<serde_json::Value, HubError>> + Send + 'static,
    {
        let hub = self.agent.hub.clone();
        let mut state = self.lock();
        if state.links.contains(&session_id) {
            let operation = SessionRequest::operation(responder, move |handle| ask(hub.found(handle)));
            return self.submit(&mut state, &session_id, operation);
        }
        drop(state);
        let connection = self.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.check_known(&session_id).await {
                return responder.error(error);
            }
            let result = match hub.find(&session_id).await {
                Ok(found) => ask(found).await,
                Err(error) => Err(error),
            };
            match result {
                Ok(result) => responder.ok(&result),
                Err(error) => responder.error(error_object(&error)),
            }
        });
    }

    fn set_mode(self: &Arc<Self>, session_id: &SessionId, mode_id: String, responder: Responder) {
        let request = SessionRequest::operation(responder, move |handle| {
            let chosen = handle.set_mode(mode_id);
            async move { chosen.await.map(|_| json!({})).map_err(|error| of_field("modeId", error)) }
        });
        self.linked(session_id, request);
    }

    fn set_config_option(
        self: &Arc<Self>,
        session_id: &SessionId,
        config_id: &str,
        value: ConfigValue,
        responder: Responder,
    ) {
        let refuse = |responder: Responder, reason: String| {
            responder.error(ErrorObject::invalid_params(reason));
        };
        let value = match value {
            ConfigValue::Id(value) => value,
            ConfigValue::Boolean(_) => {
                return refuse(responder, "value: no option of this agent is true or false".into());
            }
        };
        match config_id {
            MODE_OPTION => self.choose(session_id, responder, |handle| handle.set_mode(value)),
            MODEL_OPTION => {
                let Some((provider_id, model_id)) = value.split_once('/') else {
                    let reason = format!("value: a model is written PROVIDER/NAME, not {value:?}");
                    return refuse(responder, reason);
                };
                let model = ModelRef::new(provider_id, model_id);
                self.choose(session_id, responder, |handle| handle.set_model(model));
            }
            THOUGHT_OPTION => {
                let level = ThoughtLevel::parse(&value);
                if level.is_none() && value != DEFAULT_THOUGHT {
                    let known = ThoughtLevel::ALL.map(ThoughtLevel::as_str).join(", ");
                    let reason = format!(
                        "value: there is no thought level {value:?}; known: {DEFAULT_THOUGHT}, {known}"
                    );
                    return refuse(responder, reason);
                }
                self.choose(session_id, responder, move |handle| handle.set_thought(level));
            }
            APPROVAL_OPTION => {
                let Some(approval) = Approval::parse(&value) else {
                    return refuse(responder, format!("value: must be ask, edits or all, not {value:?}"));
                };
                self.choose(session_id, responder, move |handle| handle.set_approval(approval));
            }
            of_agent if of_agent.starts_with(AGENT_OPTION) => {
                let id = of_agent[AGENT_OPTION.len()..].to_owned();
                self.choose(session_id, responder, move |handle| handle.set_option(id, value));
            }
            _ => {
                let known = "mode, model, thought_level, approval, and those of the agent";
                refuse(responder, format!("configId: there is no option {config_id:?}; known: {known}"));
            }
        }
    }

    /// Sets an option of a session; the answer is the complete list of options.
    fn choose<F>(
        self: &Arc<Self>,
        session_id: &SessionId,
        responder: Responder,
        choose: impl FnOnce(SessionHandle) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<Chosen, HubError>> + Send + 'static,
    {
        let choices = self.agent.hub.choices().clone();
        let request = SessionRequest::operation(responder, move |handle| {
            let chosen = choose(handle);
            async move {
                let chosen = chosen.await.map_err(|error| of_field("value", error))?;
                Ok(json!({ "configOptions": config_options(&choices.get(), &chosen) }))
            }
        });
        self.linked(session_id, request);
    }
}

/// Names the field in which a wrong value came.
fn of_field(field: &str, error: HubError) -> HubError {
    match error {
        HubError::Invalid(reason) => HubError::Invalid(format!("{field}: {reason}")),
        other => other,
    }
}
