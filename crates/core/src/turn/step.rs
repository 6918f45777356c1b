//! One model call: retries, streaming into the journal, splitting of long parts. `calls` handles the calls of
//! the step.

use std::pin::pin;

use futures_util::StreamExt;
use serde_json::Value;

use super::attachments::Remedy;
use super::call::Call;
use super::incoming::Incoming;
use super::{StepStop, Turn, repeats};
use crate::arguments::repair::repaired;
use crate::chunk::{Chunk, FinishReason, Rest, StreamId};
use crate::estimate;
use crate::limits::PART_BYTES;
use crate::metadata::only_own;
use crate::notice;
use crate::ports::model::{ModelError, StepEvent};
use crate::prompt::shelf;

#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenPartKind {
    Text,
    Reasoning,
}

impl Turn {
    /// Streams one step. Retries only while the model has said nothing.
    pub(super) async fn stream_step(&mut self) -> Result<(), StepStop> {
        let mut tries = 0;
        self.fit_runtime_context()?;
        self.check_room().await?;
        loop {
            let mut spoken = AnswerProgress::Nothing;
            let error = match self.stream_once(&mut spoken).await {
                Err(StepStop::Model(error)) if spoken == AnswerProgress::Nothing => error,
                other => return other,
            };
            match error {
                ModelError::Transient { message, retry_after } => {
                    tries += 1;
                    self.wait_to_retry(tries, message, retry_after).await?;
                }
                ModelError::AttachmentRejected(reason) => match self.leave_out_attachments(&reason).await? {
                    Remedy::TryAgain => {}
                    Remedy::Nothing => {
                        return self.leave_out(ModelError::AttachmentRejected(reason));
                    }
                },
                ModelError::Overflow(reason) => self.make_room(reason).await?,
                error @ ModelError::Unreadable(_) => return self.leave_out(error),
                error @ (ModelError::Permanent(_) | ModelError::Auth(_) | ModelError::Refused(_)) => {
                    return Err(StepStop::Model(error));
                }
            }
        }
    }

    async fn stream_once(&mut self, spoken: &mut AnswerProgress) -> Result<(), StepStop> {
        let cancel = self.cancel.child_token();
        let mut stream = self.hub.ports.model.stream(self.request(), cancel.clone());
        let mut incoming = Incoming::new(self.passages.call_ids().clone());
        // One future for the whole answer: each new one would take a lock to register.
        let mut aborted = pin!(self.cancel.clone().cancelled_owned());
        loop {
            let event = tokio::select! {
                biased;
                () = &mut aborted => return Err(StepStop::Aborted),
                event = stream.next() => event,
            };
            match event {
                Some(Ok(StepEvent::Chunk(chunk))) => {
                    let chunk = incoming.check(chunk).map_err(StepStop::Model)?;
                    let Some(chunk) = incoming.hold_while_silent(chunk) else { continue };
                    *spoken = AnswerProgress::Something;
                    self.take_held(&mut incoming).await?;
                    self.take_chunk(chunk, &mut incoming).await?;
                }
                Some(Ok(StepEvent::End { reason, usage })) => {
                    self.take_held(&mut incoming).await?;
                    self.close_streams().await?;
                    self.fail_unfinished_inputs(reason).await?;
                    self.record_usage(usage, incoming.said())?;
                    if reason == FinishReason::ContentFilter && incoming.said() == 0 {
                        self.record(notice::declined(None)).await?;
                    }
                    self.reason = reason;
                    return Ok(());
                }
                // A cancel between the two checks ends the stream first; that is not the model's fault.
                Some(Err(_)) | None if self.cancel.is_cancelled() => return Err(StepStop::Aborted),
                Some(Err(error)) => return Err(StepStop::Model(error)),
                None => return Err(StepStop::Model(cut())),
            }
        }
    }

    async fn take_held(&mut self, incoming: &mut Incoming) -> Result<(), StepStop> {
        for chunk in incoming.release() {
            self.take_chunk(chunk, incoming).await?;
        }
        Ok(())
    }

    async fn take_chunk(&mut self, chunk: Chunk, incoming: &mut Incoming) -> Result<(), StepStop> {
        match chunk {
            Chunk::TextStart { ref id, .. } | Chunk::ReasoningStart { ref id, .. } => {
                incoming.open(id);
                self.record(chunk).await
            }
            Chunk::TextDelta { id, delta, rest } => {
                let ours = self.part_with_room(OpenPartKind::Text, &id, delta.len(), incoming).await?;
                self.record(Chunk::TextDelta { id: ours, delta, rest }).await
            }
            Chunk::ReasoningDelta { id, delta, rest } => {
                let ours = self.part_with_room(OpenPartKind::Reasoning, &id, delta.len(), incoming).await?;
                self.record(Chunk::ReasoningDelta { id: ours, delta, rest }).await
            }
            Chunk::TextEnd { id, rest } => {
                let ours = incoming.close(&id);
                self.record(Chunk::TextEnd { id: ours, rest }).await
            }
            Chunk::ReasoningEnd { id, rest } => {
                let ours = incoming.close(&id);
                self.record(Chunk::ReasoningEnd { id: ours, rest }).await
            }
            Chunk::ToolInputStart { call_id, tool_name, input_encoding, marks, mut rest } => {
                self.decorate(&tool_name, &mut rest);
                self.record(Chunk::ToolInputStart { call_id, tool_name, input_encoding, marks, rest }).await
            }
            Chunk::ToolInputAvailable { ref marks, .. } if marks.provider_executed == Some(true) => {
                self.record(chunk).await
            }
            Chunk::ToolInputAvailable { call_id, tool_name, input, marks, rest } => {
                incoming.heard(estimate::json_bytes(&input));
                let input = as_meant(input);
                self.take_call(call_id, tool_name, input, (marks, rest)).await
            }
            Chunk::ToolInputError { call_id, tool_name, input, error_text, marks, mut rest } => {
                let repeated = self.repeats.count(&tool_name, &input);
                rest.set_tool_metadata(only_own(self.unreadable_shown(&tool_name, &error_text)));
                let (error_text, _) = repeats::warned(&error_text, repeats::warning(repeated.times(None)));
                // The error is the result of the call; the model has to see it, so the turn continues.
                let unreadable = (call_id.clone(), tool_name.clone(), error_text.clone());
                let call = Call::unreadable(unreadable.0, unreadable.1, unreadable.2, repeated);
                self.tell_unreadable(&call, &error_text);
                self.calls.push(call);
                self.record(Chunk::ToolInputError { call_id, tool_name, input, error_text, marks, rest })
                    .await
            }
            Chunk::Data { ref data, .. } => {
                incoming.heard(estimate::json_bytes(data));
                self.record(chunk).await
            }
            mut file @ Chunk::File { .. } => {
                let ports = &self.hub.ports;
                shelf::shelve_chunk(&mut file, &self.setup.workspace.session_id, &*ports.blobs).await?;
                self.record(file).await
            }
            other => self.record(other).await,
        }
    }

    /// Fails calls whose arguments began and never became complete: such a call does not run, and the model
    /// learns so.
    async fn fail_unfinished_inputs(&mut self, reason: FinishReason) -> Result<(), StepStop> {
        let text = unfinished(reason, self.setup.model.max_output);
        for (call_id, tool_name, repeated) in self.close_inputs(&text).await? {
            let call = Call::unreadable(call_id, tool_name, text.clone(), repeated);
            self.tell_unreadable(&call, &text);
            self.calls.push(call);
        }
        Ok(())
    }

    /// Closes a part that would exceed its limit and opens the next; returns the id to write under.
    async fn part_with_room(
        &self,
        kind: OpenPartKind,
        id: &StreamId,
        more: usize,
        incoming: &mut Incoming,
    ) -> Result<StreamId, StepStop> {
        incoming.heard(more as u64);
        let Some(stream) = incoming.stream(id) else { return Ok(id.clone()) };
        if stream.bytes > 0 && stream.bytes + more > PART_BYTES {
            stream.pieces += 1;
            stream.bytes = 0;
            let next: StreamId = format!("{id}~{}", stream.pieces).into();
            let before = std::mem::replace(&mut stream.ours, next.clone());
            let (end, start) = match kind {
                OpenPartKind::Text => (
                    Chunk::TextEnd { id: before, rest: Rest::none() },
                    Chunk::TextStart { id: next, rest: Rest::none() },
                ),
                OpenPartKind::Reasoning => (
                    Chunk::ReasoningEnd { id: before, rest: Rest::none() },
                    Chunk::ReasoningStart { id: next, rest: Rest::none() },
                ),
            };
            self.record(end).await?;
            self.record(start).await?;
        }
        stream.bytes += more;
        Ok(stream.ours.clone())
    }

    /// Adds what is known of a call before its arguments are: its kind, and whether clients see it at all.
    fn decorate(&self, tool_name: &str, rest: &mut Rest) {
        let Some(tool) = self.setup.tools.find(tool_name) else { return };
        rest.set_tool_metadata(only_own(tool.spec().presentation()));
    }
}

/// Whether any of the answer is recorded. A part that was opened and is still silent is not.
#[derive(PartialEq, Eq)]
enum AnswerProgress {
    Nothing,
    Something,
}

fn cut() -> ModelError {
    ModelError::Transient {
        message:
            "the connection to the model was lost before its answer was complete; say `continue` to go on"
                .into(),
        retry_after: None,
    }
}

/// Why arguments are incomplete, and what to do about it.
fn unfinished(reason: FinishReason, max_output: u64) -> String {
    match reason {
        FinishReason::Length => {
            let limit = match max_output {
                0 => "its length limit".to_owned(),
                tokens => format!("the limit of {tokens} tokens"),
            };
            format!(
                "your answer reached {limit} in the middle of this call; it was not run. Work in parts: write the first \
                 part of a long file, then append the rest with edit or apply_patch"
            )
        }
        FinishReason::Stop
        | FinishReason::ContentFilter
        | FinishReason::ToolCalls
        | FinishReason::Error
        | FinishReason::Other => {
            "the arguments of this call never became complete; it was not run".to_owned()
        }
    }
}

/// Arguments that are nearly JSON arrive as a string: repairs them.
fn as_meant(input: Value) -> Value {
    match input {
        Value::String(text) => repaired(&text).unwrap_or(Value::String(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => input,
    }
}

/// Arguments that are no JSON arrive as a string, but a tool needs an object.
pub(super) fn as_object(input: &Value) -> Result<&Value, String> {
    match input {
        Value::Object(_) => Ok(input),
        Value::String(text) => Err(not_json(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(format!("the arguments must be a JSON object, not {}", excerpt(&input.to_string())))
        }
    }
}

const ESCAPES: &str =
    "\nIn a JSON string write a line end as \\n, a tab as \\t, a quote as \\\" and a backslash as \\\\";

/// What is wrong with a text that had to be JSON, with the text around the error: the beginning of a long text
/// would not help.
fn not_json(text: &str) -> String {
    const BEFORE: usize = 120;
    const BEHIND: usize = 60;
    let error = match serde_json::from_str::<Value>(text) {
        Err(error) => error,
        Ok(_) => return format!("the arguments must be a JSON object, not a text: {}", excerpt(text)),
    };
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    // The last byte that the parser read, or the end.
    let fault = match error.is_eof() {
        true => text.len(),
        false => text.floor_char_boundary((before + error.column().saturating_sub(1)).min(text.len())),
    };
    let start = text.floor_char_boundary(fault.saturating_sub(BEFORE));
    let end = text.ceil_char_boundary((fault + BEHIND).min(text.len()));
    let (cut, more) = (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    let problem = error.to_string();
    let problem = problem.split(" at line ").next().unwrap_or(&problem);
    let all = text.len();
    let is_of_string = ["control character", "escape"].iter().any(|word| problem.contains(word));
    let hint = if is_of_string { ESCAPES } else { "" };
    format!(
        "the arguments are not valid JSON: {problem} at byte {fault} of {all}: {cut}{}⟨here⟩{}{more}{hint}",
        &text[start..fault],
        &text[fault..end]
    )
}

fn excerpt(text: &str) -> String {
    const SHOWN: usize = 200;
    let mut end = text.len().min(SHOWN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_shown_where_it_broke() {
        let long = "x".repeat(5_000);
        let text = format!("{{\"path\":\"a\",\n\"content\":\"{long}\" \"mode\":1}}");
        let told = as_object(&Value::String(text)).unwrap_err();
        assert!(told.contains("expected `,` or `}` at byte 5026 of 5035"), "{told}");
        assert!(told.ends_with("x\" ⟨here⟩\"mode\":1}") && told.len() < 400, "{told}");
        let cut = as_object(&Value::String(format!("{{\"content\":\"{long}"))).unwrap_err();
        assert!(cut.contains("EOF while parsing a string at byte 5012 of 5012"), "{cut}");
        let ambiguous = as_object(&Value::String(r#"{"path":"C:\new\dir"}"#.to_owned())).unwrap_err();
        assert!(ambiguous.contains(r"a backslash as \\"), "{ambiguous}");
        for odd in ["", "é", "{\"a\":é}", "\n\n", "\"text\"", "{\"a\":\n\"é"] {
            assert!(as_object(&Value::String(odd.to_owned())).is_err(), "{odd}");
        }
    }
}
