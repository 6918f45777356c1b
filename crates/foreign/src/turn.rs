//! The turn of an agent that lives elsewhere, whatever the way to it: drives its run, records what it says,
//! puts its questions, and ends the answer as it was when something is wrong. Knows no way to an agent.

mod answer;
mod asking;
mod weight;

use std::collections::VecDeque;
use std::sync::Arc;

use attache_core::chunk::{Chunk, FinishReason};
use attache_core::part::Passage;
use attache_core::ports::backend::{
    AlwaysScope, BackendTurn, TurnContext, TurnLeftovers, TurnResult, TurnStart,
};
use attache_core::ports::client::Ask;
use attache_core::ports::store::StoreError;
use attache_core::ports::{BoxFuture, Delegate};
use attache_core::prompt::shelf;
use attache_core::turn::{FailureKind, TurnEnd};
use attache_core::watchdog::Always;

use crate::ForeignError;
use crate::agent::{Decided, DecidedRound, ForeignAgent, ForeignRun, RunEvent, RunRequest};
use crate::error::Blame;
use crate::limits::{CANCEL, ROUNDS};
use answer::AnswerRecorder;
pub(crate) use answer::said_id;
use asking::PendingAsk;

/// One turn of one session.
#[derive(Debug)]
pub(crate) struct ForeignTurn {
    context: TurnContext,
    agent: Arc<dyn ForeignAgent>,
    /// `None` before it began, and after a restart until the first round is decided.
    run: Option<Box<dyn ForeignRun>>,
    answer: AnswerRecorder,
    /// What is still to be asked in this round.
    waiting: VecDeque<PendingAsk>,
    /// What a person is asked now.
    open: Option<PendingAsk>,
    /// What was decided in this round.
    decided: Vec<Decided>,
    rounds: u32,
}

/// Why a turn is over.
#[derive(Debug)]
enum Stop {
    Ended(FinishReason),
    Asks(Arc<Ask>),
    Aborted,
    Failed(ForeignError),
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ForeignError> for Stop {
    fn from(error: ForeignError) -> Self {
        Self::Failed(error)
    }
}

impl ForeignTurn {
    pub(crate) fn new(context: TurnContext, agent: Arc<dyn ForeignAgent>) -> Self {
        let answer = AnswerRecorder::new(&context);
        let (waiting, decided) = (VecDeque::new(), Vec::new());
        Self { context, agent, run: None, answer, waiting, open: None, decided, rounds: 0 }
    }

    /// The turn of a process that ended while a person was asked, and its question.
    pub(crate) fn again(context: TurnContext, agent: Arc<dyn ForeignAgent>) -> Option<(Self, Arc<Ask>)> {
        let mut turn = Self::new(context, agent);
        turn.answer.take_up(&turn.context);
        let (decided, mut waiting) = asking::left_open(&turn.context);
        let first = waiting.pop_front()?;
        let ask = first.ask.clone();
        turn.open = Some(first);
        (turn.waiting, turn.decided) = (waiting, decided);
        Some((turn, ask))
    }

    async fn begin(&mut self) -> Result<Stop, Stop> {
        if !self.context.runtime_context.is_empty() && !self.agent.abilities().runtime_context {
            let agent = &self.context.setup.agent.id;
            let text =
                format!("runtimeContext: the agent `{agent}` keeps its own history and can't be given it");
            return Err(ForeignError::new(text).into());
        }
        let request = self.request().await?;
        let begun = tokio::select! {
            biased;
            () = self.context.cancel.cancelled() => return Err(Stop::Aborted),
            begun = self.agent.begin(request) => begun,
        };
        self.run = Some(begun?);
        self.follow().await
    }

    /// Tells the agent what was decided, then follows it.
    async fn go_on(&mut self) -> Result<Stop, Stop> {
        self.rounds += 1;
        if self.rounds > ROUNDS {
            let text = format!("the agent asked {ROUNDS} times in one turn");
            return Err(ForeignError::new(text).into());
        }
        // What it may do from here on must not be asked again after a crash.
        self.context.journal.settle().await?;
        let decisions = std::mem::take(&mut self.decided);
        let decisions: Vec<Decided> = decisions.into_iter().map(|one| self.answer.as_it_said(one)).collect();
        match self.run.is_some() {
            true => {
                let round = DecidedRound {
                    decisions,
                    passages: self.passages().await?,
                    open_parts: self.context.open_parts(),
                    client: self.client(),
                };
                let cancel = self.context.cancel.clone();
                let Some(run) = self.run.as_mut() else { return Err(Stop::Aborted) };
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => return Err(Stop::Aborted),
                    told = run.decide(round) => told?,
                }
            }
            false => {
                let request = self.request().await?;
                let resumed = tokio::select! {
                    biased;
                    () = self.context.cancel.cancelled() => return Err(Stop::Aborted),
                    resumed = self.agent.resume(request, decisions) => resumed,
                };
                let lost = || ForeignError::new("the agent lost what it was doing when attache ended");
                self.run = Some(resumed.ok_or_else(lost)??);
            }
        }
        self.follow().await
    }

    /// Takes what the run says until it asks or ends.
    async fn follow(&mut self) -> Result<Stop, Stop> {
        loop {
            let cancel = self.context.cancel.clone();
            let Some(run) = self.run.as_mut() else { return Err(Stop::Aborted) };
            let event = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Stop::Aborted),
                event = run.next() => event,
            };
            let stopped = || ForeignError::new("the agent stopped in the middle of its answer");
            match event.ok_or_else(stopped)?? {
                RunEvent::Chunk(chunk) => {
                    self.refuse_early_result(&chunk)?;
                    self.answer.say(&mut self.context, chunk).await?;
                }
                RunEvent::Ask(ask) => self.take_ask(*ask).await?,
                RunEvent::Usage(usage) => {
                    self.answer.begin_step(&mut self.context).await?;
                    self.context.record_usage(&usage)?;
                }
                RunEvent::Keep(value) => self.context.keep(value)?,
                RunEvent::Title(title) => self.context.name_session(&title)?,
                RunEvent::Waits => {
                    if let Some(ask) = self.next_question().await? {
                        return Ok(Stop::Asks(ask));
                    }
                    return Box::pin(self.go_on()).await;
                }
                RunEvent::End(reason) => {
                    self.answer.end(&mut self.context).await?;
                    return Ok(Stop::Ended(reason));
                }
            }
        }
    }

    /// A call that is over needs no word of anybody: who asks about it and goes on by itself has not waited.
    fn refuse_early_result(&self, chunk: &Chunk) -> Result<(), Stop> {
        let Some(said) = answer::ended_call(chunk) else { return Ok(()) };
        let call_id = self.answer.call(said);
        match self.waiting.iter().find(|asked| asked.ask.call_id == call_id) {
            Some(asked) => {
                let text = format!(
                    "the agent gave the result of `{}` although it asks whether that may run",
                    asked.ask.tool_name
                );
                Err(ForeignError::new(text).into())
            }
            None => Ok(()),
        }
    }

    async fn request(&self) -> Result<RunRequest, Stop> {
        let context = &self.context;
        let foreign = context.foreign.as_ref();
        let start = foreign.ok_or_else(|| StoreError::Corrupt("the turn is one of this process".into()))?;
        Ok(RunRequest {
            session: context.setup.workspace.session_id.clone(),
            message: context.journal.message_id().clone(),
            workspace: context.setup.workspace.clone(),
            passages: self.passages().await?,
            open_parts: context.open_parts(),
            runtime_context: context.runtime_context.clone(),
            options: start.options.clone(),
            servers: start.servers.clone(),
            client: self.client(),
            kept: context.kept(),
            news: start.news.clone(),
        })
    }

    /// The conversation with its attachments back in their places.
    async fn passages(&self) -> Result<Vec<Arc<Passage>>, Stop> {
        let blobs = self.context.blobs();
        let mut passages = Vec::with_capacity(self.context.conversation.len());
        for passage in self.context.conversation.iter() {
            if passage.parts.iter().all(|part| shelf::digests(part).is_empty()) {
                passages.push(passage.clone());
                continue;
            }
            let parts = shelf::parts_brought_back(passage.parts.clone(), &*blobs).await?;
            passages.push(Arc::new(Passage::new(passage.message_id.clone(), passage.role, parts)));
        }
        Ok(passages)
    }

    fn client(&self) -> Option<Arc<dyn Delegate>> {
        self.context.client.clone()
    }

    /// Stops the run and says how the turn ended.
    async fn ended(&mut self, stop: Stop) -> TurnResult {
        if !matches!(stop, Stop::Asks(_) | Stop::Ended(_))
            && let Some(run) = self.run.as_mut()
            && tokio::time::timeout(CANCEL, run.cancel()).await.is_err()
        {
            tracing::warn!(agent = %self.context.setup.agent.id, "a run that was stopped did not end");
        }
        match stop {
            Stop::Asks(ask) => TurnResult::Suspended(ask),
            Stop::Ended(reason) => TurnResult::Ended(TurnEnd::Finished(reason)),
            Stop::Aborted => TurnResult::Ended(TurnEnd::Aborted),
            Stop::Store(error) => TurnResult::Ended(TurnEnd::failed(FailureKind::Store, error.to_string())),
            Stop::Failed(error) => {
                let details = error.shown_details();
                if let Some(details) = &details {
                    tracing::warn!(agent = %self.context.setup.agent.id, details, "an agent failed");
                }
                let kind = match error.blame {
                    Blame::Agent => FailureKind::Model,
                    Blame::Credentials => FailureKind::Auth,
                };
                let message = named(&self.context.setup.agent.id, error.shown_message());
                TurnResult::Ended(TurnEnd::Failed { kind, message, details })
            }
        }
    }
}

/// A failure says whose it is: a session may have several agents, and most of the words are the agent's own.
fn named(agent: &str, message: String) -> String {
    if message.contains(&format!("agent `{agent}`")) {
        return message;
    }
    match message.strip_prefix("the agent ") {
        Some(rest) => format!("the agent `{agent}` {rest}"),
        None => format!("the agent `{agent}`: {message}"),
    }
}

impl BackendTurn for ForeignTurn {
    fn run(&mut self, start: TurnStart) -> BoxFuture<'_, TurnResult> {
        Box::pin(async move {
            let stop = match start {
                TurnStart::Beginning => self.begin().await,
                TurnStart::Answered(answered) => self.answered(*answered).await,
            };
            let stop = stop.unwrap_or_else(|stop| stop);
            self.ended(stop).await
        })
    }

    fn always(&self, ask: &Ask, scope: AlwaysScope) -> Option<Always> {
        match scope {
            AlwaysScope::Call => {
                let open = self.open.as_ref().filter(|open| open.ask.approval_id == ask.approval_id)?;
                open.always.clone()
            }
            // Its tools are no edits of ours.
            AlwaysScope::Edits => None,
        }
    }

    fn leftovers(self: Box<Self>) -> TurnLeftovers {
        match self.context.has_gaps() {
            true => TurnLeftovers::reread(self.context.conversation),
            false => TurnLeftovers::extend(self.context.conversation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_its_agent_once() {
        for (said, told) in [
            ("model overloaded", "the agent `support`: model overloaded"),
            ("the agent left a call open", "the agent `support` left a call open"),
            ("the agent's answer is out of order", "the agent `support`: the agent's answer is out of order"),
            ("the agent `support`: it ended", "the agent `support`: it ended"),
        ] {
            assert_eq!(named("support", said.to_owned()), told);
        }
    }
}
