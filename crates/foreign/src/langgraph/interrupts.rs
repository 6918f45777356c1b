//! What interrupts a run: requests of the human-in-the-loop middleware, and questions of a graph's own. Knows
//! the form of their answers.

use std::collections::HashSet;

use attache_core::chunk::Rest;
use attache_core::ids::CallId;
use attache_core::ports::client::{CallArguments, Choice, Question, Said, Selection};
use serde_json::{Map, Value, json};

use crate::ForeignError;
use crate::agent::{Decided, RunAsk, RunAskAbout, RunDecision};

/// Everything that a run waits for, in the order in which it was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts(Vec<Interrupt>);

#[derive(Clone, Debug)]
struct Interrupt {
    id: String,
    value: Value,
}

/// A call of the last message.
#[derive(Clone, Debug)]
pub(super) struct GraphCall {
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) input: Value,
}

/// What a run is asked for, as calls of its own and questions.
#[derive(Debug, Default)]
pub(super) struct Asks {
    pub(super) asks: Vec<RunAsk>,
    /// Questions that no call of the model is for: what they ask, by the id of the call made for them.
    pub(super) questions: Vec<(CallId, Value)>,
}

impl Interrupts {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// From the `__interrupt__` of an update.
    pub(super) fn add(&mut self, told: &Value) {
        for one in told.as_array().into_iter().flatten() {
            let id = one.get("id").or(one.get("interrupt_id")).and_then(Value::as_str).unwrap_or_default();
            if self.0.iter().any(|known| known.id == id && !id.is_empty()) {
                continue;
            }
            let value = one.get("value").cloned().unwrap_or_default();
            self.0.push(Interrupt { id: id.to_owned(), value });
        }
    }

    /// From the state of a thread.
    pub(super) fn of_state(state: &Value) -> Self {
        let mut open = Self::default();
        for task in state.get("tasks").and_then(Value::as_array).into_iter().flatten() {
            if let Some(interrupts) = task.get("interrupts") {
                open.add(interrupts);
            }
        }
        open
    }

    /// The questions, each about its call: requests name none, so they are matched to the calls of the last
    /// message in order.
    pub(super) fn asks(&self, calls: &[GraphCall]) -> Asks {
        let mut asks = Asks::default();
        let mut taken: HashSet<usize> = HashSet::new();
        for interrupt in &self.0 {
            let Some(requests) = requests(&interrupt.value) else {
                asks.ask_question(interrupt);
                continue;
            };
            for (number, request) in requests.iter().enumerate() {
                let name = request.get("name").or(request.get("action")).and_then(Value::as_str);
                let name = name.unwrap_or_default();
                let fits = |(place, call): &(usize, &GraphCall)| call.name == name && !taken.contains(place);
                let found = calls.iter().enumerate().find(fits).map(|(place, call)| (place, call.id.clone()));
                let call_id = match found {
                    Some((place, id)) => {
                        taken.insert(place);
                        id
                    }
                    None => {
                        let id = CallId::new(format!("{}-{number}", interrupt.call_name()));
                        asks.questions.push((id.clone(), request.clone()));
                        id
                    }
                };
                let description = request.get("description").and_then(Value::as_str).map(first_line);
                asks.asks.push(RunAsk {
                    call_id,
                    approval_id: None,
                    tool: name.to_owned(),
                    presentation: None,
                    about: RunAskAbout::Permission {
                        description,
                        arguments: arguments(&interrupt.value, name),
                    },
                    rest: Rest::none(),
                });
            }
        }
        asks
    }

    /// What resumes the run: one answer alone is the value itself, several go by the ids of their interrupts.
    pub(super) fn resume(&self, decisions: Vec<Decided>) -> Result<Value, ForeignError> {
        let mut decisions = decisions.into_iter();
        let mut answers = Vec::with_capacity(self.0.len());
        let missing = || ForeignError::new("the agent waits for more answers than were asked for");
        for interrupt in &self.0 {
            let answer = match requests(&interrupt.value) {
                Some(requests) => {
                    let mut said = Vec::with_capacity(requests.len());
                    for request in requests {
                        said.push(decision(decisions.next().ok_or_else(missing)?, request));
                    }
                    json!({ "decisions": said })
                }
                None => said(decisions.next().ok_or_else(missing)?.decision),
            };
            answers.push((interrupt.id.clone(), answer));
        }
        if answers.len() == 1 {
            return Ok(answers.pop().map(|(_, answer)| answer).unwrap_or_default());
        }
        Ok(Value::Object(answers.into_iter().collect::<Map<String, Value>>()))
    }
}

impl Interrupt {
    fn call_name(&self) -> String {
        let id: String = self.id.chars().take(16).collect();
        format!("interrupt-{id}")
    }
}

impl Asks {
    fn ask_question(&mut self, interrupt: &Interrupt) {
        let call_id = CallId::new(interrupt.call_name());
        self.questions.push((call_id.clone(), interrupt.value.clone()));
        self.asks.push(RunAsk {
            call_id,
            approval_id: None,
            tool: QUESTION.to_owned(),
            presentation: None,
            about: RunAskAbout::Questions(vec![question(&interrupt.value)]),
            rest: Rest::none(),
        });
    }
}

/// The tool by which a graph's own question is shown.
pub(super) const QUESTION: &str = "question";

/// Of the human-in-the-loop middleware; `None` for anything else.
fn requests(value: &Value) -> Option<&Vec<Value>> {
    value.get("action_requests")?.as_array()
}

/// Whether the middleware takes other arguments for calls of this tool.
fn arguments(value: &Value, tool: &str) -> CallArguments {
    let configs = value.get("review_configs").and_then(Value::as_array);
    let of_tool = |config: &&Value| config.get("action_name").and_then(Value::as_str) == Some(tool);
    let allowed =
        configs.into_iter().flatten().find(of_tool).and_then(|config| config.get("allowed_decisions"));
    match allowed.and_then(Value::as_array).is_some_and(|allowed| allowed.iter().any(|one| one == "edit")) {
        true => CallArguments::Editable,
        false => CallArguments::Fixed,
    }
}

fn decision(decided: Decided, request: &Value) -> Value {
    match decided.decision {
        RunDecision::Approve => json!({ "type": "approve" }),
        RunDecision::Edit(arguments) => {
            let name = request.get("name").cloned().unwrap_or_default();
            json!({ "type": "edit", "edited_action": { "name": name, "args": arguments } })
        }
        RunDecision::Reject(reason) => json!({ "type": "reject", "message": reason }),
        RunDecision::Answer(said) => {
            let words = said.iter().map(words).collect::<Vec<_>>().join("\n");
            json!({ "type": "respond", "message": words })
        }
        RunDecision::Unanswered => json!({ "type": "reject", "message": "the user did not answer" }),
    }
}

/// The answer to a graph's own question.
fn said(decision: RunDecision) -> Value {
    match decision {
        RunDecision::Answer(said) => json!(said.iter().map(words).collect::<Vec<_>>().join("\n")),
        RunDecision::Approve => json!(true),
        RunDecision::Edit(value) => value,
        RunDecision::Reject(_) | RunDecision::Unanswered => Value::Null,
    }
}

fn words(said: &Said) -> String {
    match said {
        Said::Text(text) => text.clone(),
        Said::Chosen(labels) => labels.join(", "),
        Said::Nothing => String::new(),
    }
}

/// Whatever a graph interrupts with: a text, or an object that has one, perhaps with what can be chosen.
fn question(value: &Value) -> Question {
    let text = value.as_str().map(str::to_owned).or_else(|| {
        let keys = ["question", "message", "prompt", "text", "description"];
        keys.into_iter().find_map(|key| value.get(key)?.as_str().map(str::to_owned))
    });
    let listed = ["options", "choices"].into_iter().find_map(|key| value.get(key)?.as_array());
    let choice = |one: &Value| {
        let label = one.as_str().or_else(|| one.get("label").or(one.get("value"))?.as_str())?;
        let description = one.get("description").and_then(Value::as_str).map(str::to_owned);
        Some(Choice { label: label.to_owned(), description })
    };
    Question {
        text: text.unwrap_or_else(|| value.to_string()),
        header: None,
        choices: listed.into_iter().flatten().filter_map(choice).collect(),
        selection: Selection::One,
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(decision: RunDecision) -> Decided {
        Decided { call_id: CallId::new("c"), approval_id: "a".into(), tool: "t".into(), decision }
    }

    fn told(value: Value) -> Interrupts {
        let mut interrupts = Interrupts::default();
        interrupts.add(&value);
        interrupts
    }

    #[test]
    fn requests_are_matched_to_calls_by_name_in_order_and_answered_in_order() {
        let request = |amount: u64| json!({ "name": "refund", "args": { "amount": amount }, "description": "Why\nnot" });
        let open = told(json!([{ "id": "i", "value": { "action_requests": [request(1), request(2)] } }]));
        let call =
            |id: &str, name: &str| GraphCall { id: CallId::new(id), name: name.into(), input: Value::Null };
        let asks = open.asks(&[call("c1", "refund"), call("c2", "look"), call("c3", "refund")]);
        let ids: Vec<&str> = asks.asks.iter().map(|ask| ask.call_id.as_str()).collect();
        assert_eq!(ids, ["c1", "c3"]);
        let answers = vec![
            decided(RunDecision::Edit(json!({ "amount": 3 }))),
            decided(RunDecision::Reject("no".into())),
        ];
        let expected = json!({ "decisions": [
            { "type": "edit", "edited_action": { "name": "refund", "args": { "amount": 3 } } },
            { "type": "reject", "message": "no" },
        ] });
        assert_eq!(open.resume(answers).unwrap(), expected);
        assert!(open.resume(vec![decided(RunDecision::Approve)]).is_err());
    }

    #[test]
    fn a_question_of_a_graph_is_answered_in_words_and_several_by_their_ids() {
        let open = told(json!([
            { "id": "a", "value": "Which colour?" },
            { "id": "b", "value": { "question": "Size?", "options": ["S", "L"] } },
        ]));
        let asks = open.asks(&[]);
        assert_eq!(asks.questions.len(), 2);
        let RunAskAbout::Questions(questions) = &asks.asks[1].about else { panic!("no question") };
        assert_eq!((questions[0].text.as_str(), questions[0].choices.len()), ("Size?", 2));
        let answer = |text: &str| decided(RunDecision::Answer(vec![Said::Text(text.into())]));
        assert_eq!(open.resume(vec![answer("red"), answer("L")]).unwrap(), json!({ "a": "red", "b": "L" }));
    }
}
