//! The spans of a turn: the parent of each, and its report when it ends. Only hosts that measure have them; on
//! others there is no `TurnTrace`, and nothing is allocated for one.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::hub::Ports;
use crate::ids::{CallId, Ids, MessageId, SessionId};
use crate::limits::SPAN_CONTENT_BYTES;
use crate::ports::backend::{TurnResult, TurnSetup};
use crate::ports::store::SessionRow;
use crate::ports::telemetry::{
    ContentPolicy, FinishedSpan, SpanContext, SpanId, SpanKind, SpanStatus, SpanValue,
};
use crate::ports::{Clock, Telemetry};
use crate::turn::{FailureKind, TurnEnd};

pub(crate) mod keys;

/// Makes spans and reports them.
#[derive(Clone, Debug)]
pub(crate) struct SpanMaker {
    pub(crate) telemetry: Arc<dyn Telemetry>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<Ids>,
}

impl SpanMaker {
    pub(crate) fn begin(&self, name: impl Into<Cow<'static, str>>, parent: SpanContext) -> OpenSpan {
        let now = self.clock.now_ms();
        let span = FinishedSpan {
            name: name.into(),
            kind: SpanKind::Internal,
            context: SpanContext { span_id: self.ids.span(), ..parent },
            parent: Some(parent.span_id),
            links: Vec::new(),
            started_at: now,
            ended_at: now,
            attributes: Vec::new(),
            status: SpanStatus::Unset,
        };
        OpenSpan { maker: self.clone(), span: Some(Box::new(span)) }
    }

    fn has_content(&self) -> bool {
        self.telemetry.content() == ContentPolicy::Sent
    }
}

/// A span that has not ended. Dropping it without an end reports it as aborted.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    maker: SpanMaker,
    /// `None` once it was reported.
    span: Option<Box<FinishedSpan>>,
}

impl OpenSpan {
    pub(crate) fn context(&self) -> Option<SpanContext> {
        self.span.as_ref().map(|span| span.context)
    }

    pub(crate) fn started_at(&self) -> i64 {
        self.span.as_ref().map_or(0, |span| span.started_at)
    }

    pub(crate) fn now(&self) -> i64 {
        self.maker.clock.now_ms()
    }

    pub(crate) fn set_kind(&mut self, kind: SpanKind) {
        if let Some(span) = &mut self.span {
            span.kind = kind;
        }
    }

    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<SpanValue>) {
        if let Some(span) = &mut self.span {
            span.attributes.push((key, value.into()));
        }
    }

    /// What a person, model or tool said; `content` is not called if the host does not want it.
    pub(crate) fn set_content(&mut self, key: &'static str, content: impl FnOnce() -> Value) {
        if self.maker.has_content() {
            self.set(key, SpanValue::Content(bounded(content())));
        }
    }

    pub(crate) fn has_content(&self) -> bool {
        self.maker.has_content()
    }

    /// `error_type` is one of a few words; the error's own message counts as content.
    pub(crate) fn fail(&mut self, error_type: &'static str, words: &str) {
        self.set(keys::ERROR_TYPE, error_type);
        let words = self.maker.has_content().then(|| shortened(words));
        if let Some(span) = &mut self.span {
            span.status = SpanStatus::Failed { words };
        }
    }

    pub(crate) fn end(mut self) {
        self.tell();
    }

    /// Reports the span now; later changes are lost.
    pub(crate) fn tell(&mut self) {
        let Some(mut span) = self.span.take() else { return };
        span.ended_at = self.maker.clock.now_ms().max(span.started_at);
        self.maker.telemetry.take(*span);
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if self.span.is_some() {
            self.fail("aborted", "it was stopped before its end");
            self.tell();
        }
    }
}

/// The trace of one turn. A copy refers to the same trace.
#[derive(Clone, Debug)]
pub(crate) struct TurnTrace(Arc<TraceState>);

#[derive(Debug)]
struct TraceState {
    maker: SpanMaker,
    session_id: SessionId,
    turn: SpanContext,
    /// The call that a subagent works for, in the trace of the parent's turn.
    works_for: Option<SpanContext>,
    started_at: i64,
    /// The agent; `None` for the turn of a process that died.
    agent: Option<String>,
    /// The span of the run under way. Why a lock: the session begins runs, and tasks of the turn make spans
    /// below them. Held only for a copy.
    run: Mutex<Option<SpanId>>,
}

impl TurnTrace {
    /// `None` on a host that measures nothing.
    pub(crate) fn of(
        ports: &Ports,
        session: &SessionRow,
        answer: &MessageId,
        started_at: i64,
        setup: Option<&TurnSetup>,
    ) -> Option<Self> {
        let telemetry = ports.telemetry.clone()?;
        let child_of = session.metadata.child_of().zip(session.parent_message_id.as_ref());
        Some(Self(Arc::new(TraceState {
            maker: SpanMaker { telemetry, clock: ports.clock.clone(), ids: ports.ids.clone() },
            session_id: session.id.clone(),
            turn: SpanContext::of_turn(answer),
            works_for: child_of.map(|(child, message)| SpanContext::of_call(message, &child.call_id)),
            started_at,
            agent: setup.map(|setup| setup.agent.id.to_string()),
            run: Mutex::default(),
        })))
    }

    pub(crate) fn turn(&self) -> SpanContext {
        self.0.turn
    }

    /// The parent of the next span: the current run.
    pub(crate) fn here(&self) -> SpanContext {
        let run = *self.0.run.lock().unwrap_or_else(PoisonError::into_inner);
        SpanContext { span_id: run.unwrap_or(self.0.turn.span_id), ..self.0.turn }
    }

    pub(crate) fn now(&self) -> i64 {
        self.0.maker.clock.now_ms()
    }

    pub(crate) fn begin(&self, name: &'static str) -> OpenSpan {
        self.begin_below(name, self.here())
    }

    /// The span of a call. Derived from ids alone, so that subagents can name it.
    pub(crate) fn begin_call(&self, name: &'static str, answer: &MessageId, call: &CallId) -> OpenSpan {
        let mut open = self.begin(name);
        if let Some(span) = &mut open.span {
            span.context.span_id = SpanContext::of_call(answer, call).span_id;
        }
        open
    }

    /// A span that outlives runs: it began when a person was asked.
    pub(crate) fn begin_waiting(&self, name: &'static str, since: i64) -> OpenSpan {
        let mut open = self.begin_below(name, self.0.turn);
        if let Some(span) = &mut open.span {
            span.started_at = since.min(span.started_at);
        }
        open
    }

    pub(crate) fn begin_run(&self, setup: &TurnSetup) -> OpenSpan {
        let mut open = self.begin_below(keys::SESSION_RUN, self.0.turn);
        let own = open.context().map(|context| context.span_id);
        *self.0.run.lock().unwrap_or_else(PoisonError::into_inner) = own;
        open.set(keys::AGENT, SpanValue::Text(setup.agent.id.to_string()));
        open.set(keys::REQUEST_MODEL, setup.model.model.model_id.as_str());
        open
    }

    /// The turn is over. Its span is reported last, by the process that ended the turn.
    pub(crate) fn end_turn(&self, end: &TurnEnd) {
        let mut open = self.begin_below(keys::SESSION_TURN, self.0.turn);
        if let Some(span) = &mut open.span {
            (span.context, span.parent) = (self.0.turn, None);
            span.links.extend(self.0.works_for);
            span.started_at = self.0.started_at.min(span.started_at);
        }
        open.set(keys::OPERATION, "invoke_agent");
        if let Some(agent) = &self.0.agent {
            open.set(keys::AGENT, agent.as_str());
        }
        tell_end(&mut open, keys::TURN_END, end);
        open.end();
    }

    fn begin_below(&self, name: &'static str, parent: SpanContext) -> OpenSpan {
        let mut open = self.0.maker.begin(name, parent);
        open.set(keys::CONVERSATION, self.0.session_id.as_str());
        open
    }
}

/// Reports how a run returned.
pub(crate) fn end_run_span(open: Option<OpenSpan>, result: &TurnResult) {
    let Some(mut open) = open else { return };
    match result {
        TurnResult::Ended(end) => tell_end(&mut open, keys::RUN_END, end),
        TurnResult::Suspended(_) => open.set(keys::RUN_END, "suspended"),
    }
    open.end();
}

/// Sets how it ended: cancelling is not an error.
fn tell_end(open: &mut OpenSpan, key: &'static str, end: &TurnEnd) {
    match end {
        TurnEnd::Finished(reason) => {
            open.set(key, "finished");
            open.set(keys::FINISH_REASONS, SpanValue::Texts(vec![reason.as_str().to_owned()]));
        }
        TurnEnd::StepLimit => open.set(key, "step_limit"),
        TurnEnd::Aborted => open.set(key, "aborted"),
        TurnEnd::Failed { kind, message, .. } => {
            open.set(key, "failed");
            open.fail(failure_name(*kind), message);
        }
    }
}

fn failure_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Auth => "auth",
        FailureKind::Model => "model",
        FailureKind::Store => "store",
        FailureKind::Internal => "internal",
    }
}

/// Turns a value that is too long into a cut text.
fn bounded(content: Value) -> Value {
    match &content {
        Value::String(text) if text.len() <= SPAN_CONTENT_BYTES => content,
        Value::String(text) => Value::String(shortened(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => content,
        Value::Array(_) | Value::Object(_) => {
            let text = content.to_string();
            if text.len() <= SPAN_CONTENT_BYTES { content } else { Value::String(shortened(&text)) }
        }
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= SPAN_CONTENT_BYTES {
        return text.to_owned();
    }
    format!("{}… [cut]", &text[..text.floor_char_boundary(SPAN_CONTENT_BYTES)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_content_is_cut_at_a_character() {
        let long = "é".repeat(SPAN_CONTENT_BYTES);
        let cut = bounded(json!({ "text": long }));
        let text = cut.as_str().unwrap();
        assert!(text.ends_with("é… [cut]") && text.len() < SPAN_CONTENT_BYTES + 20, "{}", text.len());
        assert_eq!(bounded(json!({ "text": "short" })), json!({ "text": "short" }));
    }

    #[test]
    fn a_turn_has_its_ids_by_its_message_alone() {
        let one = SpanContext::of_turn(&MessageId::new("msg_1"));
        assert_eq!(one, SpanContext::of_turn(&MessageId::new("msg_1")));
        let other = SpanContext::of_turn(&MessageId::new("msg_2"));
        assert!(one.trace_id != other.trace_id && one.span_id != other.span_id);
        assert_eq!(one.trace_id.to_string().len(), 32);
        assert_eq!(one.span_id.to_string().len(), 16);
    }
}
