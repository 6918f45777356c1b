//! The marks of a compaction in an answer: from there on the model is sent stubs instead of old results, or a
//! summary instead of what was said before, and the last turns unchanged. Nothing is deleted: rows, load and
//! exports keep everything.
//!
//! The part is `data-compaction {id, status, auto, summary?, tail_start_id?, tail_call_id?, summary_tokens?,
//! stubs?, error?}`. It is a mark only if its status is `completed`: a process that ends halfway leaves the
//! conversation unchanged. While a model writes a summary, transient parts tell how far it is (`piece`, `of`)
//! and what it says (`text`).

use serde_json::{Value, json};

use crate::chunk::{Chunk, Rest};
use crate::data_name::DataName;
use crate::ids::{CallId, MessageId};
use crate::part::{Part, Passage, Role};
use crate::ports::compaction::{Compacted, CompactionProgress, Occasion};

pub(crate) mod stubs;

pub(crate) use stubs::OutputStubs;

/// What a mark changes in the requests to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompactionMark {
    Summary(Boundary),
    Stubs(OutputStubs),
}

impl CompactionMark {
    /// The mark that a part of an answer sets, if it does.
    pub(crate) fn of(part: &Part) -> Option<Self> {
        let Part::Data { name, data, .. } = part else { return None };
        if *name != DataName::Compaction || data.get("status").and_then(Value::as_str) != Some("completed") {
            return None;
        }
        match Boundary::of(data) {
            Some(boundary) => Some(Self::Summary(boundary)),
            None => OutputStubs::from_json(data.get("stubs")?).map(Self::Stubs),
        }
    }
}

/// A boundary in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Boundary {
    summary: String,
    /// The first message before the boundary that is still sent; `None`: no message before it is.
    tail_start: Option<MessageId>,
    /// Of that message the step with this call is the first that is sent; `None`: all of it.
    tail_call: Option<CallId>,
}

impl Boundary {
    fn of(data: &Value) -> Option<Self> {
        let text = |key: &str| data.get(key).and_then(Value::as_str);
        Some(Self {
            summary: text("summary")?.to_owned(),
            tail_start: text("tail_start_id").map(MessageId::new),
            tail_call: text("tail_call_id").map(CallId::new),
        })
    }

    /// What the model receives in place of everything before the tail.
    pub(crate) fn summary(&self, message_id: &MessageId) -> Passage {
        let text = Part::Text { text: framed(&self.summary), state: None, provider_metadata: None };
        Passage::new(message_id.clone(), Role::User, vec![text])
    }

    /// Whether the tail begins with this passage.
    pub(crate) fn starts_tail(&self, passage: &Passage) -> bool {
        let has_call =
            |call: &CallId| passage.parts.iter().filter_map(Part::tool).any(|tool| tool.call_id == *call);
        self.tail_start.as_ref() == Some(&passage.message_id) && self.tail_call.as_ref().is_none_or(has_call)
    }
}

/// Whether a text is a summary in the form that the model receives.
pub(crate) fn is_summary(text: &str) -> bool {
    text.starts_with("<conversation_summary>")
}

/// The model must not take a summary for words of the user.
fn framed(summary: &str) -> String {
    format!(
        "<conversation_summary>\nThe conversation before this point, summarised to make room:\n\n{}\n</conversation_summary>",
        summary.replace("</conversation_summary", "<\\/conversation_summary")
    )
}

/// A compaction under way, and the chunks that are recorded of it.
#[derive(Clone, Debug)]
pub(crate) struct CompactionRecord {
    id: String,
    auto: bool,
}

impl CompactionRecord {
    pub(crate) fn new(id: String, occasion: &Occasion) -> Self {
        let auto = match occasion {
            Occasion::Overflow => true,
            Occasion::Command { .. } => false,
        };
        Self { id, auto }
    }

    /// Whether attache started it without a request by the user.
    pub(crate) fn is_automatic(&self) -> bool {
        self.auto
    }

    pub(crate) fn begun(&self) -> Chunk {
        self.chunk("in_progress", json!({}))
    }

    /// The chunk for a turn that was cancelled meanwhile.
    pub(crate) fn cancelled(&self) -> Chunk {
        self.chunk("cancelled", json!({}))
    }

    /// The chunk for an attempt that made no room.
    pub(crate) fn failed(&self, error: &str) -> Chunk {
        self.chunk("failed", json!({ "error": error }))
    }

    /// Only live clients get it: on load, a client gets the whole summary at once.
    pub(crate) fn progress(&self, progress: CompactionProgress) -> Chunk {
        let more = match progress {
            CompactionProgress::Piece { number, of } => json!({ "piece": number, "of": of }),
            CompactionProgress::Text(text) => json!({ "text": text }),
        };
        let Chunk::Data { name, id, data, rest, .. } = self.chunk("in_progress", more) else {
            return self.begun();
        };
        Chunk::Data { name, id, data, transient: Some(true), rest }
    }

    /// The chunk that sets the boundary.
    pub(crate) fn summarised(&self, made: &Compacted) -> Chunk {
        let mut more = json!({
            "summary": made.summary,
            "tail_start_id": made.tail_start,
            "summary_tokens": made.summary_tokens,
        });
        if let Some(call) = &made.tail_call {
            more["tail_call_id"] = json!(call);
        }
        self.chunk("completed", more)
    }

    /// The chunk that turns the old results before it into stubs.
    pub(crate) fn shortened(&self, stubs: &OutputStubs) -> Chunk {
        self.chunk("completed", json!({ "stubs": stubs.to_json() }))
    }

    fn chunk(&self, status: &str, more: Value) -> Chunk {
        let mut data = json!({ "id": self.id, "status": status, "auto": self.auto });
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        let (name, id) = (DataName::Compaction.into(), Some(self.id.clone()));
        Chunk::Data { name, id, data, transient: None, rest: Rest::none() }
    }
}

/// The end of a compaction whose process ended first: it sets no boundary, and no turn waits for it.
pub(crate) fn cut_off(part: &Part) -> Option<Chunk> {
    let Part::Data { name, id, data } = part else { return None };
    if *name != DataName::Compaction || data.get("status").and_then(Value::as_str) != Some("in_progress") {
        return None;
    }
    let mut data = data.clone();
    data["status"] = json!("cancelled");
    Some(Chunk::Data { name: name.clone(), id: id.clone(), data, transient: None, rest: Rest::none() })
}

impl From<&Compacted> for Boundary {
    fn from(made: &Compacted) -> Self {
        Self {
            summary: made.summary.clone(),
            tail_start: made.tail_start.clone(),
            tail_call: made.tail_call.clone(),
        }
    }
}
