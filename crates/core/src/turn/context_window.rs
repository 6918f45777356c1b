//! The model's context window: how much a request takes of it, and how the context of a turn is cut to fit.
//! `making_room` shortens the conversation.

use std::sync::Arc;

use serde_json::Value;

use super::attachments::Remedy;
use super::{StepStop, Turn};
use crate::chunk::Chunk;
use crate::conversation::Conversation;
use crate::data_name::DataName;
use crate::estimate;
use crate::limits::{BYTES_PER_TOKEN, CONTEXT_RESERVE, CONTEXT_WARNED_PERCENT, RESULT_SHARE};
use crate::notice;
use crate::part::Part;
use crate::ports::model::ModelRequest;

type Item = (Option<String>, String);

/// The title of the item that tells the model what is missing.
const CUT_TITLE: &str = "cut to fit";

impl Turn {
    /// Called before a request: cuts the context of this turn to the room that the conversation leaves.
    pub(super) fn fit_runtime_context(&mut self) -> Result<(), StepStop> {
        if self.runtime_context.iter().all(|(title, _)| title.as_deref() == Some(CUT_TITLE)) {
            return Ok(());
        }
        let info = &self.setup.model;
        let bare = ModelRequest { runtime_context: Arc::new([]), ..self.request() };
        let taken = estimate::request_tokens(&bare) + info.max_output.min(CONTEXT_RESERVE);
        let room = info.context.saturating_sub(taken).saturating_mul(BYTES_PER_TOKEN);
        match cut(&self.runtime_context, usize::try_from(room).unwrap_or(usize::MAX)) {
            Some(kept) => self.replace_runtime_context(kept),
            None => Ok(()),
        }
    }

    /// How much of the context one result of a call may take.
    pub(super) fn result_bytes(&self) -> usize {
        let bytes = self.setup.model.context.saturating_mul(BYTES_PER_TOKEN) / RESULT_SHARE;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Leaves out the context of this turn, if there is any.
    pub(super) fn drop_runtime_context(&mut self) -> Result<Remedy, StepStop> {
        let is_note = |(title, _): &Item| title.as_deref() == Some(CUT_TITLE);
        if self.runtime_context.iter().all(is_note) {
            return Ok(Remedy::Nothing);
        }
        self.replace_runtime_context(Vec::new())?;
        Ok(Remedy::TryAgain)
    }

    /// The most that a request may take, so that the answer has room.
    pub(super) fn limit_tokens(&self) -> u64 {
        let info = &self.setup.model;
        info.context.saturating_sub(info.max_output.min(CONTEXT_RESERVE))
    }

    /// Roughly what the next request takes; `None` if only the provider knows.
    pub(super) fn expected_tokens(&self) -> Option<u64> {
        let context = estimate::tokens(estimate::context_bytes(&self.runtime_context));
        let window = self.setup.model.context;
        let compacts = self.hub.ports.compaction.is_some();
        let counted = if compacts { Counted::ByAnyone } else { Counted::ByTheProvider };
        let Some(figure) = last_figure(&self.passages, counted) else {
            // Without any count, only what is certainly too much decides: a token may have more bytes than
            // usual.
            let estimated = estimate::request_tokens(&self.request());
            return (compacts || estimated / 2 >= window).then_some(estimated);
        };
        // An earlier request took more than this window is said to hold, so that figure is wrong. But if the
        // count is from another model with another window, compaction makes the change of models possible.
        if figure.used >= window && !(compacts && figure.window != Some(window)) {
            return None;
        }
        Some(figure.used + added_since(&self.passages, figure.place) + context)
    }

    /// Tells people once that the context fills up, at the step that crosses the mark, unless compaction is
    /// automatic.
    pub(super) fn crowding(&self, used: u64) -> Option<Chunk> {
        let context = self.setup.model.context;
        let is_crowded =
            |used: u64| used.saturating_mul(100) >= context.saturating_mul(CONTEXT_WARNED_PERCENT);
        let before = last_figure(&self.passages, Counted::ByAnyone).map_or(0, |figure| figure.used);
        let makes_room = self.hub.ports.compaction.is_some();
        if context == 0 || makes_room || !is_crowded(used) || is_crowded(before) {
            return None;
        }
        let percent = used.saturating_mul(100) / context;
        let title = format!("{percent} % of the model's context is used");
        let advice = format!("{used} of {context} tokens. When it is full, {}.", self.overflow_advice());
        Some(notice::kept("warning", &title, Some(&advice)))
    }

    /// What a person can do about a conversation that does not fit.
    pub(super) fn overflow_advice(&self) -> String {
        const NAMED: usize = 3;
        let choices = self.hub.choices.get();
        let larger = choices.models.iter().filter(|info| info.context > self.setup.model.context);
        let names: Vec<_> = larger.take(NAMED).map(|info| info.model.to_string()).collect();
        match names.is_empty() {
            true => "start a new session".to_owned(),
            false => format!("start a new session or choose a model with more room ({})", names.join(", ")),
        }
    }

    fn replace_runtime_context(&mut self, kept: Vec<Item>) -> Result<(), StepStop> {
        let bytes = |items: &[Item]| {
            let theirs = items.iter().filter(|(title, _)| title.as_deref() != Some(CUT_TITLE));
            theirs.map(|(_, text)| text.len()).sum::<usize>()
        };
        let (before, after) = (bytes(&self.runtime_context), bytes(&kept));
        // The model must not take a part for the whole.
        let mut kept = kept;
        let note = format!("The context of this turn did not fit: {after} of its {before} bytes are shown.");
        kept.push((Some(CUT_TITLE.to_owned()), note));
        self.runtime_context = kept.into();
        let how_much = format!("{after} of {before} bytes are sent");
        let said = notice::kept("warning", "The runtime context was cut to fit the model", Some(&how_much));
        Ok(self.journal.record_with(&self.author, vec![said], Vec::new())?)
    }
}

/// Roughly the tokens added after a count of the step at this place.
fn added_since(passages: &Conversation, place: usize) -> u64 {
    let mut new = passages.get(place).map(|passage| estimate::results_size(passage)).unwrap_or_default();
    for passage in passages.iter().skip(place + 1) {
        new = new + estimate::passage_size(passage);
    }
    new.tokens()
}

/// What a step reported about the context.
struct Figure {
    place: usize,
    used: u64,
    window: Option<u64>,
}

/// Which counts to use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    ByTheProvider,
    /// Estimates, too.
    ByAnyone,
}

/// The last count for the conversation as it is sent now.
fn last_figure(passages: &Conversation, counted: Counted) -> Option<Figure> {
    let figure = |part: &Part| {
        let data = part.data(DataName::Usage)?;
        let counts = counted == Counted::ByAnyone || data.get("estimated").is_none();
        let number = |key: &str| data.get(key).and_then(Value::as_u64);
        number("context_used").filter(|_| counts).map(|used| (used, number("context_size")))
    };
    let mut backwards = passages.iter().enumerate().skip(passages.counted_from()).rev();
    backwards.find_map(|(place, passage)| {
        let (used, window) = passage.parts.iter().rev().find_map(figure)?;
        Some(Figure { place, used, window })
    })
}

/// As many items as fit, in order, the last one cut; `None` if all fit.
fn cut(items: &[Item], mut room: usize) -> Option<Vec<Item>> {
    /// Rough size of the frame around an item.
    const FRAME: usize = 48;
    let mut kept = Vec::new();
    for (title, text) in items {
        room = room.saturating_sub(FRAME + title.as_ref().map_or(0, String::len));
        if text.len() > room {
            let head = &text[..text.floor_char_boundary(room)];
            if !head.is_empty() {
                kept.push((title.clone(), head.to_owned()));
            }
            return Some(kept);
        }
        room -= text.len();
        kept.push((title.clone(), text.clone()));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_cut_fits_and_is_the_beginning(
            items in prop::collection::vec((prop::option::of("[a-z]{0,9}"), "[aé🙂]{0,99}"), 0..6),
            room in 0_usize..900,
        ) {
            let whole: String = items.iter().map(|(_, text)| text.as_str()).collect();
            match cut(&items, room) {
                None => prop_assert!(whole.len() <= room),
                Some(kept) => {
                    let text: String = kept.iter().map(|(_, text)| text.as_str()).collect();
                    prop_assert!(text.len() <= room && text.len() <= whole.len());
                    prop_assert!(whole.starts_with(&text));
                    prop_assert!(kept.iter().zip(&items).all(|(kept, item)| kept.0 == item.0));
                }
            }
        }
    }
}
