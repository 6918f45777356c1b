//! Inputs that stateless servers ask for: they may answer `input_required` instead of a result; we collect the
//! inputs and repeat the request with them.

use std::collections::BTreeMap;
use std::time::Duration;

use attache_core::legible::legible_line;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{CallFailure, ServerClient, said};
use crate::handler::Caller;
use crate::limits::{INPUT_ROUNDS, INPUTS};
use attache_rpc::RequestError;

/// The kind of an answer.
#[derive(Debug)]
pub(super) enum ResultKind {
    Complete,
    Wants(WantedInputs),
    /// It is worked on, and has to be asked for.
    Task,
}

/// The inputs that the server needs, and its state to be sent back.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WantedInputs {
    input_requests: BTreeMap<String, WantedInput>,
    request_state: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WantedInput {
    method: String,
    #[serde(default)]
    params: Option<Box<RawValue>>,
}

impl WantedInputs {
    /// Makes of a request the next one.
    pub(super) fn answer(&self, params: &mut Value, answers: Map<String, Value>) {
        let Some(params) = params.as_object_mut() else { return };
        params.insert("inputResponses".to_owned(), Value::Object(answers));
        // State of an earlier round must not be sent again.
        match &self.request_state {
            Some(state) => drop(params.insert("requestState".to_owned(), state.as_str().into())),
            None => drop(params.remove("requestState")),
        }
    }
}

pub(super) fn without_end() -> CallFailure {
    CallFailure::Refused(format!(
        "the server wanted something more than {INPUT_ROUNDS} times before it answered"
    ))
}

pub(super) fn too_late() -> CallFailure {
    CallFailure::Refused("what the server wanted was not there in time".to_owned())
}

impl ServerClient {
    /// Initialized servers know one kind only.
    pub(super) fn kind_of(&self, answer: &RawValue) -> Result<ResultKind, CallFailure> {
        if self.meta.is_none() {
            return Ok(ResultKind::Complete);
        }
        kind_of(answer).map_err(CallFailure::Refused)
    }

    /// All that it wants, one after the other.
    pub(super) async fn answers(
        &self,
        wanted: &WantedInputs,
        caller: Option<&Caller>,
    ) -> Result<Map<String, Value>, CallFailure> {
        self.answers_to(&wanted.input_requests, caller).await
    }

    pub(super) async fn answers_to(
        &self,
        wanted: &BTreeMap<String, WantedInput>,
        caller: Option<&Caller>,
    ) -> Result<Map<String, Value>, CallFailure> {
        let refused = |why: String| CallFailure::Refused(format!("the server wants something first: {why}"));
        if wanted.len() > INPUTS {
            return Err(refused(format!("{} things at once", wanted.len())));
        }
        let mut answers = Map::new();
        for (key, WantedInput { method, params }) in wanted {
            let answer = match method.as_str() {
                "roots/list" => Ok(self.events.roots()),
                "elicitation/create" => self.events.elicited(params.as_deref(), caller).await,
                "sampling/createMessage" => self.events.sampled(params.as_deref(), caller).await,
                other => {
                    let other: String = legible_line(other).chars().take(60).collect();
                    Err(format!("{other} is not known here"))
                }
            };
            answers.insert(key.clone(), answer.map_err(refused)?);
        }
        Ok(answers)
    }

    /// A request, asked again until the server wants nothing more.
    pub(super) async fn ask_to_the_end(
        &self,
        method: &str,
        mut params: Value,
        deadline: Duration,
        caller: Option<&Caller>,
    ) -> Result<Box<RawValue>, CallFailure> {
        for _ in 0..=INPUT_ROUNDS {
            let answer = self.ask(method, &params, Some(deadline)).await;
            let answer = answer.map_err(|error| match error {
                RequestError::Closed => CallFailure::Lost,
                error => CallFailure::Refused(said(&error, method, deadline)),
            })?;
            match self.kind_of(&answer)? {
                ResultKind::Complete => return Ok(answer),
                ResultKind::Wants(wanted) => wanted.answer(&mut params, self.answers(&wanted, caller).await?),
                ResultKind::Task => {
                    return Err(CallFailure::Refused(format!("the server made a task of {method}")));
                }
            }
        }
        Err(without_end())
    }
}

fn kind_of(answer: &RawValue) -> Result<ResultKind, String> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct ResultHead {
        result_type: Option<String>,
    }
    let strange = |error: serde_json::Error| format!("the server's answer is not understood: {error}");
    let head: ResultHead = serde_json::from_str(answer.get()).map_err(strange)?;
    match head.result_type.as_deref() {
        None | Some("complete") => Ok(ResultKind::Complete),
        Some("task") => Ok(ResultKind::Task),
        Some("input_required") => {
            let wanted: WantedInputs = serde_json::from_str(answer.get()).map_err(strange)?;
            match wanted.input_requests.is_empty() && wanted.request_state.is_none() {
                true => Err("the server wants something first, and does not say what".to_owned()),
                false => Ok(ResultKind::Wants(wanted)),
            }
        }
        Some(other) => {
            let other: String = legible_line(other).chars().take(60).collect();
            Err(format!("the server gave a result of the kind {other}, which is not known here"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn kind(value: &Value) -> Result<ResultKind, String> {
        kind_of(&RawValue::from_string(value.to_string()).unwrap())
    }

    #[test]
    fn results_are_told_apart_by_what_they_say_of_themselves() {
        assert!(matches!(kind(&json!({ "content": [] })), Ok(ResultKind::Complete)));
        assert!(matches!(kind(&json!({ "resultType": "complete" })), Ok(ResultKind::Complete)));
        assert!(matches!(kind(&json!({ "resultType": "task", "taskId": "1" })), Ok(ResultKind::Task)));
        assert!(kind(&json!({ "resultType": "input_required" })).unwrap_err().contains("does not say what"));
        assert!(kind(&json!({ "resultType": "ho\u{202e}gram" })).unwrap_err().contains(r"ho\u{202e}gram"));
        let wants = json!({ "resultType": "input_required", "requestState": "s",
            "inputRequests": { "a": { "method": "roots/list" } } });
        let Ok(ResultKind::Wants(wanted)) = kind(&wants) else { panic!("{wants}") };
        let mut params = json!({ "name": "t", "requestState": "old" });
        wanted.answer(&mut params, Map::from_iter([("a".to_owned(), json!(1))]));
        assert_eq!(params, json!({ "name": "t", "requestState": "s", "inputResponses": { "a": 1 } }));
        WantedInputs::default().answer(&mut params, Map::new());
        assert_eq!(params, json!({ "name": "t", "inputResponses": {} }), "no state that was not asked for");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in r#"[{}\[\]":,a-z_]{0,60}"#, inner in ".{0,30}") {
            let known = json!({ "resultType": "input_required", "inputRequests": { inner.clone(): inner } });
            for text in [text, known.to_string()] {
                if let Ok(raw) = RawValue::from_string(text) {
                    drop(kind_of(&raw));
                }
            }
        }
    }
}
