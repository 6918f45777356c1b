//! Programs that run others: wrappers that change little, shells with a text, and those that may run anything.

use crate::Nature;

use super::builtins::constant;
use super::effects::CommandEffects;
use super::options::host;
use super::programs::is_interpreter;
use super::state::{Flow, ShellState, join};
use super::variables::{VariableKind, kind};
use super::word::Word;
use super::{CommandReader, Unclear, options, programs};

/// Shell options that do not change how we read its text; also those of `set -o`.
pub(super) const PLAIN_OPTIONS: [&str; 4] = ["pipefail", "errexit", "nounset", "xtrace"];

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"];

/// Shells that only print their version if this is the only option.
const TELLS_VERSION: [&str; 4] = ["bash", "zsh", "fish", "ksh"];

impl CommandReader<'_> {
    /// Wrappers: we judge the inner command as if it stood alone.
    pub(super) fn wrapper(
        &mut self,
        name: &str,
        arguments: &[Word],
        assigned: &[String],
        state: &ShellState,
    ) -> Result<Flow, Unclear> {
        let mut assigned = assigned.to_vec();
        let mut inherited = Vec::new();
        let inner = skip_wrapper(name, arguments, &mut assigned, &mut inherited)?;
        if inner.is_empty() {
            // `exec > log`, `env` alone, `command -v x`.
            return Ok(Flow::both(state.clone()));
        }
        let mut state_inside = match name {
            "command" | "builtin" | "exec" | "time" => state.clone(),
            _ => state.fresh(),
        };
        inherited.iter().for_each(|variable| state_inside.set(variable, None));
        // A function of that name does not run, except after a `time` that is first and bare.
        let flow = self.command_without_functions(inner, &assigned, state_inside)?;
        Ok(match name {
            "exec" => Flow { success: None, failure: Some(state.clone()) },
            "command" | "builtin" => flow,
            // The word of the grammar, or a program that changes nothing here.
            "time" => Flow {
                success: join(flow.success, Some(state.clone())),
                failure: join(flow.failure, Some(state.clone())),
            },
            _ => Flow::both(state.clone()),
        })
    }

    fn command_without_functions(
        &mut self,
        words: &[Word],
        assigned: &[String],
        state: ShellState,
    ) -> Result<Flow, Unclear> {
        let shadowed = words.first().and_then(Word::text).is_some_and(|name| state.function(name).is_some());
        if shadowed {
            return Err("a function and a program have the same name".into());
        }
        self.command(words, assigned, state)
    }

    /// `None` if the program runs no other.
    pub(super) fn runner(
        &mut self,
        name: &str,
        shown: &[String],
        words: &[Word],
        state: &ShellState,
    ) -> Result<Option<CommandEffects>, Unclear> {
        let arguments = &words[1..];
        let acts = |prefix| Some(CommandEffects::new(shown.to_vec(), Nature::Effects, prefix));
        let unclear =
            |reason: &str| Some(CommandEffects::new(shown.to_vec(), Nature::Unclear(reason.to_owned()), 0));
        Ok(match name {
            _ if SHELLS.contains(&name) => Some(self.shell(name, shown, arguments, state)?),
            _ if is_interpreter(name) => Some(self.interpreter(name, shown, arguments, state)?),
            "sudo" | "doas" | "su" | "pkexec" | "run0" => {
                self.inner(after_options(arguments, "ugpCTUhrt"), state)?;
                unclear("it asks for other rights than the user's own")
            }
            "xargs" => Some(self.xargs(shown, arguments, state)?),
            "parallel" | "entr" | "flock" | "script" | "unbuffer" | "strace" | "ltrace" | "gdb" | "perf"
            | "chroot" | "unshare" | "nsenter" | "systemd-run" | "at" | "batch" | "crontab" | "socat"
            | "expect" | "busybox" | "toybox" | "watchexec" | "nodemon" | "time" => {
                unclear("it runs other programs in a way attache can't check")
            }
            "watch" => {
                let inner = after_options(arguments, "nd");
                match constant(inner) {
                    Some(text) => {
                        self.text(&text, &state.fresh())?;
                        acts(0)
                    }
                    None => unclear("what it runs is unknown before it runs"),
                }
            }
            "ssh" | "mosh" => {
                let mut effects = CommandEffects::new(shown.to_vec(), Nature::Effects, 0);
                let target = after_options(arguments, "bcDEeFIiJLlmOopQRSWw").first().and_then(Word::text);
                effects.hosts = vec![target.and_then(host).unwrap_or_else(|| "*".to_owned())];
                if arguments
                    .iter()
                    .any(|word| word.beginning().starts_with("-o") || word.beginning().starts_with("-F"))
                {
                    effects.nature = Nature::Unclear("ssh is told which programs to run".to_owned());
                }
                Some(effects)
            }
            _ => None,
        })
    }

    /// Its documented version option, alone and without input, only prints the version; anything else may be a
    /// program. "Always" covers `python -m pytest` in the same way as `pytest`.
    fn interpreter(
        &mut self,
        name: &str,
        shown: &[String],
        arguments: &[Word],
        state: &ShellState,
    ) -> Result<CommandEffects, Unclear> {
        let told = |nature, prefix| CommandEffects::new(shown.to_vec(), nature, prefix);
        let texts: Vec<Option<&str>> = arguments.iter().map(Word::text).collect();
        let versions = programs::versions(name).unwrap_or_default();
        Ok(match texts.as_slice() {
            [Some(option)] if versions.contains(option) && self.input.is_none() => told(Nature::ReadOnly, 0),
            [] | [Some("-"), ..] if self.input.is_none() => {
                told(Nature::Unclear("it runs whatever it reads from its input".to_owned()), 0)
            }
            [Some("-m"), Some(module), ..] if name.starts_with("py") => {
                let mut effects = told(Nature::Effects, 0);
                if programs::lookup(module, None, None).is_some() || *module == "pip" {
                    let inner = self.effects_of(&arguments[1..], &state.fresh())?;
                    effects.prefix = if inner.prefix == 0 { 0 } else { 2 + inner.prefix };
                    effects.only_this_line = inner.only_this_line;
                    effects.hosts = inner.hosts;
                    effects.network = inner.network;
                }
                effects
            }
            [Some("test" | "fmt" | "lint" | "check"), ..] if matches!(name, "deno" | "bun") => {
                told(Nature::Effects, 2)
            }
            [Some(subcommand), ..] if matches!(name, "deno" | "bun" | "bunx") => {
                match programs::lookup_exactly(name, subcommand) {
                    Some(program) if program.runs => self.runs(program, shown.to_vec(), arguments, state)?,
                    Some(program) => options::effects_of(program, shown.to_vec(), arguments),
                    None => told(Nature::Effects, 0),
                }
            }
            [..] => told(Nature::Effects, 0),
        })
    }

    pub(super) fn inner(&mut self, words: &[Word], state: &ShellState) -> Result<(), Unclear> {
        if words.is_empty() { Ok(()) } else { self.command(words, &[], state.fresh()).map(drop) }
    }

    /// `sh -c 'text'` does what its text does; we do not look into a script, or a shell that reads its input.
    fn shell(
        &mut self,
        name: &str,
        shown: &[String],
        arguments: &[Word],
        state: &ShellState,
    ) -> Result<CommandEffects, Unclear> {
        let told = |nature, prefix| CommandEffects::new(shown.to_vec(), nature, prefix);
        let is_version = |word: &Word| word.text() == Some("--version") && TELLS_VERSION.contains(&name);
        if let [only] = arguments
            && is_version(only)
            && self.input.is_none()
        {
            return Ok(told(Nature::ReadOnly, 0));
        }
        let mut index = 0;
        let mut has_text = false;
        while let Some(word) = arguments.get(index) {
            let Some(text) = word.text().filter(|text| text.starts_with(['-', '+'])) else { break };
            let flags = text[1..].to_owned();
            let plain = !flags.is_empty() && flags.chars().all(|flag| "ceuxo".contains(flag));
            if !plain {
                let reason = "a shell is started with options that attache does not know";
                return Ok(told(Nature::Unclear(reason.to_owned()), 0));
            }
            has_text |= flags.contains('c');
            index += 1;
            if flags.contains('o') {
                let is_plain =
                    |word: &Word| word.text().is_some_and(|option| PLAIN_OPTIONS.contains(&option));
                if flags.matches('o').count() > 1 || !arguments.get(index).is_some_and(is_plain) {
                    let reason = "a shell is started with options that attache does not know";
                    return Ok(told(Nature::Unclear(reason.to_owned()), 0));
                }
                index += 1;
            }
        }
        match arguments.get(index) {
            Some(word) if has_text => {
                let text = word.text().ok_or("the text a shell is given is unknown before it runs")?;
                let mark = self.found.mark();
                let calls = std::mem::take(&mut self.calls);
                self.text(text, &state.fresh())?;
                self.calls = calls;
                // We know which of the user's files these read first; the others read none.
                let is_known = name == "bash" || matches!(name, "sh" | "dash" | "ash") && is_common(text);
                let quiet = is_known && self.found.only_reads_since(mark);
                Ok(told(if quiet { Nature::ReadOnly } else { Nature::Effects }, 0))
            }
            Some(word) if word.text().is_some() => Ok(told(Nature::Effects, 0)),
            Some(_) => {
                Ok(told(Nature::Unclear("which script it runs is unknown before it runs".to_owned()), 0))
            }
            None => Ok(told(Nature::Unclear("it runs whatever it reads from its input".to_owned()), 0)),
        }
    }
}

/// Whether a text means the same to every shell; we read it as bash does.
fn is_common(text: &str) -> bool {
    const OWN_TO_BASH: [&str; 17] = [
        "builtin", "+=", "$'", "$\"", "RANDOM", "SECONDS", "UID", "PPID", "PID", "LINENO", "EPOCH", "BASH",
        "declare", "typeset", "local", "time", "function",
    ];
    text.chars().all(|character| character.is_alphanumeric() || " _./,:=+@%-'\"|;~$".contains(character))
        && !OWN_TO_BASH.iter().any(|word| text.contains(word))
}

/// The words after the options; `valued` are the letters that take the next word.
pub(super) fn after_options<'w>(arguments: &'w [Word], valued: &str) -> &'w [Word] {
    let mut index = 0;
    while let Some(word) = arguments.get(index) {
        let beginning = word.beginning();
        if word.text() == Some("--") {
            return &arguments[index + 1..];
        }
        if !beginning.starts_with('-') || beginning.len() < 2 {
            break;
        }
        let takes_next = beginning.len() == 2 && beginning.ends_with(|flag| valued.contains(flag));
        index += 1 + usize::from(takes_next);
    }
    &arguments[index.min(arguments.len())..]
}

/// Whether the value of an option is one known word. Without its variables, a program does something else.
fn takes_value(name: &str, value: Option<&Word>) -> bool {
    let unsets = |value: &Word| value.text().is_none_or(|variable| kind(variable) != VariableKind::Own);
    value.filter(|value| !value.may_be_several()).is_some_and(|value| !(name == "env" && unsets(value)))
}

/// Whether programs may know a variable that the line sets for them.
fn sets(variable: &str) -> Result<bool, Unclear> {
    match kind(variable) {
        VariableKind::Rules => Err(Unclear(format!("it sets {variable}, which changes how programs run"))),
        VariableKind::Harmless => Ok(false),
        VariableKind::Own | VariableKind::Loads => Ok(true),
    }
}

/// The command within a wrapper. Adds the variables that `env` sets to `assigned`, with their values if
/// programs may know them, and to `inherited` by name.
fn skip_wrapper<'w>(
    name: &str,
    arguments: &'w [Word],
    assigned: &mut Vec<String>,
    inherited: &mut Vec<String>,
) -> Result<&'w [Word], Unclear> {
    let strange = || Unclear(format!("`{name}` has options that attache does not know"));
    let mut index = 0;
    while let Some(word) = arguments.get(index) {
        if word.may_be_several() {
            return Err(strange());
        }
        let Some(text) = word.text() else {
            return if word.beginning().is_empty() || index == 0 || name == "env" {
                Err(strange())
            } else {
                Ok(&arguments[index..])
            };
        };
        index += match (name, text) {
            (_, "--") => return Ok(&arguments[index + 1..]),
            // This only prints where something is.
            ("command", "-v" | "-V") => return Ok(&[]),
            ("time", "-p") if index == 0 => 1,
            ("command", "-p") | ("env", "-0") | ("timeout", "--foreground" | "--preserve-status" | "-v") => 1,
            ("setsid", "-w" | "--wait") | ("ionice", "-t") => 1,
            ("env", "-u")
            | ("nice", "-n")
            | ("timeout", "-s" | "-k" | "--signal" | "--kill-after")
            | ("ionice", "-c" | "-n")
            | ("stdbuf", "-i" | "-o" | "-e") => {
                if !takes_value(name, arguments.get(index + 1)) {
                    return Err(strange());
                }
                2
            }
            ("timeout", _)
                if text.starts_with("-k")
                    || text.starts_with("-s")
                    || text.starts_with("--") && text.contains('=') =>
            {
                1
            }
            ("nice", _) if text.starts_with('-') && text[1..].chars().all(|digit| digit.is_ascii_digit()) => {
                1
            }
            ("stdbuf", _) if text.starts_with(['-']) && text.len() <= 4 => 1,
            ("env", _) if !text.starts_with('-') && text.contains('=') => {
                let variable = text.split('=').next().unwrap_or_default();
                if sets(variable)? {
                    assigned.push(text.to_owned());
                }
                inherited.push(variable.to_owned());
                1
            }
            _ if text.starts_with('-') => return Err(strange()),
            // The first operand is a duration.
            ("timeout", _) => return Ok(&arguments[index + 1..]),
            _ => return Ok(&arguments[index..]),
        };
    }
    Ok(&[])
}
