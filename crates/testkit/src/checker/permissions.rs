//! I5, second half: a call runs only if no client was asked, or every client that was asked allowed it.

use std::collections::HashMap;

use serde_json::Value;

use super::line::RequestKey;
use super::tool_calls::key;
use super::{Faults, Rule};

#[derive(Debug, Default)]
pub(super) struct Permissions {
    open: HashMap<RequestKey, Open>,
    refused: HashMap<(String, String), String>,
}

#[derive(Debug)]
struct Open {
    call: (String, String),
    /// Option id → its kind.
    options: HashMap<String, String>,
}

impl Permissions {
    /// A question in the middle of a call that runs is about one more thing it would do: the call goes on,
    /// whatever the answer.
    pub(super) fn asked(&mut self, id: RequestKey, params: &Value) {
        if params["toolCall"]["status"] == "in_progress" {
            return;
        }
        let Some(call) = key(params, &params["toolCall"]) else { return };
        let options = params["options"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|option| Some((option["optionId"].as_str()?, option["kind"].as_str()?)))
            .map(|(id, kind)| (id.to_owned(), kind.to_owned()))
            .collect();
        self.open.insert(id, Open { call, options });
    }

    /// `None` for an error as answer.
    pub(super) fn answered(&mut self, id: &RequestKey, result: Option<&Value>) {
        let Some(open) = self.open.remove(id) else { return };
        let chosen = result.and_then(|result| result["outcome"]["optionId"].as_str());
        let kind = chosen.and_then(|option| open.options.get(option));
        let why = match (chosen, kind.map(String::as_str)) {
            (_, Some("allow_once" | "allow_always")) => return,
            (_, Some(kind)) => kind.to_owned(),
            (Some(option), None) => format!("unknown option {option:?}"),
            (None, None) => "cancelled or an error".to_owned(),
        };
        self.refused.insert(open.call, why);
    }

    /// The agent took the question back (another client was faster): no answer of this client counts any more.
    pub(super) fn withdrawn(&mut self, id: &RequestKey) {
        self.open.remove(id);
    }

    pub(super) fn updated(&self, params: &Value, faults: &mut Faults) {
        let update = &params["update"];
        if !matches!(update["status"].as_str(), Some("in_progress" | "completed")) {
            return;
        }
        let Some(call) = key(params, update) else { return };
        if let Some(why) = self.refused.get(&call) {
            faults.push((Rule::Permission, format!("call {} runs after it was refused: {why}", call.1)));
        }
        if self.open.values().any(|open| open.call == call) {
            faults.push((Rule::Permission, format!("call {} runs while its permission is open", call.1)));
        }
    }
}
