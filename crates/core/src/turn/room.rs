//! Room in the model's context: the context of this turn gives way first, then the conversation is compacted, once.

use std::sync::Arc;

use serde_json::json;

use super::{Stop, Turn};
use crate::chunk::Chunk;
use crate::estimate;
use crate::limits::{BYTES_PER_TOKEN, CONTEXT_RESERVE};
use crate::ports::compaction::Crowded;
use crate::ports::model::{ModelError, ModelRequest};

type Item = (Option<String>, String);

impl Turn {
    /// Before a request: cuts the context of this turn to what the model has room for beside the conversation.
    pub(super) fn fit_runtime_context(&mut self) -> Result<(), Stop> {
        if self.runtime_context.is_empty() {
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
        if !self.runtime_context.is_empty() {
            return self.replace_runtime_context(Vec::new());
        }
        let compaction = self.hub.parts.compaction.clone().filter(|_| !self.asked_for_room);
        let Some(compaction) = compaction else { return Err(Stop::Model(ModelError::Overflow(reason))) };
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
            Ok(None) => Err(Stop::Model(ModelError::Overflow(reason))),
            Err(error) => {
                Err(Stop::Model(ModelError::Overflow(format!("{reason}; making room failed: {error}"))))
            }
        }
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
        let bytes = |items: &[Item]| items.iter().map(|(_, text)| text.len()).sum::<usize>();
        let (before, after) = (bytes(&self.runtime_context), bytes(&kept));
        self.runtime_context = kept.into();
        let said = json!({
            "severity": "warning",
            "title": "The runtime context was cut to fit the model",
            "description": format!("{after} of {before} bytes are sent"),
        });
        Ok(self.journal.record_with(&self.voice, vec![Chunk::transient_data("notice", said)], Vec::new())?)
    }
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
