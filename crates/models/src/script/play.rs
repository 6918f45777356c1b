//! Streams one step of a script as chunks: lazily, and cancellable between any two of them. Does not choose the
//! step.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use attache_core::chunk::{Chunk, FinishReason, Rest, StreamId, ToolMarks};
use attache_core::ids::CallId;
use attache_core::ports::{ModelError, StepEvent, Usage};
use futures_util::Stream;
use tokio::task::coop;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{Directive, ErrorKind, ScriptStep, ScriptedCall, ScriptedError};
use crate::limits::{ARGUMENT_DELTA_BYTES, ARGUMENT_DELTAS, BYTES_PER_TOKEN};

/// One step in progress. Ends after `End`, an error, a cut or cancellation.
pub(crate) struct Playback {
    step: Arc<ScriptStep>,
    next_directive: usize,
    /// Which attempt at this step this is, from 1; `times=` compares with it.
    attempt: u64,
    /// Passages in the request. Makes ids unique within the session and the same on every replay.
    passages: usize,
    input_bytes: u64,
    open: OpenPart,
    parts_opened: usize,
    calls_made: usize,
    output_bytes: u64,
    reasoning_bytes: u64,
    /// Deltas left of the `stream` directive before `next_directive`.
    burst_left: u64,
    /// Chunks made but not yet taken; only calls and part boundaries put more than one here.
    ready: VecDeque<StepEvent>,
    waiting: Option<Pin<Box<Sleep>>>,
    cancel: CancellationToken,
    /// Kept beside the token, because it holds the waker while a delay runs; made only then.
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    state: PlaybackState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PlaybackState {
    Playing,
    Over,
}

/// The part that deltas go to.
enum OpenPart {
    Nothing,
    Text(StreamId),
    Reasoning(StreamId),
}

impl Playback {
    pub(crate) fn new(
        step: Arc<ScriptStep>,
        attempt: u64,
        passages: usize,
        input_bytes: u64,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            step,
            next_directive: 0,
            attempt,
            passages,
            input_bytes,
            open: OpenPart::Nothing,
            parts_opened: 0,
            calls_made: 0,
            output_bytes: 0,
            reasoning_bytes: 0,
            burst_left: 0,
            ready: VecDeque::new(),
            waiting: None,
            cancel,
            cancelled: None,
            state: PlaybackState::Playing,
        }
    }

    /// Plays the next directive into `ready` and the waiting fields; returns an error or the end of the stream.
    fn advance(&mut self) -> Option<Option<Result<StepEvent, ModelError>>> {
        let step = self.step.clone();
        let Some(directive) = step.directives.get(self.next_directive) else {
            self.end_step(&step);
            return None;
        };
        self.next_directive += 1;
        match directive {
            Directive::Reasoning(text) => {
                let id = self.reasoning_part();
                self.reasoning_bytes += text.len() as u64;
                self.say(Chunk::reasoning_delta(&id, text.as_str()));
            }
            Directive::Text(text) => {
                let id = self.text_part();
                self.text_delta(&id, text);
            }
            Directive::Stream { count, .. } => {
                self.text_part();
                self.burst_left = *count;
            }
            Directive::Delay(duration) => self.wait(*duration),
            Directive::Call(call) => self.call(call),
            Directive::File { media_type, url } => {
                self.close_part();
                self.say(Chunk::File {
                    url: url.clone(),
                    media_type: media_type.clone(),
                    rest: Rest::none(),
                });
            }
            Directive::Source { url, title } => {
                self.close_part();
                self.parts_opened += 1;
                let source_id = format!("source_{}_{}", self.passages, self.parts_opened);
                self.say(Chunk::SourceUrl {
                    source_id,
                    url: url.clone(),
                    title: title.clone(),
                    rest: Rest::none(),
                });
            }
            Directive::Error(error) if error.times.is_some_and(|times| self.attempt > times) => {}
            Directive::Error(error) => return Some(Some(Err(model_error(error)))),
            Directive::Cut => return Some(None),
            Directive::Panic => panic!("the script says panic"),
        }
        None
    }

    /// The next delta of a running `stream` directive.
    fn burst(&mut self) -> Option<StepEvent> {
        let step = self.step.clone();
        let directive = step.directives.get(self.next_directive.checked_sub(1)?)?;
        let (Directive::Stream { text, every, .. }, OpenPart::Text(id)) = (directive, &self.open) else {
            return None;
        };
        let delta = Chunk::text_delta(id, text.as_str());
        self.burst_left -= 1;
        self.output_bytes += text.len() as u64;
        if let (Some(every), true) = (every, self.burst_left > 0) {
            self.wait(*every);
        }
        Some(StepEvent::Chunk(delta))
    }

    fn wait(&mut self, duration: Duration) {
        // A deadline that the clock cannot hold means an endless wait. A day is long enough and still a timer.
        let day = Duration::from_secs(24 * 60 * 60);
        let deadline = Instant::now() + duration.min(day);
        match &mut self.waiting {
            Some(sleep) => sleep.as_mut().reset(deadline),
            None => self.waiting = Some(Box::pin(tokio::time::sleep_until(deadline))),
        }
    }

    fn say(&mut self, chunk: Chunk) {
        self.ready.push_back(StepEvent::Chunk(chunk));
    }

    fn text_delta(&mut self, id: &StreamId, text: &str) {
        self.output_bytes += text.len() as u64;
        self.say(Chunk::text_delta(id, text));
    }

    fn text_part(&mut self) -> StreamId {
        if let OpenPart::Text(id) = &self.open {
            return id.clone();
        }
        let id = self.new_part("text");
        self.open = OpenPart::Text(id.clone());
        self.say(Chunk::TextStart { id: id.clone(), rest: Rest::none() });
        id
    }

    fn reasoning_part(&mut self) -> StreamId {
        if let OpenPart::Reasoning(id) = &self.open {
            return id.clone();
        }
        let id = self.new_part("reasoning");
        self.open = OpenPart::Reasoning(id.clone());
        self.say(Chunk::ReasoningStart { id: id.clone(), rest: Rest::none() });
        id
    }

    fn new_part(&mut self, kind: &str) -> StreamId {
        self.close_part();
        self.parts_opened += 1;
        format!("{kind}_{}_{}", self.passages, self.parts_opened).into()
    }

    fn close_part(&mut self) {
        match std::mem::replace(&mut self.open, OpenPart::Nothing) {
            OpenPart::Nothing => {}
            OpenPart::Text(id) => self.say(Chunk::TextEnd { id, rest: Rest::none() }),
            OpenPart::Reasoning(id) => self.say(Chunk::ReasoningEnd { id, rest: Rest::none() }),
        }
    }

    fn call(&mut self, call: &ScriptedCall) {
        self.close_part();
        self.calls_made += 1;
        self.output_bytes += (call.tool_name.len() + call.arguments.len()) as u64;
        let call_id = CallId::new(match &call.id {
            Some(id) => id.clone(),
            None => format!("call_{}_{}", self.passages, self.calls_made),
        });
        self.say(Chunk::ToolInputStart {
            call_id: call_id.clone(),
            tool_name: call.tool_name.clone(),
            input_encoding: None,
            marks: ToolMarks::default(),
            rest: Rest::none(),
        });
        for piece in pieces(&call.arguments) {
            let input_text_delta = piece.to_owned();
            self.say(Chunk::ToolInputDelta {
                call_id: call_id.clone(),
                input_text_delta,
                rest: Rest::none(),
            });
        }
        // We never complete a call whose arguments the limit cut off.
        if self.step.finish == Some(FinishReason::Length) && !call.input.is_object() {
            return;
        }
        self.say(Chunk::ToolInputAvailable {
            call_id,
            tool_name: call.tool_name.clone(),
            input: call.input.clone(),
            marks: ToolMarks::default(),
            rest: Rest::none(),
        });
    }

    fn end_step(&mut self, step: &ScriptStep) {
        self.close_part();
        let by_calls = if self.calls_made > 0 { FinishReason::ToolCalls } else { FinishReason::Stop };
        let usage = step.usage.unwrap_or_else(|| Usage {
            input: tokens(self.input_bytes),
            output: tokens(self.output_bytes),
            reasoning: tokens(self.reasoning_bytes),
            ..Usage::default()
        });
        self.ready.push_back(StepEvent::End { reason: step.finish.unwrap_or(by_calls), usage });
    }

    /// Ready when the delay is over or the step cancelled.
    fn poll_wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(sleep) = &mut self.waiting else { return Poll::Ready(()) };
        if sleep.is_elapsed() {
            return Poll::Ready(());
        }
        let cancel = &self.cancel;
        let cancelled = self.cancelled.get_or_insert_with(|| Box::pin(cancel.clone().cancelled_owned()));
        if cancelled.as_mut().poll(context).is_pending() {
            ready!(sleep.as_mut().poll(context));
        }
        Poll::Ready(())
    }
}

impl Stream for Playback {
    type Item = Result<StepEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.state == PlaybackState::Over {
            return Poll::Ready(None);
        }
        // The budget makes a reader that never waits yield to other tasks every hundred chunks or so.
        let budget = ready!(coop::poll_proceed(context));
        loop {
            if this.cancel.is_cancelled() {
                this.state = PlaybackState::Over;
                budget.made_progress();
                return Poll::Ready(None);
            }
            if let Some(event) = this.ready.pop_front() {
                if matches!(event, StepEvent::End { .. }) {
                    this.state = PlaybackState::Over;
                }
                budget.made_progress();
                return Poll::Ready(Some(Ok(event)));
            }
            ready!(this.poll_wait(context));
            if this.cancel.is_cancelled() {
                continue;
            }
            if this.burst_left > 0
                && let Some(event) = this.burst()
            {
                budget.made_progress();
                return Poll::Ready(Some(Ok(event)));
            }
            if let Some(last) = this.advance() {
                this.state = PlaybackState::Over;
                budget.made_progress();
                return Poll::Ready(last);
            }
        }
    }
}

fn model_error(error: &ScriptedError) -> ModelError {
    let message = error.message.clone();
    match error.kind {
        ErrorKind::Transient => ModelError::Transient { message, retry_after: error.retry_after },
        ErrorKind::Permanent => ModelError::Permanent(message),
        ErrorKind::Auth => ModelError::Auth(message),
        ErrorKind::Refused => ModelError::Refused(message),
        ErrorKind::Overflow => ModelError::Overflow(message),
        ErrorKind::Attachment => ModelError::AttachmentRejected(message),
        ErrorKind::Unreadable => ModelError::Unreadable(message),
    }
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The arguments, cut as a provider would send them, never within a character.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let (smallest, largest) = ARGUMENT_DELTA_BYTES;
    let size = (text.len() / ARGUMENT_DELTAS).clamp(smallest, largest);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, behind) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        rest = behind;
        Some(piece)
    })
}
