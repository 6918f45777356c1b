//! `awk` has its own language: a program counts as read-only if nothing in its text can write, run or open
//! anything else.

use crate::Nature;

use super::arithmetic::is_name;
use super::effects::CommandEffects;
use super::word::Word;

pub(super) fn effects_of(shown: Vec<String>, arguments: &[Word]) -> CommandEffects {
    let mut effects = CommandEffects::new(shown, Nature::ReadOnly, 1);
    let mut words = arguments.iter();
    let mut script = None;
    while let Some(word) = words.next() {
        match word.text() {
            Some("-F" | "-v") => {
                if words.next().is_none_or(Word::may_be_several) {
                    effects.acts();
                    effects.prefix = 0;
                }
            }
            Some("--") => {
                script = words.next();
                break;
            }
            Some(text) if text.starts_with("-F") || text.starts_with("-v") => {}
            Some(text) if text.starts_with('-') => {
                effects.acts();
                effects.prefix = 0;
                return effects;
            }
            _ => {
                script = Some(word);
                break;
            }
        }
    }
    if !script.and_then(Word::text).is_some_and(only_prints) {
        effects.acts();
        effects.prefix = 0;
    }
    let is_file = |word: &&Word| {
        let name = word.beginning().split_once('=').map(|(name, _)| name);
        !name.is_some_and(is_name)
    };
    let files: Vec<&Word> = words.collect();
    if files.iter().any(|word| word.may_be_option()) {
        effects.acts();
    }
    effects.reads = files.into_iter().filter(is_file).map(Word::place).collect();
    effects
}

/// Refuses pipes, redirections, `system`, `getline`, loaded code and changed arguments; allows `||`. Before the
/// first brace nothing is printed, so `>` compares. After it, we treat `>` as a redirection, which at worst
/// asks the user once too often.
fn only_prints(script: &str) -> bool {
    let bare = script.replace("||", "");
    let actions = bare.split_once('{').map_or("", |(_, actions)| actions);
    !actions.contains('>')
        && !bare.contains(['|', '@'])
        && ![
            "system", "getline", "ARGV", "ARGC", "fflush", "close", "ENVIRON", "PROCINFO", "SYMTAB",
            "FUNCTAB",
        ]
        .iter()
        .any(|word| bare.contains(word))
}

#[cfg(test)]
mod tests {
    use super::only_prints;

    #[test]
    fn only_programs_without_a_way_out_print() {
        for script in [
            "{print $1}",
            "NR==1 || NR<5",
            "/x/ {n++} END {print n}",
            "{print $NF, length($0)}",
            "$3 > 5",
            "NR>=2 && NR<9 {print}",
        ] {
            assert!(only_prints(script), "{script}");
        }
        for script in [
            "{system(\"id\")}",
            "{print > \"f\"}",
            "{print | \"sh\"}",
            "{\"id\" | getline}",
            "@load \"x\"",
            "{getline < \"/etc/x\"}",
            "BEGIN{ARGV[1]=\"x\"}",
            "$3 > 5 {print > \"f\"}",
            "/{/ {print > \"f\"}",
        ] {
            assert!(!only_prints(script), "{script}");
        }
    }
}
