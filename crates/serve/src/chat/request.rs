//! What an AI SDK client posts, read into a prompt or into answers to calls. Decides nothing about sessions.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use attache_acp::from_wire::{self, ClientRequest};
use attache_core::prompt::Prompt;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Longest id of a chat or a message; those of the SDK have 16 characters.
const ID_BYTES: usize = 128;

#[derive(Debug)]
pub(super) struct ChatRequest {
    pub(super) chat: String,
    /// Where a new session is to work.
    pub(super) directory: Option<PathBuf>,
    pub(super) word: LastWord,
    pub(super) again: SaidAgain,
}

#[derive(Debug)]
pub(super) enum LastWord {
    /// With the client's id of the message.
    Prompt { message: String, prompt: Box<Prompt> },
    /// To calls that ask; and the id of the answer that goes on.
    Answers { message: String, posted: PostedApprovals },
}

/// What a client knows of calls that ask, by the ids of their questions.
#[derive(Debug, Default)]
pub(super) struct PostedApprovals {
    pub(super) answers: HashMap<String, CallAnswer>,
    /// Shown, and not answered.
    pub(super) open: HashSet<String>,
}

/// Whether a known message replaces what followed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaidAgain {
    /// A repeated POST has the same id and is the same message.
    IsTheSame,
    /// Edited, or to be answered anew: what followed it is rewound.
    Replaces,
}

/// What a person said to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallAnswer {
    Allowed,
    /// With the reason, if one was given.
    Denied(Option<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostedChat {
    id: String,
    #[serde(default)]
    messages: Vec<PostedMessage>,
    message: Option<PostedMessage>,
    trigger: Option<String>,
    message_id: Option<String>,
    cwd: Option<PathBuf>,
}

#[derive(Deserialize)]
struct PostedMessage {
    id: String,
    role: String,
    #[serde(default)]
    parts: Vec<Value>,
}

impl ChatRequest {
    /// The error says what is wrong and what to send.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let posted: PostedChat = serde_json::from_slice(body).map_err(|error| {
            format!("this is no request of a chat, as `DefaultChatTransport` sends it: {error}")
        })?;
        check_id("id", &posted.id)?;
        let again = match posted.trigger.as_deref() {
            None | Some("submit-message") if posted.message_id.is_none() => SaidAgain::IsTheSame,
            None | Some("submit-message" | "regenerate-message") => SaidAgain::Replaces,
            Some(_) => return Err("trigger: must be submit-message or regenerate-message".to_owned()),
        };
        let messages = || posted.messages.iter().chain(&posted.message);
        let approvals = PostedApprovals {
            answers: messages().flat_map(answers_in).collect(),
            open: messages().flat_map(open_in).collect(),
        };
        let Some(last) = posted.message.or_else(|| posted.messages.into_iter().next_back()) else {
            return Err("messages: there is none".to_owned());
        };
        check_id("the last message's id", &last.id)?;
        let word = match last.role.as_str() {
            "user" => LastWord::Prompt { prompt: Box::new(prompt(&last)?), message: last.id },
            "assistant" => answered(last, approvals)?,
            _ => return Err("the last message must be of the user, or answer a call that asks".to_owned()),
        };
        Ok(Self { chat: posted.id, directory: posted.cwd, word, again })
    }
}

fn answered(last: PostedMessage, posted: PostedApprovals) -> Result<LastWord, String> {
    match posted.answers.is_empty() {
        false => Ok(LastWord::Answers { message: last.id, posted }),
        true => Err("the last message is the assistant's, and answers no call that asks".to_owned()),
    }
}

fn check_id(name: &str, id: &str) -> Result<(), String> {
    match !id.is_empty() && id.len() <= ID_BYTES && !id.contains(char::is_control) {
        true => Ok(()),
        false => Err(format!("{name}: must be 1 to {ID_BYTES} characters")),
    }
}

fn answers_in(message: &PostedMessage) -> Vec<(String, CallAnswer)> {
    let responded = message.parts.iter().filter(|part| part["state"] == "approval-responded");
    let answers = responded.filter_map(|part| {
        let approval = &part["approval"];
        let answer = match approval["approved"].as_bool()? {
            true => CallAnswer::Allowed,
            false => {
                let reason = approval["reason"].as_str().map(str::trim).filter(|reason| !reason.is_empty());
                CallAnswer::Denied(reason.map(str::to_owned))
            }
        };
        Some((approval["id"].as_str()?.to_owned(), answer))
    });
    answers.collect()
}

fn open_in(message: &PostedMessage) -> Vec<String> {
    let asking = message.parts.iter().filter(|part| part["state"] == "approval-requested");
    asking.filter_map(|part| part["approval"]["id"].as_str().map(str::to_owned)).collect()
}

/// Through the blocks of ACP, whose checks hold here, too.
fn prompt(message: &PostedMessage) -> Result<Prompt, String> {
    let blocks: Vec<Value> = message
        .parts
        .iter()
        .enumerate()
        .filter_map(|(index, part)| block(part).map_err(|why| format!("parts[{index}]: {why}")).transpose())
        .collect::<Result<_, _>>()?;
    let params = json!({ "sessionId": "", "prompt": blocks }).to_string();
    let params = RawValue::from_string(params).map_err(|error| error.to_string())?;
    match from_wire::request("session/prompt", Some(params)) {
        Ok(ClientRequest::Prompt { prompt, .. }) => Ok(prompt),
        Ok(_) => Err("this is no prompt".to_owned()),
        Err(error) => Err(error.message),
    }
}

/// `None`: a part that says nothing to an agent.
fn block(part: &Value) -> Result<Option<Value>, String> {
    let text = |key: &str| part[key].as_str();
    match text("type") {
        Some("text") => Ok(Some(json!({ "type": "text", "text": text("text").ok_or("text: is missing")? }))),
        Some("file") => {
            let url = text("url").ok_or("url: is missing")?;
            let kind = text("mediaType").ok_or("mediaType: is missing")?;
            file(url, kind, text("filename")).map(Some)
        }
        // What belongs to answers, and data of the page.
        Some(kind) if kind.starts_with("data-") || kind == "step-start" || kind == "reasoning" => Ok(None),
        Some(kind) => {
            Err(format!("a part of the kind `{}` can't be sent", kind.chars().take(40).collect::<String>()))
        }
        None => Err("type: is missing".to_owned()),
    }
}

fn file(url: &str, kind: &str, name: Option<&str>) -> Result<Value, String> {
    if url.starts_with("http://") || url.starts_with("https://") {
        return Ok(
            json!({ "type": "resource_link", "name": name.unwrap_or(url), "uri": url, "mimeType": kind }),
        );
    }
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(','));
    let Some((_, data)) = data.filter(|(head, _)| head.ends_with(";base64")) else {
        return Err("url: must be a data url in base64, or http(s)".to_owned());
    };
    Ok(match kind.split('/').next() {
        Some("image") => json!({ "type": "image", "mimeType": kind, "data": data }),
        Some("audio") => json!({ "type": "audio", "mimeType": kind, "data": data }),
        Some(_) | None => {
            let uri = format!("file:///{}", name.unwrap_or("attachment"));
            json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "blob": data } })
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<ChatRequest, String> {
        ChatRequest::read(value.to_string().as_bytes())
    }

    fn user(parts: Value) -> Value {
        json!({ "id": "m1", "role": "user", "parts": parts })
    }

    #[test]
    fn the_last_message_is_the_prompt() {
        let old = json!({ "id": "m0", "role": "user", "parts": [{ "type": "text", "text": "old" }] });
        let files = json!([
            { "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,QUJD" },
            { "type": "file", "mediaType": "application/pdf", "filename": "a.pdf", "url": "data:application/pdf;base64,QUJD" },
            { "type": "text", "text": "new" },
            { "type": "data-page", "data": {} },
        ]);
        let request =
            read(json!({ "id": "c", "messages": [old, user(files)], "trigger": "submit-message" })).unwrap();
        let LastWord::Prompt { message, prompt } = request.word else { panic!("no prompt") };
        assert_eq!((message.as_str(), prompt.parts.len(), request.again), ("m1", 3, SaidAgain::IsTheSame));
        let edited = json!({ "id": "c", "messages": [user(json!([{ "type": "text", "text": "x" }]))], "messageId": "m1" });
        assert_eq!(read(edited).unwrap().again, SaidAgain::Replaces);
    }

    #[test]
    fn answers_to_calls_are_found() {
        let part = |id: &str, approved: bool| json!({ "type": "tool-bash", "state": "approval-responded", "approval": { "id": id, "approved": approved } });
        let open = json!({ "type": "tool-bash", "state": "approval-requested", "approval": { "id": "z" } });
        let message =
            json!({ "id": "a1", "role": "assistant", "parts": [part("x", true), part("y", false), open] });
        let request = read(json!({ "id": "c", "messages": [message] })).unwrap();
        let LastWord::Answers { message, posted } = request.word else { panic!("no answers") };
        assert_eq!(message, "a1");
        assert_eq!(posted.open, HashSet::from(["z".to_owned()]));
        let answers = posted.answers;
        assert_eq!((&answers["x"], &answers["y"]), (&CallAnswer::Allowed, &CallAnswer::Denied(None)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = json!([{ "type": "text", "text": "x" }]);
        for (value, expected) in [
            (json!([]), "no request of a chat"),
            (json!({ "messages": [] }), "id"),
            (json!({ "id": "", "messages": [user(text.clone())] }), "id:"),
            (json!({ "id": "c", "messages": [] }), "messages:"),
            (json!({ "id": "c", "messages": [user(text.clone())], "trigger": "other" }), "trigger:"),
            (
                json!({ "id": "c", "messages": [{ "id": "a", "role": "assistant", "parts": [] }] }),
                "answers no call",
            ),
            (json!({ "id": "c", "messages": [{ "id": "a", "role": "system", "parts": [] }] }), "of the user"),
            (json!({ "id": "c", "messages": [user(json!([{ "type": "text" }]))] }), "parts[0]: text:"),
            (json!({ "id": "c", "messages": [user(json!([{ "type": "tool-x" }]))] }), "parts[0]"),
            (
                json!({ "id": "c", "messages": [user(json!([{ "type": "file", "mediaType": "a/b", "url": "file:///x" }]))] }),
                "url:",
            ),
            (
                json!({ "id": "c", "messages": [user(json!([{ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,?" }]))] }),
                "base64",
            ),
            (json!({ "id": "c", "messages": [user(json!([]))] }), "prompt"),
        ] {
            let error = read(value.clone()).unwrap_err();
            assert!(error.contains(expected), "{value}: {error}");
        }
    }
}
