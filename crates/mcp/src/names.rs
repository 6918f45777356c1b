//! How models name the tools of servers: `server_tool`, in the letters that every provider takes, never as a
//! built-in tool, never twice. The same server and tool always get the same name as long as what came before
//! them is the same.

use std::collections::HashSet;

use attache_core::tool_names::BUILTIN_TOOLS;

use crate::limits::NAME_CHARACTERS;

/// Digits that tell two names apart.
const DIGITS: usize = 8;

/// The names that are taken in one session.
#[derive(Debug)]
pub(crate) struct TakenNames(HashSet<String>);

impl Default for TakenNames {
    fn default() -> Self {
        Self(BUILTIN_TOOLS.iter().map(|name| plain(name)).collect())
    }
}

impl TakenNames {
    /// For commands of prompts, which have a colon in them, as no built-in one has.
    pub(crate) fn of_commands() -> Self {
        Self(HashSet::new())
    }

    /// A name for this tool that nothing else has.
    pub(crate) fn take(&mut self, server: &str, tool: &str) -> String {
        self.take_with('_', server, tool)
    }

    /// With another separator between its halves.
    pub(crate) fn take_with(&mut self, between: char, server: &str, tool: &str) -> String {
        let whole = format!("{}{between}{}", sanitised(server), sanitised(tool));
        let fits = whole.len() <= NAME_CHARACTERS && !self.0.contains(&plain(&whole));
        let name = match fits {
            true => whole,
            false => self.with_digits(&whole, server, tool),
        };
        self.0.insert(plain(&name));
        name
    }

    fn with_digits(&self, whole: &str, server: &str, tool: &str) -> String {
        let beginning = &whole[..whole.len().min(NAME_CHARACTERS - DIGITS - 1)];
        let digest = digest(&[server, tool]);
        let tries = (0_u64..).map(|count| format!("{beginning}_{:08x}", digest.wrapping_add(count) as u32));
        // The names that are taken are finite.
        tries.into_iter().find(|name| !self.0.contains(&plain(name))).unwrap_or_default()
    }
}

/// Letters, digits, `_` and `-`; anything else becomes `_`.
pub(crate) fn sanitised(name: &str) -> String {
    let kept = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => character,
        _ => '_',
    };
    let name: String = name.chars().take(NAME_CHARACTERS).map(kept).collect();
    match name.trim_matches('_') {
        "" => "x".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// A model that writes a name with other separators or case means the same tool: such names are no two.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|character| character.to_ascii_lowercase()).collect()
}

/// FNV-1a over the words and where they end.
pub(crate) fn digest(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_say_server_and_tool() {
        let mut names = TakenNames::default();
        assert_eq!(names.take("github", "create_issue"), "github_create_issue");
        assert_eq!(names.take("my server!", "do.it"), "my_server_do_it");
        assert_eq!(names.take("日本", "ツール"), "x_x");
    }

    #[test]
    fn a_built_in_name_is_never_given_away() {
        let mut names = TakenNames::default();
        for (server, tool) in
            [("web", "fetch"), ("Web", "-fetch"), ("apply", "patch"), ("bash", "background")]
        {
            let name = names.take(server, tool);
            assert!(BUILTIN_TOOLS.iter().all(|built_in| plain(built_in) != plain(&name)), "{name}");
        }
    }

    #[test]
    fn commands_of_prompts_are_told_apart() {
        let mut names = TakenNames::of_commands();
        assert_eq!(names.take_with(':', "git", "review"), "git:review");
        let other = names.take_with(':', "git", "re view");
        assert_eq!(other, "git:re_view".replace("re_view", other.split(':').nth(1).unwrap()));
        assert!(other.starts_with("git:re_view_"), "{other}");
    }

    #[test]
    fn long_names_keep_their_beginning() {
        let mut names = TakenNames::default();
        let (first, second) =
            (names.take("s", &"t".repeat(80)), names.take("s", &format!("{}x", "t".repeat(80))));
        assert!(
            first.starts_with("s_ttt") && first.len() == NAME_CHARACTERS && first != second,
            "{first} {second}"
        );
    }

    proptest! {
        #[test]
        fn every_name_is_valid_and_taken_once(tools in prop::collection::vec((".{0,30}", ".{0,90}"), 1..40)) {
            let mut names = TakenNames::default();
            let mut seen = HashSet::new();
            for (server, tool) in &tools {
                let name = names.take(server, tool);
                prop_assert!((1..=NAME_CHARACTERS).contains(&name.len()), "{name}");
                prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{name}");
                prop_assert!(!BUILTIN_TOOLS.contains(&name.as_str()));
                prop_assert!(seen.insert(plain(&name)), "{name} twice");
            }
        }
    }
}
