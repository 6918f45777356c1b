//! Leaves out what a request can't contain: results that are too large for the model, and prompts that it
//! refuses. Rows keep everything.

use std::collections::HashSet;

use super::attachments::Remedy;
use super::{StepStop, Turn};
use crate::compactor::plan::TURN_SHARE;
use crate::estimate;
use crate::ids::CallId;
use crate::limits::{LEFT_OUT_RESULT_BYTES, LEFT_OUT_STEPS};
use crate::metadata::MessageMeta;
use crate::notice;
use crate::part::{Part, Passage, Role, ToolPart};
use crate::ports::backend::LeftOut;
use crate::ports::model::ModelError;
use crate::ports::store::Change;

/// What the model reads instead of a result.
const LEFT_OUT: &str = "(left out: this result did not fit the model's context. Ask for a part of it: fewer lines, a narrower \
                        search, or only the end of an output)";

impl Turn {
    /// Leaves out the largest results of the last step, so that the turn can continue without them. Each is
    /// left out at most once, so this ends.
    pub(super) fn leave_out_largest_results(&mut self) -> Result<Remedy, StepStop> {
        if self.left_out_steps >= LEFT_OUT_STEPS {
            return Ok(Remedy::Nothing);
        }
        let sizes = self.last_step().map(|step| step.parts.iter().filter_map(Part::tool).map(result_bytes));
        let largest = sizes.and_then(Iterator::max).filter(|size| *size >= LEFT_OUT_RESULT_BYTES);
        let Some(largest) = largest else { return Ok(Remedy::Nothing) };
        // Also leaves out results of similar size: another request that is too long would cost as much as this
        // one.
        let least = largest.div_ceil(2);
        self.leave_out_some(|tool| result_bytes(tool) >= least)
    }

    /// Leaves out results of the last step, the largest first, until the rest fits. A summary of what the model
    /// has not seen yet would be worth nothing to it.
    pub(super) fn leave_out_unseen(&mut self, room: u64) -> Result<Remedy, StepStop> {
        let Some(step) = self.last_step().filter(|_| self.left_out_steps < LEFT_OUT_STEPS) else {
            return Ok(Remedy::Nothing);
        };
        let mut over = estimate::passage_size(step).tokens().saturating_sub(room / TURN_SHARE);
        let sized = |tool: &ToolPart| (result_bytes(tool), tool.call_id.clone());
        let mut results: Vec<_> = step.parts.iter().filter_map(Part::tool).map(sized).collect();
        results.retain(|(size, _)| *size >= LEFT_OUT_RESULT_BYTES);
        // Among results of the same size, the earlier ones stay.
        results.reverse();
        results.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
        let mut meant = HashSet::new();
        for (size, call) in results {
            if over == 0 {
                break;
            }
            over = over.saturating_sub(estimate::tokens(size));
            meant.insert(call);
        }
        match meant.is_empty() {
            true => Ok(Remedy::Nothing),
            false => self.leave_out_some(|tool| meant.contains(&tool.call_id)),
        }
    }

    fn leave_out_some(&mut self, is_meant: impl Fn(&ToolPart) -> bool) -> Result<Remedy, StepStop> {
        let left_out = self.leave_out_results(is_meant)?;
        self.left_out_steps += 1;
        let title = "A result did not fit the model's context and is left out";
        let said = notice::kept("warning", title, Some(&left_out.join(", ")));
        self.journal.record_with(&self.author, vec![said], Vec::new())?;
        Ok(Remedy::TryAgain)
    }

    /// Ends the turn with this error; the next requests leave out what caused it.
    pub(super) fn leave_out(&mut self, error: ModelError) -> Result<(), StepStop> {
        let title = match self.last_step().is_some() {
            true => {
                self.leave_out_results(|_| true)?;
                "The next requests leave out the last results"
            }
            false => {
                self.left_out = Some(LeftOut::Prompt);
                "The next requests leave out this prompt"
            }
        };
        let said = notice::kept("warning", title, None);
        self.journal.record_with(&self.author, vec![said], Vec::new())?;
        Err(StepStop::Model(error))
    }

    /// The step of this turn whose results the model has not seen yet.
    fn last_step(&self) -> Option<&Passage> {
        let is_own =
            |last: &&Passage| last.role == Role::Assistant && last.message_id == self.author.message_id;
        self.last_place().map(|place| &*self.passages[place]).filter(is_own)
    }

    /// The position of the last passage that is a step or a prompt; what was told after a step belongs to it.
    fn last_place(&self) -> Option<usize> {
        self.passages.iter().rposition(|passage| passage.role != Role::System)
    }

    /// Leaves out the selected results of the last step; returns their tools and sizes.
    fn leave_out_results(&mut self, is_meant: impl Fn(&ToolPart) -> bool) -> Result<Vec<String>, StepStop> {
        let Some(step) = self.last_step() else { return Ok(Vec::new()) };
        let (mut parts, place) = (step.parts.clone(), self.last_place().unwrap_or_default());
        let mut told = Vec::new();
        for part in &mut parts {
            let Some(tool) = part.tool_mut().filter(|tool| is_meant(tool)) else { continue };
            told.push(format!("{}: {} bytes", tool.tool_name, result_bytes(tool)));
            leave_out_result(tool);
        }
        // A new passage: it must not keep what was encoded for a provider from the old one.
        self.passages.replace(place, Passage::new(self.author.message_id.clone(), Role::Assistant, parts));
        let own = self.passages.iter().filter(|passage| passage.message_id == self.author.message_id);
        let calls = own.flat_map(|passage| passage.parts.iter().filter_map(Part::tool));
        let left_out: Vec<CallId> =
            calls.filter(|tool| is_left_out(tool)).map(|tool| tool.call_id.clone()).collect();
        let mut metadata = MessageMeta::default();
        metadata.set_results_left_out(&left_out);
        let updated_at = self.hub.ports.clock.now_ms();
        let patch =
            Change::PatchMessage { id: self.author.message_id.clone(), seq: None, metadata, updated_at };
        self.journal.change(vec![patch])?;
        Ok(told)
    }
}

fn result_bytes(tool: &ToolPart) -> u64 {
    tool.output.as_ref().filter(|_| !is_left_out(tool)).map_or(0, estimate::json_bytes)
}

fn is_left_out(tool: &ToolPart) -> bool {
    tool.output.as_ref().and_then(|output| output.as_str()) == Some(LEFT_OUT)
}

/// Replaces a result by a text that tells the model that it was too large.
pub(crate) fn leave_out_result(tool: &mut ToolPart) {
    if tool.output.is_some() {
        tool.output = Some(LEFT_OUT.into());
    }
}
