//! One answer of an AI SDK endpoint: its chunks in order, its approvals as questions, and the next POST once
//! they are decided.

use std::collections::{HashMap, VecDeque};

use attache_core::chunk::{Chunk, FinishReason, json as chunk_json};
use attache_core::ids::CallId;
use attache_core::part::Part;
use attache_core::ports::BoxFuture;
use attache_core::ports::client::CallArguments;
use serde_json::Value;

use super::AiSdkAgent;
use crate::ForeignError;
use crate::agent::{DecidedRound, ForeignRun, ForeignUsage, RunAsk, RunAskAbout, RunEvent, RunRequest};
use crate::events::Event;
use crate::http::EventFeed;

/// What ends a stream.
const DONE: &str = "[DONE]";

#[derive(Debug)]
pub(super) struct AiSdkRun {
    agent: AiSdkAgent,
    request: RunRequest,
    /// `None` once it has ended.
    stream: Option<EventFeed>,
    /// Read already, while nobody knew whether the server says anything.
    first: Option<Event>,
    said: VecDeque<RunEvent>,
    /// Tools by their calls: a question names its call alone.
    tools: HashMap<CallId, String>,
    asks: u32,
    finished: Option<FinishReason>,
    /// What names the conversation at a server that keeps its own.
    id: Option<String>,
}

impl AiSdkRun {
    pub(super) fn new(
        agent: AiSdkAgent,
        request: RunRequest,
        (stream, first): (EventFeed, Option<Event>),
        keep: Option<Value>,
    ) -> Self {
        let id = keep.as_ref().and_then(|keep| keep.get("id")?.as_str().map(str::to_owned));
        let tools = tools_of(&request.open_parts);
        let said = keep.map(RunEvent::Keep).into_iter().collect();
        Self { agent, request, stream: Some(stream), first, said, tools, asks: 0, finished: None, id }
    }

    async fn step(&mut self) -> Option<Result<RunEvent, ForeignError>> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Some(Ok(said));
            }
            let stream = self.stream.as_mut()?;
            let event = match self.first.take() {
                Some(first) => Ok(Some(first)),
                None => stream.next().await,
            };
            let taken = match event {
                Ok(Some(event)) if event.data == DONE => self.over(),
                Ok(Some(event)) => self.take(&event.data),
                Ok(None) => self.over(),
                // Nothing is missing of an answer that said that it is complete.
                Err(_) if self.finished.is_some() => self.over(),
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                self.stream = None;
                return Some(Err(error));
            }
        }
    }

    /// The stream has ended.
    fn over(&mut self) -> Result<(), ForeignError> {
        self.stream = None;
        let Some(reason) = self.finished.take() else {
            return Err(ForeignError::new("the agent's stream ended before its answer did"));
        };
        self.said.push_back(match self.asks {
            0 => RunEvent::End(reason),
            _ => RunEvent::Waits,
        });
        Ok(())
    }

    fn take(&mut self, data: &str) -> Result<(), ForeignError> {
        if self.finished.is_some() {
            return Ok(());
        }
        let chunk = chunk_json::decode(data)
            .map_err(|error| ForeignError::new(format!("the agent sent what is no AI SDK chunk: {error}")))?;
        match chunk.without_own_marks() {
            Chunk::Error { error_text, .. } => Err(ForeignError::new(error_text)),
            Chunk::Abort { reason, .. } => {
                let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                Err(ForeignError::new(format!("the agent aborted its answer{why}")))
            }
            Chunk::Finish { finish_reason, message_metadata, .. } => {
                self.finished = Some(finish_reason.unwrap_or(FinishReason::Stop));
                self.said.extend(message_metadata.as_ref().and_then(usage).map(RunEvent::Usage));
                Ok(())
            }
            Chunk::MessageMetadata { .. } => Ok(()),
            Chunk::ToolApprovalRequest { approval_id, call_id, rest } => {
                let tool = self.tools.get(&call_id).cloned().unwrap_or_default();
                let description = rest.0.as_ref().and_then(|rest| {
                    let about = rest.unknown.get("descriptor").or(rest.unknown.get("approvalDescriptor"))?;
                    about.get("description").or(Some(about))?.as_str().map(str::to_owned)
                });
                self.asks += 1;
                self.said.push_back(RunEvent::Ask(Box::new(RunAsk {
                    call_id,
                    approval_id: Some(approval_id),
                    tool,
                    presentation: None,
                    // Its answer is a yes or a no: the SDK has no place for other arguments.
                    about: RunAskAbout::Permission { description, arguments: CallArguments::Fixed },
                    rest,
                })));
                Ok(())
            }
            chunk => {
                if let Chunk::ToolInputStart { call_id, tool_name, .. }
                | Chunk::ToolInputAvailable { call_id, tool_name, .. } = &chunk
                {
                    self.tools.insert(call_id.clone(), tool_name.clone());
                }
                self.said.push_back(RunEvent::Chunk(chunk));
                Ok(())
            }
        }
    }
}

impl ForeignRun for AiSdkRun {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<RunEvent, ForeignError>>> {
        Box::pin(self.step())
    }

    fn decide(&mut self, round: DecidedRound) -> BoxFuture<'_, Result<(), ForeignError>> {
        Box::pin(async move {
            self.tools.extend(tools_of(&round.open_parts));
            let (stream, first) = self.agent.go_on(&self.request, round, self.id.as_deref()).await?;
            (self.stream, self.first, self.asks, self.finished) = (Some(stream), first, 0, None);
            Ok(())
        })
    }

    fn cancel(&mut self) -> BoxFuture<'_, ()> {
        // A connection that closes is what endpoints know as a stop.
        self.stream = None;
        Box::pin(std::future::ready(()))
    }
}

fn tools_of(parts: &[Part]) -> HashMap<CallId, String> {
    let calls = parts.iter().filter_map(Part::tool);
    calls.map(|tool| (tool.call_id.clone(), tool.tool_name.clone())).collect()
}

/// What apps commonly attach to the end of a message: `usage` or `totalUsage` as the SDK counts it.
fn usage(metadata: &Value) -> Option<ForeignUsage> {
    let counted = ["totalUsage", "usage"].into_iter().find_map(|key| metadata.get(key)?.as_object())?;
    // The newer versions count in details alone.
    let count = |key: &str, place: &str, detail: &str| {
        let detailed = || counted.get(place)?.get(detail);
        counted.get(key).or_else(detailed).and_then(Value::as_u64).unwrap_or_default()
    };
    let mut usage = ForeignUsage::default();
    usage.tokens.cache_read = count("cachedInputTokens", "inputTokenDetails", "cacheReadTokens");
    usage.tokens.cache_write = count("cacheWriteTokens", "inputTokenDetails", "cacheWriteTokens");
    let cached = usage.tokens.cache_read + usage.tokens.cache_write;
    usage.tokens.input = count("inputTokens", "", "").saturating_sub(cached);
    usage.tokens.reasoning = count("reasoningTokens", "outputTokenDetails", "reasoningTokens");
    usage.tokens.output = count("outputTokens", "", "").saturating_sub(usage.tokens.reasoning);
    (usage.tokens.total() > 0).then_some(usage)
}
