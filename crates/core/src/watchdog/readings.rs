//! The names under which a rule can forbid a command: the line itself, and the command without words that only
//! change how it is started. Pure; for rules that deny or ask and for hooks, never for rules that allow.

use crate::limits::COMMAND_READINGS;
use crate::ports::tool::CommandAccess;

/// The line first. `X=1 /usr/bin/../bin/git -C sub push` is also `git push`, and `git sub push`, because it is
/// not known whether an option takes the next word: a command is forbidden if a rule forbids any of these
/// names.
pub(crate) fn readings(command: &CommandAccess) -> Vec<String> {
    let mut readings = vec![command.line()];
    let words = command.words.as_slice();
    let assigned = words.iter().take_while(|word| is_assignment(word)).count();
    let Some((program, arguments)) = words[assigned..].split_first() else { return readings };
    let name = program.rsplit('/').find(|name| !name.is_empty()).unwrap_or(program);
    for begin in beginnings(arguments) {
        let words = std::iter::once(name.to_owned()).chain(arguments[begin..].iter().cloned()).collect();
        let reading = CommandAccess { words, ..command.clone() }.line();
        if !readings.contains(&reading) {
            readings.push(reading);
        }
    }
    readings
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// Where the words that say what a program does may begin: at once, or after options that precede them (`git
/// --no-pager`, `docker --context x`, `cargo +nightly`).
fn beginnings(arguments: &[String]) -> Vec<usize> {
    let is_option = |word: &String| word.starts_with(['-', '+']);
    let mut beginnings = vec![0];
    let mut at = 0;
    while beginnings.len() < COMMAND_READINGS
        && let Some(word) = arguments.get(at)
    {
        match is_option(word) {
            true => {}
            // Either the value of the previous option, or already what the program has to do.
            false if at > 0 && is_option(&arguments[at - 1]) => beginnings.push(at),
            false => break,
        }
        at += 1;
        if arguments.get(at).is_some_and(|next| !is_option(next)) && !is_option(&arguments[at - 1]) {
            beginnings.push(at);
            break;
        }
    }
    beginnings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ports::tool::CommandNature;

    fn command(words: &[&str]) -> CommandAccess {
        CommandAccess {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            directory: "/w".into(),
            nature: CommandNature::Effects,
            prefix: 0,
            input: None,
            why: None,
        }
    }

    #[test]
    fn how_a_command_is_started_does_not_hide_what_it_is() {
        for (line, expected) in [
            ("rm F", "rm F"),
            ("RM=1 rm F", "rm F"),
            ("A=1 B+=2 rm F", "rm F"),
            ("/usr/bin/../bin/rm F", "rm F"),
            ("../../bin/rm F", "rm F"),
            ("/proc/self/root/bin/rm F", "rm F"),
            ("X=1 /bin/rm -rf F", "rm -rf F"),
            ("git --git-dir=.git tag v1", "git tag v1"),
            ("git --git-dir .git tag v1", "git tag v1"),
            ("git -C sub -c a.b=c tag v1", "git tag v1"),
            ("git --namespace=x --attr-source=HEAD tag v1", "git tag v1"),
            ("X=1 git --no-pager push", "git push"),
            ("cargo +nightly --offline publish", "cargo publish"),
            ("docker --context prod rm x", "docker rm x"),
            ("npm --prefix dir publish", "npm publish"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            let found = readings(&command(&words));
            assert_eq!(found[0], line, "the line itself comes first");
            assert!(found.iter().any(|reading| reading == expected), "{line}: {found:?}");
        }
        assert_eq!(readings(&command(&["git", "log", "--", "tag"])), ["git log -- tag"]);
        assert_eq!(readings(&command(&["A=1"])), ["A=1"]);
    }

    proptest! {
        #[test]
        fn they_are_few_and_begin_with_the_line(words in prop::collection::vec("[a=+/ -]{0,4}", 0..40)) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let command = command(&words);
            let found = readings(&command);
            prop_assert_eq!(&found[0], &command.line());
            prop_assert!(found.len() <= COMMAND_READINGS + 2);
        }
    }
}
