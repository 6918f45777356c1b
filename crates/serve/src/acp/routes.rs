//! Which session a message of ours belongs to, so that it goes to that session's stream: by what it says
//! itself, or by the request that it answers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_rpc::RequestId;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

/// Prefix of every update; the session's id follows.
const UPDATE: &[u8] = br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#;

/// Whether messages go to streams of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamLayout {
    /// Everything on one: a WebSocket.
    One,
    OfSessions,
}

#[derive(Debug)]
pub(super) struct Routes {
    streams: StreamLayout,
    /// Why a lock: requests come in while answers go out. Held for look-ups only.
    state: Mutex<RouteState>,
}

#[derive(Debug, Default)]
struct RouteState {
    /// Unanswered requests of the client, with their sessions.
    client_requests: HashMap<RequestId, Option<Arc<str>>>,
    /// Ours that the client has not answered.
    server_requests: HashMap<RequestId, Arc<str>>,
    /// Receives the answer to `initialize`.
    hello: Option<oneshot::Sender<Bytes>>,
}

/// Why a message of the client can't be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MisrouteReason {
    /// A request with this id is under way.
    UnderWay,
    /// It is about another session than its header says.
    OtherSession,
}

#[derive(Deserialize)]
struct OutgoingLine<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedParams<'a> {
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
}

impl Routes {
    pub(super) fn new(streams: StreamLayout) -> Self {
        Self { streams, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, RouteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message of ours is the answer to the first of the client's, and goes here.
    pub(super) fn await_hello(&self) -> oneshot::Receiver<Bytes> {
        let (sender, receiver) = oneshot::channel();
        self.lock().hello = Some(sender);
        receiver
    }

    /// Whether this message is the awaited answer to `initialize`; delivers it.
    pub(super) fn take_hello(&self, line: &Bytes) -> bool {
        let hello = self.lock().hello.take();
        // If the receiver is gone, so is its connection.
        hello.map(|hello| drop(hello.send(line.clone()))).is_some()
    }

    /// A request of the client: its answer goes where `session` does.
    pub(super) fn asked(&self, id: RequestId, session: Option<&str>) -> Result<(), MisrouteReason> {
        let mut state = self.lock();
        if state.client_requests.contains_key(&id) {
            return Err(MisrouteReason::UnderWay);
        }
        state.client_requests.insert(id, session.map(Arc::from));
        Ok(())
    }

    /// The connection did not take it after all.
    pub(super) fn not_asked(&self, id: &RequestId) {
        self.lock().client_requests.remove(id);
    }

    /// An answer of the client, which says that it is about `session`.
    pub(super) fn answered(&self, id: &RequestId, session: Option<&str>) -> Result<(), MisrouteReason> {
        let mut state = self.lock();
        let known = state.server_requests.get(id);
        if let (Some(known), Some(session)) = (known, session)
            && **known != *session
        {
            return Err(MisrouteReason::OtherSession);
        }
        state.server_requests.remove(id);
        Ok(())
    }

    pub(super) fn session_of(&self, line: &[u8]) -> Option<Arc<str>> {
        match self.streams {
            StreamLayout::One => None,
            StreamLayout::OfSessions => match updated_session(line) {
                Some(session) => Some(session.into()),
                None => self.session_by_contents(line),
            },
        }
    }

    fn session_by_contents(&self, line: &[u8]) -> Option<Arc<str>> {
        let Ok(ours) = serde_json::from_slice::<OutgoingLine<'_>>(line) else {
            tracing::error!("a message of ours can't be read");
            return None;
        };
        let id = ours.id.and_then(RequestId::of_json);
        let Some(method) = ours.method else { return self.lock().client_requests.remove(&id?).flatten() };
        let params: NamedParams<'_> =
            ours.params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let mut state = self.lock();
        if method == "$/cancel_request" {
            return state.server_requests.remove(&RequestId::of_json(params.request_id?)?);
        }
        let session: Arc<str> = params.session_id?.into();
        if let Some(id) = id {
            state.server_requests.insert(id, session.clone());
        }
        Some(session)
    }
}

/// The session of an update, which most messages are. Ids of ours have nothing that JSON would escape.
fn updated_session(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(UPDATE)?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    if rest[end] == b'\\' {
        return None;
    }
    std::str::from_utf8(&rest[..end]).ok()
}

/// The session that a message of the client names.
pub(super) fn named_session(params: Option<&RawValue>) -> Option<String> {
    let named: NamedParams<'_> = serde_json::from_str(params?.get()).ok()?;
    named.session_id.map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(json: &str) -> RequestId {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        RequestId::of_json(&raw).unwrap()
    }

    fn session(routes: &Routes, line: &str) -> Option<String> {
        routes.session_of(line.as_bytes()).map(|session| session.to_string())
    }

    #[test]
    fn messages_go_where_their_session_or_their_request_belongs() {
        let routes = Routes::new(StreamLayout::OfSessions);
        let some = |text: &str| Some(text.to_owned());
        let update = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{}}}"#;
        assert_eq!(session(&routes, update), some("s1"));
        assert_eq!(session(&routes, &update.replace("s1", "s\\u0031")), some("s1"));
        assert_eq!(session(&routes, &update.replace("session/update", "_other")), some("s1"));
        routes.asked(id("1"), Some("s1")).unwrap();
        routes.asked(id("\"x\""), None).unwrap();
        assert_eq!(routes.asked(id("1"), None), Err(MisrouteReason::UnderWay));
        assert_eq!(session(&routes, r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s9"}}"#), some("s1"));
        assert_eq!(session(&routes, r#"{"jsonrpc":"2.0","id":"x","error":{}}"#), None);
        routes.asked(id("1"), None).unwrap();
        for nobody in
            [r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, r#"{"jsonrpc":"2.0","id":7,"result":null}"#]
        {
            assert_eq!(session(&routes, nobody), None);
        }
        assert_eq!(session(&Routes::new(StreamLayout::One), update), None);
    }

    #[test]
    fn an_answer_or_a_withdrawal_belongs_to_the_session_of_its_question() {
        let routes = Routes::new(StreamLayout::OfSessions);
        let ask = |number: u32| {
            let line =
                format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"m","params":{{"sessionId":"s1"}}}}"#);
            session(&routes, &line)
        };
        assert_eq!((ask(1), ask(2)), (Some("s1".to_owned()), Some("s1".to_owned())));
        assert_eq!(routes.answered(&id("1"), Some("s2")), Err(MisrouteReason::OtherSession));
        assert_eq!(routes.answered(&id("1"), Some("s1")), Ok(()));
        assert_eq!(routes.answered(&id("1"), Some("s2")), Ok(()));
        let cancel = r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}"#;
        assert_eq!(session(&routes, cancel), Some("s1".to_owned()));
        assert!(routes.lock().server_requests.is_empty());
    }
}
