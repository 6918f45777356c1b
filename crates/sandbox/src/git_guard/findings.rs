//! What the guard of git found and did, in words. Decides nothing.

/// What was done after a command, for the model and its user.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    pub(super) undone: Vec<String>,
    /// What git might run all the same.
    pub(super) unchecked: Vec<String>,
    pub(super) unfinished: Unfinished,
}

/// Whether something stays that should have been undone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unfinished {
    #[default]
    Nothing,
    /// The next command tries again.
    Something,
}

impl Findings {
    pub(super) fn extend(&mut self, other: Self) {
        self.undone.extend(other.undone);
        self.unchecked.extend(other.unchecked);
        if other.unfinished == Unfinished::Something {
            self.unfinished = Unfinished::Something;
        }
    }

    pub(super) fn text(mut self) -> Option<String> {
        self.undone.dedup();
        self.unchecked.dedup();
        let undone = ("undone by attache: ", "", self.undone);
        let unchecked =
            ("attache could not check everything: ", ": look at it before you use git", self.unchecked);
        let parts = [undone, unchecked].into_iter().filter(|(_, _, lines)| !lines.is_empty());
        let parts: Vec<String> =
            parts.map(|(before, behind, lines)| format!("{before}{}{behind}", lines.join("; "))).collect();
        (!parts.is_empty()).then(|| parts.join(". "))
    }
}
