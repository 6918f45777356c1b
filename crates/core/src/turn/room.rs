//! Room in the model's context: the context of this turn gives way first, then the conversation is compacted, once.

use std::sync::Arc;

use serde_json::Value;

use super::{LeftOut, Stop, Turn};
use crate::chunk::Chunk;
use crate::conversation::Conversation;
use crate::estimate;
use crate::limits::{BYTES_PER_TOKEN, CONTEXT_RESERVE, CONTEXT_WARNED_PERCENT};
use crate::notice;
use crate::part::Part;
use crate::ports::compaction::Crowded;
use crate::ports::model::{ModelError, ModelRequest};

type Item = (Option<String>, String);

/// Of the item that tells the model what is missing.
const CUT_TITLE: &str = "cut to fit";

impl Turn {
    /// Before a request: cuts the context of this turn to what the model has room for beside the conversation.
    pub(super) fn fit_runtime_context(&mut self) -> Result<(), Stop> {
        if self.runtime_context.iter().all(|(title, _)| title.as_deref() == Some(CUT_TITLE)) {
            return Ok(());
        }
        let info = &self.setting.model;
        let bare = ModelRequest { runtime_context: Arc::new([]), ..self.request() };
        let taken = estimate::request_tokens(&bare) + info.max_output.min(CONTEXT_RESERVE);
        let room = info.context.saturating_sub(taken).saturating_mul(BYTES_PER_TOKEN);
        match cut(&self.runtime_context, usize::try_from(room).unwrap_or(usize::MAX)) {
            Some(kept) => self.replace_runtime_context(kept),
            None => Ok(()),
        }
    }

    /// After the provider said that the request is too long. `Ok` when another try may fit.
    pub(super) async fn make_room(&mut self, reason: String) -> Result<(), Stop> {
        let is_note = |(title, _): &Item| title.as_deref() == Some(CUT_TITLE);
        if !self.runtime_context.iter().all(is_note) {
            return self.replace_runtime_context(Vec::new());
        }
        let compaction = self.hub.parts.compaction.clone().filter(|_| !self.asked_for_room);
        let Some(compaction) = compaction else { return self.leave_out(ModelError::Overflow(reason)) };
        self.asked_for_room = true;
        let crowded = Crowded {
            session_id: self.setting.workspace.session_id.clone(),
            info: self.setting.model.clone(),
            system: self.setting.system.text.clone(),
            passages: self.passages.clone(),
            prompt: self.user_message_id.clone(),
            reason: reason.clone(),
        };
        let making = compaction.make_room(crowded, self.cancel.child_token());
        let made = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Stop::Aborted),
            made = making => made,
        };
        match made {
            Ok(Some(room)) => {
                for chunk in room.told {
                    self.record(chunk).await?;
                }
                self.passages = room.passages.into();
                Ok(())
            }
            Ok(None) => self.leave_out(ModelError::Overflow(reason)),
            Err(error) => {
                self.leave_out(ModelError::Overflow(format!("{reason}; making room failed: {error}")))
            }
        }
    }

    /// Before a request: one that can't fit is not sent. By the provider's own figure for what went before, so that only the
    /// new part is estimated; without one, or with a window nobody told us, the provider is asked.
    pub(super) async fn check_room(&mut self) -> Result<(), Stop> {
        let info = &self.setting.model;
        if self.asked_for_room || info.has_guessed_context() {
            return Ok(());
        }
        let Some(expected) = expected_tokens(&self.passages, info.context) else { return Ok(()) };
        let context = estimate::tokens(estimate::context_bytes(&self.request()));
        if expected + context < info.context {
            return Ok(());
        }
        let reason =
            format!("about {} tokens of the {} that {} takes", expected + context, info.context, info.model);
        self.make_room(reason).await
    }

    /// Ends the turn with this error; what it could not be sent with is left out of the next requests.
    pub(super) fn leave_out(&mut self, error: ModelError) -> Result<(), Stop> {
        let last = self.passages.last();
        let answers = last.is_some_and(|last| last.message_id == self.voice.message_id);
        let (left_out, title) = match answers {
            true => {
                let step = self.steps.saturating_sub(2);
                (LeftOut::Results(step), "The next requests leave out the last results")
            }
            false => (LeftOut::Prompt, "The next requests leave out this prompt"),
        };
        self.left_out = Some(left_out);
        let said = notice::kept("warning", title, None);
        self.journal.record_with(&self.voice, vec![said], Vec::new())?;
        Err(Stop::Model(error))
    }

    /// Tells people once when the context fills up: at the step that crosses the mark.
    pub(super) fn crowding(&self, used: u64) -> Option<Chunk> {
        let context = self.setting.model.context;
        let is_crowded =
            |used: u64| used.saturating_mul(100) >= context.saturating_mul(CONTEXT_WARNED_PERCENT);
        let before = last_figure(&self.passages, Counted::ByAnyone).map_or(0, |(_, used)| used);
        if context == 0 || !is_crowded(used) || is_crowded(before) {
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
        let larger = choices.models.iter().filter(|info| info.context > self.setting.model.context);
        let names: Vec<_> = larger.take(NAMED).map(|info| info.model.to_string()).collect();
        match names.is_empty() {
            true => "start a new session".to_owned(),
            false => format!("start a new session or choose a model with more room ({})", names.join(", ")),
        }
    }

    fn replace_runtime_context(&mut self, kept: Vec<Item>) -> Result<(), Stop> {
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
        Ok(self.journal.record_with(&self.voice, vec![said], Vec::new())?)
    }
}

/// What the conversation takes, by the last figure of a provider and a guess at what came after it. `None` without a figure,
/// and when the provider took more already than the window is said to hold.
fn expected_tokens(passages: &Conversation, window: u64) -> Option<u64> {
    let (place, used) = last_figure(passages, Counted::ByTheProvider)?;
    let mut new = passages.get(place).map(|passage| estimate::results_size(passage)).unwrap_or_default();
    for passage in passages.iter().skip(place + 1) {
        new = new + estimate::passage_size(passage);
    }
    (used < window).then(|| used + new.tokens())
}

/// Whose figures count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    ByTheProvider,
    /// Estimates too.
    ByAnyone,
}

/// Where the context was last counted, and what was found.
fn last_figure(passages: &Conversation, counted: Counted) -> Option<(usize, u64)> {
    let figure = |part: &Part| match part {
        Part::Data { name, data, .. } if name == "usage" => {
            let counts = counted == Counted::ByAnyone || data.get("estimated").is_none();
            data.get("context_used").and_then(Value::as_u64).filter(|_| counts)
        }
        _ => None,
    };
    let mut backwards = passages.iter().enumerate().rev();
    backwards.find_map(|(place, passage)| Some((place, passage.parts.iter().rev().find_map(figure)?)))
}

/// The items as far as they fit, in order, the last one cut; `None` when all fit.
fn cut(items: &[Item], mut room: usize) -> Option<Vec<Item>> {
    /// The frame around an item.
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
