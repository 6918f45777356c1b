//! The desk of one connection: takes every request, refuses what can't be right, and sends the rest where it belongs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_core::choices::Chosen;
use attache_core::hub::{AttachFrom, Found, HubError, SessionHandle};
use attache_core::ids::SessionId;
use attache_core::ports::delegate::Offers;
use attache_core::ports::model::ThoughtLevel;
use attache_core::ports::store::ModelRef;
use attache_core::watchdog::Approval;
use attache_rpc::{ErrorObject, Handler, Notification, Peer, Request as Incoming, Responder};
use serde_json::json;

use super::Agent;
use super::client::Forms;
use super::delegate::offers;
use super::failure::{error_object, unknown_session};
use super::link::{Link, Opening, Order};
use crate::from_wire::{self, ConfigValue, Initialize, LoginTerminals, Request};
use crate::to_wire::{
    APPROVAL_OPTION, DEFAULT_THOUGHT, Logins, MODE_OPTION, MODEL_OPTION, THOUGHT_OPTION, WireView,
    config_options, initialize_response, queue_entry, status_result,
};

pub(super) struct Desk {
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) agent: Agent,
    pub(super) peer: Peer,
    /// Why a lock: the reader routes requests while tasks put sessions in place that have just been opened. Whoever
    /// holds it only sends; it keeps the order of requests to one session.
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) links: HashMap<SessionId, Link>,
}

pub(super) enum Phase {
    New,
    Ready(Greeted),
    Closed,
}

/// What a client's `initialize` said of it, for all of its sessions.
#[derive(Clone)]
pub(super) struct Greeted {
    pub(super) view: Arc<WireView>,
    /// What it does itself.
    pub(super) offers: Offers,
    pub(super) forms: Forms,
}

impl Phase {
    pub(super) fn greeted(&self) -> Option<Greeted> {
        match self {
            Self::Ready(greeted) => Some(greeted.clone()),
            Self::New | Self::Closed => None,
        }
    }
}

impl Desk {
    pub(super) fn new(agent: Agent, peer: Peer) -> Arc<Self> {
        let state = State { phase: Phase::New, links: HashMap::new() };
        Arc::new(Self { shared: Arc::new(Shared { agent, peer, state: Mutex::new(state) }) })
    }
}

impl Handler for Desk {
    fn request(&self, incoming: Incoming) {
        let Incoming { method, params, responder } = incoming;
        let before = match (&self.shared.lock().phase, method.as_str()) {
            (Phase::New, "initialize") | (Phase::Ready(_) | Phase::Closed, _) => None,
            (Phase::New, _) => Some("the connection has to be initialized first"),
        };
        if let Some(reason) = before {
            return responder.error(ErrorObject::invalid_request(reason));
        }
        match from_wire::request(&method, params) {
            Ok(request) => self.shared.route(request, responder),
            Err(error) => responder.error(error),
        }
    }

    fn notification(&self, notification: Notification) {
        if notification.method != "session/cancel" {
            return tracing::debug!(method = notification.method, "a notification was ignored");
        }
        match from_wire::cancel(notification.params) {
            Ok(session_id) => {
                let mut state = self.shared.lock();
                if let Some(link) = state.links.get_mut(&session_id) {
                    self.shared.order(&session_id, link, Order::Cancel);
                }
            }
            Err(error) => tracing::debug!(%error, "a cancellation was ignored"),
        }
    }

    /// The sessions go on; their couriers leave when they owe no answer any more.
    fn closed(&self) {
        let mut state = self.shared.lock();
        state.phase = Phase::Closed;
        state.links.clear();
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn route(self: &Arc<Self>, request: Request, responder: Responder) {
        match request {
            Request::Initialize(initialize) => self.initialize(&initialize, responder),
            Request::Authenticate { method_id } => self.authenticate(method_id, responder),
            Request::Logout => self.log_out(responder),
            Request::NewSession(workplace) => self.new_session(None, workplace, responder),
            Request::ForkSession { session_id, workplace } => {
                self.new_session(Some(session_id), workplace, responder);
            }
            Request::LoadSession { session_id, workplace } => {
                self.open(&session_id, Opening { from: AttachFrom::Beginning, workplace, responder });
            }
            Request::ResumeSession { session_id, workplace } => {
                self.open(&session_id, Opening { from: AttachFrom::LiveRun, workplace, responder });
            }
            Request::ListSessions(list) => self.list(list, responder),
            Request::DeleteSession { session_id } => self.delete(session_id, responder),
            Request::CloseSession { session_id } => self.close(session_id, responder),
            Request::Prompt { session_id, prompt } => {
                self.linked(&session_id, Order::Prompt { prompt, responder })
            }
            Request::SetMode { session_id, mode_id } => {
                self.set_mode(&session_id, mode_id, "modeId", responder)
            }
            Request::SetConfigOption { session_id, config_id, value } => {
                self.set_config_option(&session_id, &config_id, value, responder);
            }
            Request::Status { session_id } => self.with_session(session_id, responder, |found| async move {
                Ok(status_result(&found.status().await?))
            }),
            Request::Export { session_id, format } => {
                let hub = self.agent.hub.clone();
                tokio::spawn(async move {
                    match hub.export(&session_id, format).await {
                        Ok(content) => {
                            responder.ok(&json!({ "format": format.as_str(), "content": content }))
                        }
                        Err(error) => responder.error(error_object(&error)),
                    }
                });
            }
            Request::QueueList { session_id } => {
                self.with_session(session_id, responder, |found| async move {
                    let queued = found.queued().await?;
                    Ok(json!({ "queued": queued.iter().map(queue_entry).collect::<Vec<_>>() }))
                })
            }
            Request::QueueCancel { session_id, message_id } => {
                self.with_session(session_id, responder, move |found| async move {
                    found.cancel_queued(message_id).await?;
                    Ok(json!({}))
                });
            }
            Request::QueueEdit { session_id, message_id, prompt } => {
                self.with_session(session_id, responder, move |found| async move {
                    found.edit_queued(message_id, prompt).await?;
                    Ok(json!({}))
                });
            }
        }
    }
}

impl Shared {
    fn initialize(&self, initialize: &Initialize, responder: Responder) {
        let choices = self.agent.hub.choices();
        let mut state = self.lock();
        match state.phase {
            Phase::New => {}
            Phase::Ready(_) | Phase::Closed => {
                let error = ErrorObject::invalid_request("the connection has been initialized already");
                return responder.error(error);
            }
        }
        let logins = self.logins_for(&initialize.capabilities);
        let version = self.agent.version;
        let logins =
            Logins { ways: logins.as_deref(), terminals: LoginTerminals::of(&initialize.capabilities) };
        match initialize_response(initialize.version, &choices.get(), logins, version) {
            Ok(response) => {
                let view = WireView::new(choices.clone(), &initialize.capabilities, self.agent.thoughts);
                let offers = offers(&initialize.capabilities, self.agent.client_fs);
                state.phase = Phase::Ready(Greeted {
                    view: Arc::new(view),
                    offers,
                    forms: Forms::of(&initialize.capabilities),
                });
                responder.ok(&response);
            }
            Err(error) => responder.error(ErrorObject::internal(error.to_string())),
        }
    }

    /// For sessions that this connection has opened.
    fn linked(self: &Arc<Self>, session_id: &SessionId, order: Order) {
        let mut state = self.lock();
        match state.links.get_mut(session_id) {
            Some(link) => self.order(session_id, link, order),
            None => {
                drop(state);
                order.refuse(&unknown_session(session_id));
            }
        }
    }

    /// For any session: in order with what this connection does in it if it is open here, by itself if not. Nothing is
    /// opened by it.
    fn with_session<F>(
        self: &Arc<Self>,
        session_id: SessionId,
        responder: Responder,
        ask: impl FnOnce(Found) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<serde_json::Value, HubError>> + Send + 'static,
    {
        let hub = self.agent.hub.clone();
        let mut state = self.lock();
        if let Some(link) = state.links.get_mut(&session_id) {
            let ask = move |handle| ask(hub.found(handle));
            return self.order(&session_id, link, Order::ask(responder, ask));
        }
        drop(state);
        tokio::spawn(async move {
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

    fn set_mode(
        self: &Arc<Self>,
        session_id: &SessionId,
        mode_id: String,
        field: &'static str,
        responder: Responder,
    ) {
        let choices = self.agent.hub.choices().get();
        if !choices.modes.iter().any(|mode| mode.id == mode_id) {
            let known: Vec<_> = choices.modes.iter().map(|mode| mode.id.as_str()).collect();
            let reason = format!("{field}: there is no mode {mode_id:?}; available: {}", known.join(", "));
            return responder.error(ErrorObject::invalid_params(reason));
        }
        if field == "value" {
            return self.choose(
                session_id,
                responder,
                |handle| async move { handle.set_mode(mode_id).await },
            );
        }
        let order = Order::ask(responder, move |handle| async move {
            handle.set_mode(mode_id).await?;
            Ok(json!({}))
        });
        self.linked(session_id, order);
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
            MODE_OPTION => self.set_mode(session_id, value, "value", responder),
            MODEL_OPTION => {
                let Some((provider_id, model_id)) = value.split_once('/') else {
                    return refuse(responder, format!("value: there is no model {value:?}"));
                };
                let model = ModelRef::new(provider_id, model_id);
                self.choose(session_id, responder, |handle| async move { handle.set_model(model).await });
            }
            THOUGHT_OPTION => {
                let level = ThoughtLevel::parse(&value);
                if level.is_none() && value != DEFAULT_THOUGHT {
                    return refuse(responder, format!("value: there is no thought level {value:?}"));
                }
                self.choose(
                    session_id,
                    responder,
                    move |handle| async move { handle.set_thought(level).await },
                );
            }
            APPROVAL_OPTION => {
                let Some(approval) = Approval::parse(&value) else {
                    return refuse(responder, format!("value: must be ask, edits or all, not {value:?}"));
                };
                self.choose(session_id, responder, move |handle| async move {
                    handle.set_approval(approval).await
                });
            }
            _ => {
                let known = "mode, model, thought_level, approval";
                refuse(responder, format!("configId: there is no option {config_id:?}; known: {known}"));
            }
        }
    }

    /// Chooses something in a session; the answer is the complete list of options.
    fn choose<F>(
        self: &Arc<Self>,
        session_id: &SessionId,
        responder: Responder,
        choose: impl FnOnce(SessionHandle) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<Chosen, HubError>> + Send + 'static,
    {
        let choices = self.agent.hub.choices().clone();
        let order = Order::ask(responder, move |handle| async move {
            let chosen = choose(handle).await.map_err(|error| match error {
                HubError::Invalid(reason) => HubError::Invalid(format!("value: {reason}")),
                other => other,
            })?;
            Ok(json!({ "configOptions": config_options(&choices.get(), &chosen) }))
        });
        self.linked(session_id, order);
    }
}
