//! One answer of a LangGraph server: a run, and the runs that resume it.

use std::collections::VecDeque;

use attache_core::chunk::FinishReason;
use attache_core::ids::CallId;
use attache_core::part::Part;
use attache_core::ports::BoxFuture;
use attache_core::ports::client::Said;
use reqwest::Method;
use serde_json::{Value, json};

use super::LangGraphAgent;
use super::interrupts::{GraphCall, Interrupts, QUESTION};
use super::messages::GraphDecoder;
use crate::ForeignError;
use crate::agent::{Decided, DecidedRound, ForeignRun, RunDecision, RunEvent};
use crate::events::Event;
use crate::http::EventFeed;
use crate::turn::said_id;

/// Where a run is.
#[derive(Clone, Debug)]
pub(super) struct RunPlace {
    pub(super) thread: String,
    pub(super) assistant: String,
}

#[derive(Debug)]
pub(super) struct LangGraphRun {
    agent: LangGraphAgent,
    place: RunPlace,
    /// `None` once it has ended.
    stream: Option<EventFeed>,
    /// As the server names it.
    run: Option<String>,
    decoder: GraphDecoder,
    said: VecDeque<RunEvent>,
    /// What it waits for.
    waits: Interrupts,
    /// Calls that were made for questions.
    questions: Vec<CallId>,
}

impl LangGraphRun {
    pub(super) fn new(agent: LangGraphAgent, place: RunPlace, stream: EventFeed) -> Self {
        let said = [RunEvent::Keep(json!({ "thread": place.thread }))].into();
        let (decoder, waits, questions) = (GraphDecoder::default(), Interrupts::default(), Vec::new());
        Self { agent, place, stream: Some(stream), run: None, decoder, said, waits, questions }
    }

    /// One that an earlier process left waiting.
    pub(super) fn taken_up(
        agent: LangGraphAgent,
        place: RunPlace,
        state: &Value,
        open_parts: &[Part],
    ) -> Self {
        let tools = || open_parts.iter().filter_map(Part::tool).filter(|tool| !tool.is_settled());
        let calls = tools().map(|tool| GraphCall {
            id: said_id(tool),
            name: tool.tool_name.clone(),
            input: tool.input.clone().unwrap_or_default(),
        });
        let questions = tools().filter(|tool| tool.tool_name == QUESTION);
        let questions = questions.map(said_id).collect();
        let decoder = GraphDecoder::taken_up(calls.collect(), state);
        let waits = Interrupts::of_state(state);
        Self { agent, place, stream: None, run: None, decoder, said: VecDeque::new(), waits, questions }
    }

    /// Resumes the run with what was decided.
    pub(super) async fn answer(&mut self, decisions: Vec<Decided>) -> Result<(), ForeignError> {
        for decided in &decisions {
            if self.questions.contains(&decided.call_id) {
                let output = told(&decided.decision);
                self.decoder.answered(&decided.call_id, output);
            }
        }
        self.said.extend(self.decoder.said.drain(..));
        let resume = std::mem::take(&mut self.waits).resume(decisions)?;
        let command = json!({ "command": { "resume": resume } });
        let RunPlace { thread, assistant } = &self.place;
        self.stream = Some(self.agent.stream(thread, assistant, command).await?);
        Ok(())
    }

    async fn step(&mut self) -> Option<Result<RunEvent, ForeignError>> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Some(Ok(said));
            }
            let stream = self.stream.as_mut()?;
            let taken = match stream.next().await {
                Ok(Some(event)) => self.take(&event),
                Ok(None) => {
                    self.over();
                    Ok(())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                self.stream = None;
                return Some(Err(error));
            }
        }
    }

    fn take(&mut self, event: &Event) -> Result<(), ForeignError> {
        if event.name == "end" {
            return Ok(());
        }
        let data: Value = serde_json::from_str(&event.data).map_err(|error| {
            ForeignError::new(format!("the LangGraph server sent what is no JSON: {error}"))
        })?;
        match event.name.as_str() {
            "metadata" => self.run = data.get("run_id").and_then(Value::as_str).map(str::to_owned),
            "error" => return Err(failure(&data)),
            name => self.decoder.take(name, &data),
        }
        self.said.extend(self.decoder.said.drain(..));
        Ok(())
    }

    /// The stream has ended: in order, or with questions.
    fn over(&mut self) {
        (self.stream, self.run) = (None, None);
        // A stream that ends behind pieces of a message ends the message.
        self.decoder.finish_all();
        self.said.extend(self.decoder.said.drain(..));
        self.waits = std::mem::take(&mut self.decoder.interrupts);
        if self.waits.is_empty() {
            return self.said.push_back(RunEvent::End(FinishReason::Stop));
        }
        let asks = self.waits.asks(&self.decoder.calls);
        for (call_id, value) in asks.questions {
            let tool = asks.asks.iter().find(|ask| ask.call_id == call_id).map(|ask| ask.tool.clone());
            self.decoder.question(call_id.clone(), tool.as_deref().unwrap_or(QUESTION), &value);
            self.questions.push(call_id);
        }
        self.said.extend(self.decoder.said.drain(..));
        self.said.extend(asks.asks.into_iter().map(|ask| RunEvent::Ask(Box::new(ask))));
        self.said.push_back(RunEvent::Waits);
    }
}

impl ForeignRun for LangGraphRun {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<RunEvent, ForeignError>>> {
        Box::pin(self.step())
    }

    fn decide(&mut self, round: DecidedRound) -> BoxFuture<'_, Result<(), ForeignError>> {
        Box::pin(self.answer(round.decisions))
    }

    fn cancel(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.stream = None;
            let Some(run) = self.run.take() else { return };
            let url = self.agent.url(&format!("/threads/{}/runs/{run}/cancel", self.place.thread));
            if let Err(error) = self.agent.server.json(Method::POST, &url, None).await {
                tracing::debug!(%error, "a run could not be cancelled at its server");
            }
        })
    }
}

fn failure(data: &Value) -> ForeignError {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("error"), text("message")) {
        ("", "") => ForeignError::new("the graph failed").with_details(data.to_string()),
        ("", message) => ForeignError::new(message),
        (error, "") => ForeignError::new(error),
        (error, message) => ForeignError::new(format!("{error}: {message}")),
    }
}

/// What the call of a question shows as its result.
fn told(decision: &RunDecision) -> Value {
    let words = |said: &Said| match said {
        Said::Text(text) => text.clone(),
        Said::Chosen(labels) => labels.join(", "),
        Said::Nothing => String::new(),
    };
    match decision {
        RunDecision::Answer(said) => json!(said.iter().map(words).collect::<Vec<_>>().join("\n")),
        RunDecision::Approve => json!("approved"),
        RunDecision::Edit(value) => value.clone(),
        RunDecision::Reject(reason) => json!(reason),
        RunDecision::Unanswered => json!("the user did not answer"),
    }
}
