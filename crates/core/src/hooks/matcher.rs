//! Decides which moments of its event a hook is for: by names of tools, and by what their calls touch. Pure.
//!
//! `edit|write` matches either tool, `mcp_*` every tool whose name begins so, `bash git push *` such a command,
//! `edit src/*` a change below `src`. Both the tool names of attache and those of Claude Code work.

use thiserror::Error;

use crate::limits::RULE_CHARACTERS;
use crate::ports::tool::{Access, CommandAccess, CommandNature};
use crate::watchdog::{Pattern, PatternBase, readings};

use super::payload::claude_name;

/// A matcher that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookMatcher {
    text: String,
    names: Vec<Pattern>,
    /// What a call has to touch; `None`: anything.
    touched: Option<String>,
}

/// Why a text is no matcher; the message continues a sentence that names the text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct BadMatcher(String);

/// Characters that occur only in regular expressions.
const OF_EXPRESSIONS: [char; 10] = ['[', ']', '(', ')', '{', '}', '+', '?', '\\', '"'];

/// A matcher of one of these names and a path matches changes of such files by any tool.
const FILE_CHANGES: [&str; 4] = ["edit", "write", "Edit", "Write"];

impl HookMatcher {
    /// `Ok(None)` for a text that matches everything.
    pub fn parse(text: &str) -> Result<Option<Self>, BadMatcher> {
        let whole = text.trim();
        if whole.is_empty() || whole == "*" || whole == ".*" {
            return Ok(None);
        }
        if whole.chars().count() > RULE_CHARACTERS {
            return Err(BadMatcher(format!("has more than {RULE_CHARACTERS} characters")));
        }
        let (names, touched) = match whole.split_once(char::is_whitespace) {
            Some((names, touched)) => (names, Some(touched.trim_start().to_owned())),
            None => (whole, None),
        };
        let names = names.split('|').map(name).collect::<Result<_, _>>()?;
        Ok(Some(Self { text: whole.to_owned(), names, touched }))
    }

    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it restricts what a call touches.
    pub fn is_about_calls(&self) -> bool {
        self.touched.is_some()
    }

    /// Whether a name matches.
    pub(super) fn matches_name(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.matches(name))
    }

    pub(super) fn matches_call(&self, tool: &str, accesses: &[Access], ground: PatternBase<'_>) -> bool {
        let is_named = self.matches_name(tool) || self.matches_name(claude_name(tool));
        let Some(touched) = &self.touched else { return is_named };
        // A user who watches a kind of file wants every change of such a file, whichever tool makes it.
        let watches_changes = FILE_CHANGES.iter().any(|name| self.matches_name(name));
        accesses.iter().any(|access| match access {
            Access::WritePath(path) if watches_changes => {
                Pattern::of_path(touched, ground).matches(&path.to_string_lossy())
            }
            _ if !is_named => false,
            // It may touch that: run the hook, which can decide for itself.
            Access::Command(CommandAccess { nature: CommandNature::Unclear(_), .. }) => true,
            Access::Command(command) => {
                let pattern = Pattern::of_command(touched);
                readings(command).iter().any(|reading| pattern.matches(reading))
            }
            Access::ReadPath(path) | Access::WritePath(path) => {
                Pattern::of_path(touched, ground).matches(&path.to_string_lossy())
            }
            Access::Network { host } => Pattern::of_name(touched).matches(host),
        })
    }
}

/// A name; of the regular expressions that Claude Code hooks use it understands `.*` and the anchors.
fn name(text: &str) -> Result<Pattern, BadMatcher> {
    let text = text.strip_prefix('^').unwrap_or(text);
    let text = text.strip_suffix('$').unwrap_or(text).replace(".*", "*");
    if text.is_empty() {
        return Err(BadMatcher("has an empty name between its `|`".to_owned()));
    }
    match text.chars().find(|character| OF_EXPRESSIONS.contains(character)) {
        Some(strange) => Err(BadMatcher(format!(
            "is no list of names: `{strange}` has no meaning there; write names with `|` between them, in which `*` \
             stands for anything"
        ))),
        None => Ok(Pattern::of_name(&text)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn matches(matcher: &str, tool: &str, accesses: &[Access]) -> bool {
        let ground = PatternBase { root: Path::new("/w"), home: None };
        match HookMatcher::parse(matcher).unwrap() {
            Some(matcher) => matcher.matches_call(tool, accesses, ground),
            None => true,
        }
    }

    fn command(line: &str) -> Access {
        command_that_is(line, CommandNature::Effects)
    }

    fn command_that_is(line: &str, nature: CommandNature) -> Access {
        let words = line.split(' ').map(str::to_owned).collect();
        let (directory, prefix, input, why) = ("/w".into(), 0, None, None);
        Access::Command(CommandAccess { words, directory, nature, prefix, input, why })
    }

    #[test]
    fn names_of_both_worlds_are_known() {
        for (matcher, tool, expected) in [
            ("bash", "bash", true),
            ("Bash", "bash", true),
            ("Edit|Write", "write", true),
            ("edit|write", "read", false),
            ("^Edit$|Multi.*", "edit", true),
            ("web_*", "web_fetch", true),
            ("WebFetch", "web_fetch", true),
            ("*", "anything", true),
            ("", "anything", true),
            (".*", "anything", true),
            ("bas", "bash", false),
        ] {
            assert_eq!(matches(matcher, tool, &[]), expected, "{matcher} {tool}");
        }
    }

    #[test]
    fn what_a_call_touches_can_be_asked_for() {
        let path = || Access::WritePath("/w/src/a.rs".into());
        for (matcher, tool, access, expected) in [
            ("bash git push *", "bash", command("git push origin"), true),
            ("bash git push *", "bash", command("git pull"), false),
            ("bash git push *", "bash", command("X=1 /usr/bin/git -C sub push origin"), true),
            ("Edit|Write src/*", "edit", path(), true),
            ("edit docs/*", "edit", path(), false),
            ("edit|write src/*", "apply_patch", path(), true),
            ("Write src/*", "apply_patch", path(), true),
            ("write src/*", "bash", path(), true),
            ("edit docs/*", "apply_patch", path(), false),
            ("read src/*", "apply_patch", path(), false),
            ("edit src/*", "read", Access::ReadPath("/w/src/a.rs".into()), false),
            ("web_fetch *.org", "web_fetch", Access::Network { host: "a.org".into() }, true),
        ] {
            assert_eq!(matches(matcher, tool, &[access]), expected, "{matcher}");
        }
        assert!(!matches("bash rm *", "bash", &[]), "nothing is touched");
        assert!(!matches("edit|write", "apply_patch", &[path()]), "without a path names are names");
        let unclear = command_that_is("$x", CommandNature::Unclear("a variable".into()));
        assert!(matches("bash rm *", "bash", &[unclear]), "it may be one");
    }

    #[test]
    fn what_is_no_list_of_names_says_why() {
        for (text, words) in
            [("Edit|", "empty name"), ("(Edit)", "`(`"), ("mcp__[a-z]+", "`[`"), ("a?", "`?`")]
        {
            let error = HookMatcher::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
