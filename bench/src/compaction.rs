//! What a summary costs beside the model: a long conversation is cut, written as text and put together again.
//! The model answers at once.

use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use attache_core::chunk::{Chunk, FinishReason};
use attache_core::compactor::Compactor;
use attache_core::ids::{CallId, MessageId, SessionId};
use attache_core::part::{Part, Passage, Role, ToolPart, ToolState};
use attache_core::ports::compaction::{CompactionRequest, NoteWriter, Occasion, ProgressSender};
use attache_core::ports::model::ModelInfo;
use attache_core::ports::store::ModelRef;
use attache_core::ports::{BoxStream, Compaction, Model, ModelError, ModelRequest, StepEvent, Usage};
use futures_util::{StreamExt, stream};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Place;
use super::aims::{COMPACTED_MESSAGES, COMPACTION_MS, COMPACTIONS};
use super::figures::median_ms;
use super::no_blobs::NoBlobs;
use super::table::{Row, Table};

pub(crate) fn measure(_: &Place, table: &mut Table) -> Result<()> {
    let compactor = Compactor { model: Arc::new(AtOnce), blobs: Arc::new(NoBlobs), small_model: None };
    let request = request()?;
    let mut times = Vec::new();
    for _ in 0..=COMPACTIONS {
        let request = request.clone();
        let started = Instant::now();
        let mut making = pin!(compactor.compact(request, CancellationToken::new()));
        // Nothing in it waits, so that no runtime is measured along.
        let made = match making.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(made) => made?.context("nothing was summarised")?,
            Poll::Pending => bail!("a summary waits for something"),
        };
        times.push(started.elapsed());
        black_box(made);
    }
    table.push(Row {
        figure: format!("a summary of {COMPACTED_MESSAGES} messages, without the model"),
        unit: "ms",
        value: median_ms(&times[1..])?,
        limit: None,
        aim: Some(COMPACTION_MS),
    });
    Ok(())
}

/// A prompt, then an answer with a call and its result, and so on.
fn request() -> Result<CompactionRequest> {
    let result = "    let value = compute(1, 2); // a line of a file\n".repeat(40);
    let passages = (0..COMPACTED_MESSAGES).map(|number| {
        let id = MessageId::new(format!("msg_{number}"));
        let text = |text: &str| Part::Text { text: text.into(), state: None, provider_metadata: None };
        if number % 2 == 0 {
            return Passage::new(id, Role::User, vec![text("Please change the next one as well.")]);
        }
        let mut tool = ToolPart::new(CallId::new(format!("call_{number}")), "read");
        tool.state = ToolState::OutputAvailable;
        tool.input = Some(json!({ "path": format!("src/file_{number}.rs") }));
        tool.output = Some(json!(result));
        Passage::new(id, Role::Assistant, vec![Part::Tool(Box::new(tool)), text("Changed as you asked.")])
    });
    let conversation = passages.map(Arc::new).collect::<Vec<_>>();
    let prompt = conversation.iter().rev().find(|passage| passage.role == Role::User);
    Ok(CompactionRequest {
        session_id: SessionId::new("ses_1"),
        root: "/w".into(),
        info: AtOnce.available().first().map(|info| Arc::new(info.clone())).context("no model")?,
        instructions: "".into(),
        writer: NoteWriter::default(),
        thought: None,
        system: "".into(),
        tools: Arc::new([]),
        prompt: prompt.map(|passage| passage.message_id.clone()).context("no prompt")?,
        conversation: conversation.into(),
        occasion: Occasion::Overflow,
        progress: ProgressSender::default(),
        expected_tokens: None,
        limit_tokens: 100_000,
        reason: String::new(),
        parent_span: None,
    })
}

/// A model whose whole answer is there when it is asked.
#[derive(Debug)]
struct AtOnce;

impl Model for AtOnce {
    fn available(&self) -> Arc<[ModelInfo]> {
        let info = ModelInfo::undescribed(ModelRef::new("bench", "at-once"));
        Arc::new([ModelInfo { context: 120_000, ..info }])
    }

    fn stream(
        &self,
        _request: ModelRequest,
        _cancel: CancellationToken,
    ) -> BoxStream<'static, Result<StepEvent, ModelError>> {
        let said = StepEvent::Chunk(Chunk::text_delta(&"t".into(), "## Goal\nChange them all."));
        let end = StepEvent::End { reason: FinishReason::Stop, usage: Usage::default() };
        stream::iter([Ok(said), Ok(end)]).boxed()
    }
}
