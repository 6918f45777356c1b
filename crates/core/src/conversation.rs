//! The conversation as a model sees it, with facts about the whole of it. It only grows at its end, and no turn
//! has to walk all of it.

use std::collections::HashSet;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::agents::DEFAULT_AGENT;
use crate::compaction::{Boundary, CompactionMark, OutputStubs};
use crate::environment;
use crate::estimate::{self, Size};
use crate::ids::{CallId, MessageId};
use crate::instructions;
use crate::part::{Part, Passage, ToolPart, ToolState};
use crate::seen::{self, Sights};
use crate::tool_names::PLAN_EXIT;
use crate::work_state::WorkState;

/// Passages in their order. A copy is cheap and shares them.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    passages: Arc<Vec<Arc<Passage>>>,
    size: Size,
    /// Rough bytes in memory.
    weight: usize,
    /// Ids that calls have already. Why shared: the current step reads them.
    call_ids: Arc<HashSet<CallId>>,
    /// What its calls say about files. Why shared: every turn starts with it.
    seen: Arc<Sights>,
    /// The last mode that the model was told of in this conversation.
    told_mode: Option<Arc<str>>,
    /// What its calls say of the work. Why shared: copies are cheap.
    work: Arc<WorkState>,
    /// Counts that providers reported for passages before this place included others that are no longer sent.
    counted_from: usize,
}

impl Conversation {
    /// Only the caller holds the passages between two steps, so this appends in place.
    pub fn push(&mut self, passage: Passage) {
        self.count(&passage);
        Arc::make_mut(&mut self.passages).push(Arc::new(passage));
    }

    /// Appends a passage read from rows and applies the marks in it.
    pub(crate) fn push_stored(&mut self, passage: Passage) {
        let marks: Vec<_> = passage.parts.iter().filter_map(CompactionMark::of).collect();
        let message_id = passage.message_id.clone();
        self.push(passage);
        for mark in marks {
            *self = self.marked(&mark, self.passages.len() - 1, &message_id);
        }
    }

    /// The conversation with a mark before the passage at `place`, made in this message. The ids of calls and
    /// the facts about files and the work stay, because they belong to the whole session. Instructions that
    /// results told are forgotten together with those results.
    pub(crate) fn marked(&self, mark: &CompactionMark, place: usize, message_id: &MessageId) -> Self {
        match mark {
            CompactionMark::Summary(boundary) => self.compacted(boundary, place, message_id),
            CompactionMark::Stubs(stubs) => self.shortened(stubs, place),
        }
    }

    /// The summary, the tail, and the passages from that place on.
    fn compacted(&self, boundary: &Boundary, place: usize, message_id: &MessageId) -> Self {
        let tail = self.passages[..place].iter().position(|passage| boundary.starts_tail(passage));
        let tail = tail.unwrap_or(place);
        let mut passages = Vec::with_capacity(1 + self.passages.len() - tail);
        passages.push(Arc::new(boundary.summary(message_id)));
        passages.extend(self.passages[tail..].iter().cloned());
        let seen = self.seen_without(told_instructions(&self.passages), &told_instructions(&passages));
        Self {
            size: passages
                .iter()
                .fold(Size::default(), |size, passage| size + estimate::passage_size(passage)),
            weight: passages.iter().map(|passage| weight(passage)).sum(),
            told_mode: passages.iter().rev().find_map(|passage| told_mode(passage)),
            passages: Arc::new(passages),
            call_ids: self.call_ids.clone(),
            seen,
            work: self.work.clone(),
            counted_from: 1 + place - tail,
        }
    }

    /// With stubs instead of results before that place.
    fn shortened(&self, stubs: &OutputStubs, place: usize) -> Self {
        let replacements = stubs.replacements(&self.passages[..place]);
        let mut shortened = Self { counted_from: place, ..self.clone() };
        for (place, passage) in replacements {
            shortened.replace(place, passage);
        }
        let told = told_instructions(&self.passages);
        shortened.seen = self.seen_without(told, &told_instructions(&shortened.passages));
        shortened
    }

    /// What is known of files, without the instructions that are no longer sent, so that they are told again.
    fn seen_without(&self, told: HashSet<PathBuf>, still_told: &HashSet<PathBuf>) -> Arc<Sights> {
        if told.iter().all(|path| still_told.contains(path)) {
            return self.seen.clone();
        }
        let is_lost = |path: &PathBuf| told.contains(path) && !still_told.contains(path);
        let kept = self.seen.iter().filter(|(path, _)| !is_lost(path));
        Arc::new(kept.map(|(path, known)| (path.clone(), known.clone())).collect())
    }

    /// The first place from which a provider's counts fit what is sent now.
    pub(crate) fn counted_from(&self) -> usize {
        self.counted_from
    }

    /// Replaces a passage by another with the same calls.
    pub fn replace(&mut self, place: usize, passage: Passage) {
        let Some(kept) = Arc::make_mut(&mut self.passages).get_mut(place) else { return };
        self.size = self.size - estimate::passage_size(kept) + estimate::passage_size(&passage);
        self.weight = self.weight.saturating_sub(weight(kept)) + weight(&passage);
        *kept = Arc::new(passage);
    }

    /// Its estimated size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Rough bytes in memory.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// The ids of all its calls.
    pub fn call_ids(&self) -> &Arc<HashSet<CallId>> {
        &self.call_ids
    }

    /// The mode that the model was last told of in this conversation; not one that an earlier, hidden message
    /// told.
    pub(crate) fn told_mode(&self) -> Option<&str> {
        self.told_mode.as_deref()
    }

    /// What the model has seen of files.
    pub fn seen(&self) -> &Arc<Sights> {
        &self.seen
    }

    /// What is known of the current work, including what was summarised.
    pub fn work(&self) -> &WorkState {
        &self.work
    }

    fn count(&mut self, passage: &Passage) {
        self.size = self.size + estimate::passage_size(passage);
        self.weight += weight(passage);
        if let Some(mode) = told_mode(passage) {
            self.told_mode = Some(mode);
        }
        let mut calls = passage.parts.iter().filter_map(Part::tool).peekable();
        if calls.peek().is_some() {
            Arc::make_mut(&mut self.call_ids).extend(calls.map(|tool| tool.call_id.clone()));
        }
        let sights = passage.parts.iter().filter_map(Part::tool).flat_map(seen::sights);
        for sight in sights {
            let known = seen::Known::with(self.seen.get(&sight.path), &sight);
            Arc::make_mut(&mut self.seen).insert(sight.path, known);
        }
        if WorkState::is_told_by(passage) {
            Arc::make_mut(&mut self.work).take(passage);
        }
    }
}

impl Deref for Conversation {
    type Target = [Arc<Passage>];

    fn deref(&self) -> &Self::Target {
        &self.passages
    }
}

impl From<Vec<Arc<Passage>>> for Conversation {
    fn from(passages: Vec<Arc<Passage>>) -> Self {
        let mut conversation = Self::default();
        for passage in &passages {
            conversation.count(passage);
        }
        Self { passages: Arc::new(passages), ..conversation }
    }
}

/// The instruction files that results of calls carry.
fn told_instructions(passages: &[Arc<Passage>]) -> HashSet<PathBuf> {
    let tools = passages.iter().flat_map(|passage| passage.parts.iter().filter_map(Part::tool));
    let texts = tools.filter_map(|tool| tool.output.as_ref()?.as_str());
    texts.flat_map(instructions::told_in).map(PathBuf::from).collect()
}

/// The last mode that a passage tells: news of a user message, or a proposal of the model that was taken.
fn told_mode(passage: &Passage) -> Option<Arc<str>> {
    let taken = |tool: &ToolPart| tool.tool_name == PLAN_EXIT && tool.state == ToolState::OutputAvailable;
    passage.parts.iter().rev().find_map(|part| match part {
        Part::Tool(tool) => taken(tool).then(|| DEFAULT_AGENT.into()),
        Part::Data { .. } => environment::told_mode(part).map(Arc::from),
        Part::Text { .. }
        | Part::Reasoning { .. }
        | Part::File { .. }
        | Part::StepStart
        | Part::SourceUrl { .. }
        | Part::SourceDocument { .. } => None,
    })
}

fn weight(passage: &Passage) -> usize {
    passage.parts.iter().map(part_weight).sum()
}

fn part_weight(part: &Part) -> usize {
    match part {
        Part::Text { text, .. } | Part::Reasoning { text, .. } => 96 + text.len(),
        Part::File { url, .. } => 96 + url.len(),
        Part::Tool(tool) => {
            let shown =
                tool.output.as_ref().map_or(0, approximate) + tool.input.as_ref().map_or(0, approximate);
            512 + shown + tool.tool_metadata.as_ref().map_or(0, approximate)
        }
        Part::StepStart | Part::SourceUrl { .. } | Part::SourceDocument { .. } => 96,
        Part::Data { data, .. } => 96 + approximate(data),
    }
}

fn approximate(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 16,
        Value::String(text) => 24 + text.len(),
        Value::Array(items) => 24 + items.iter().map(approximate).sum::<usize>(),
        Value::Object(fields) => {
            24 + fields.iter().map(|(key, value)| key.len() + approximate(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MessageId;
    use crate::part::Role;

    fn said(text: &str) -> Passage {
        let part = Part::Text { text: text.into(), state: None, provider_metadata: None };
        Passage::new(MessageId::new("msg_1"), Role::Assistant, vec![part])
    }

    #[test]
    fn what_is_known_of_the_whole_is_what_a_walk_would_find() {
        let mut grown = Conversation::default();
        for text in ["one", "another", ""] {
            grown.push(said(text));
        }
        grown.replace(1, said("a longer one than before"));
        let walked = Conversation::from(grown.to_vec());
        assert_eq!(grown.size(), walked.size());
        assert_eq!(grown.weight, walked.weight);
        assert_eq!(grown.call_ids(), walked.call_ids());
        assert_eq!(grown.size().bytes, 27);
    }

    #[test]
    fn instructions_that_a_result_told_are_forgotten_with_it() {
        let read = |call: &str, text: String, paths: [&str; 2]| {
            let mut tool = ToolPart::new(CallId::new(call), "read");
            tool.output = Some(Value::String(text));
            tool.state = ToolState::OutputAvailable;
            let sights: Vec<_> =
                paths.iter().map(|path| serde_json::json!({ "path": path, "digest": "1" })).collect();
            tool.tool_metadata = Some(serde_json::json!({ "attache": { "metadata": { "seen": sights } } }));
            Passage::new(MessageId::new(call), Role::Assistant, vec![Part::Tool(Box::new(tool))])
        };
        let told =
            |of: &str| format!("{}\n<instructions file=\"{of}\">\nx\n</instructions>\n", "y".repeat(5_000));
        let conversation = Conversation::from(vec![
            Arc::new(read("one", told("/w/a/AGENTS.md"), ["/w/a/x", "/w/a/AGENTS.md"])),
            Arc::new(read("two", told("/w/b/AGENTS.md"), ["/w/b/x", "/w/b/AGENTS.md"])),
        ]);
        let stubs = serde_json::json!({ "up_to_call_id": "one", "least_bytes": 100, "results": 1 });
        let stubs = CompactionMark::Stubs(OutputStubs::from_json(&stubs).unwrap());
        let marks = serde_json::json!({ "status": "completed", "summary": "s", "tail_start_id": "two" });
        let summary =
            Part::Data { name: crate::data_name::DataName::Compaction.into(), id: None, data: marks };
        for mark in [stubs, CompactionMark::of(&summary).unwrap()] {
            let marked = conversation.marked(&mark, 2, &MessageId::new("m"));
            let mut known: Vec<_> = marked.seen().keys().map(|path| path.to_str().unwrap()).collect();
            known.sort();
            assert_eq!(known, ["/w/a/x", "/w/b/AGENTS.md", "/w/b/x"], "{mark:?}");
        }
    }

    #[test]
    fn a_conversation_that_nobody_shares_grows_in_place() {
        let mut conversation = Conversation::default();
        conversation.push(said("one"));
        let before = Arc::as_ptr(&conversation.passages);
        drop(conversation.clone());
        conversation.push(said("two"));
        assert_eq!(Arc::as_ptr(&conversation.passages), before);
    }
}
