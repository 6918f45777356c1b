//! Where other agents keep the commands, agents and skills of their user. Reads only names.

use std::path::{Path, PathBuf};

use super::super::files;
use crate::args::ForeignName;

/// What it becomes here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FileKind {
    Command,
    Agent,
    Skill,
}

/// How a file of another agent is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileForm {
    /// A Markdown text with places for arguments.
    Prompt,
    /// TOML with a prompt.
    GeminiCommand,
    /// YAML or JSON with instructions, a prompt and parameters.
    GooseRecipe,
    /// An agent of opencode.
    OpencodeAgent,
    /// A directory with a `SKILL.md`.
    Skill,
}

impl FileForm {
    pub(super) fn kind(self) -> FileKind {
        match self {
            Self::Prompt | Self::GeminiCommand | Self::GooseRecipe => FileKind::Command,
            Self::OpencodeAgent => FileKind::Agent,
            Self::Skill => FileKind::Skill,
        }
    }

    fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Prompt | Self::OpencodeAgent | Self::Skill => &["md"],
            Self::GeminiCommand => &["toml"],
            Self::GooseRecipe => &["yaml", "yml", "json"],
        }
    }
}

/// One that was found.
#[derive(Clone, Debug)]
pub(super) struct UserFile {
    pub(super) agent: ForeignName,
    pub(super) form: FileForm,
    /// Without an ending; of a command below a directory, with it: `git/pr`.
    pub(super) name: String,
    /// Of a skill, its `SKILL.md`.
    pub(super) path: PathBuf,
}

impl UserFile {
    /// As it is typed here. Two files may have one: `git/pr.md` and `git:pr.md`.
    pub(super) fn typed_name(&self) -> String {
        typed_name(self.form.kind(), &self.name)
    }
}

fn typed_name(kind: FileKind, name: &str) -> String {
    match kind {
        FileKind::Command => format!("/{}", name.replace('/', ":")),
        FileKind::Agent | FileKind::Skill => name.to_owned(),
    }
}

/// Our own commands, by what is typed for them. What is typed for agents and skills are the names of files.
pub(super) fn own_commands(commands: &Path) -> Vec<(String, PathBuf)> {
    let found = files::below(commands, &|path: &Path| path.extension().is_some_and(|end| end == "md"));
    let named = |path: PathBuf| {
        let name = path.strip_prefix(commands).unwrap_or(&path).with_extension("");
        (typed_name(FileKind::Command, &name.to_string_lossy()), path)
    };
    found.into_iter().map(named).collect()
}

/// Where the directories of the user's programs are.
#[derive(Clone, Debug)]
pub(super) struct AgentHomes {
    pub(super) home: PathBuf,
    /// `~/.config`, unless it was moved.
    pub(super) config: PathBuf,
}

impl AgentHomes {
    /// The directories of an agent. `~/.claude/agents`, `~/.claude/skills` and `~/.agents/skills` are not among
    /// them: they are read where they are.
    fn of(&self, agent: ForeignName) -> Vec<(FileForm, PathBuf)> {
        let moved = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let below = |base: PathBuf, names: &[(FileForm, &str)]| {
            names.iter().map(|(form, name)| (*form, base.join(name))).collect::<Vec<_>>()
        };
        match agent {
            ForeignName::Claude => {
                let claude = moved("CLAUDE_CONFIG_DIR").unwrap_or_else(|| self.home.join(".claude"));
                below(claude, &[(FileForm::Prompt, "commands")])
            }
            ForeignName::Codex => {
                let codex = moved("CODEX_HOME").unwrap_or_else(|| self.home.join(".codex"));
                below(codex, &[(FileForm::Prompt, "prompts"), (FileForm::Skill, "skills")])
            }
            ForeignName::Goose => below(
                self.config.join("goose"),
                &[(FileForm::GooseRecipe, "recipes"), (FileForm::Skill, "skills")],
            ),
            ForeignName::Opencode => below(
                self.config.join("opencode"),
                &[
                    (FileForm::Prompt, "command"),
                    (FileForm::Prompt, "commands"),
                    (FileForm::OpencodeAgent, "agent"),
                    (FileForm::OpencodeAgent, "agents"),
                    (FileForm::Skill, "skill"),
                    (FileForm::Skill, "skills"),
                ],
            ),
            ForeignName::Gemini => below(
                self.home.join(".gemini"),
                &[(FileForm::GeminiCommand, "commands"), (FileForm::Skill, "skills")],
            ),
        }
    }

    /// All of one agent, by their places and names. `from` stands for where they are: a directory like the one
    /// that the agent has in the home.
    pub(super) fn files(&self, agent: ForeignName, from: Option<&Path>) -> Vec<UserFile> {
        let mut found = Vec::new();
        for (form, usual) in self.of(agent) {
            let place = match (from, usual.file_name()) {
                (Some(from), Some(name)) => from.join(name),
                (Some(_), None) | (None, _) => usual,
            };
            let fits = |path: &Path| match form {
                FileForm::Skill => {
                    // Those that came with the program are in a hidden directory.
                    let below = path.strip_prefix(&place).unwrap_or(path);
                    path.file_name().is_some_and(|name| name == "SKILL.md")
                        && below.components().count() == 2
                        && !below.to_string_lossy().starts_with('.')
                }
                FileForm::Prompt
                | FileForm::GeminiCommand
                | FileForm::GooseRecipe
                | FileForm::OpencodeAgent => {
                    path.extension().is_some_and(|end| form.endings().iter().any(|known| end == *known))
                }
            };
            let paths = files::below(&place, &fits);
            found.extend(paths.into_iter().map(|path| {
                let named = if form == FileForm::Skill { path.parent().unwrap_or(&path) } else { &path };
                let name = named.strip_prefix(&place).unwrap_or(named);
                let name = if form == FileForm::Skill { name.to_owned() } else { name.with_extension("") };
                UserFile { agent, form, name: name.to_string_lossy().into_owned(), path }
            }));
        }
        found
    }
}
