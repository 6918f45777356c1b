//! As much of a conversation as it takes to begin it anew on a server that has forgotten it: `initialize`,
//! the open sessions, and the unanswered requests of both sides. Pure: sends nothing.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use attache_rpc::{EnvelopeMessage, ErrorObject, RequestId, read_message};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// How every update begins; nothing is to be remembered of one.
const UPDATE: &[u8] = br#"{"jsonrpc":"2.0","method":"session/update""#;

/// How requests of our own are named: no client names its own like that.
const OWN: &str = "attache-bridge-";

#[derive(Debug, Default)]
pub(super) struct ConversationMemory {
    /// The parameters of the editor's `initialize`, once it was answered.
    hello: Option<Value>,
    /// Where each open session works, as its last request said.
    sessions: HashMap<String, Map<String, Value>>,
    /// Requests of the editor that the server has not answered, with what they mean for sessions.
    owed: HashMap<RequestId, OwedAnswer>,
    /// Requests of the server that the editor has not answered, by the ids that the editor knows.
    asked: HashSet<RequestId>,
    /// How often the conversation was begun anew: ids of servers before this one mean nothing to it.
    epoch: u64,
}

#[derive(Debug)]
enum OwedAnswer {
    Hello(Value),
    /// A session at this place; its id is in the answer.
    New(Map<String, Value>),
    /// The session of this id at this place.
    Opened(String, Map<String, Value>),
    Gone(String),
    /// The end of a turn, which may be far away.
    Turn,
    Other,
}

#[derive(Deserialize)]
struct ServerLine<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

impl ConversationMemory {
    /// A message of the editor on its way to the server; `None` if it was for a server that is not there any
    /// more.
    pub(super) fn outgoing(&mut self, line: Bytes) -> Option<Bytes> {
        match read_message(&line) {
            Ok(EnvelopeMessage::Request { id, method, params }) => {
                self.owed.insert(id, OwedAnswer::of(&method, params.as_deref()));
                Some(line)
            }
            Ok(EnvelopeMessage::Response { id, outcome }) => {
                let is_awaited = self.asked.remove(&id);
                if self.epoch == 0 {
                    return Some(line);
                }
                let id = server_id(self.epoch, &id).filter(|_| is_awaited)?;
                Some(answer(id, outcome))
            }
            // What is no message is refused by the server, as it would be on a pipe.
            Ok(EnvelopeMessage::Notification { .. }) | Err(_) => Some(line),
        }
    }

    /// A message of the server on its way to the editor; `None` if the editor has nothing to do with it.
    pub(super) fn incoming(&mut self, line: Bytes) -> Option<Bytes> {
        if line.starts_with(UPDATE) {
            return Some(line);
        }
        let Ok(read) = serde_json::from_slice::<ServerLine<'_>>(&line) else { return Some(line) };
        let id = read.id.and_then(RequestId::of_json);
        match (read.method.as_deref(), id) {
            (None, Some(id)) => {
                if id.as_json().trim_matches('"').starts_with(OWN) {
                    return None;
                }
                if let Some(owed) = self.owed.remove(&id) {
                    self.settle(owed, read.result);
                }
                Some(line)
            }
            (Some(_), Some(_)) | (Some("$/cancel_request"), None) if self.epoch > 0 => {
                Some(self.in_this_epoch(&line))
            }
            (Some(_), Some(id)) => {
                self.asked.insert(id);
                Some(line)
            }
            (_, None) => Some(line),
        }
    }

    fn settle(&mut self, owed: OwedAnswer, result: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Made {
            session_id: String,
        }
        let Some(result) = result else { return };
        match owed {
            OwedAnswer::Hello(params) => self.hello = Some(params),
            OwedAnswer::New(place) => {
                if let Ok(made) = serde_json::from_str::<Made>(result.get()) {
                    self.sessions.insert(made.session_id, place);
                }
            }
            OwedAnswer::Opened(session, place) => {
                self.sessions.insert(session, place);
            }
            OwedAnswer::Gone(session) => {
                self.sessions.remove(&session);
            }
            OwedAnswer::Turn | OwedAnswer::Other => {}
        }
    }

    /// Ids of this server's requests, as they are unlike those of the servers before.
    fn in_this_epoch(&mut self, line: &[u8]) -> Bytes {
        let mut message: Value = serde_json::from_slice(line).unwrap_or_default();
        let epoch = self.epoch;
        let renamed = |id: &Value| json!(format!("{OWN}{epoch}:{id}"));
        if message["method"] == "$/cancel_request" {
            let id = renamed(&message["params"]["requestId"]);
            message["params"]["requestId"] = id;
        } else {
            message["id"] = renamed(&message["id"]);
        }
        let line = message.to_string();
        if let Ok(ServerLine { id: Some(id), .. }) = serde_json::from_str(&line)
            && let Some(id) = RequestId::of_json(id)
        {
            self.asked.insert(id);
        }
        line.into()
    }

    /// The server has forgotten the conversation. Gives the messages for the editor: its requests end with
    /// `reason`, and questions of the server are taken back.
    pub(super) fn forget_server(&mut self, reason: &str) -> Vec<Bytes> {
        let mut told = self.refuse_owed(reason);
        for id in self.asked.drain() {
            let id = RawValue::from_string(id.as_json().to_owned()).ok();
            let cancel =
                json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } });
            told.push(cancel.to_string().into());
        }
        self.epoch += 1;
        told
    }

    /// Whether the server owes an answer that does not wait for a turn.
    pub(super) fn owes_answers(&self) -> bool {
        self.owed.values().any(|owed| !matches!(owed, OwedAnswer::Turn))
    }

    /// Ends the editor's requests with an error.
    pub(super) fn refuse_owed(&mut self, reason: &str) -> Vec<Bytes> {
        let error = ErrorObject::internal(reason);
        self.owed.drain().map(|(id, _)| answer(raw(&id), Err(error.clone()))).collect()
    }

    /// Ends one request of the editor, where it is one, while there is no server.
    pub(super) fn refuse(&mut self, line: &[u8], reason: &str) -> Option<Bytes> {
        match read_message(line) {
            Ok(EnvelopeMessage::Request { id, .. }) => {
                Some(answer(raw(&id), Err(ErrorObject::internal(reason))))
            }
            Ok(EnvelopeMessage::Response { id, .. }) => {
                self.asked.remove(&id);
                None
            }
            Ok(EnvelopeMessage::Notification { .. }) | Err(_) => None,
        }
    }

    /// The first messages to a new server: `initialize`, then the open sessions. Their answers are for us.
    pub(super) fn introduction(&self) -> Vec<Bytes> {
        let epoch = self.epoch;
        let request = |number: usize, method: &str, params: Value| -> Bytes {
            let id = format!("{OWN}{epoch}-{number}");
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().into()
        };
        let hello = self.hello.iter().map(|params| request(0, "initialize", params.clone()));
        let sessions = self.sessions.iter().enumerate().map(|(index, (session, place))| {
            let mut params = place.clone();
            params.insert("sessionId".to_owned(), json!(session));
            request(index + 1, "session/resume", Value::Object(params))
        });
        hello.chain(sessions).collect()
    }
}

impl OwedAnswer {
    fn of(method: &str, params: Option<&RawValue>) -> Self {
        let params =
            || params.and_then(|params| serde_json::from_str::<Value>(params.get()).ok()).unwrap_or_default();
        let session = |params: &Value| params["sessionId"].as_str().unwrap_or_default().to_owned();
        match method {
            "initialize" => Self::Hello(params()),
            "session/new" | "session/fork" => Self::New(place(&params())),
            "session/load" | "session/resume" => {
                let params = params();
                Self::Opened(session(&params), place(&params))
            }
            "session/prompt" | "_attache/session/compact" => Self::Turn,
            "session/close" | "session/delete" => Self::Gone(session(&params())),
            _ => Self::Other,
        }
    }
}

/// What a resume needs of a request that opened a session.
fn place(params: &Value) -> Map<String, Value> {
    let kept = ["cwd", "mcpServers", "additionalDirectories"];
    kept.iter().filter_map(|key| Some(((*key).to_owned(), params.get(*key)?.clone()))).collect()
}

/// The id that the server of this epoch knows.
fn server_id(epoch: u64, id: &RequestId) -> Option<Box<RawValue>> {
    let id: String = serde_json::from_str(id.as_json()).ok()?;
    let own = id.strip_prefix(OWN)?.strip_prefix(&epoch.to_string())?.strip_prefix(':')?;
    RawValue::from_string(own.to_owned()).ok()
}

fn raw(id: &RequestId) -> Box<RawValue> {
    RawValue::from_string(id.as_json().to_owned()).unwrap_or_default()
}

fn answer(id: Box<RawValue>, outcome: Result<Box<RawValue>, ErrorObject>) -> Bytes {
    let message = match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    };
    message.to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: &Value) -> Bytes {
        value.to_string().into()
    }

    fn said(memory: &mut ConversationMemory, value: Value) {
        assert!(memory.outgoing(line(&value)).is_some());
    }

    fn heard(memory: &mut ConversationMemory, value: Value) -> Option<Value> {
        memory.incoming(line(&value)).map(|line| serde_json::from_slice(&line).unwrap())
    }

    fn request(id: u64, method: &str, params: Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    fn greeted() -> ConversationMemory {
        let mut memory = ConversationMemory::default();
        said(&mut memory, request(0, "initialize", json!({ "protocolVersion": 1 })));
        heard(&mut memory, json!({ "jsonrpc": "2.0", "id": 0, "result": {} }));
        said(&mut memory, request(1, "session/new", json!({ "cwd": "/w", "mcpServers": [] })));
        heard(&mut memory, json!({ "jsonrpc": "2.0", "id": 1, "result": { "sessionId": "s1" } }));
        memory
    }

    #[test]
    fn a_new_server_is_told_what_the_last_one_knew() {
        let mut memory = greeted();
        for (id, session, answered) in [(2, "s2", true), (3, "s3", false)] {
            said(&mut memory, request(id, "session/load", json!({ "sessionId": session, "cwd": "/w" })));
            let answer = if answered {
                json!({ "result": {} })
            } else {
                json!({ "error": { "code": 1, "message": "" } })
            };
            let mut answer = answer;
            answer["id"] = json!(id);
            heard(&mut memory, answer);
        }
        said(&mut memory, request(4, "session/close", json!({ "sessionId": "s2" })));
        heard(&mut memory, json!({ "id": 4, "result": {} }));
        memory.forget_server("gone");
        let told: Vec<Value> =
            memory.introduction().iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
        assert_eq!(told.len(), 2);
        assert_eq!(
            (&told[0]["method"], &told[0]["params"]["protocolVersion"]),
            (&json!("initialize"), &json!(1))
        );
        assert_eq!(told[1]["params"], json!({ "sessionId": "s1", "cwd": "/w", "mcpServers": [] }));
        let own = json!({ "jsonrpc": "2.0", "id": told[0]["id"], "result": {} });
        assert_eq!(heard(&mut memory, own), None);
    }

    #[test]
    fn what_is_owed_ends_with_the_reason_and_questions_are_taken_back() {
        let mut memory = greeted();
        said(&mut memory, request(7, "session/prompt", json!({ "sessionId": "s1" })));
        heard(&mut memory, request(5, "session/request_permission", json!({ "sessionId": "s1" })));
        let told: Vec<Value> = memory
            .forget_server("it is gone")
            .iter()
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect();
        assert_eq!((&told[0]["id"], &told[0]["error"]["message"]), (&json!(7), &json!("it is gone")));
        assert_eq!(told[1]["params"]["requestId"], 5);
        // An answer to the old question reaches no other one.
        let late = json!({ "jsonrpc": "2.0", "id": 5, "result": {} });
        assert_eq!(memory.outgoing(line(&late)), None);
        let asked = heard(&mut memory, request(5, "session/request_permission", json!({}))).unwrap();
        let id = asked["id"].clone();
        assert_ne!(id, json!(5));
        let withdrawn =
            json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 5 } });
        assert_eq!(heard(&mut memory, withdrawn).unwrap()["params"]["requestId"], id);
        let reply = json!({ "jsonrpc": "2.0", "id": id, "result": { "a": 1 } });
        let sent = memory.outgoing(line(&reply)).unwrap();
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        assert_eq!((&sent["id"], &sent["result"]["a"]), (&json!(5), &json!(1)));
    }
}
