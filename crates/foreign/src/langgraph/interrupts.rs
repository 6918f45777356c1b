//! What interrupts a run: requests of the human-in-the-loop middleware, and questions of a graph's own. Knows
//! the form of their answers.

use attache_core::chunk::Rest;
use attache_core::ids::CallId;
use attache_core::ports::client::{CallArguments, Choice, Question, Said, Selection};
use serde_json::{Map, Value, json};

use crate::agent::{Decided, RunAsk, RunAskAbout, RunDecision};

/// Everything that a run waits for, in the order in which it was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts(Vec<Interrupt>);

#[derive(Clone, Debug)]
struct Interrupt {
    id: String,
    value: Value,
    /// By which calls it is asked: one for each of its requests, in their order, or the one of its question.
    /// Decisions are found by them alone. Empty until it is asked.
    calls: Vec<CallId>,
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
    /// Calls made for what is asked about no call of the model.
    pub(super) made: Vec<GraphCall>,
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
            self.0.push(Interrupt { id: id.to_owned(), value, calls: Vec::new() });
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

    /// The questions, each about its call. Requests name none: a request is about a call of the same tool with
    /// equal arguments that no other request is about, or else about one that is made of it. So what a person
    /// sees is what runs.
    pub(super) fn asks(&mut self, calls: &[GraphCall]) -> Asks {
        let mut asks = Asks::default();
        let mut free: Vec<&GraphCall> = calls.iter().collect();
        for interrupt in &mut self.0 {
            let calls = asks.ask(interrupt, &mut free);
            interrupt.calls = calls;
        }
        asks
    }

    /// By which calls each is asked, as `asked_before` takes it.
    pub(super) fn asked(&self) -> Value {
        let one = |interrupt: &Interrupt| {
            let calls: Vec<&str> = interrupt.calls.iter().map(CallId::as_str).collect();
            json!({ "interrupt": interrupt.id, "calls": calls })
        };
        self.0.iter().map(one).collect()
    }

    /// An earlier process asked these.
    pub(super) fn asked_before(&mut self, asked: &Value) {
        let mut asked: Vec<&Value> = asked.as_array().into_iter().flatten().collect();
        for interrupt in &mut self.0 {
            let id = Some(interrupt.id.as_str());
            let place = asked.iter().position(|one| one.get("interrupt").and_then(Value::as_str) == id);
            let Some(place) = place else { continue };
            let calls = asked.remove(place).get("calls").and_then(Value::as_array);
            let calls = calls.into_iter().flatten().filter_map(Value::as_str);
            interrupt.calls = calls.map(CallId::new).collect();
        }
    }

    /// Whether this is a call that was made for one of them.
    pub(super) fn made(&self, call: &CallId) -> bool {
        self.0.iter().any(|interrupt| call.as_str().starts_with(&interrupt.call_name()))
    }

    /// What resumes the run: one answer alone is the value itself, several go by the ids of their interrupts.
    pub(super) fn resume(&self, decisions: &[Decided]) -> Value {
        let answer = |interrupt: &Interrupt| (interrupt.id.clone(), interrupt.answer(decisions));
        let mut answers: Vec<(String, Value)> = self.0.iter().map(answer).collect();
        if answers.len() == 1 {
            return answers.pop().map(|(_, answer)| answer).unwrap_or_default();
        }
        Value::Object(answers.into_iter().collect::<Map<String, Value>>())
    }
}

impl Interrupt {
    fn call_name(&self) -> String {
        let id: String = self.id.chars().take(16).collect();
        format!("interrupt-{id}")
    }

    /// What the graph goes on with: to each request the decision about its call, whatever order they came in.
    fn answer(&self, decisions: &[Decided]) -> Value {
        let decided = |place: usize| {
            let call = self.calls.get(place)?;
            decisions.iter().find(|one| one.call_id == *call).map(|one| one.decision.clone())
        };
        let Some(requests) = requests(&self.value) else {
            return said(decided(0).unwrap_or(RunDecision::Unanswered));
        };
        let undecided = || RunDecision::Reject(UNDECIDED.to_owned());
        let answer = |(place, request)| decision(decided(place).unwrap_or_else(undecided), request);
        let answers: Vec<Value> = requests.iter().enumerate().map(answer).collect();
        json!({ "decisions": answers })
    }
}

impl Asks {
    /// Gives the calls by which it is asked.
    fn ask(&mut self, interrupt: &Interrupt, free: &mut Vec<&GraphCall>) -> Vec<CallId> {
        let Some(requests) = requests(&interrupt.value) else {
            return vec![self.ask_question(interrupt)];
        };
        let mut calls = Vec::with_capacity(requests.len());
        for request in requests {
            let own_id = CallId::new(format!("{}-{}", interrupt.call_name(), calls.len()));
            let call_id = self.call_of(request, own_id, free);
            let name = tool_of(request);
            let description = request.get("description").and_then(Value::as_str).map(first_line);
            let arguments = arguments(&interrupt.value, name);
            self.asks.push(RunAsk {
                call_id: call_id.clone(),
                approval_id: None,
                tool: name.to_owned(),
                presentation: None,
                about: RunAskAbout::Permission { description, arguments },
                rest: Rest::none(),
            });
            calls.push(call_id);
        }
        calls
    }

    /// The call that a request is about; it is taken from the free ones, or made under this id.
    fn call_of(&mut self, request: &Value, own_id: CallId, free: &mut Vec<&GraphCall>) -> CallId {
        let name = tool_of(request);
        let input = request.get("args").cloned().unwrap_or_else(|| json!({}));
        match free.iter().position(|call| call.name == name && call.input == input) {
            Some(place) => free.remove(place).id.clone(),
            None => {
                self.made.push(GraphCall { id: own_id.clone(), name: name.to_owned(), input });
                own_id
            }
        }
    }

    fn ask_question(&mut self, interrupt: &Interrupt) -> CallId {
        let call_id = CallId::new(interrupt.call_name());
        let value = interrupt.value.clone();
        let input = if value.is_object() { value } else { json!({ "question": value }) };
        self.made.push(GraphCall { id: call_id.clone(), name: QUESTION.to_owned(), input });
        self.asks.push(RunAsk {
            call_id: call_id.clone(),
            approval_id: None,
            tool: QUESTION.to_owned(),
            presentation: None,
            about: RunAskAbout::Questions(vec![question(&interrupt.value)]),
            rest: Rest::none(),
        });
        call_id
    }
}

/// The tool by which a graph's own question is shown.
const QUESTION: &str = "question";

/// What the agent is told of a request that nothing was decided about.
const UNDECIDED: &str = "not allowed: nothing was decided about this call";

/// Of the human-in-the-loop middleware; `None` for anything else.
fn requests(value: &Value) -> Option<&Vec<Value>> {
    value.get("action_requests")?.as_array()
}

fn tool_of(request: &Value) -> &str {
    request.get("name").or(request.get("action")).and_then(Value::as_str).unwrap_or_default()
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

fn decision(decided: RunDecision, request: &Value) -> Value {
    match decided {
        RunDecision::Approve => json!({ "type": "approve" }),
        RunDecision::Edit(arguments) => {
            let name = tool_of(request);
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
mod tests;
