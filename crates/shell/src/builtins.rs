//! Commands of the shell itself: they change its directory, set its variables, or run others. Other modules
//! handle programs.

use crate::Nature;

use super::arithmetic::is_name;
use super::effects::{CommandEffects, bare};
use super::state::{Flow, ShellState};
use super::variables::{VariableKind, kind};
use super::word::{PathWord, Word};
use super::{CommandReader, Unclear};

impl CommandReader<'_> {
    /// `None` if it is no builtin that needs special treatment.
    pub(super) fn builtin(
        &mut self,
        name: &str,
        words: &[Word],
        assigned: &[String],
        state: &ShellState,
    ) -> Result<Option<Flow>, Unclear> {
        let arguments = &words[1..];
        let flow = match name {
            "popd" | "pushd" if name == "popd" || arguments.is_empty() => lost_directory(state),
            "cd" | "pushd" => self.change_directory(arguments, state)?,
            "exit" if arguments.is_empty() || arguments.len() == 1 && is_number(&arguments[0]) => Flow::ended(),
            // It may be an error; then the shell continues.
            "exit" => Flow::both(state.clone()),
            "return" | "break" | "continue" => {
                self.jumps.push(state.clone());
                Flow::both(state.clone())
            }
            "wait" if arguments.iter().all(is_awaited) => Flow::both(state.clone()),
            "true" | ":" => Flow { success: Some(state.clone()), failure: None },
            "false" => Flow { success: None, failure: Some(state.clone()) },
            "read" | "mapfile" | "readarray" | "getopts" => reads_variables(name, arguments, state)?,
            "printf" => match set_by_printf(arguments)? {
                Some(name) => Flow::both(with_unknown(state, name)),
                None => return Ok(None),
            },
            "test" | "[" if may_evaluate_name(arguments) => {
                return Err("a test may evaluate a variable's name".into());
            }
            "source" | "." if is_activation(arguments) => self.activate(words, state)?,
            "eval" => self.evaluate(arguments, state)?,
            "set" if arguments.iter().all(is_plain_setting) => Flow::both(state.clone()),
            "set" => return Err("it changes how the shell reads".into()),
            "alias" | "unalias" | "shopt" | "source" | "." | "trap" | "enable" | "bind" | "complete"
            | "compgen" | "compopt" | "hash" | "let" | "fc" | "history" | "suspend" | "caller" | "coproc"
            // Reached where the grammar does not see them: in quotes, or after `builtin`.
            | "export" | "declare" | "typeset" | "readonly" | "local" | "unset" => {
                return Err(Unclear(format!("`{name}` changes what follows in ways that are unknown")));
            }
            "command" | "builtin" | "exec" | "time" => {
                return self.wrapper(name, arguments, assigned, state).map(Some);
            }
            // These are no builtins, so that `/usr/bin/env` means the same.
            _ => match bare(name) {
                wrapper @ ("nohup" | "env" | "nice" | "timeout" | "stdbuf" | "setsid" | "ionice"
                | "chronic") => {
                    return self.wrapper(wrapper, arguments, assigned, state).map(Some);
                }
                _ => return Ok(None),
            },
        };
        if assigned.is_empty() {
            Ok(Some(flow))
        } else {
            Err(Unclear(format!("`{name}` is given variables")))
        }
    }

    fn change_directory(&mut self, arguments: &[Word], state: &ShellState) -> Result<Flow, Unclear> {
        let operands: Vec<&Word> =
            arguments.iter().filter(|word| !matches!(word.text(), Some("-L" | "-P" | "-e" | "--"))).collect();
        let mut moved = state.clone();
        match operands.as_slice() {
            // `-P` resolves links first, so only the disk can say where this leads.
            _ if arguments.iter().any(|word| word.text() == Some("-P")) => moved.lose_directory(),
            [] => match self.context.home.and_then(std::path::Path::to_str) {
                Some(home) => moved.enter(home),
                None => moved.lose_directory(),
            },
            [word] => match word.place() {
                PathWord::At(path) if path == "-" || path.starts_with(['+', '-']) => moved.lose_directory(),
                PathWord::At(path) if path.is_empty() => {}
                PathWord::At(path) => {
                    moved.enter(&path);
                    if climbs_back(&path) && !self.can_be_entered(&moved) {
                        moved.lose_directory();
                    }
                }
                PathWord::Below { .. } | PathWord::Through(_) | PathWord::Unknown => moved.lose_directory(),
            },
            _ => moved.lose_directory(),
        }
        let is_plain = match arguments {
            [word] => matches!(word.place(), PathWord::At(path) if !climbs_back(&path)),
            [] | [_, _, ..] => false,
        };
        let failure = match is_plain && self.is_certainly_entered(&moved) {
            true => state.clone().unlikely(),
            false => state.clone(),
        };
        Ok(Flow { success: Some(moved), failure: Some(failure) })
    }

    /// `source .venv/bin/activate` is code of the project; this line asks about it. It changes which programs
    /// run, so after it we call no command read-only, and no variable set before it is certain.
    fn activate(&mut self, words: &[Word], state: &ShellState) -> Result<Flow, Unclear> {
        let shown = words.iter().map(Word::shown).collect();
        let mut effects = CommandEffects::new(shown, Nature::Effects, 0);
        effects.reads = words.iter().skip(1).map(Word::place).collect();
        self.report(effects, &[], state)?;
        let mut after = state.fresh();
        after.activate();
        Ok(Flow { success: Some(after), failure: Some(state.clone()) })
    }

    /// `eval` joins its words to one text for the current shell.
    fn evaluate(&mut self, arguments: &[Word], state: &ShellState) -> Result<Flow, Unclear> {
        let text = constant(arguments).ok_or("what `eval` is given is unknown before it runs")?;
        let flow = self.text(&text, state)?;
        match self.may_fail {
            true => Err("an error may leave out the rest of what `eval` is given".into()),
            // Bash may see no command in it at all.
            false => Ok(flow.or_failed(state.clone())),
        }
    }
}

/// `..` after a name: bash removes the name from the path; but if the result does not exist, it asks the
/// kernel, which follows links first.
fn climbs_back(path: &str) -> bool {
    let mut names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    let is_up = |name: &str| name == "..";
    match path.starts_with('/') {
        true => names.any(is_up),
        false => names.clone().any(is_up) && !names.all(is_up),
    }
}

/// Afterwards the shell may be anywhere, or in the old directory if the builtin fails.
fn lost_directory(state: &ShellState) -> Flow {
    let mut lost = state.clone();
    lost.lose_directory();
    Flow { success: Some(lost), failure: Some(state.clone()) }
}

fn with_unknown(state: &ShellState, variable: &str) -> ShellState {
    let mut state = state.clone();
    state.set(variable, None);
    state
}

/// The script with which a Python virtual environment puts its programs first.
fn is_activation(arguments: &[Word]) -> bool {
    let [script] = arguments else { return false };
    script.text().is_some_and(|path| path == "bin/activate" || path.ends_with("/bin/activate"))
}

/// All words joined, as `eval` and `ssh` do.
pub(super) fn constant(words: &[Word]) -> Option<String> {
    let texts: Option<Vec<&str>> = words.iter().map(Word::text).collect();
    texts.map(|texts| texts.join(" "))
}

fn is_plain_setting(word: &Word) -> bool {
    word.text().is_some_and(|text| {
        super::runners::PLAIN_OPTIONS.contains(&text)
            || text
                .strip_prefix(['-', '+'])
                .is_some_and(|flags| flags.chars().all(|flag| "euxvfo".contains(flag)))
    })
}

fn is_number(word: &Word) -> bool {
    word.text().is_some() && word.is_numeric()
}

/// A number, `$!`, or an option without a value.
fn is_awaited(word: &Word) -> bool {
    matches!(word.source.as_str(), "$!" | "\"$!\"")
        || word.is_numeric()
        || matches!(word.text(), Some("-n" | "-f"))
}

/// Variables that input fills may contain anything.
fn reads_variables(name: &str, arguments: &[Word], state: &ShellState) -> Result<Flow, Unclear> {
    let mut state = state.clone();
    let mut skip = false;
    for word in arguments {
        let text = word.text().ok_or("which variables are read is not known")?;
        if std::mem::take(&mut skip) {
            continue;
        }
        if let Some(flags) = text.strip_prefix('-') {
            // The first letter with a value takes the rest of the word.
            let valued = if name == "read" { "dnptu" } else { "dnu" };
            let end = flags.find(|flag| valued.contains(flag));
            let harmless = flags[..end.unwrap_or(flags.len())].chars().all(|flag| "rst".contains(flag));
            if !harmless || name == "getopts" && !text.is_empty() && text != "-" {
                return Err(Unclear(format!("`{name} {text}` can't be followed")));
            }
            skip = end.is_some_and(|end| end + 1 == flags.len());
            continue;
        }
        if name == "getopts" && !is_name(text) {
            continue;
        }
        if !is_name(text) || kind(text) != VariableKind::Own {
            return Err(Unclear(format!("it reads into {text}")));
        }
        state.set(text, None);
    }
    for name in ["REPLY", "MAPFILE", "OPTARG"] {
        state.set(name, None);
    }
    Ok(Flow::both(state))
}

/// `test -v 'a[$(x)]'` runs x. An unknown word counts as an operator only before a known word that is none.
fn may_evaluate_name(arguments: &[Word]) -> bool {
    let harmless = |word: &Word| word.text().is_some_and(|text| !text.contains('['));
    arguments.iter().any(|word| matches!(word.text(), Some("-v" | "-R")) || word.may_be_several())
        || arguments.windows(2).any(|pair| pair[0].text().is_none() && !harmless(&pair[1]))
}

/// The variable that `printf` sets with `-v`. `%n` in its format sets one more, which an argument names.
fn set_by_printf(arguments: &[Word]) -> Result<Option<&str>, Unclear> {
    let untold = || Unclear("`printf` may set a variable that is unknown".to_owned());
    let (variable, rest) = match arguments {
        [flag, name, rest @ ..] if flag.text() == Some("-v") => {
            let own = name.text().filter(|name| is_name(name) && kind(name) == VariableKind::Own);
            (Some(own.ok_or_else(untold)?), rest)
        }
        [flag, ..] if flag.beginning().starts_with("-v") => return Err(untold()),
        [..] => (None, arguments),
    };
    let rest = match rest {
        [end, rest @ ..] if end.text() == Some("--") => rest,
        [again, ..] if variable.is_some() && again.beginning().starts_with('-') => return Err(untold()),
        [..] => rest,
    };
    if rest.iter().any(|word| word.text().is_some_and(pads)) || stars_pad(rest) {
        return Err("`printf` may print without limit".into());
    }
    match rest {
        [format, ..] if format.may_be_several() => Err(untold()),
        [format, _, ..] if format.text().is_none_or(counts) => Err(untold()),
        [..] => Ok(variable),
    }
}

/// Whether a format has an unreasonably large width or precision.
fn pads(format: &str) -> bool {
    format.split('%').skip(1).any(|directive| {
        let number = directive.trim_start_matches(['-', '+', ' ', '#', '\'', '0', '.']);
        number.chars().take_while(|character| character.is_ascii_digit() || *character == '.').count() > 5
    })
}

/// Whether a width comes from an argument that is large or unknown.
fn stars_pad(words: &[Word]) -> bool {
    let is_small = |word: &Word| {
        word.text().is_some_and(|text| text.len() <= 4 || !text.bytes().all(|c| c.is_ascii_digit()))
    };
    words.first().and_then(Word::text).is_some_and(|format| format.contains('*') && format.contains('%'))
        && !words.iter().skip(1).all(is_small)
}

/// Whether a format has `%n`.
fn counts(format: &str) -> bool {
    let is_modifier = |character: char| character.is_ascii_digit() || "-+ #'*.hjlLqtz".contains(character);
    let directives = format.replace("%%", "");
    directives.split('%').skip(1).any(|directive| directive.trim_start_matches(is_modifier).starts_with('n'))
}
