//! The calls of one step, in the order the model made them: for each, understands it when its turn comes, lets
//! `gate` judge it, runs it, and records its one result.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::call::{Call, CallPlan, CallState, Grant};
use super::gate::Gate;
use super::progress::Recorder;
use super::results::{finished, preliminary};
use super::side_model::TurnSideModel;
use super::snapshots::CallSnapshots;
use super::{StepStop, Turn, repeats};
use crate::chunk::{Chunk, Rest, ToolMarks};
use crate::ids::CallId;
use crate::limits::{READ_ABORT, TOOL_ABORT};
use crate::ports::client::{Ask, ExpectedAsk};
use crate::ports::tool::{Effect, Presentation, ToolRuntime};
use crate::ports::{SnapshotSink, backend::Answered};

/// The outcome of a step's calls.
#[derive(Debug)]
pub(crate) enum Settled {
    All,
    Waiting(Arc<Ask>),
    /// The model repeats the same call.
    Repeating(String),
}

impl Turn {
    /// Takes a complete call and announces it. Understands it, unless an earlier call may change what it finds.
    pub(super) async fn take_call(
        &mut self,
        call_id: CallId,
        tool_name: String,
        input: Value,
        (marks, rest): (ToolMarks, Rest),
    ) -> Result<(), StepStop> {
        let repeated = self.repeats.count(&tool_name, &input);
        let mut call = Call::new(self, call_id, tool_name, input, repeated);
        call.plan = self.plan(&call).await?;
        if self.calls.iter().any(|before| before.effect == Effect::Mutates) {
            call.understand_later(&marks, &rest);
        }
        let announcement = call.announcement(marks, rest);
        self.calls.push(call);
        self.record(announcement).await
    }

    /// Understands a call. Cancelling ends the wait, because the tool may wait for a client.
    async fn plan(&self, call: &Call) -> Result<CallPlan, StepStop> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(StepStop::Aborted),
            plan = Call::understood(self, &call.tool_name, &call.input) => Ok(plan),
        }
    }

    /// Gives every call of the step its one result, or stops at the first that needs an answer.
    pub(super) async fn settle_calls(
        &mut self,
        answered: Option<Box<Answered>>,
    ) -> Result<Settled, StepStop> {
        if let Some(answered) = answered {
            self.take_answer(*answered).await?;
            // Much may have changed while the question was open.
            for call in self.calls.iter_mut().filter(|call| call.state == CallState::Open) {
                call.plan = CallPlan::Later;
            }
        }
        let mut first = 0;
        while first < self.calls.len() {
            // Calls that only read run at the same time; one that changes something waits for those before it.
            let reads = self.calls[first..].iter().take_while(|call| call.effect == Effect::ReadOnly).count();
            let end = first + reads.max(1);
            if let Some(ask) = self.settle_some(first, end).await? {
                return Ok(Settled::Waiting(ask));
            }
            first = end;
        }
        let stop = self.calls.iter().find_map(|call| repeats::stop(&call.tool_name, call.times()));
        Ok(stop.map_or(Settled::All, Settled::Repeating))
    }

    /// Settles calls that may run at the same time; returns the question for which the turn has to wait, if
    /// there is one.
    async fn settle_some(&mut self, first: usize, end: usize) -> Result<Option<Arc<Ask>>, StepStop> {
        let mut question = None;
        for index in first..end {
            if self.cancel.is_cancelled() {
                return Err(StepStop::Aborted);
            }
            if self.calls[index].state != CallState::Open {
                continue;
            }
            self.understand(index).await?;
            let gate = self.gate(index);
            let gate = self.hooked_gate(index, gate).await?;
            self.tell_judged(index);
            match gate {
                Gate::Open(grant) => self.calls[index].state = CallState::Allowed(grant),
                Gate::Refused(text) => {
                    if self.calls[index].asked_at.is_some() {
                        self.tell_answered(index);
                    }
                    let chunk = self.calls[index].failure(&text);
                    self.settle(index, chunk).await?;
                }
                Gate::Ask(ask) => {
                    question = Some((index, ask));
                    break;
                }
            }
        }
        self.run_side_by_side(first, end).await?;
        let Some((index, ask)) = question else { return Ok(None) };
        let expected = self.expected_asks(index + 1).await?;
        let ask = Arc::new(Ask { expected, ..Arc::unwrap_or_clone(ask) });
        if self.cancel.is_cancelled() {
            return Err(StepStop::Aborted);
        }
        self.record_ask(&ask).await?;
        Ok(Some(ask))
    }

    /// Which calls from this one on will ask, as they look before those in front of them have run.
    async fn expected_asks(&mut self, first: usize) -> Result<Arc<[ExpectedAsk]>, StepStop> {
        let mut expected = Vec::new();
        for index in first..self.calls.len() {
            let call = &self.calls[index];
            if call.state != CallState::Open {
                continue;
            }
            let asks = match &call.plan {
                CallPlan::Later => self.would_ask(&self.plan(call).await?),
                plan @ (CallPlan::Made(_) | CallPlan::Failed(_)) => self.would_ask(plan),
            };
            if asks {
                let approval_id = self.approval_id(call);
                expected
                    .push(ExpectedAsk { call_id: call.call_id.clone(), approval_id: approval_id.clone() });
                self.calls[index].approval_id = Some(approval_id);
            }
        }
        Ok(expected.into())
    }

    /// Understands a call whose turn has come, and tells what is known of it by now.
    async fn understand(&mut self, index: usize) -> Result<(), StepStop> {
        let call = &self.calls[index];
        if !matches!(call.plan, CallPlan::Later) {
            return Ok(());
        }
        let (plan, told) = (self.plan(call).await?, call.presentation());
        let call = &mut self.calls[index];
        call.plan = plan;
        match call.announced.take() {
            Some(announced) if call.presentation() != told => {
                let announcement = call.announcement(announced.0, announced.1);
                self.record(announcement).await
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Runs the allowed calls. Records each result as it arrives.
    async fn run_side_by_side(&mut self, first: usize, end: usize) -> Result<(), StepStop> {
        let mut landed = Vec::new();
        {
            let turn = &*self;
            let allowed = (first..end).filter_map(|index| match &turn.calls[index].state {
                CallState::Allowed(grant) => Some((index, grant.clone())),
                CallState::Open | CallState::Settled => None,
            });
            let run =
                |(index, grant)| async move { (index, turn.execute_traced(&turn.calls[index], grant).await) };
            let mut running: FuturesUnordered<_> = allowed.map(run).collect();
            while let Some((index, result)) = running.next().await {
                turn.record(result?).await?;
                landed.push(index);
            }
        }
        for index in landed {
            self.calls[index].state = CallState::Settled;
            self.count_result(index);
        }
        Ok(())
    }

    /// Counts repetitions: whether the next call like this one repeats it depends on this one's result.
    fn count_result(&mut self, index: usize) {
        let call = &self.calls[index];
        if let Some(result) = call.result.get() {
            self.repeats.came_to(&call.tool_name, &call.input, *result);
        }
    }

    async fn execute_traced(&self, call: &Call, grant: Grant) -> Result<Chunk, StepStop> {
        let span = self.begin_call_span(call);
        let result = self.execute(call, grant).await?;
        self.end_call_span(span, call, &result);
        Ok(result)
    }

    /// Runs one allowed call. Stores the intent first, so that a crash never leads to a second run.
    async fn execute(&self, call: &Call, grant: Grant) -> Result<Chunk, StepStop> {
        let Some(planned) = call.planned() else { return Ok(call.failure("not understood")) };
        let effect = call.effect;
        let started = Presentation { content: Vec::new(), ..call.presentation() };
        self.record(preliminary(&call.call_id, &started)).await?;
        let snapshots = CallSnapshots::of(self, call, effect);
        if let Some(snapshots) = &snapshots {
            snapshots.expect_anything(&*planned.tool)?;
        }
        if effect == Effect::Mutates {
            self.journal.settle().await?;
        }
        let cancel = self.cancel.child_token();
        // If the turn is dropped, its tools end, too.
        let _dropped_with_us = cancel.clone().drop_guard();
        let recorder = Arc::new(Recorder::new(self.journal.clone(), self.author.clone(), call));
        let runtime = ToolRuntime {
            call_id: call.call_id.clone(),
            site: self.site_of(planned, &grant.directories),
            network: grant.network,
            writes: grant.writes,
            commands: self.permissions.commands(),
            snapshots: snapshots.clone().map(|snapshots| snapshots as Arc<dyn SnapshotSink>),
            result_bytes: self.result_bytes(),
            progress: recorder.clone(),
            side_model: Some(Arc::new(TurnSideModel::of(self))),
            cancel: cancel.clone(),
        };
        let (tool, input) = (planned.tool.clone(), call.input.clone());
        // In a task of its own: if a tool panics, only its call fails, not the turn.
        let mut running = tokio::spawn(async move { tool.run(input, runtime).await });
        let outcome = tokio::select! {
            biased;
            outcome = &mut running => outcome,
            () = cancel.cancelled() => match tokio::time::timeout(time_to_stop(effect), &mut running).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    running.abort();
                    recorder.close();
                    snapshots.inspect(|snapshots| snapshots.close());
                    return Ok(call.failure("cancelled while it ran; it may have had effects"));
                }
            },
        };
        recorder.close();
        if let Ok(outcome) = &outcome {
            self.after_tool(call, planned, outcome, snapshots.as_deref()).await;
        }
        snapshots.inspect(|snapshots| snapshots.close());
        match outcome {
            Ok(outcome) => Ok(finished(self, call, outcome).await?),
            Err(_) => Ok(call.failure("internal error: the tool crashed; its outcome is unknown")),
        }
    }

    /// Records the result of a call that did not run, or that a person answered.
    pub(super) async fn settle(&mut self, index: usize, chunk: Chunk) -> Result<(), StepStop> {
        self.tell_unrun(&self.calls[index], &chunk);
        self.record(chunk).await?;
        self.calls[index].state = CallState::Settled;
        self.count_result(index);
        Ok(())
    }
}

/// How long a call that was cancelled may take to end: one that only reads has nothing to clean up.
fn time_to_stop(effect: Effect) -> Duration {
    match effect {
        Effect::ReadOnly | Effect::SessionOnly => READ_ABORT,
        Effect::Mutates => TOOL_ABORT,
    }
}
