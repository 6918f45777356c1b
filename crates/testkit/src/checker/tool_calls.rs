//! I5, first half: each tool call starts once, ends at most once, and is never updated before it is known.

use std::collections::HashMap;

use serde_json::Value;

use super::sessions::Entered;
use super::{Faults, Rule};

#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    /// By session and call: models number their calls anew in every conversation.
    known: HashMap<(String, String), Call>,
}

#[derive(Debug)]
struct Call {
    ended_as: Option<String>,
    /// Set by a load until it is answered: the call may be told again from its start.
    may_restart: bool,
}

impl ToolCalls {
    pub(super) fn client_asked(&mut self, method: &str, params: &Value) {
        if method == "session/load" {
            self.of_session(params).for_each(|call| call.may_restart = true);
        }
    }

    pub(super) fn agent_finished(&mut self, method: &str, params: &Value) {
        if method == "session/load" {
            self.of_session(params).for_each(|call| call.may_restart = false);
        }
    }

    /// A connection that entered midway may be asked about a call that is older than what it was told.
    pub(super) fn permission_asked(&mut self, params: &Value, entered: Entered, faults: &mut Faults) {
        let Some(key) = key(params, &params["toolCall"]) else { return };
        if self.known.contains_key(&key) {
            return;
        }
        if entered == Entered::AtItsStart {
            faults.push((Rule::ToolCall, format!("permission asked for unknown call {}", key.1)));
        }
        self.known.insert(key, Call { ended_as: None, may_restart: false });
    }

    pub(super) fn updated(&mut self, params: &Value, faults: &mut Faults) {
        let update = &params["update"];
        let Some(key) = key(params, update) else { return };
        match update["sessionUpdate"].as_str() {
            Some("tool_call") => {
                if self.known.get(&key).is_some_and(|call| !call.may_restart) {
                    faults.push((Rule::ToolCall, format!("call {} was started before", key.1)));
                }
                let ended_as = terminal(update).map(str::to_owned);
                self.known.insert(key, Call { ended_as, may_restart: false });
            }
            Some("tool_call_update") => {
                let Some(call) = self.known.get_mut(&key) else {
                    faults.push((Rule::ToolCall, format!("an update of unknown call {}", key.1)));
                    return;
                };
                if let Some(before) = &call.ended_as
                    && !call.may_restart
                {
                    faults.push((Rule::ToolCall, format!("call {} had ended as {before}", key.1)));
                }
                if let Some(status) = terminal(update) {
                    call.ended_as = Some(status.to_owned());
                }
            }
            Some(_) | None => {}
        }
    }

    fn of_session(&mut self, params: &Value) -> impl Iterator<Item = &mut Call> {
        let session = params["sessionId"].as_str().unwrap_or_default();
        self.known.iter_mut().filter(move |((of, _), _)| of == session).map(|(_, call)| call)
    }
}

/// Session and call that `carrier` (an update, or the call in a permission request) speaks about.
pub(super) fn key(params: &Value, carrier: &Value) -> Option<(String, String)> {
    let session = params["sessionId"].as_str()?;
    let call = carrier["toolCallId"].as_str()?;
    Some((session.to_owned(), call.to_owned()))
}

fn terminal(update: &Value) -> Option<&str> {
    update["status"].as_str().filter(|status| matches!(*status, "completed" | "failed"))
}
