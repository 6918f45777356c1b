//! Which tools an agent is offered: by what they do and by their names.

use std::sync::Arc;

use crate::ports::tool::{Effect, ToolKind, ToolSpec};

/// A tool is offered only if both halves allow it. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOffer {
    effects: OfferedEffects,
    /// `None`: any name. Else the last pattern that matches decides; a name that no pattern matches is offered
    /// if the first pattern excludes something.
    names: Option<Arc<[ToolPattern]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OfferedEffects {
    Any,
    /// Nothing that changes files. Commands are offered: `Agent::commands` says which.
    WithoutMutations,
}

/// `name`, `server_*` or `!name`; `*` fits anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern {
    name: String,
    takes_away: bool,
}

impl ToolPattern {
    /// A name of a tool, in which `*` stands for anything.
    pub fn new(text: &str) -> Self {
        match text.strip_prefix('!') {
            Some(name) => Self { name: name.trim().to_owned(), takes_away: true },
            None => Self { name: text.to_owned(), takes_away: false },
        }
    }

    /// As it was written.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn fits(&self, tool: &str) -> bool {
        fits(self.name.as_bytes(), tool.as_bytes())
    }
}

/// Without recursion: a star matches as little as it can, and more when the rest does not match.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place, mut star) = (0, 0, None);
    while place < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(byte) if *byte == name[place] => (at, place) = (at + 1, place + 1),
            Some(_) | None => {
                let Some((back, taken)) = star else { return false };
                star = Some((back, taken + 1));
                (at, place) = (back + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

impl ToolOffer {
    /// Every tool there is.
    pub fn everything() -> Self {
        Self { effects: OfferedEffects::Any, names: None }
    }

    /// Nothing that changes files. Commands are offered: `Agent::commands` says which.
    pub(crate) fn without_mutations() -> Self {
        Self { effects: OfferedEffects::WithoutMutations, names: None }
    }

    /// No tool at all.
    pub fn nothing() -> Self {
        Self::everything().named(Vec::new())
    }

    /// The same offer, narrowed to the tools that the patterns allow.
    #[must_use]
    pub fn named(self, names: Vec<ToolPattern>) -> Self {
        Self { names: Some(names.into()), ..self }
    }

    /// The same offer with the name patterns of another one.
    #[must_use]
    pub(super) fn named_like(self, other: &Self) -> Self {
        Self { names: other.names.clone(), ..self }
    }

    /// A tool that leaves the mode is offered only to an agent whose manifest names it.
    pub fn covers(&self, tool: &ToolSpec) -> bool {
        let by_effect = match self.effects {
            OfferedEffects::Any => true,
            OfferedEffects::WithoutMutations => {
                tool.effect != Effect::Mutates || tool.kind == ToolKind::Execute
            }
        };
        let by_name = self.names.as_ref().is_none_or(|names| Self::names_cover(names, &tool.id));
        let is_named = || self.names.iter().flat_map(|names| names.iter()).any(|name| name.name == *tool.id);
        by_effect && by_name && (tool.kind != ToolKind::SwitchMode || is_named())
    }

    fn names_cover(names: &[ToolPattern], tool: &str) -> bool {
        match names.iter().rfind(|pattern| pattern.fits(tool)) {
            Some(pattern) => !pattern.takes_away,
            None => names.first().is_some_and(|first| first.takes_away),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(patterns: &[&str], tool: &str) -> bool {
        ToolOffer::names_cover(&patterns.iter().map(|text| ToolPattern::new(text)).collect::<Vec<_>>(), tool)
    }

    #[test]
    fn the_last_pattern_that_fits_decides() {
        assert!(covers(&["read", "grep"], "grep"));
        assert!(!covers(&["read", "grep"], "bash"));
        assert!(covers(&["!bash"], "read"));
        assert!(!covers(&["!bash"], "bash"));
        assert!(!covers(&["github_*", "!github_delete_*"], "github_delete_repo"));
        assert!(covers(&["github_*", "!github_delete_*"], "github_list"));
        assert!(!covers(&["*", "!b*"], "bash_background"));
        assert!(!covers(&[], "read"));
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("*_b*_d", "a_b_c_b_d", true),
            ("**", "x", true),
            ("ab", "a", false),
            ("a", "ab", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
