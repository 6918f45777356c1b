//! What we found and did after a command, over as many looks as that took.

use std::collections::BTreeSet;

use super::baseline::Leftovers;
use crate::limits::UNDO_ROUNDS;

/// What we did after a command, for the model and its user.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) undone: Vec<String>,
    /// What we could not undo.
    pub(super) failed: Vec<String>,
    /// What git might still run.
    pub(super) unchecked: Vec<String>,
    /// What remains although we should have undone it: the next command tries again.
    pub(super) unfinished: Leftovers,
}

impl Findings {
    pub(super) fn extend(&mut self, other: Self) {
        self.undone.extend(other.undone);
        self.failed.extend(other.failed);
        self.unchecked.extend(other.unchecked);
    }

    /// Merges another look: what we undid is gone; the rest appears again, perhaps under another name.
    fn looked_at_again(&mut self, found: Self) {
        let undone = std::mem::take(&mut self.undone);
        *self = found;
        self.undone.splice(0..0, undone);
    }

    pub(super) fn text(self) -> Option<String> {
        let undone = self.undone.into_iter().chain(self.failed).collect();
        let undone = ("undone by attache: ", "", without_repeats(undone));
        let unchecked = without_repeats(self.unchecked);
        let unchecked =
            ("attache could not check everything: ", ": look at it before you use git", unchecked);
        let parts = [undone, unchecked].into_iter().filter(|(_, _, lines)| !lines.is_empty());
        let parts: Vec<String> =
            parts.map(|(before, behind, lines)| format!("{before}{}{behind}", lines.join("; "))).collect();
        (!parts.is_empty()).then(|| parts.join(". "))
    }
}

fn without_repeats(mut lines: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines
}

/// Repeats until a look finds nothing: renaming a directory moves what lies in it. One entry for each root.
pub(super) fn undone_again_and_again(mut look: impl FnMut() -> Vec<Findings>) -> Vec<Findings> {
    let mut all: Vec<Findings> = Vec::new();
    for _ in 0..UNDO_ROUNDS {
        let found = look();
        let is_done = found.iter().all(|found| found.undone.is_empty());
        all.resize_with(found.len(), Findings::default);
        all.iter_mut().zip(found).for_each(|(all, found)| all.looked_at_again(found));
        if is_done {
            return all;
        }
    }
    for found in &mut all {
        found.unchecked.push("what a command made holds more that had to be undone".to_owned());
    }
    all
}
