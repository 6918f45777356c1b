//! I3: counts questions and answers of both sides. Does not look into them.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::line::RequestKey;
use super::{Faults, Rule};

/// The code an agent gives to a request whose id is still in use; the first one keeps its place.
const INVALID_REQUEST: i64 = -32600;

#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Requests of the client that wait, oldest first. More than one under an id: the client reused it in
    /// flight.
    open: HashMap<RequestKey, VecDeque<Asked>>,
    answered: HashSet<RequestKey>,
    /// Lines of the client that no one can answer under an id; each may cost one error with a null id.
    unanswerable: usize,
    agent_open: HashMap<RequestKey, String>,
    agent_used: HashSet<RequestKey>,
}

#[derive(Debug)]
pub(super) struct Asked {
    /// `None`: the line was malformed beyond a method.
    pub method: Option<String>,
    pub params: Value,
}

impl Answers {
    pub(super) fn client_asked(&mut self, id: RequestKey, method: String, params: Value) {
        self.open.entry(id).or_default().push_back(Asked { method: Some(method), params });
    }

    pub(super) fn client_sent_garbage(&mut self, readable_id: Option<RequestKey>) {
        match readable_id {
            Some(id) => {
                self.open.entry(id).or_default().push_back(Asked { method: None, params: Value::Null });
            }
            None => self.unanswerable += 1,
        }
    }

    /// The request this answers; `error` is its code. Reports what answers nothing.
    pub(super) fn agent_answered(
        &mut self,
        id: &RequestKey,
        error: Option<i64>,
        faults: &mut Faults,
    ) -> Option<Asked> {
        if let Some(waiting) = self.open.get_mut(id) {
            let asked = match error {
                // The refusal of a reused id must not be mistaken for the first request's answer.
                Some(INVALID_REQUEST) => waiting.pop_back(),
                Some(_) | None => waiting.pop_front(),
            };
            if waiting.is_empty() {
                self.open.remove(id);
            }
            self.answered.insert(id.clone());
            return asked;
        }
        if *id == RequestKey::null() && error.is_some() && self.unanswerable > 0 {
            self.unanswerable -= 1;
            return None;
        }
        let detail = match self.answered.contains(id) {
            true => format!("request {id} was answered before"),
            false => format!("nothing was asked under id {id}"),
        };
        faults.push((Rule::OneAnswer, detail));
        None
    }

    pub(super) fn agent_asked(&mut self, id: RequestKey, method: &str) -> Result<(), String> {
        self.agent_used.insert(id.clone());
        match self.agent_open.insert(id.clone(), method.to_owned()) {
            None => Ok(()),
            Some(before) => Err(format!("id {id} is still in use by {before}")),
        }
    }

    /// The method of the agent's request that the client answers.
    pub(super) fn client_answered(&mut self, id: &RequestKey) -> Option<String> {
        self.agent_open.remove(id)
    }

    pub(super) fn agent_used(&self, id: &RequestKey) -> bool {
        self.agent_used.contains(id)
    }

    pub(super) fn unanswered(&self) -> Vec<String> {
        let mut open: Vec<String> = self
            .open
            .iter()
            .flat_map(|(id, waiting)| waiting.iter().map(move |asked| (id, asked)))
            .map(|(id, asked)| {
                format!(
                    "request {id} ({}) was never answered",
                    asked.method.as_deref().unwrap_or("malformed")
                )
            })
            .collect();
        open.sort();
        open
    }
}
