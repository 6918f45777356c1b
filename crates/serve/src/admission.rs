//! What a caller may do here and how much of it: by the scope of its token, and by the limits of its token and
//! of its address. Knows no session.

mod allowances;
mod scopes;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use attache_http::{ClientAddress, Requester, TokenScope, refusal};
use attache_rpc::{EnvelopeMessage, ErrorObject, RequestId, read_message};
use axum::http::header::RETRY_AFTER;
use axum::http::{Extensions, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

pub(crate) use allowances::ConnectionPlace;
use allowances::{Allowances, LimitReached, network};
pub use allowances::{CallerLimits, ServeLimits};
pub(crate) use scopes::check_scope;

use crate::metrics::{PromptWay, ServerMetrics};

/// Of a refusal of ours, which no one else has a code for: the client is to wait, or may not at all.
const NOT_ADMITTED: i32 = -32_003;

/// Who sends something.
#[derive(Clone, Debug)]
pub(crate) struct RemoteCaller {
    pub(crate) requester: Requester,
    address: Option<IpAddr>,
}

impl RemoteCaller {
    /// As the check before us found out. Where there was none, somebody may only look.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let unknown = || Requester { name: "unknown".into(), scope: TokenScope::Read };
        let address = extensions.get::<ClientAddress>().and_then(|ClientAddress(address)| *address);
        Self { requester: extensions.get::<Requester>().cloned().unwrap_or_else(unknown), address }
    }

    /// Where a request comes from, as limits count it: addresses of IPv6 by their network.
    pub(crate) fn counted_address(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<ClientAddress>().and_then(|ClientAddress(address)| *address).map(network)
    }

    /// Somebody who has shown in another way who it is.
    pub(crate) fn named(requester: Requester, extensions: &Extensions) -> Self {
        Self { requester, ..Self::of(extensions) }
    }
}

/// Why something is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallerRefusal {
    Scope { name: Arc<str>, scope: TokenScope },
    TooMuch { what: &'static str, retry: Duration },
}

impl From<LimitReached> for CallerRefusal {
    fn from(LimitReached { what, retry }: LimitReached) -> Self {
        Self::TooMuch { what, retry }
    }
}

impl CallerRefusal {
    fn reason(&self) -> String {
        match self {
            Self::Scope { name, scope } => {
                let may = match scope {
                    TokenScope::Read => "only read",
                    TokenScope::Talk => "read and talk",
                    TokenScope::All => "do everything else",
                };
                format!("the token \"{name}\" may {may} (`serve.tokens`)")
            }
            Self::TooMuch { what, retry } => {
                format!("too many {what}; try again in {} s", whole_seconds(*retry))
            }
        }
    }

    pub(crate) fn response(&self) -> Response {
        match self {
            Self::Scope { .. } => refusal(StatusCode::FORBIDDEN, &self.reason()),
            Self::TooMuch { retry, .. } => too_many(&self.reason(), *retry),
        }
    }

    /// The answer to a request over a WebSocket; anything else is left without one.
    fn answer(&self, id: &RequestId) -> Option<Bytes> {
        let mut error = ErrorObject::new(NOT_ADMITTED, self.reason());
        if let Self::TooMuch { retry, .. } = self {
            error = error.with_data(json!({ "retryAfter": whole_seconds(*retry) }));
        }
        let id = RawValue::from_string(id.as_json().to_owned()).ok()?;
        Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into())
    }
}

/// 429, and when it is worth another try.
pub(crate) fn too_many(reason: &str, retry: Duration) -> Response {
    let mut response = refusal(StatusCode::TOO_MANY_REQUESTS, reason);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(whole_seconds(retry)));
    response
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1_000).max(1).try_into().unwrap_or(u64::MAX)
}

/// What comes of a message over a WebSocket before anybody looks at it.
pub(crate) enum FrameAdmission {
    Taken,
    /// Not passed on; this is said instead, if anything is.
    Refused(Option<Bytes>),
}

/// A copy is the same.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    allowances: Arc<Allowances>,
    metrics: ServerMetrics,
}

impl Admission {
    pub(crate) fn new(limits: ServeLimits, metrics: ServerMetrics) -> Self {
        Self { allowances: Arc::new(Allowances::new(limits)), metrics }
    }

    pub(crate) fn metrics(&self) -> &ServerMetrics {
        &self.metrics
    }

    /// A place for one more connection, or stream of a chat.
    pub(crate) fn connect(&self, caller: &RemoteCaller) -> Result<ConnectionPlace, CallerRefusal> {
        Ok(Allowances::connect(&self.allowances, &caller.requester.name, caller.address)?)
    }

    /// Whether a body of this caller is read at all.
    pub(crate) fn check_bytes(&self, caller: &RemoteCaller) -> Result<(), CallerRefusal> {
        Ok(self.allowances.check_bytes(&caller.requester.name, caller.address)?)
    }

    /// What came with a body.
    pub(crate) fn spend_bytes(&self, caller: &RemoteCaller, bytes: usize) {
        self.metrics.received(bytes);
        self.allowances.spend_bytes(&caller.requester.name, caller.address, bytes);
    }

    /// One more prompt.
    pub(crate) fn prompt(&self, caller: &RemoteCaller, way: PromptWay) -> Result<(), CallerRefusal> {
        self.check_prompt(caller)?;
        self.metrics.prompted(way);
        Ok(())
    }

    /// The same where it is counted later.
    pub(crate) fn check_prompt(&self, caller: &RemoteCaller) -> Result<(), CallerRefusal> {
        Ok(self.allowances.prompt(&caller.requester.name, caller.address)?)
    }

    /// One message of ACP, whatever carries it.
    pub(crate) fn message(
        &self,
        caller: &RemoteCaller,
        message: &EnvelopeMessage,
    ) -> Result<(), CallerRefusal> {
        let (EnvelopeMessage::Request { method, .. } | EnvelopeMessage::Notification { method, .. }) =
            message
        else {
            // Who may not talk is asked nothing, and an answer to nothing is passed over.
            return Ok(());
        };
        let Requester { name, scope } = &caller.requester;
        if *scope < scopes::needed_for(method) {
            return Err(CallerRefusal::Scope { name: name.clone(), scope: *scope });
        }
        match method.as_str() {
            "session/prompt" => self.prompt(caller, PromptWay::Acp),
            _ => Ok(()),
        }
    }

    /// The same for the text of one; what is no message is the reader's to refuse.
    pub(crate) fn frame(&self, caller: &RemoteCaller, text: &[u8]) -> FrameAdmission {
        let Ok(message) = read_message(text) else { return FrameAdmission::Taken };
        match self.message(caller, &message) {
            Ok(()) => FrameAdmission::Taken,
            Err(refused) => FrameAdmission::Refused(match &message {
                EnvelopeMessage::Request { id, .. } => refused.answer(id),
                EnvelopeMessage::Notification { .. } | EnvelopeMessage::Response { .. } => None,
            }),
        }
    }

    /// How long the next message over a WebSocket has to wait: it can't be refused once it was sent.
    pub(crate) fn wait_for_bytes(&self, caller: &RemoteCaller) -> Option<Duration> {
        self.allowances.check_bytes(&caller.requester.name, caller.address).err().map(|over| over.retry)
    }
}
