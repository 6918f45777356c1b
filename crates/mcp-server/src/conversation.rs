//! One conversation with a client: the hello, the list of tools, and calls, each in a task of its own. Knows no
//! transport.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_rpc::{
    Connection, ErrorObject, Handler, IncomingRequest, MessageSink, MessageSource, Notification, Options,
    Peer, RequestId, Responder,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::limits::{LIST_LIFE, REQUESTS};
use crate::parked::{InputQuestion, NewsTarget, RunningAsk};
use crate::person::FormSupport;
use crate::revision::Revision;
use crate::services::McpServices;
use crate::stateless::{self, RequestStyle, STATELESS_REVISIONS};
use crate::tool_list::{self, OfferedTool};
use crate::{ask, session_read, sessions_search};

/// How a conversation is carried, whatever the transport.
pub fn options() -> Options {
    Options { max_in_flight: REQUESTS, cancellation: "notifications/cancelled", ..Options::default() }
}

/// Serves one client until it hangs up; its open requests are cancelled then.
pub fn converse(
    services: McpServices,
    source: impl MessageSource,
    sink: impl MessageSink,
    options: Options,
) -> Connection {
    let (_, connection) = Peer::start(source, sink, options, |peer| {
        Arc::new(ServedConversation { services, peer, client: Arc::default() })
    });
    connection
}

#[derive(Clone)]
struct ServedConversation {
    services: McpServices,
    peer: Peer,
    /// `None` before the hello. Why a lock: calls look in tasks of their own. Held for a look only.
    client: Arc<Mutex<Option<ClientTraits>>>,
}

/// What the client said of itself.
#[derive(Clone, Copy, Debug)]
struct ClientTraits {
    forms: FormSupport,
}

/// A call under way, as its tool sees it.
#[derive(Clone, Debug)]
pub(crate) struct McpCall {
    pub(crate) peer: Peer,
    /// As the client named the request.
    pub(crate) request: RequestId,
    pub(crate) news: NewsTarget,
    /// Where questions go of a client that can't be asked in the midst of a call.
    pub(crate) input_requests: Option<mpsc::Sender<InputQuestion>>,
    pub(crate) forms: FormSupport,
    /// Fires when the result is not waited for any more.
    pub(crate) cancelled: CancellationToken,
}

impl Handler for ServedConversation {
    fn request(&self, request: IncomingRequest) {
        let IncomingRequest { method, params, responder } = request;
        match stateless::style(&method, params.as_deref()) {
            Ok(RequestStyle::Greeted) => {}
            Ok(RequestStyle::Stateless) => return self.stateless(&method, params.as_deref(), responder),
            Err(error) => return responder.error(error),
        }
        let client = *self.client();
        match (method.as_str(), client) {
            ("initialize", None) => self.initialize(params.as_deref(), responder),
            ("initialize", Some(_)) => {
                responder.error(ErrorObject::invalid_request("this conversation has begun already"));
            }
            ("ping", _) => responder.ok(&json!({})),
            (_, None) => responder.error(ErrorObject::invalid_request("`initialize` comes first")),
            ("tools/list", Some(_)) => self.list(RequestStyle::Greeted, params.as_deref(), responder),
            ("tools/call", Some(client)) => {
                self.call(client, RequestStyle::Greeted, params.as_deref(), responder);
            }
            (method, Some(_)) => responder.error(ErrorObject::method_not_found(method)),
        }
    }

    fn notification(&self, notification: Notification) {
        tracing::debug!(method = notification.method, "a client said");
    }

    fn closed(&self) {
        tracing::debug!("a client has left");
    }
}

impl ServedConversation {
    fn client(&self) -> MutexGuard<'_, Option<ClientTraits>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn initialize(&self, params: Option<&RawValue>, responder: Responder) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeParams {
            protocol_version: String,
            #[serde(default)]
            capabilities: Value,
        }
        let hello: InitializeParams = match read_params("initialize", params) {
            Ok(hello) => hello,
            Err(error) => return responder.error(error),
        };
        let revision = Revision::agreed(&hello.protocol_version);
        let forms = FormSupport::of(&hello.capabilities, revision);
        *self.client() = Some(ClientTraits { forms });
        responder.ok(&json!({
            "protocolVersion": revision.name(),
            "capabilities": { "tools": { "listChanged": false } },
            "serverInfo": stateless::server_info(self.services.version),
            "instructions": tool_list::INSTRUCTIONS,
        }));
    }

    /// A request of a client that sends no `initialize`.
    fn stateless(&self, method: &str, params: Option<&RawValue>, responder: Responder) {
        let style = RequestStyle::Stateless;
        match method {
            "server/discover" => {
                let found = json!({
                    "supportedVersions": STATELESS_REVISIONS,
                    "capabilities": { "tools": { "listChanged": false } },
                    "instructions": tool_list::INSTRUCTIONS,
                    "ttlMs": LIST_LIFE.as_millis() as u64,
                    "cacheScope": "private",
                });
                responder.ok(&style.result(found, self.services.version));
            }
            "tools/list" => self.list(style, params, responder),
            "tools/call" => {
                self.call(ClientTraits { forms: stateless::forms(params) }, style, params, responder);
            }
            method => responder.error(ErrorObject::method_not_found(method)),
        }
    }

    /// All of them at once: there are no further pages.
    fn list(&self, style: RequestStyle, params: Option<&RawValue>, responder: Responder) {
        #[derive(Default, Deserialize)]
        struct ListParams {
            cursor: Option<String>,
        }
        let page = match params {
            Some(_) => read_params("tools/list", params),
            None => Ok(ListParams::default()),
        };
        match page {
            Ok(ListParams { cursor: None }) => {
                let mut listed = tool_list::listed();
                if style == RequestStyle::Stateless {
                    listed["ttlMs"] = (LIST_LIFE.as_millis() as u64).into();
                    listed["cacheScope"] = "private".into();
                }
                responder.ok(&style.result(listed, self.services.version));
            }
            Ok(ListParams { cursor: Some(_) }) => {
                responder.error(ErrorObject::invalid_params("tools/list: this cursor is not one of ours"));
            }
            Err(error) => responder.error(error),
        }
    }

    fn call(
        &self,
        client: ClientTraits,
        style: RequestStyle,
        params: Option<&RawValue>,
        responder: Responder,
    ) {
        let params: CallParams<'_> = match read_params("tools/call", params) {
            Ok(params) => params,
            Err(error) => return responder.error(error),
        };
        let Some(tool) = OfferedTool::find(&params.name) else {
            let message = format!("unknown tool: {}; there are {}", params.name, OfferedTool::names());
            return responder.error(ErrorObject::invalid_params(message));
        };
        let arguments = params.arguments.map(RawValue::to_owned);
        let token = params.meta.progress_token.filter(|token| token.is_string() || token.is_number());
        let call = McpCall {
            peer: self.peer.clone(),
            request: responder.id().clone(),
            news: NewsTarget::new(self.peer.clone(), token),
            input_requests: None,
            forms: client.forms,
            cancelled: responder.cancelled(),
        };
        let services = self.services.clone();
        let (state, answers) = (params.request_state, params.input_responses.unwrap_or_default());
        tokio::spawn(async move {
            let outcome = match (tool, style, state) {
                (_, RequestStyle::Stateless, Some(state)) => {
                    let McpServices { parked, version, .. } = &services;
                    return parked.come_back(&state, answers, &call.news, responder, version).await;
                }
                (OfferedTool::Ask, RequestStyle::Stateless, None) => {
                    let running = begin_ask(&services, call, arguments);
                    return services.parked.go_on(running, responder, services.version).await;
                }
                (OfferedTool::Ask, RequestStyle::Greeted, _) => {
                    ask::run(&services, &call, arguments.as_deref()).await
                }
                (OfferedTool::SessionsSearch, ..) => {
                    sessions_search::run(&services, arguments.as_deref()).await
                }
                (OfferedTool::SessionRead, ..) => session_read::run(&services, arguments.as_deref()).await,
            };
            match call.cancelled.is_cancelled() {
                // A cancelled request gets no answer; some clients take one for an error.
                true => responder.leave_unanswered(),
                false => responder.ok(&style.result(outcome.to_json(), services.version)),
            }
        });
    }
}

/// The parameters of `tools/call`.
#[derive(Deserialize)]
struct CallParams<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "requestState", default)]
    request_state: Option<String>,
    #[serde(rename = "inputResponses", default)]
    input_responses: Option<BTreeMap<String, Box<RawValue>>>,
    #[serde(rename = "_meta", default)]
    meta: CallMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallMeta {
    progress_token: Option<Value>,
}

/// In a task of its own: it may go on through several requests.
fn begin_ask(services: &McpServices, call: McpCall, arguments: Option<Box<RawValue>>) -> RunningAsk {
    let (input_requests, questions) = mpsc::channel(1);
    let cancelled = CancellationToken::new();
    let (services, news, abort) = (services.clone(), call.news.clone(), cancelled.clone().drop_guard());
    let call = McpCall { input_requests: Some(input_requests), cancelled, ..call };
    let outcome = tokio::spawn(async move { ask::run(&services, &call, arguments.as_deref()).await });
    RunningAsk { outcome, questions, news, _abort: abort }
}

fn read_params<'a, T: Deserialize<'a>>(method: &str, params: Option<&'a RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    // A derived struct would also take its fields from an array, by position.
    if !text.starts_with('{') {
        return Err(ErrorObject::invalid_params(format!("{method}: the parameters must be an object")));
    }
    serde_json::from_str(text).map_err(|error| ErrorObject::invalid_params(format!("{method}: {error}")))
}
