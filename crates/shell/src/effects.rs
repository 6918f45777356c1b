//! What one program with its words does: the answer of the table, or of a separate reader. Emits nothing
//! itself.

use std::path::PathBuf;

use crate::{Nature, ProgramOrigin, Repository};

use super::state::ShellState;
use super::tracked::{RepositoryPart, Unnamed};
use super::word::{ANY_DEPTH, PathWord, Word};
use super::{CommandReader, Network, Unclear, awk, find, git, options, programs, sed};

/// Where programs of the system live: a path below these means the same as the bare name.
const STANDARD: [&str; 7] = [
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/opt/homebrew/bin/",
    "/usr/local/sbin/",
];

#[derive(Clone, Debug)]
pub(super) struct CommandEffects {
    /// In the form that rules match.
    pub(super) words: Vec<String>,
    pub(super) nature: Nature,
    /// How many of the first words say what the command is.
    pub(super) prefix: usize,
    /// "Always" covers no other line with the same beginning, because the table does not know some of its
    /// words.
    pub(super) only_this_line: bool,
    pub(super) reads: Vec<PathWord>,
    pub(super) writes: Vec<PathWord>,
    /// Words that the shell fills in: patterns and unknown values.
    pub(super) open: Vec<PathWord>,
    pub(super) hosts: Vec<String>,
    /// The directory it works in, instead of the shell's.
    pub(super) directory: Option<String>,
    pub(super) network: Network,
    /// The content of its standard input does not change what it does.
    pub(super) filters: bool,
    /// Why we ask about it, if its words do not say so.
    pub(super) why: Option<String>,
    /// For git: the part of the repository whose files it shows.
    pub(super) shows: Option<RepositoryPart>,
    /// For git: whether it prints settings.
    pub(super) settings: SettingsShown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsShown {
    None,
    Some,
}

impl CommandEffects {
    pub(super) fn new(words: Vec<String>, nature: Nature, prefix: usize) -> Self {
        Self {
            words,
            nature,
            prefix,
            only_this_line: false,
            reads: Vec::new(),
            writes: Vec::new(),
            open: Vec::new(),
            hosts: Vec::new(),
            directory: None,
            network: Network::Never,
            filters: false,
            why: None,
            shows: None,
            settings: SettingsShown::None,
        }
    }

    /// It also reads through the links in what it reads.
    pub(super) fn follow_links(&mut self) {
        let mut followed = Vec::new();
        for place in &self.reads {
            match place {
                PathWord::At(directory)
                | PathWord::Through(directory)
                | PathWord::Below { directory, .. } => {
                    let pattern = ANY_DEPTH.to_owned();
                    followed.push(PathWord::Below { directory: directory.clone(), pattern });
                }
                PathWord::Unknown => {}
            }
        }
        self.reads.extend(followed);
    }

    /// Marks that it does more than read.
    pub(super) fn acts(&mut self) {
        if self.nature == Nature::ReadOnly {
            self.nature = Nature::Effects;
        }
    }
}

/// The name without a standard directory.
pub(super) fn bare(name: &str) -> &str {
    let standard = STANDARD.iter().find_map(|directory| name.strip_prefix(directory));
    standard.filter(|rest| !rest.is_empty() && !rest.contains('/')).unwrap_or(name)
}

/// The bare name of a program in a directory for programs (`.venv/bin/pip`, `node_modules/.bin/jest`).
fn installed(name: &str) -> Option<&str> {
    let (directory, program) = name.rsplit_once('/')?;
    let place = directory.rsplit('/').next().unwrap_or(directory);
    (matches!(place, "bin" | ".bin" | "Scripts") && !program.is_empty()).then_some(program)
}

/// Words that bash itself runs, even if there are programs with these names.
const BUILTINS: [&str; 16] = [
    "echo", "printf", "test", "[", "pwd", "type", "kill", "umask", "ulimit", "times", "dirs", "jobs",
    "shift", "true", "false", "getopts",
];

impl CommandReader<'_> {
    pub(super) fn effects_of(
        &mut self,
        words: &[Word],
        state: &ShellState,
    ) -> Result<CommandEffects, Unclear> {
        let name = words.first().map(Word::shown).unwrap_or_default();
        let mut shown: Vec<String> = words.iter().map(Word::shown).collect();
        let known = installed(bare(&name)).unwrap_or(bare(&name)).to_owned();
        if let Some(first) = shown.first_mut() {
            *first = bare(&name).to_owned();
        }
        let mut effects = self.effects_by_name(&known, shown, words, state)?;
        let is_elsewhere = known != bare(&name);
        if is_elsewhere {
            effects.acts();
        }
        if !BUILTINS.contains(&known.as_str()) || is_elsewhere {
            self.note_origin(&name, &mut effects, state);
        }
        effects.open = words.iter().filter(|word| word.text().is_none()).map(Word::place).collect();
        Ok(effects)
    }

    /// A program in the workspace is code of the project, whatever its name; so is what a file of the project
    /// chooses.
    fn note_origin(&self, name: &str, effects: &mut CommandEffects, state: &ShellState) {
        let directories = state.directories().unwrap_or_default();
        let anywhere = [self.context.directory.to_path_buf()];
        let directories = if directories.is_empty() { &anywhere } else { directories };
        for directory in directories {
            let why = match self.context.disk.program(name, directory) {
                ProgramOrigin::System => continue,
                ProgramOrigin::Workspace(path) => {
                    format!("`{name}` is {}, a program of the workspace", path.display())
                }
                ProgramOrigin::ChosenBy(file) => {
                    format!("`{name}` is one of a version manager: {} says what it runs", file.display())
                }
            };
            effects.acts();
            effects.why = Some(why);
        }
    }

    fn effects_by_name(
        &mut self,
        name: &str,
        shown: Vec<String>,
        words: &[Word],
        state: &ShellState,
    ) -> Result<CommandEffects, Unclear> {
        if let Some(effects) = self.runner(name, &shown, words, state)? {
            return Ok(effects);
        }
        let arguments = &words[1..];
        match name {
            "find" => return self.find(shown, arguments, state),
            "git" => return Ok(self.git(shown, arguments, state)),
            "sed" | "gsed" => return Ok(sed::effects_of(shown, arguments)),
            "awk" | "gawk" | "mawk" | "nawk" => return Ok(awk::effects_of(shown, arguments)),
            _ => {}
        }
        let text = |index: usize| arguments.get(index).and_then(Word::text);
        match programs::lookup(unversioned(name), text(0), text(1)) {
            Some(program) if program.runs => self.runs(program, shown, arguments, state),
            Some(program) => {
                let mut effects = options::effects_of(program, shown, arguments);
                if prints_without_end(name, arguments) {
                    self.endless.get_or_insert_with(|| name.to_owned());
                    if self.captures > 0 {
                        effects.acts();
                        effects.why = Some(format!("bash would keep all that `{name}` prints"));
                    }
                }
                Ok(effects)
            }
            // A program that no table describes may run any word as a command, so allow only this line.
            None => Ok(CommandEffects::new(shown, Nature::Effects, 0)),
        }
    }

    /// `uv run pytest …`: "always" covers the same words after the runner as it would without the runner.
    pub(super) fn runs(
        &mut self,
        program: &programs::Program,
        shown: Vec<String>,
        arguments: &[Word],
        state: &ShellState,
    ) -> Result<CommandEffects, Unclear> {
        let skipped = program.skipped.min(arguments.len());
        let is_plain = |word: &Word| word.text().is_some_and(|text| !text.starts_with('-'));
        let inner = arguments.get(skipped..).filter(|inner| inner.first().is_some_and(is_plain));
        let mut effects = options::effects_of(program, shown, arguments);
        effects.acts();
        effects.prefix = 0;
        if let Some(inner) = inner {
            let inner_effects = self.effects_of(inner, &state.fresh())?;
            effects.prefix = if inner_effects.prefix == 0 { 0 } else { 1 + skipped + inner_effects.prefix };
            effects.only_this_line = inner_effects.only_this_line;
            effects.reads.extend(inner_effects.reads);
            effects.writes.extend(inner_effects.writes);
            effects.hosts.extend(inner_effects.hosts);
            effects.network = effects.network.max(inner_effects.network);
            if let Nature::Unclear(_) = inner_effects.nature {
                effects.nature = inner_effects.nature;
            }
        }
        Ok(effects)
    }

    fn find(
        &mut self,
        shown: Vec<String>,
        arguments: &[Word],
        state: &ShellState,
    ) -> Result<CommandEffects, Unclear> {
        let reading = find::read(arguments);
        let mut effects = CommandEffects::new(shown, Nature::ReadOnly, 0);
        effects.reads = reading.starts.iter().map(Word::place).collect();
        if reading.follows {
            effects.follow_links();
        }
        effects.writes = reading.writes;
        if !effects.writes.is_empty() || reading.strange {
            effects.acts();
        }
        for inner in reading.commands {
            self.command(&inner, &[], state.fresh())?;
        }
        Ok(effects)
    }

    fn git(&mut self, shown: Vec<String>, arguments: &[Word], state: &ShellState) -> CommandEffects {
        let mut effects = git::effects_of(shown, arguments);
        let moved = |directory: &PathBuf| match &effects.directory {
            Some(moved) => self.located(directory, moved),
            None => directory.clone(),
        };
        let directories: Vec<PathBuf> = state.directories().unwrap_or_default().iter().map(moved).collect();
        let is_asked = effects.nature == Nature::ReadOnly;
        for directory in directories.iter().filter(|_| is_asked) {
            match self.context.disk.repository(directory) {
                Repository::Plain => {}
                Repository::Configured => effects.acts(),
                Repository::LeadsOut(file) => {
                    effects.acts();
                    let file = file.display();
                    effects.why =
                        Some(format!("git would read what {file} leads to, outside of the repository"));
                }
            }
        }
        if effects.settings == SettingsShown::Some {
            let telling =
                directories.iter().flat_map(|directory| self.context.disk.telling_configuration(directory));
            let files: Vec<PathBuf> = telling.collect();
            effects.reads.extend(files.iter().map(|file| PathWord::At(file.to_string_lossy().into_owned())));
        }
        let Some(part) = effects.shows.take() else { return effects };
        for directory in &directories {
            let (files, unnamed) = self.shown_by_git(&part, directory);
            effects.reads.extend(files.iter().map(|file| PathWord::At(file.to_string_lossy().into_owned())));
            effects.reads.extend(self.compared_by_git(&part, directory));
            if unnamed == Unnamed::Some {
                effects.acts();
                effects.prefix = 0;
            }
        }
        effects
    }
}

/// `pip3.11` means `pip`; other digits belong to names.
fn unversioned(name: &str) -> &str {
    match name.strip_prefix("pip") {
        Some(version) if version.chars().all(|character| character.is_ascii_digit() || character == '.') => {
            "pip"
        }
        Some(_) | None => name,
    }
}

/// Devices that never end when read.
pub(super) const ENDLESS: [&str; 4] = ["/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"];

/// Programs that print without end, or as much as a number says. Bash keeps in memory what is printed between
/// `$(` and `)`.
fn prints_without_end(name: &str, arguments: &[Word]) -> bool {
    let is_short = |word: &Word| word.text().is_some_and(|text| text.len() <= 5);
    match name {
        "yes" => true,
        "seq" => !arguments.iter().all(is_short),
        _ => arguments.iter().filter_map(Word::text).any(|text| ENDLESS.contains(&text)),
    }
}
