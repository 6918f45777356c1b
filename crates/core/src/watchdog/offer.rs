//! What "always" would mean for one command, as a pattern and in words. Pure, so that the rule of an answer and
//! the commands it covers are derived in the same way.

use super::pattern::escaped;
use crate::limits::ALWAYS_NAME_CHARACTERS;
use crate::ports::tool::CommandAccess;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AlwaysOffer {
    pub(super) pattern: String,
    /// `cargo test …`, or the whole line.
    pub(super) name: String,
}

impl AlwaysOffer {
    /// The words that say what a command does, with anything after them; if there are none, only this line with
    /// this input.
    pub(super) fn of(command: &CommandAccess) -> Self {
        match (command.prefix, &command.input) {
            (0, Some(input)) => {
                // A command line contains no NUL, so no words can look like a line with an input.
                let pattern = escaped(&format!("{}\0{input}", command.line()));
                Self { pattern, name: this_line(&with_input(&command.line(), input)) }
            }
            (0, None) => {
                let line = command.line();
                Self { pattern: escaped(&line), name: this_line(&line) }
            }
            (words, _) => {
                let beginning = command.beginning(words);
                Self { pattern: format!("{} *", escaped(&beginning)), name: format!("`{beginning} …`") }
            }
        }
    }
}

/// A line with its input in the form that people write: the output of another command stands before a bar.
fn with_input(line: &str, input: &str) -> String {
    match input.strip_prefix("< <(").and_then(|input| input.strip_suffix(')')) {
        Some(source) => format!("{source} | {line}"),
        None => format!("{line} {input}"),
    }
}

/// The name of a rule about one line. Of a long line it shows only the beginning: the question's title has all
/// of it.
fn this_line(line: &str) -> String {
    let length = line.chars().count();
    if length <= ALWAYS_NAME_CHARACTERS {
        return format!("`{line}`");
    }
    let beginning: String = line.chars().take(ALWAYS_NAME_CHARACTERS).collect();
    // Not "…" alone, which would mean anything after it.
    format!("only this line of {length} characters: `{beginning}`…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_named_by_its_beginning_and_its_rule_stays_exact() {
        let command = |words: &[&str]| CommandAccess {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            directory: "/w".into(),
            nature: crate::ports::tool::CommandNature::Effects,
            prefix: 0,
            input: None,
            why: None,
        };
        let script = "print(1);".repeat(50);
        let offer = AlwaysOffer::of(&command(&["python3", "-c", &script]));
        assert!(offer.pattern.contains(&escaped(&script)));
        assert!(
            offer.name.starts_with("only this line of 461 characters: `python3 -c print(1);"),
            "{}",
            offer.name
        );
        assert!(offer.name.chars().count() < 150, "{}", offer.name);
        assert_eq!(AlwaysOffer::of(&command(&["make", "all"])).name, "`make all`");
        let fed = |input: &str| CommandAccess { input: Some(input.to_owned()), ..command(&["sh", "-s"]) };
        assert_eq!(AlwaysOffer::of(&fed("< <(printf ls)")).name, "`printf ls | sh -s`");
        assert_eq!(AlwaysOffer::of(&fed("<<< ls")).name, "`sh -s <<< ls`");
        assert_ne!(AlwaysOffer::of(&fed("< <(printf ls)")).pattern, AlwaysOffer::of(&fed("<<< ls")).pattern);
    }
}
