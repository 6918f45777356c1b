//! `attache import --files`: the commands, agents and skills that other agents keep for their user, as files of
//! ours. Never replaces a file, and changes nothing of theirs.

mod converted;
mod found;
mod opencode_rules;

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use attache_core::legible::{legible_line, legible_path};
use attache_core::skills::{Skill, is_name};
use serde_json::json;

use crate::answer;
use crate::args::{ForeignArgs, ForeignName};
use crate::limits::{FOREIGN_SKILL_BYTES, FOREIGN_SKILL_FILES, FOREIGN_TEXT_BYTES};
use crate::setup::Sources;
use converted::{ConvertedFile, converted};
use found::{AgentHomes, FileKind, UserFile, own_commands};

/// One that was found, with what would become of it.
#[derive(Debug)]
struct MovingFile {
    file: UserFile,
    /// Its place here; of a skill, its directory.
    target: PathBuf,
    state: MovingState,
}

#[derive(Debug)]
enum MovingState {
    New(ConvertedFile),
    /// What has its name already, or is to have it; that stays.
    Taken(PathBuf),
    Unusable(String),
}

impl FileKind {
    fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Agent => "agent",
            Self::Skill => "skill",
        }
    }
}

impl MovingState {
    fn word(&self) -> &'static str {
        match self {
            Self::New(_) => "new",
            Self::Taken(_) => "taken",
            Self::Unusable(_) => "unusable",
        }
    }
}

pub(super) fn run(sources: &Sources, args: &ForeignArgs) -> Result<ExitCode> {
    let files = look(sources, args)?;
    if args.json {
        answer::write(&format!("{:#}\n", listed_as_json(&files)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if files.is_empty() {
        answer::note("no command, agent or skill of another agent was found");
        return Ok(ExitCode::SUCCESS);
    }
    let chosen: Vec<&MovingFile> = match (args.all, args.sessions.as_slice()) {
        (true, _) => files.iter().collect(),
        (false, []) => {
            answer::write(&listed(&files))?;
            answer::note(&format!(
                "take them over with: attache import {} --files NUMBER…, or --all; --dry-run shows them first",
                super::word_of(args)
            ));
            answer::note(READ_ANYWAY);
            return Ok(ExitCode::SUCCESS);
        }
        (false, words) => named(words, &files)?,
    };
    take_over(&chosen, args)
}

const READ_ANYWAY: &str =
    "What is in ~/.claude/agents, ~/.claude/skills and ~/.agents/skills counts where it is.";

fn look(sources: &Sources, args: &ForeignArgs) -> Result<Vec<MovingFile>> {
    let home = sources.dirs.home.clone().context("your home directory is not known: set HOME")?;
    let config = sources.dirs.user_config.clone().unwrap_or_else(|| home.join(".config"));
    if let Some(place) = args.from.as_deref().filter(|place| !place.is_dir()) {
        bail!("--from: {} is no directory", legible_path(place));
    }
    let own = sources.dirs.config_file.parent().context("the configuration has no directory")?;
    let places = AgentHomes { home, config };
    let agents = args.agent.map_or_else(|| ForeignName::ALL.to_vec(), |agent| vec![agent]);
    let found = agents.into_iter().flat_map(|agent| places.files(agent, args.from.as_deref()));
    Ok(moving(own, found))
}

/// What becomes of each. Of several with one name the first counts.
fn moving(own: &Path, found: impl Iterator<Item = UserFile>) -> Vec<MovingFile> {
    let mut holders: HashMap<(FileKind, String), PathBuf> = own_commands(&own.join("commands"))
        .into_iter()
        .map(|(name, path)| ((FileKind::Command, name), path))
        .collect();
    let judged = |file: UserFile| {
        let target = target(own, &file);
        let name = (file.form.kind(), file.typed_name());
        let holder = if target.exists() { Some(&target) } else { holders.get(&name) };
        let state = match (name_problem(&file), holder.cloned()) {
            (Some(problem), _) => MovingState::Unusable(problem),
            (None, Some(holder)) => MovingState::Taken(holder),
            (None, None) => match read(&file) {
                Ok(made) => {
                    holders.insert(name, target.clone());
                    MovingState::New(made)
                }
                Err(problem) => MovingState::Unusable(problem),
            },
        };
        MovingFile { file, target, state }
    };
    found.map(judged).collect()
}

impl MovingFile {
    fn word(&self) -> &'static str {
        self.file.form.kind().word()
    }

    fn name(&self) -> String {
        self.file.typed_name()
    }

    fn why_taken(&self, holder: &Path) -> String {
        match holder == self.target {
            true => format!("{} is there already and stays", legible_path(holder)),
            false => format!("{} has the name already and stays", legible_path(holder)),
        }
    }
}

fn target(own: &Path, file: &UserFile) -> PathBuf {
    match file.form.kind() {
        FileKind::Command => own.join("commands").join(format!("{}.md", file.name)),
        FileKind::Agent => own.join("agents").join(format!("{}.md", file.name)),
        FileKind::Skill => own.join("skills").join(&file.name),
    }
}

fn name_problem(file: &UserFile) -> Option<String> {
    let can_be_typed = match file.form.kind() {
        FileKind::Command => file.name.split('/').all(is_name),
        FileKind::Agent | FileKind::Skill => is_name(&file.name),
    };
    (!can_be_typed).then(|| "its name can't be typed: letters, digits, `-`, `_` and `.` make one".to_owned())
}

fn read(file: &UserFile) -> Result<ConvertedFile, String> {
    let mut text = String::new();
    let opened = fs::File::open(&file.path).map_err(|error| error.to_string())?;
    let read = opened.take(FOREIGN_TEXT_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > FOREIGN_TEXT_BYTES {
        return Err(format!("it has more than {} KiB", FOREIGN_TEXT_BYTES >> 10));
    }
    let mut made = converted(file.form, &text)?;
    if file.form.kind() == FileKind::Skill {
        Skill::parse(&file.path, file.path.clone(), &text).map_err(|error| error.to_string())?;
        let beside = beside(&file.path)?;
        let has_scripts = beside.iter().any(|path| is_program(path));
        if has_scripts {
            made.left_out.push(
                "its scripts can't be run in the sandbox from there: ~/.agents/skills is a place where they can"
                    .to_owned(),
            );
        }
    }
    Ok(made)
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The files of a skill; links are none of them.
fn beside(skill: &Path) -> Result<Vec<PathBuf>, String> {
    let directory = skill.parent().unwrap_or(skill);
    let all = super::files::below(directory, &|_: &Path| true);
    let bytes: u64 = all.iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum();
    if all.len() > FOREIGN_SKILL_FILES || bytes > FOREIGN_SKILL_BYTES {
        return Err(format!(
            "it has more than {FOREIGN_SKILL_FILES} files, or {} MiB: name its directory in `skills.paths`",
            FOREIGN_SKILL_BYTES >> 20
        ));
    }
    Ok(all)
}

fn listed(files: &[MovingFile]) -> String {
    let mut text = String::new();
    for (index, moving) in files.iter().enumerate() {
        let (file, name) = (&moving.file, legible_line(&moving.name()));
        let becomes = match &moving.state {
            MovingState::New(_) => format!("becomes {}", legible_path(&moving.target)),
            MovingState::Taken(holder) => moving.why_taken(holder),
            MovingState::Unusable(problem) => format!("can't be taken over: {}", legible_line(problem)),
        };
        let (agent, kind) = (file.agent.word(), moving.word());
        text.push_str(&format!("{:4}  {agent:<8}  {kind:<7}  {name}\n{:16}{becomes}\n", index + 1, ""));
    }
    text
}

fn listed_as_json(files: &[MovingFile]) -> serde_json::Value {
    let one = |moving: &MovingFile| {
        let (left_out, problem) = match &moving.state {
            MovingState::New(made) => (Some(&made.left_out), None),
            MovingState::Taken(_) => (None, None),
            MovingState::Unusable(problem) => (None, Some(problem)),
        };
        json!({
            "agent": moving.file.agent.word(), "kind": moving.word(), "name": moving.name(),
            "path": moving.file.path, "target": moving.target, "state": moving.state.word(),
            "left_out": left_out, "problem": problem,
        })
    };
    files.iter().map(one).collect()
}

/// By number, or by the name.
fn named<'a>(words: &[String], files: &'a [MovingFile]) -> Result<Vec<&'a MovingFile>> {
    let mut chosen = Vec::new();
    for word in words {
        let number = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let by_name = || files.iter().position(|moving| moving.name().trim_start_matches('/') == word);
        let found = number.filter(|number| *number < files.len()).or_else(by_name);
        let Some(index) = found else {
            bail!("there is no file {}: `attache import --files` lists them", legible_line(word));
        };
        if !chosen.contains(&index) {
            chosen.push(index);
        }
    }
    Ok(chosen.into_iter().map(|index| &files[index]).collect())
}

/// One that can't be written does not keep the others.
fn take_over(chosen: &[&MovingFile], args: &ForeignArgs) -> Result<ExitCode> {
    let mut failed = 0;
    for moving in chosen {
        let what =
            format!("{} {} of {}", moving.word(), legible_line(&moving.name()), moving.file.agent.word());
        match &moving.state {
            MovingState::New(made) if args.dry_run => {
                let target = legible_path(&moving.target);
                answer::write(&format!("{what} would become {target}\n{}", left_out(made)))?;
                made.text.lines().try_for_each(|line| answer::write(&format!("  | {line}\n")))?;
            }
            MovingState::New(made) => match write(moving, made) {
                Ok(()) => {
                    let target = legible_path(&moving.target);
                    answer::write(&format!("{what} is {target} now\n{}", left_out(made)))?;
                }
                Err(error) => {
                    failed += 1;
                    answer::note(&format!("left out: {what}: {error:#}"));
                }
            },
            MovingState::Taken(holder) => {
                answer::write(&format!("left out: {what}: {}\n", moving.why_taken(holder)))?;
            }
            MovingState::Unusable(problem) => {
                failed += 1;
                answer::note(&format!("left out: {what}: {}", legible_line(problem)));
            }
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn left_out(made: &ConvertedFile) -> String {
    match made.left_out.is_empty() {
        true => String::new(),
        false => format!("  left out: {}\n", legible_line(&made.left_out.join("; "))),
    }
}

/// As a whole or not at all; a file that came meanwhile stays.
fn write(moving: &MovingFile, made: &ConvertedFile) -> Result<()> {
    let target = &moving.target;
    match moving.file.form.kind() {
        FileKind::Command | FileKind::Agent => write_new(target, made.text.as_bytes(), 0o600),
        FileKind::Skill => {
            let source = moving.file.path.parent().unwrap_or(&moving.file.path);
            fs::create_dir_all(target.parent().unwrap_or(target))?;
            // The name is taken with the first step, so that two of us never mix their files.
            fs::create_dir(target).with_context(|| format!("can't make {}", legible_path(target)))?;
            let copied = copy(source, target, &beside(&moving.file.path).map_err(anyhow::Error::msg)?);
            if copied.is_err() {
                fs::remove_dir_all(target)?;
            }
            copied
        }
    }
}

fn copy(source: &Path, target: &Path, files: &[PathBuf]) -> Result<()> {
    for file in files {
        let name = file.strip_prefix(source).context("a file outside of the skill")?;
        let mode = if is_program(file) { 0o700 } else { 0o600 };
        write_new(&target.join(name), &fs::read(file)?, mode)?;
    }
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let failed = || format!("can't write {}", legible_path(path));
    fs::create_dir_all(path.parent().unwrap_or(path)).with_context(failed)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).with_context(failed)?;
    match fill(file, bytes) {
        Ok(()) => Ok(()),
        Err(error) => {
            fs::remove_file(path).with_context(failed)?;
            Err(error).with_context(failed)
        }
    }
}

fn fill(mut file: fs::File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::found::FileForm;
    use super::*;

    #[test]
    fn two_files_that_would_be_typed_the_same_are_not_both_taken_over() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("own");
        let theirs = |form: FileForm, name: &str| {
            let path = place.path().join(format!("theirs/{name}.md"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "---\ndescription: d\nmode: subagent\n---\nx\n").unwrap();
            UserFile { agent: ForeignName::Opencode, form, name: name.to_owned(), path }
        };
        fs::create_dir_all(own.join("commands/c")).unwrap();
        fs::write(own.join("commands/c/d.md"), "Ours.\n").unwrap();
        let found = [
            theirs(FileForm::Prompt, "a:b"),
            theirs(FileForm::Prompt, "a/b"),
            theirs(FileForm::Prompt, "c:d"),
            theirs(FileForm::OpencodeAgent, "c:d"),
        ];
        let moving = moving(&own, found.into_iter());
        let states: Vec<&str> = moving.iter().map(|one| one.state.word()).collect();
        assert_eq!(states, ["new", "taken", "taken", "new"], "{moving:?}");
        let listed = listed(&moving);
        for words in ["commands/a:b.md has the name already", "commands/c/d.md has the name already"] {
            assert!(listed.contains(words), "{listed}");
        }
    }
}
