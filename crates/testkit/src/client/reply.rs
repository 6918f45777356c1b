//! What goes back over the wire: the test's answers to the agent, the agent's answers to the test.

use serde_json::{Value, json};

/// What the client does with a request of the agent.
#[derive(Clone, Debug)]
pub enum Reply {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// Keeps silent; [`TestClient::reply`] may answer later.
    Never,
}

impl Reply {
    /// Selects the first offered option of that kind (`allow_once`, `reject_always`, …).
    pub fn choose(kind: &str, params: &Value) -> Self {
        let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        match options.iter().find(|option| option["kind"] == kind) {
            Some(option) => {
                Self::Result(json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}))
            }
            None => Self::Error { code: -32603, message: format!("no option of kind {kind} was offered") },
        }
    }

    pub fn cancelled() -> Self {
        Self::Result(json!({"outcome": {"outcome": "cancelled"}}))
    }
}

/// Decides about requests of the agent: its method and params.
pub type Policy = Box<dyn FnMut(&str, &Value) -> Reply + Send>;

/// The agent's error answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

pub type Answer = Result<Value, RpcError>;

pub(super) fn answer_of(message: &Value) -> Answer {
    match message.get("error") {
        None => Ok(message["result"].clone()),
        Some(error) => Err(RpcError {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error.get("data").cloned(),
        }),
    }
}
