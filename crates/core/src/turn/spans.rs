//! Reports a turn's calls for telemetry: permissions and results. Decides nothing.

use serde_json::json;

use super::Turn;
use super::call::{Call, CallPlan};
use super::making_room::CompactionOutcome;
use crate::chunk::Chunk;
use crate::ports::compaction::Occasion;
use crate::ports::telemetry::SpanContext;
use crate::spans::{OpenSpan, keys};
use crate::traced_model::error_type;
use crate::watchdog::{Action, Verdict};

impl Turn {
    pub(super) fn parent_span(&self) -> Option<SpanContext> {
        Some(self.trace.as_ref()?.here())
    }

    /// The current time, for spans that may be reported later; `None` on a host that measures nothing.
    pub(super) fn span_clock(&self) -> Option<i64> {
        Some(self.trace.as_ref()?.now())
    }

    pub(super) fn begin_compaction_span(&self, kind: &str, occasion: &Occasion) -> Option<OpenSpan> {
        let mut span = self.trace.as_ref()?.begin(keys::COMPACTION_RUN);
        span.set(keys::COMPACTION_KIND, kind);
        let occasion = match occasion {
            Occasion::Overflow => "overflow",
            Occasion::Command { .. } => "command",
        };
        span.set(keys::COMPACTION_OCCASION, occasion);
        span.set(keys::TOKENS_BEFORE, self.passages.size().tokens());
        Some(span)
    }

    pub(super) fn end_compaction_span(&self, span: Option<OpenSpan>, outcome: &CompactionOutcome) {
        let Some(mut span) = span else { return };
        match outcome {
            CompactionOutcome::Made => {
                span.set(keys::COMPACTION_OUTCOME, "made");
                span.set(keys::TOKENS_AFTER, self.passages.size().tokens());
            }
            CompactionOutcome::Nothing | CompactionOutcome::NotAsked | CompactionOutcome::Blocked(_) => {
                span.set(keys::COMPACTION_OUTCOME, "nothing");
            }
            CompactionOutcome::Failed(error) => {
                span.set(keys::COMPACTION_OUTCOME, "failed");
                span.fail(error_type(error), &error.to_string());
            }
        }
        span.end();
    }

    /// Reports that a call was judged. If it asks a person, this is reported once they have answered.
    pub(super) fn tell_judged(&mut self, index: usize) {
        let Some(trace) = &self.trace else { return };
        let Some(verdict) = &self.calls[index].decision else { return };
        if verdict.action == Action::Ask {
            let now = trace.now();
            self.calls[index].asked_at = Some(now);
            return;
        }
        let mut span = trace.begin(keys::PERMISSION_EVALUATE);
        self.about_call(&mut span, &self.calls[index]);
        end_permission(span, verdict);
    }

    /// Reports the answer to a call that asked, by a person or because there is none.
    pub(super) fn tell_answered(&mut self, index: usize) {
        let Some(trace) = &self.trace else { return };
        let since = self.calls[index].asked_at.take().unwrap_or_else(|| trace.now());
        let call = &self.calls[index];
        let Some(verdict) = &call.decision else { return };
        let mut span = trace.begin_waiting(keys::PERMISSION_EVALUATE, since);
        self.about_call(&mut span, call);
        end_permission(span, verdict);
    }

    pub(super) fn begin_call_span(&self, call: &Call) -> Option<OpenSpan> {
        let trace = self.trace.as_ref()?;
        let mut span = trace.begin_call(keys::TOOL_CALL, &self.author.message_id, &call.call_id);
        self.about_call(&mut span, call);
        span.set(keys::OPERATION, "execute_tool");
        span.set(keys::TOOL_TYPE, "function");
        span.set_content(keys::TOOL_ARGUMENTS, || call.input.clone());
        Some(span)
    }

    /// Reports the one result of a call, whether it ran or not.
    pub(super) fn end_call_span(&self, span: Option<OpenSpan>, call: &Call, result: &Chunk) {
        let Some(mut span) = span else { return };
        match result {
            Chunk::ToolOutputAvailable { output, .. } => {
                span.set_content(keys::TOOL_RESULT, || output.clone());
            }
            Chunk::ToolOutputError { error_text, .. } => {
                span.fail(self.why_failed(call), error_text);
            }
            Chunk::ToolOutputDenied { .. } => span.fail("permission_denied", "denied by the user"),
            other => tracing::debug!(kind = %other.kind(), "not the result of a call"),
        }
        span.end();
    }

    /// Reports a call that never ran.
    pub(super) fn tell_unrun(&self, call: &Call, result: &Chunk) {
        self.end_call_span(self.begin_call_span(call), call, result);
    }

    /// Reports a call whose arguments never became complete.
    pub(super) fn tell_unreadable(&self, call: &Call, why: &str) {
        let Some(mut span) = self.begin_call_span(call) else { return };
        span.fail("invalid_arguments", why);
        span.end();
    }

    /// A name that no tool has is the model's own text.
    fn about_call(&self, span: &mut OpenSpan, call: &Call) {
        let is_known = self.setup.tools.find(&call.tool_name).is_some() || span.has_content();
        span.set(keys::TOOL_NAME, if is_known { call.tool_name.as_str() } else { "unknown" });
        span.set(keys::TOOL_CALL_ID, call.call_id.as_str());
    }

    fn why_failed(&self, call: &Call) -> &'static str {
        match (&call.plan, call.decision.as_ref().map(|verdict| verdict.action)) {
            (CallPlan::Failed(_), _) => "invalid_arguments",
            (CallPlan::Made(_) | CallPlan::Later, Some(Action::Deny | Action::Ask)) => "permission_denied",
            (CallPlan::Made(_) | CallPlan::Later, _) if self.cancel.is_cancelled() => "cancelled",
            (CallPlan::Made(_) | CallPlan::Later, Some(Action::Allow) | None) => "tool_error",
        }
    }
}

fn end_permission(mut span: OpenSpan, verdict: &Verdict) {
    span.set(keys::PERMISSION_ACTION, verdict.action.as_str());
    span.set(keys::PERMISSION_BY, verdict.reason.name());
    span.set_content(keys::PERMISSION_REASON, || json!(verdict.reason.in_words()));
    span.end();
}
