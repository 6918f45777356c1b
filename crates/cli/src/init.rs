//! `attache init EDITOR`: puts attache into the settings of an editor, or prints what to put there. Shows the
//! change first, keeps a copy of the file, and changes nothing else in it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::answer;
use crate::args::InitArgs;
use crate::config::read_text;
use crate::dirs::Dirs;
use crate::doctor::editors;
use crate::jsonc;
use crate::limits::MAX_CONFIG_FILE_BYTES;

/// The name of attache's entry.
const ENTRY: &str = "attache";

/// An editor whose settings are one JSON file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownSettings {
    /// The word that the user types.
    pub(crate) word: &'static str,
    pub(crate) editor: &'static str,
    /// Below the settings directory, or below the home.
    place: SettingsPlace,
    /// The object with an entry per agent.
    table: &'static str,
    entry: fn(program: &str) -> Value,
}

#[derive(Clone, Copy, Debug)]
enum SettingsPlace {
    Config(&'static str),
    Home(&'static str),
}

pub(crate) const KNOWN: [KnownSettings; 3] = [
    KnownSettings {
        word: "zed",
        editor: "Zed",
        place: SettingsPlace::Config("zed/settings.json"),
        table: "agent_servers",
        entry: |program| json!({"type": "custom", "command": program, "args": ["acp"], "env": {}}),
    },
    KnownSettings {
        word: "jetbrains",
        editor: "JetBrains",
        place: SettingsPlace::Home(".jetbrains/acp.json"),
        table: "agent_servers",
        entry: |program| json!({"command": program, "args": ["acp"]}),
    },
    KnownSettings {
        word: "vscode",
        editor: "VS Code with the extension ACP Client",
        place: SettingsPlace::Config("Code/User/settings.json"),
        table: "acp.agents",
        entry: |program| json!({"command": program, "args": ["acp"]}),
    },
];

impl KnownSettings {
    /// `None` if there is no home.
    pub(crate) fn file(&self, dirs: &Dirs) -> Option<PathBuf> {
        match self.place {
            SettingsPlace::Config(name) => Some(dirs.user_config.as_ref()?.join(name)),
            SettingsPlace::Home(name) => Some(dirs.home.as_ref()?.join(name)),
        }
    }

    /// The command that the editor starts; `None` if there is no entry, or no file.
    pub(crate) fn command(&self, file: &Path) -> Result<Option<String>> {
        let text = read_text(file, MAX_CONFIG_FILE_BYTES).map_err(anyhow::Error::msg)?;
        let entry = match text.filter(|text| !text.trim().is_empty()) {
            Some(text) => jsonc::get(&text, &[self.table, ENTRY])?,
            None => None,
        };
        Ok(entry.map(|entry| entry["command"].as_str().unwrap_or_default().to_owned()))
    }
}

pub(crate) fn run(dirs: &Dirs, args: &InitArgs) -> Result<ExitCode> {
    let Some(word) = &args.editor else {
        answer::write(&listed(dirs))?;
        return Ok(ExitCode::SUCCESS);
    };
    let known = KNOWN.iter().find(|known| known.word.eq_ignore_ascii_case(word));
    let text = match known {
        Some(known) if !args.print => put(dirs, known, args)?,
        // Settings that are a program, or whose place the user chose.
        Some(_) | None => editors::settings(Some(word), answer::columns())?,
    };
    answer::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Adds the entry after the user agreed, and reports what it did.
fn put(dirs: &Dirs, known: &KnownSettings, args: &InitArgs) -> Result<String> {
    let file = known.file(dirs).context("your home directory is not known: set HOME")?;
    let shown = file.display();
    let by_hand =
        || format!("{shown} is left as it is; `attache init {} --print` shows what to add", known.word);
    if known.command(&file).with_context(by_hand)?.is_some() {
        return Ok(format!("{} knows attache already: {shown} has an entry \"{ENTRY}\".\n", known.editor));
    }
    let before = read_text(&file, MAX_CONFIG_FILE_BYTES).map_err(anyhow::Error::msg)?;
    let program = program_word()?;
    let old = before.as_deref().unwrap_or_default();
    let new = jsonc::insert(old, &[known.table], ENTRY, &(known.entry)(&program)).with_context(by_hand)?;
    answer::write(&format!("{shown}\n{}", change(old, &new)))?;
    if !args.yes && !answer::is_agreed("Write this?")? {
        bail!("nothing was changed; to write it: attache init {} --yes", known.word);
    }
    let copy = before.is_some().then(|| keep(&file)).transpose()?;
    replace(&file, &new)?;
    let kept = copy.map(|copy| format!(" The file as it was: {}", copy.display())).unwrap_or_default();
    Ok(format!("{} knows attache now.{kept}\nCheck the rest with: attache doctor\n", known.editor))
}

/// How an editor finds this program: by its name if that leads here, else by its path.
fn program_word() -> Result<String> {
    let own = std::env::current_exe().context("this program does not know where it lies")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first =
        std::env::split_paths(&path).map(|directory| directory.join(ENTRY)).find(|file| file.is_file());
    let is_own = first.and_then(|file| file.canonicalize().ok()).is_some_and(|file| file == own);
    Ok(if is_own { ENTRY.to_owned() } else { own.to_string_lossy().into_owned() })
}

/// The new or changed lines, with three lines around them: an entry is one contiguous text.
fn change(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same =
        |one: &[&str], other: &[&str]| one.iter().zip(other).take_while(|(one, other)| one == other).count();
    let head = same(&old, &new);
    let reversed =
        |lines: &[&str]| lines[head..].iter().rev().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let (old_end, new_end) = (reversed(&old), reversed(&new));
    let tail = old_end.iter().zip(&new_end).take_while(|(one, other)| one == other).count();
    let mut text = String::new();
    let mut write = |mark: char, lines: &[&str]| {
        lines.iter().for_each(|line| text.push_str(&format!("  {mark} {line}\n")));
    };
    write(' ', &old[head.saturating_sub(3)..head]);
    write('-', &old[head..old.len() - tail]);
    write('+', &new[head..new.len() - tail]);
    write(' ', &new[new.len() - tail..new.len().min(new.len() - tail + 3)]);
    text
}

/// Copies the file to a new name beside it.
fn keep(file: &Path) -> Result<PathBuf> {
    let mut name = file.as_os_str().to_owned();
    name.push(".before-attache");
    // An older copy holds an older state, so keep it.
    let taken =
        |number: &u32| PathBuf::from(&name).with_extension(format!("before-attache.{number}")).exists();
    let copy = match Path::new(&name).exists() {
        false => PathBuf::from(name),
        true => {
            let free = (1..).find(|number| !taken(number)).unwrap_or_default();
            PathBuf::from(name).with_extension(format!("before-attache.{free}"))
        }
    };
    let failed = || format!("can't keep a copy as {}; nothing was changed", copy.display());
    let mut source = fs::File::open(file).with_context(failed)?;
    let mut target = fs::File::create_new(&copy).with_context(failed)?;
    std::io::copy(&mut source, &mut target).with_context(failed)?;
    target.set_permissions(source.metadata()?.permissions()).with_context(failed)?;
    Ok(copy)
}

/// Replaces the file completely or not at all, with its old mode. If the user's file is a link, keeps the link.
fn replace(file: &Path, text: &str) -> Result<()> {
    let failed = || format!("can't write {}", file.display());
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let directory = file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).with_context(failed)?;
    let mut written =
        tempfile::Builder::new().prefix(".attache-").tempfile_in(directory).with_context(failed)?;
    written.write_all(text.as_bytes()).with_context(failed)?;
    if let Ok(before) = fs::metadata(&file) {
        written.as_file().set_permissions(before.permissions()).with_context(failed)?;
    }
    written.as_file().sync_all().with_context(failed)?;
    written.persist(&file).with_context(failed)?;
    Ok(())
}

fn listed(dirs: &Dirs) -> String {
    let mut text = String::from("Editors whose settings attache can write:\n");
    for known in &KNOWN {
        let state = match known.file(dirs) {
            None => "your home directory is not known".to_owned(),
            Some(file) => match known.command(&file) {
                Ok(Some(_)) => format!("knows attache ({})", file.display()),
                Ok(None) if file.exists() => format!("no entry yet ({})", file.display()),
                Ok(None) => format!("no settings yet ({})", file.display()),
                Err(error) => format!("{}: {error:#}", file.display()),
            },
        };
        text.push_str(&format!("  attache init {:<10} {}: {state}\n", known.word, known.editor));
    }
    let others: Vec<String> = editors::names();
    text.push_str(&format!(
        "\nFor these it prints what to add:\n  {}\n",
        others.iter().map(String::as_str).collect::<Vec<_>>().join("\n  ")
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_the_new_lines_and_what_is_around_them() {
        let old = "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3,\n  \"d\": 4\n}\n";
        let new = "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3,\n  \"d\": 4,\n  \"e\": 5\n}\n";
        assert_eq!(
            change(old, new),
            "      \"a\": 1,\n      \"b\": 2,\n      \"c\": 3,\n  -   \"d\": 4\n  +   \"d\": 4,\n  +   \"e\": 5\n    }\n"
        );
        assert_eq!(change("", "{\n}\n"), "  + {\n  + }\n");
    }

    #[test]
    fn every_editor_that_is_written_to_is_in_the_documentation_with_the_same_entry() {
        let page = include_str!("../../../docs/editors.md");
        for known in &KNOWN {
            let name = known.editor.split(" with").next().unwrap();
            let section = page.split("**").position(|piece| piece == name).unwrap();
            let section = page.split("**").nth(section + 1).unwrap();
            let snippet = section.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
            let snippet: Value = serde_json::from_str(snippet).unwrap();
            assert_eq!(snippet[known.table][ENTRY], (known.entry)("attache"), "{name}");
        }
    }
}
