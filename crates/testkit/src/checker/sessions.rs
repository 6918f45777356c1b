//! I4 and the life of a session: no update before it exists, after it is closed, or for a turn that was
//! answered.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::line::RequestKey;
use super::{Faults, Rule};

#[derive(Debug, Default)]
pub(super) struct Sessions {
    known: HashMap<String, Session>,
}

#[derive(Debug, Default)]
struct Session {
    attached: Attached,
    /// Prompts that wait for their answer, in the order they were sent, which is the order their turns run.
    prompts: Vec<Prompt>,
    /// Ids whose turn was answered.
    over: HashSet<String>,
    /// Loads that wait for their answer: meanwhile the past is told again, with the ids of the past.
    replays: usize,
    /// What the session was before each load or resume that waits; a refused one changes nothing.
    before: HashMap<RequestKey, Attached>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Attached {
    #[default]
    Never,
    Made,
    /// By load or resume: calls may be known to the agent that this connection never saw.
    Reopened,
    Closed,
}

/// How this connection came to a session: midway, it was not told about all of its past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    AtItsStart,
    Midway,
}

#[derive(Debug)]
struct Prompt {
    request: RequestKey,
    ids: HashSet<String>,
}

impl Sessions {
    pub(super) fn client_asked(&mut self, request: &RequestKey, method: &str, params: &Value) {
        let Some(id) = params["sessionId"].as_str() else { return };
        match method {
            "session/prompt" => {
                self.entry(id).prompts.push(Prompt { request: request.clone(), ids: HashSet::new() })
            }
            "session/load" => {
                let session = self.entry(id);
                session.replays += 1;
                session.reopen(request);
            }
            "session/resume" => self.entry(id).reopen(request),
            _ => {}
        }
    }

    pub(super) fn agent_succeeded(
        &mut self,
        request: &RequestKey,
        method: &str,
        params: &Value,
        result: &Value,
    ) {
        let named = params["sessionId"].as_str();
        match (method, named) {
            ("session/new" | "session/fork", _) => {
                if let Some(id) = result["sessionId"].as_str() {
                    self.entry(id).attached = Attached::Made;
                }
            }
            ("session/prompt", Some(id)) => self.entry(id).end_prompt(request),
            ("session/load", Some(id)) => {
                self.entry(id).end_replay();
                self.entry(id).before.remove(request);
            }
            ("session/resume", Some(id)) => {
                self.entry(id).before.remove(request);
            }
            ("session/close" | "session/delete", Some(id)) => self.entry(id).close(),
            _ => {}
        }
    }

    pub(super) fn agent_failed(&mut self, request: &RequestKey, method: &str, params: &Value) {
        let Some(id) = params["sessionId"].as_str() else { return };
        match method {
            "session/prompt" => self.entry(id).drop_prompt(request),
            "session/load" => {
                self.entry(id).end_replay();
                self.entry(id).undo_reopen(request);
            }
            "session/resume" => self.entry(id).undo_reopen(request),
            _ => {}
        }
    }

    pub(super) fn updated(&mut self, params: &Value, faults: &mut Faults) {
        let Some(id) = params["sessionId"].as_str() else { return };
        let session = self.entry(id);
        match session.attached {
            Attached::Made | Attached::Reopened => {}
            Attached::Never => {
                faults.push((Rule::SessionOrder, format!("an update of {id}, which was not answered yet")));
            }
            Attached::Closed => {
                faults.push((Rule::SessionOrder, format!("an update of {id}, which was closed")));
            }
        }
        for carried in carried_ids(&params["update"]) {
            if session.over.contains(carried) {
                if session.replays == 0 {
                    faults.push((Rule::LateUpdate, format!("{carried} belongs to a turn that was answered")));
                }
            } else if let Some(prompt) = session.prompts.first_mut() {
                prompt.ids.insert(carried.to_owned());
            }
        }
    }

    pub(super) fn entered(&self, params: &Value) -> Entered {
        let session = params["sessionId"].as_str().and_then(|id| self.known.get(id));
        match session.map(|session| session.attached) {
            Some(Attached::Reopened) => Entered::Midway,
            Some(Attached::Never | Attached::Made | Attached::Closed) | None => Entered::AtItsStart,
        }
    }

    fn entry(&mut self, id: &str) -> &mut Session {
        self.known.entry(id.to_owned()).or_default()
    }
}

impl Session {
    /// From the question on, not from the answer: a load tells the past before it answers.
    fn reopen(&mut self, request: &RequestKey) {
        self.before.insert(request.clone(), self.attached);
        self.attached = Attached::Reopened;
    }

    /// A load or resume that was sent behind the close opens it again, whichever is answered first.
    fn close(&mut self) {
        if self.before.is_empty() {
            self.attached = Attached::Closed;
        }
        self.before.values_mut().for_each(|before| *before = Attached::Closed);
    }

    fn undo_reopen(&mut self, request: &RequestKey) {
        if let Some(before) = self.before.remove(request) {
            self.attached = before;
        }
    }

    fn end_prompt(&mut self, request: &RequestKey) {
        if let Some(index) = self.prompts.iter().position(|prompt| prompt.request == *request) {
            self.over.extend(self.prompts.remove(index).ids);
        }
    }

    /// The last one under that id: a client that reuses an id in flight is refused at once, its first prompt
    /// goes on.
    fn drop_prompt(&mut self, request: &RequestKey) {
        if let Some(index) = self.prompts.iter().rposition(|prompt| prompt.request == *request) {
            self.over.extend(self.prompts.remove(index).ids);
        }
    }

    fn end_replay(&mut self) {
        self.replays = self.replays.saturating_sub(1);
    }
}

/// The ids by which an update belongs to a turn.
pub(super) fn carried_ids(update: &Value) -> impl Iterator<Item = &str> {
    ["messageId", "toolCallId"].into_iter().filter_map(|key| update[key].as_str())
}
