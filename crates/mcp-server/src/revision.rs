//! Revisions of the protocol, and which one two sides agree on.

/// Those that this server speaks, the newest first.
pub(crate) const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// What was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Revision(usize);

impl Revision {
    /// The requested revision if we know it; else our newest, which the client may refuse.
    pub(crate) fn agreed(asked: &str) -> Self {
        Self::known(asked).unwrap_or(Self(0))
    }

    pub(crate) fn newest() -> Self {
        Self(0)
    }

    pub(crate) fn known(name: &str) -> Option<Self> {
        REVISIONS.iter().position(|known| *known == name).map(Self)
    }

    pub(crate) fn name(self) -> &'static str {
        REVISIONS[self.0]
    }

    /// Whether forms may ask for several of some choices; before that their fields were single values.
    pub(crate) fn has_lists_in_forms(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_taken_and_else_the_newest_is_offered() {
        for name in REVISIONS {
            assert_eq!(Revision::agreed(name).name(), name);
        }
        for name in ["", "1.0", "2099-01-01", "2025-11-2"] {
            assert_eq!(Revision::agreed(name).name(), "2025-11-25", "{name}");
        }
        assert!(Revision::agreed("2025-11-25").has_lists_in_forms());
        assert!(!Revision::agreed("2025-06-18").has_lists_in_forms());
    }
}
