//! What is known of a turn from its entries: its last message, the calls that were denied, and a line for each
//! thing it does.

use attache_core::chunk::Chunk;
use attache_core::data_name::DataName;
use attache_core::entry::SharedSegment;
use attache_core::ids::{CallId, MessageId, SessionId};
use attache_core::legible::legible_line;
use attache_core::notice;
use attache_core::part::Role;

use crate::denials::{self, Denial, Denials};
use crate::limits::{ANSWER_BYTES, KNOWN_CALLS, LINE_CHARACTERS};

#[derive(Debug, Default)]
pub(super) struct TurnReport {
    answer: Option<MessageId>,
    /// The text of the last step that had any.
    text: String,
    left_out: usize,
    /// A step has begun since the last text.
    step_is_new: bool,
    calls: Vec<KnownCall>,
    denials: Denials,
    does: &'static str,
}

#[derive(Debug)]
struct KnownCall {
    id: CallId,
    tool: String,
    title: String,
}

impl TurnReport {
    /// Takes a chunk; gives a line for each new step of the work.
    pub(super) fn take(&mut self, segment: &SharedSegment) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in segment.entries().filter(|entry| entry.role == Role::Assistant) {
            self.answer.get_or_insert_with(|| entry.message_id.clone());
            lines.extend(self.take_chunk(entry.chunk));
        }
        lines.iter().map(|line| one_line(line)).collect()
    }

    fn take_chunk(&mut self, chunk: &Chunk) -> Option<String> {
        match chunk {
            Chunk::StartStep { .. } => {
                self.step_is_new = true;
                None
            }
            Chunk::ReasoningStart { .. } => self.does("thinks"),
            Chunk::TextStart { .. } => {
                if std::mem::take(&mut self.step_is_new) {
                    self.text.clear();
                    self.left_out = 0;
                }
                self.does("writes")
            }
            Chunk::TextDelta { delta, .. } => {
                self.say(delta);
                None
            }
            Chunk::ToolInputAvailable { call_id, tool_name, rest, .. } => {
                self.call(call_id, tool_name, denials::presentation(rest).title)
            }
            Chunk::ToolApprovalRequest { call_id, .. } => {
                Some(format!("{}: waits for an answer", self.title(call_id)))
            }
            Chunk::ToolOutputError { call_id, .. } | Chunk::ToolOutputDenied { call_id, .. } => {
                Some(self.ended(call_id, chunk))
            }
            Chunk::ToolInputError { tool_name, .. } => Some(format!("{tool_name}: failed")),
            Chunk::Data { name, data, .. } if *name == DataName::Notice => Some(notice::line(data)),
            Chunk::Start { .. }
            | Chunk::FinishStep { .. }
            | Chunk::TextEnd { .. }
            | Chunk::ReasoningDelta { .. }
            | Chunk::ReasoningEnd { .. }
            | Chunk::ToolInputStart { .. }
            | Chunk::ToolInputDelta { .. }
            | Chunk::ToolOutputAvailable { .. }
            | Chunk::SourceUrl { .. }
            | Chunk::SourceDocument { .. }
            | Chunk::File { .. }
            | Chunk::Data { .. }
            | Chunk::MessageMetadata { .. }
            | Chunk::Error { .. }
            | Chunk::Abort { .. }
            | Chunk::Finish { .. } => None,
        }
    }

    fn does(&mut self, what: &'static str) -> Option<String> {
        (std::mem::replace(&mut self.does, what) != what).then(|| what.to_owned())
    }

    fn say(&mut self, delta: &str) {
        let room = ANSWER_BYTES.saturating_sub(self.text.len());
        let kept = delta.floor_char_boundary(room);
        self.text.push_str(&delta[..kept]);
        self.left_out += delta.len() - kept;
    }

    /// Reports a call by its name, and again by its title once its arguments are understood.
    fn call(&mut self, id: &CallId, tool: &str, title: String) -> Option<String> {
        self.does = "works";
        let title = if title.is_empty() { tool.to_owned() } else { title };
        let is_understood = title != tool;
        match self.calls.iter_mut().find(|known| known.id == *id) {
            Some(known) if known.title == title => return None,
            Some(known) => known.title.clone_from(&title),
            None => {
                if self.calls.len() == KNOWN_CALLS {
                    self.calls.remove(0);
                }
                self.calls.push(KnownCall { id: id.clone(), tool: tool.to_owned(), title: title.clone() });
            }
        }
        is_understood.then_some(title)
    }

    fn ended(&mut self, id: &CallId, chunk: &Chunk) -> String {
        let (tool, title) = match self.calls.iter().find(|known| known.id == *id) {
            Some(known) => (known.tool.clone(), known.title.clone()),
            None => (String::new(), id.to_string()),
        };
        match denials::refusal(chunk) {
            Some(why) => {
                self.denials.push(&tool, &one_line(&title), one_line(&why));
                format!("{title}: denied")
            }
            None => format!("{title}: failed"),
        }
    }

    fn title(&self, id: &CallId) -> String {
        let known = self.calls.iter().find(|known| known.id == *id);
        known.map_or_else(|| id.to_string(), |known| known.title.clone())
    }

    pub(super) fn answer(&self) -> Option<&MessageId> {
        self.answer.as_ref()
    }

    pub(super) fn denials(&self) -> impl Iterator<Item = &Denial> {
        self.denials.iter()
    }

    pub(super) fn last_message(&self, session: &SessionId) -> String {
        let text = self.text.trim();
        match self.left_out {
            0 => text.to_owned(),
            bytes => format!("{text}\n[… {bytes} bytes left out; all of it is in session {session}]"),
        }
    }
}

fn one_line(text: &str) -> String {
    let line = legible_line(text);
    match line.char_indices().nth(LINE_CHARACTERS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}
