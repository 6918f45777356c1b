//! The loop as a backend: makes a `Turn` from what a session provides, and resumes one that an earlier process
//! left.

use std::sync::Arc;

use super::Turn;
use super::call::{Call, CallState};
use super::hooks::TurnHooks;
use super::making_room::RoomTried;
use super::nothing_said::ToldOfIdleAnswer;
use super::repeats::{Repeats, Repetition};
use crate::chunk::FinishReason;
use crate::ports::BoxFuture;
use crate::ports::backend::{
    AlwaysScope, Answered, Backend, BackendTurn, InterruptedTurn, NextHistory, TurnContext, TurnJournal,
    TurnLeftovers, TurnResult, TurnStart,
};
use crate::ports::client::Ask;
use crate::ports::delegate::Offers;
use crate::seen::SeenFiles;
use crate::watchdog::Always;

/// Runs turns in this process: model, tools and permissions of the hub.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeBackend;

impl Backend for NativeBackend {
    fn turn(&self, context: TurnContext) -> Box<dyn BackendTurn> {
        Box::new(Turn::new(context))
    }

    fn turn_again(
        &self,
        context: TurnContext,
        interrupted: InterruptedTurn,
    ) -> BoxFuture<'static, Option<(Box<dyn BackendTurn>, Arc<Ask>)>> {
        Box::pin(async move {
            let InterruptedTurn { finished_steps, open_call } = interrupted;
            let mut turn = Turn::new(context);
            turn.steps = finished_steps as u32 + 1;
            turn.reason = FinishReason::ToolCalls;
            let input = open_call.input.unwrap_or_default();
            let mut call = Call::new(&turn, open_call.call_id, open_call.tool_name, input, Repetition::FIRST);
            call.plan = Call::understood(&turn, &call.tool_name, &call.input).await;
            let approval_id = open_call.approval.map(|approval| approval.id).unwrap_or_default();
            let ask = turn.question_again(&mut call, approval_id);
            call.asked_at = turn.span_clock();
            debug_assert_eq!(call.state, CallState::Open);
            turn.calls.push(call);
            Some((Box::new(turn) as Box<dyn BackendTurn>, ask))
        })
    }
}

impl BackendTurn for Turn {
    fn run(&mut self, start: TurnStart) -> BoxFuture<'_, TurnResult> {
        Box::pin(self.run_steps(start))
    }

    fn always(&self, ask: &Ask, scope: AlwaysScope) -> Option<Always> {
        let call = self.calls.iter().find(|call| call.call_id == ask.call_id)?;
        match scope {
            AlwaysScope::Call => self.always_like(call),
            AlwaysScope::Edits => self.always_edits(call),
        }
    }

    fn leftovers(self: Box<Self>) -> TurnLeftovers {
        let is_whole = !self.last_step_left_out && self.left_out.is_none();
        TurnLeftovers {
            history: if is_whole { NextHistory::Extend } else { NextHistory::Reread },
            conversation: Some(self.passages),
            left_out: self.left_out,
            summarised: self.summarised,
            pending_approval: None,
        }
    }
}

impl Turn {
    pub(super) fn new(context: TurnContext) -> Self {
        let TurnContext { hub, setup, journal, prompt, conversation, .. } = context;
        let TurnJournal { journal, author } = journal;
        Self {
            hub,
            journal,
            author,
            user_message_id: prompt,
            setup,
            permissions: context.permissions,
            hooks: TurnHooks::new(context.hooks),
            seen: Arc::new(SeenFiles::of(conversation.seen().clone())),
            passages: conversation,
            runtime_context: context.runtime_context,
            client: context.client,
            trace: context.trace,
            cancel: context.cancel,
            steps: 0,
            used: context.used,
            cost: context.cost,
            room_tried: RoomTried::default(),
            summarised: false,
            snapshots: context.snapshots,
            calls: Vec::new(),
            repeats: Repeats::default(),
            told_of_idle_answer: ToldOfIdleAnswer::default(),
            reason: FinishReason::Stop,
            retrying: context.retrying,
            steering: context.steering,
            left_out: None,
            left_out_steps: 0,
            last_step_left_out: false,
        }
    }

    /// Takes over what the session has allowed since the question was asked.
    pub(super) fn take_permissions(&mut self, answered: &Answered) {
        self.permissions.refresh();
        if !self.client.as_ref().is_some_and(|client| client.offers() != Offers::default()) {
            // The client of the prompt is gone, perhaps since before a restart: the client that answered
            // replaces it.
            self.client = answered.client.clone();
        }
    }
}
