//! What an ACP agent says in one turn, as the chunks of our answer. Pure: the same updates give the same
//! chunks.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, EmbeddedResourceResource, Plan, PlanEntryPriority, PlanEntryStatus,
    ResourceLink, SessionUpdate, ToolCallUpdate,
};
use attache_core::chunk::{Chunk, Rest, RestFields, StreamId};
use attache_core::ids::CallId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::calls::{CallBook, CallInQuestion, TooManyCalls};
use super::present::TerminalTexts;

/// One answer. The session records its start and its end.
#[derive(Debug, Default)]
pub(super) struct Translator {
    open: Option<OpenSpeech>,
    streams: usize,
    calls: CallBook,
    step: StepStage,
}

#[derive(Debug)]
struct OpenSpeech {
    kind: Speech,
    id: StreamId,
    /// As the agent named the message that the text belongs to.
    message: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speech {
    Text,
    Thought,
}

/// A step is one request to a model and the calls that came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StepStage {
    #[default]
    Saying,
    /// What is said once its calls are settled is the next one.
    Called,
}

impl Translator {
    /// Updates of what can be chosen, of usage, titles and notices are not the answer's: whoever takes updates
    /// reads them.
    pub(super) fn update(
        &mut self,
        update: SessionUpdate,
        terminals: &dyn TerminalTexts,
        out: &mut Vec<Chunk>,
    ) -> Result<(), TooManyCalls> {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.said(Speech::Text, chunk, out),
            SessionUpdate::AgentThoughtChunk(chunk) => self.said(Speech::Thought, chunk, out),
            SessionUpdate::ToolCall(call) => {
                let mut said = Vec::new();
                self.calls.announced(call, terminals, &mut said)?;
                self.called(said, out);
            }
            SessionUpdate::ToolCallUpdate(update) => {
                let mut said = Vec::new();
                self.calls.updated(update, terminals, &mut said)?;
                self.called(said, out);
            }
            SessionUpdate::Plan(plan) => out.push(plan_chunk(&plan)),
            // What the person said is stored already; the rest is not about the answer, or of a newer protocol.
            _ => {}
        }
        Ok(())
    }

    /// A call that the agent asks about.
    pub(super) fn asked(
        &mut self,
        update: ToolCallUpdate,
        terminals: &dyn TerminalTexts,
        out: &mut Vec<Chunk>,
    ) -> Result<Option<CallInQuestion>, TooManyCalls> {
        let mut said = Vec::new();
        let asked = self.calls.asked(update, terminals, &mut said)?;
        self.called(said, out);
        Ok(asked)
    }

    pub(super) fn allowed(&mut self, call_id: &CallId, out: &mut Vec<Chunk>) {
        self.calls.allowed(call_id, out);
    }

    pub(super) fn denied(&mut self, call_id: &CallId) {
        self.calls.denied(call_id);
    }

    /// The turn is over: everything that was opened is closed, but the step.
    pub(super) fn close(&mut self, out: &mut Vec<Chunk>) {
        self.close_stream(out);
        self.calls.close(out);
    }

    fn said(&mut self, kind: Speech, chunk: ContentChunk, out: &mut Vec<Chunk>) {
        let message = chunk.message_id.map(|id| id.0);
        match chunk.content {
            ContentBlock::Text(text) if text.text.is_empty() => {}
            ContentBlock::Text(text) => {
                self.next_step(out);
                let id = self.stream(kind, message, out);
                out.push(match kind {
                    Speech::Text => Chunk::text_delta(&id, text.text),
                    Speech::Thought => Chunk::reasoning_delta(&id, text.text),
                });
            }
            block => {
                self.next_step(out);
                self.close_stream(out);
                out.extend(block_chunk(block));
            }
        }
    }

    /// The open text of this kind, or a new one.
    fn stream(&mut self, kind: Speech, message: Option<Arc<str>>, out: &mut Vec<Chunk>) -> StreamId {
        if let Some(open) = &self.open
            && open.kind == kind
            && open.message == message
        {
            return open.id.clone();
        }
        self.close_stream(out);
        self.streams += 1;
        let id: StreamId = format!("{}", self.streams).into();
        let rest = Rest::none();
        out.push(match kind {
            Speech::Text => Chunk::TextStart { id: id.clone(), rest },
            Speech::Thought => Chunk::ReasoningStart { id: id.clone(), rest },
        });
        self.open = Some(OpenSpeech { kind, id: id.clone(), message });
        id
    }

    fn close_stream(&mut self, out: &mut Vec<Chunk>) {
        let Some(OpenSpeech { kind, id, .. }) = self.open.take() else { return };
        let rest = Rest::none();
        out.push(match kind {
            Speech::Text => Chunk::TextEnd { id, rest },
            Speech::Thought => Chunk::ReasoningEnd { id, rest },
        });
    }

    /// What is told of calls; nothing is told of those that have ended.
    fn called(&mut self, said: Vec<Chunk>, out: &mut Vec<Chunk>) {
        if !said.is_empty() {
            self.close_stream(out);
            self.step = StepStage::Called;
            out.extend(said);
        }
    }

    /// What is said after calls came from a model that knows their results.
    fn next_step(&mut self, out: &mut Vec<Chunk>) {
        if self.step == StepStage::Called && self.calls.all_settled() {
            self.close_stream(out);
            self.step = StepStage::Saying;
            out.push(Chunk::FinishStep { rest: Rest::none() });
        }
    }
}

/// Pictures, recordings, files and links that the agent shows.
fn block_chunk(block: ContentBlock) -> Option<Chunk> {
    match block {
        ContentBlock::Text(_) => None,
        ContentBlock::Image(image) => Some(file_chunk(&image.mime_type, &image.data, None)),
        ContentBlock::Audio(audio) => Some(file_chunk(&audio.mime_type, &audio.data, None)),
        ContentBlock::ResourceLink(link) => Some(source_chunk(link)),
        ContentBlock::Resource(resource) => match resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                let mime = text.mime_type.as_deref().unwrap_or("text/plain");
                Some(file_chunk(mime, &STANDARD.encode(&text.text), Some(&text.uri)))
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => {
                let mime = blob.mime_type.as_deref().unwrap_or("application/octet-stream");
                Some(file_chunk(mime, &blob.blob, Some(&blob.uri)))
            }
            _ => None,
        },
        _ => None,
    }
}

fn file_chunk(mime: &str, data: &str, uri: Option<&str>) -> Chunk {
    let mut unknown = Map::new();
    let name = uri.and_then(attache_core::prompt::name_of_uri);
    if let Some(name) = name {
        unknown.insert("filename".into(), name.into());
    }
    let rest = match unknown.is_empty() {
        true => Rest::none(),
        false => Rest(Some(Box::new(RestFields { unknown, ..RestFields::default() }))),
    };
    Chunk::File { url: format!("data:{mime};base64,{data}"), media_type: mime.to_owned(), rest }
}

fn source_chunk(link: ResourceLink) -> Chunk {
    let title = link.title.unwrap_or(link.name);
    match link.mime_type {
        Some(media_type) if !link.uri.starts_with("http") => Chunk::SourceDocument {
            source_id: link.uri,
            media_type,
            title,
            filename: None,
            rest: Rest::none(),
        },
        _ => Chunk::SourceUrl {
            source_id: link.uri.clone(),
            url: link.uri,
            title: Some(title),
            rest: Rest::none(),
        },
    }
}

/// Always the whole plan.
fn plan_chunk(plan: &Plan) -> Chunk {
    let entry = |entry: &agent_client_protocol_schema::v1::PlanEntry| {
        let priority = match entry.priority {
            PlanEntryPriority::High => "high",
            PlanEntryPriority::Low => "low",
            _ => "medium",
        };
        let status = match entry.status {
            PlanEntryStatus::InProgress => "in_progress",
            PlanEntryStatus::Completed => "completed",
            _ => "pending",
        };
        json!({ "content": entry.content, "priority": priority, "status": status })
    };
    let entries: Vec<Value> = plan.entries.iter().map(entry).collect();
    let (name, id) = ("plan".to_owned(), Some("plan".to_owned()));
    Chunk::Data { name, id, data: json!({ "entries": entries }), transient: None, rest: Rest::none() }
}

#[cfg(test)]
mod tests;
