//! Handles attachments that a provider refuses: from then on requests only describe them, so that they do not
//! make a session unusable.

use std::collections::HashMap;

use super::{StepStop, Turn};
use crate::journal::replay;
use crate::notice;
use crate::part::{Part, Passage, Role};
use crate::ports::store::{Change, PartRow, StoreError};
use crate::prompt::media;
use crate::rows::{self, PartPlace};

/// Whether another try could succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    TryAgain,
    Nothing,
}

impl Turn {
    /// Marks the attachments that may be the cause: those since the model's last answer, including results of
    /// its calls, or else all. Each is marked at most once, so this ends.
    pub(super) async fn leave_out_attachments(&mut self, reason: &str) -> Result<Remedy, StepStop> {
        let new = self.passages.iter().rposition(|passage| is_answer(passage)).unwrap_or(0);
        let mut marked = self.mark_from(new, reason);
        if marked.is_empty() {
            marked = self.mark_from(0, reason);
        }
        if marked.is_empty() {
            return Ok(Remedy::Nothing);
        }
        let mut changes = Vec::new();
        let mut names = Vec::new();
        for (place, passage) in marked {
            changes.extend(self.part_changes(&passage).await?);
            names.extend(passage.parts.iter().filter_map(media::rejected_name).map(str::to_owned));
            // A new passage: it must not keep what was encoded for a provider from the old one.
            self.passages.replace(place, passage);
        }
        let title = "The provider rejected an attachment; the model gets only its description";
        let said = notice::kept("warning", title, Some(&format!("{}: {reason}", names.join(", "))));
        self.journal.record_with(&self.author, vec![said], changes)?;
        Ok(Remedy::TryAgain)
    }

    /// The passages from this place on that had something to mark, with the marks.
    fn mark_from(&self, place: usize, reason: &str) -> Vec<(usize, Passage)> {
        let mut marked = Vec::new();
        for (place, passage) in self.passages.iter().enumerate().skip(place) {
            let parts = passage.parts.iter();
            let rejected: Vec<_> = parts
                .map(|part| is_given(passage.role, part).then(|| media::rejected(part, reason))?)
                .collect();
            if rejected.iter().all(Option::is_none) {
                continue;
            }
            let parts = passage.parts.iter().zip(rejected);
            let parts = parts.map(|(part, rejected)| rejected.unwrap_or_else(|| part.clone())).collect();
            marked.push((place, Passage::new(passage.message_id.clone(), passage.role, parts)));
        }
        marked
    }

    /// The changes for rows of a passage whose parts now say more.
    async fn part_changes(&self, passage: &Passage) -> Result<Vec<Change>, StoreError> {
        // The last step of this turn may not be stored yet.
        self.journal.settle().await?;
        let Some((_, rows)) = self.hub.ports.store.message(&passage.message_id).await? else {
            return Ok(Vec::new());
        };
        let now = self.hub.ports.clock.now_ms();
        let put = |(row, part): (&PartRow, &Part)| {
            let index = row.index as usize;
            let place = PartPlace { session_id: &row.session_id, message_id: &row.message_id, index };
            Ok(Change::PutPart(rows::of_part(place, row.id.clone(), part, row.created_at, now)?))
        };
        let marked = match passage.role {
            Role::User | Role::System => rows.iter().zip(&passage.parts).collect(),
            Role::Assistant => by_call(&rows, &passage.parts)?,
        };
        marked.into_iter().filter(|(_, part)| media::rejected_name(part).is_some()).map(put).collect()
    }
}

/// Pairs calls with their rows: a passage is one step, a message may have several.
fn by_call<'a>(rows: &'a [PartRow], parts: &'a [Part]) -> Result<Vec<(&'a PartRow, &'a Part)>, StoreError> {
    let calls: HashMap<_, _> = parts.iter().filter_map(|part| Some((&part.tool()?.call_id, part))).collect();
    let stored = replay::parts_of(rows)?;
    let beside = |(row, stored): (&'a PartRow, &Part)| Some((row, *calls.get(&stored.tool()?.call_id)?));
    Ok(rows.iter().zip(&stored).filter_map(beside).collect())
}

/// Whether the model got a part from the user or from a call. Parts that it made itself were accepted before.
fn is_given(role: Role, part: &Part) -> bool {
    match role {
        Role::User => true,
        Role::Assistant => part.tool().is_some(),
        Role::System => false,
    }
}

/// Whether the model said something there; a turn that failed at once leaves an empty answer.
pub(super) fn is_answer(passage: &Passage) -> bool {
    let says = |part: &Part| matches!(part, Part::Text { .. } | Part::Reasoning { .. } | Part::Tool(_));
    passage.role == Role::Assistant && passage.parts.iter().any(says)
}
