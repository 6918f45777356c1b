//! What was sent before in this workspace, for the keys up and down: one JSON string to a line, in a file of
//! the user's state. The newest prompts stay; nothing else of a session is in it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::screen::limits::{HISTORY_ENTRIES, HISTORY_ENTRY_BYTES};

#[derive(Debug, Default)]
pub(crate) struct PromptHistory {
    /// Where it is kept; nowhere if there is no such place.
    file: Option<PathBuf>,
    entries: Vec<String>,
    /// Which one is shown, and what was typed before it was asked for.
    at: Option<(usize, String)>,
}

impl PromptHistory {
    /// What can't be read is left out: a history is no reason to fail.
    pub(crate) fn open(file: Option<PathBuf>) -> Self {
        let text = file.as_deref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let mut entries: Vec<String> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        entries.drain(..entries.len().saturating_sub(HISTORY_ENTRIES));
        Self { file, entries, at: None }
    }

    /// Remembers a prompt that was sent.
    pub(crate) fn add(&mut self, prompt: &str) {
        self.at = None;
        let is_known = self.entries.last().is_some_and(|last| last == prompt);
        if prompt.trim().is_empty() || prompt.len() > HISTORY_ENTRY_BYTES || is_known {
            return;
        }
        self.entries.push(prompt.to_owned());
        let written = match self.entries.len() > HISTORY_ENTRIES {
            true => {
                self.entries.drain(..self.entries.len() - HISTORY_ENTRIES / 2);
                self.rewrite()
            }
            false => self.append(prompt),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "the history of prompts was not written");
        }
    }

    /// The one before what is shown now.
    pub(crate) fn older(&mut self, typed: &str) -> Option<&str> {
        let (index, kept) = match self.at.take() {
            Some((index, kept)) => (index.saturating_sub(1), kept),
            None => (self.entries.len().checked_sub(1)?, typed.to_owned()),
        };
        self.at = Some((index, kept));
        self.entries.get(index).map(String::as_str)
    }

    /// The one after it; behind the newest, what was typed.
    pub(crate) fn newer(&mut self) -> Option<String> {
        let (index, kept) = self.at.take()?;
        match self.entries.get(index + 1) {
            Some(entry) => {
                let entry = entry.clone();
                self.at = Some((index + 1, kept));
                Some(entry)
            }
            None => Some(kept),
        }
    }

    /// The text that is typed now is a new entry.
    pub(crate) fn leave(&mut self) {
        self.at = None;
    }

    fn append(&self, prompt: &str) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut line = serde_json::to_string(prompt)?;
        line.push('\n');
        owner_only(file, fs::OpenOptions::new().append(true))?.write_all(line.as_bytes())
    }

    /// Beside it and then in its place: another chat of the same workspace may read it meanwhile.
    fn rewrite(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut text = String::new();
        for entry in &self.entries {
            text += &serde_json::to_string(entry)?;
            text.push('\n');
        }
        let beside = file.with_extension(format!("{}.new", std::process::id()));
        owner_only(&beside, fs::OpenOptions::new().write(true).truncate(true))?.write_all(text.as_bytes())?;
        fs::rename(beside, file)
    }
}

fn owner_only(file: &Path, options: &mut fs::OpenOptions) -> io::Result<fs::File> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if let Some(directory) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    options.create(true).mode(0o600).open(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_and_down_walk_through_it_and_end_where_they_began() {
        let mut history = PromptHistory::default();
        ["one", "two"].iter().for_each(|prompt| history.add(prompt));
        assert_eq!(history.older("draft"), Some("two"));
        assert_eq!(history.older(""), Some("one"));
        assert_eq!(history.older(""), Some("one"));
        assert_eq!(history.newer().as_deref(), Some("two"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
    }

    #[test]
    fn it_is_there_again_next_time_and_stays_bounded() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("state/history");
        let mut history = PromptHistory::open(Some(file.clone()));
        for number in 0..HISTORY_ENTRIES + 10 {
            history.add(&format!("prompt\n{number}"));
        }
        let mut again = PromptHistory::open(Some(file.clone()));
        assert_eq!(again.older(""), Some(format!("prompt\n{}", HISTORY_ENTRIES + 9).as_str()));
        assert!(again.entries.len() <= HISTORY_ENTRIES);
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_is_not_ours_in_the_file_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("history");
        fs::write(&file, "not json\n\"kept\"\n{}\n").unwrap();
        assert_eq!(PromptHistory::open(Some(file)).older(""), Some("kept"));
    }

    #[test]
    fn a_huge_prompt_and_a_repeated_one_are_not_kept() {
        let mut history = PromptHistory::default();
        history.add("same");
        history.add("same");
        history.add(&"x".repeat(HISTORY_ENTRY_BYTES + 1));
        assert_eq!(history.entries, ["same"]);
    }
}
