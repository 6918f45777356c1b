//! The mark of a compaction in an answer: from there on the model is sent a summary instead of what was said
//! before, and the last turns as they were. Nothing is deleted: rows, load and exports have everything.
//!
//! The part is `data-compaction {id, status, summary?, tail_start_id?, auto, summary_tokens?, error?}`. Only
//! one whose status is `completed` is a boundary: a process that ends halfway leaves the conversation as it
//! was.

use serde_json::{Value, json};

use crate::chunk::{Chunk, Rest};
use crate::ids::MessageId;
use crate::part::{Part, Passage, Role};
use crate::ports::compaction::Compacted;

/// The name of the part.
pub const PART_NAME: &str = "compaction";

/// A boundary in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Boundary {
    summary: String,
    /// The first message before the boundary that is still sent; `None`: no message before it is.
    pub(crate) tail_start: Option<MessageId>,
}

impl Boundary {
    /// The boundary that a part of an answer sets, if it does.
    pub(crate) fn of(part: &Part) -> Option<Self> {
        let Part::Data { name, data, .. } = part else { return None };
        let text = |key: &str| data.get(key).and_then(Value::as_str);
        if name != PART_NAME || text("status") != Some("completed") {
            return None;
        }
        let tail_start = text("tail_start_id").map(MessageId::new);
        Some(Self { summary: text("summary")?.to_owned(), tail_start })
    }

    /// What the model is sent in the place of everything before the tail.
    pub(crate) fn summary(&self, message_id: &MessageId) -> Passage {
        let text = Part::Text { text: framed(&self.summary), state: None, provider_metadata: None };
        Passage::new(message_id.clone(), Role::User, vec![text])
    }
}

/// The model must not take a summary for words of the user.
fn framed(summary: &str) -> String {
    format!(
        "<conversation_summary>\nThe conversation before this point, summarised to make room:\n\n{}\n</conversation_summary>",
        summary.replace("</conversation_summary", "<\\/conversation_summary")
    )
}

/// A compaction that has begun.
pub(crate) fn begun(id: &str) -> Chunk {
    chunk(id, json!({ "id": id, "status": "in_progress", "auto": true }))
}

/// The turn was cancelled meanwhile.
pub(crate) fn cancelled(id: &str) -> Chunk {
    chunk(id, json!({ "id": id, "status": "cancelled", "auto": true }))
}

/// It gave nothing that makes room.
pub(crate) fn failed(id: &str, error: &str) -> Chunk {
    chunk(id, json!({ "id": id, "status": "failed", "auto": true, "error": error }))
}

/// The chunk that sets the boundary.
pub(crate) fn completed(id: &str, made: &Compacted) -> Chunk {
    let data = json!({
        "id": id,
        "status": "completed",
        "auto": true,
        "summary": made.summary,
        "tail_start_id": made.tail_start,
        "summary_tokens": made.summary_tokens,
    });
    chunk(id, data)
}

fn chunk(id: &str, data: Value) -> Chunk {
    let (name, id) = (PART_NAME.into(), Some(id.to_owned()));
    Chunk::Data { name, id, data, transient: None, rest: Rest::none() }
}

impl From<&Compacted> for Boundary {
    fn from(made: &Compacted) -> Self {
        Self { summary: made.summary.clone(), tail_start: made.tail_start.clone() }
    }
}
