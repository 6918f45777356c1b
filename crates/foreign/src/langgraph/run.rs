//! One answer of a LangGraph server: a run, and the runs that resume it.

use std::collections::VecDeque;

use attache_core::chunk::FinishReason;
use attache_core::ids::CallId;
use attache_core::part::{Part, ToolPart};
use attache_core::ports::BoxFuture;
use attache_core::ports::client::Said;
use reqwest::Method;
use serde_json::{Value, json};

use super::LangGraphAgent;
use super::interrupts::{GraphCall, Interrupts};
use super::messages::GraphDecoder;
use crate::ForeignError;
use crate::agent::{Decided, DecidedRound, ForeignRun, RunDecision, RunEvent, RunRequest};
use crate::events::Event;
use crate::http::EventFeed;
use crate::turn::said_id;

/// Under which the calls are kept by which an open question is asked: after a restart they can't be told from
/// the questions, since a person may have changed their arguments.
const ASKED: &str = "asked";

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
    /// Calls that were made for what it asks.
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
        request: &RunRequest,
    ) -> Self {
        let tools = || request.open_parts.iter().filter_map(Part::tool);
        let call = |tool: &ToolPart| GraphCall {
            id: said_id(tool),
            name: tool.tool_name.clone(),
            input: tool.input.clone().unwrap_or_default(),
        };
        let mut waits = Interrupts::of_state(state);
        match request.kept.as_ref().and_then(|kept| kept.value.get(ASKED)) {
            Some(asked) => waits.asked_before(asked),
            // Asked by an older version.
            None => drop(waits.asks(&tools().map(call).collect::<Vec<_>>())),
        }
        let calls: Vec<GraphCall> = tools().filter(|tool| !tool.is_settled()).map(call).collect();
        let questions = calls.iter().map(|call| call.id.clone()).filter(|id| waits.made(id)).collect();
        let decoder = GraphDecoder::taken_up(calls, state);
        Self { agent, place, stream: None, run: None, decoder, said: VecDeque::new(), waits, questions }
    }

    /// Resumes the run with what was decided.
    pub(super) async fn answer(&mut self, decisions: &[Decided]) -> Result<(), ForeignError> {
        let nobody = RunDecision::Unanswered;
        for call in &self.questions {
            let decided = decisions.iter().find(|one| one.call_id == *call);
            let output = told(decided.map_or(&nobody, |one| &one.decision));
            self.decoder.answered(call, output);
        }
        self.said.extend(self.decoder.said.drain(..));
        let resume = std::mem::take(&mut self.waits).resume(decisions);
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
        let decoder = &self.decoder;
        let open = decoder.calls.iter().filter(|call| decoder.open.contains(&call.id));
        let asks = self.waits.asks(&open.cloned().collect::<Vec<GraphCall>>());
        let mut kept = json!({ "thread": self.place.thread });
        kept[ASKED] = self.waits.asked();
        self.said.push_back(RunEvent::Keep(kept));
        for call in asks.made {
            self.questions.push(call.id.clone());
            self.decoder.call(call);
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
        Box::pin(async move { self.answer(&round.decisions).await })
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
