//! The settings to add to an editor, as plain text from the documentation; and whether they are there.

use std::path::Path;

use anyhow::{Result, bail};
use attache_core::nearest::meant;

use super::Finding;
use crate::demo::wrap;
use crate::dirs::Dirs;
use crate::init::KNOWN;

const PAGE: &str = include_str!("editors.md");

/// Text is as wide as the terminal, but no wider than is comfortable to read.
const WIDEST: usize = 80;

/// A complete section of the page.
#[derive(Debug, Default)]
struct EditorSection {
    /// `Zed`, `Neovim with avante.nvim`; empty for what concerns all editors.
    name: String,
    text: String,
}

/// The editors of the page.
pub(crate) fn names() -> Vec<String> {
    let sections = sections(WIDEST).into_iter();
    sections.map(|section| section.name).filter(|name| !name.is_empty()).collect()
}

/// Whether the editors whose settings attache can read start attache, and whether the program they name exists.
pub(super) fn check(dirs: &Dirs) -> Vec<Finding> {
    const SUBJECT: &str = "editors";
    let mut findings = Vec::new();
    for known in &KNOWN {
        let Some(file) = known.file(dirs) else { continue };
        let shown = file.display();
        match known.command(&file) {
            Ok(None) => {}
            Ok(Some(command)) if is_there(&command) => {
                findings.push(Finding::ok(SUBJECT, format!("{} starts {command} ({shown})", known.editor)));
            }
            Ok(Some(command)) => findings.push(Finding::warn(
                SUBJECT,
                format!("{} would start `{command}`, which does not exist ({shown})", known.editor),
                format!("correct the entry; `attache init {} --print` shows a right one", known.word),
            )),
            Err(error) => findings.push(Finding::warn(
                SUBJECT,
                format!("the settings of {} can't be read: {shown}: {error:#}", known.editor),
                "correct the file, or ignore this if you don't use that editor",
            )),
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok(
            SUBJECT,
            "none of those that can be checked has an entry; `attache init` adds one",
        ));
    }
    findings
}

/// Whether we find the command. An editor started from a desktop may have another `PATH`, which we cannot know
/// here.
fn is_there(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match command.contains('/') {
        true => Path::new(command).is_file(),
        false => std::env::split_paths(&path).any(|directory| directory.join(command).is_file()),
    }
}

/// The settings of one editor, or of all.
pub(crate) fn settings(wanted: Option<&str>, columns: Option<usize>) -> Result<String> {
    let sections = sections(columns.unwrap_or(WIDEST).min(WIDEST));
    let Some(wanted) = wanted else {
        let texts: Vec<&str> = sections.iter().map(|section| section.text.as_str()).collect();
        return Ok(texts.join("\n"));
    };
    let editors: Vec<&EditorSection> = sections.iter().filter(|section| !section.name.is_empty()).collect();
    let is_wanted = |name: &str| name.to_lowercase().contains(&wanted.to_lowercase());
    let found: Vec<&str> = editors
        .iter()
        .filter(|section| is_wanted(&section.name))
        .map(|section| section.text.as_str())
        .collect();
    if wanted.is_empty() || found.is_empty() {
        let names: Vec<&str> = editors.iter().map(|section| section.name.as_str()).collect();
        let typed = wanted.to_lowercase();
        // Of a sentence only its first word and those that are no plain words.
        let is_name = |place: usize, word: &str| place == 0 || word.contains(['.', '-']);
        let of_name = |name: &&str| {
            let words = name.split_whitespace().enumerate();
            words.filter(|(place, word)| is_name(*place, word)).map(|(_, word)| word.to_lowercase()).collect()
        };
        let words = names.iter().flat_map(|name| -> Vec<String> { of_name(name) });
        let words: Vec<String> = words.chain(KNOWN.map(|known| known.word.to_owned())).collect();
        let near = meant(&typed, words.iter().map(String::as_str));
        bail!(
            "nothing is known of the editor `{}`{near}; known: {}. Any other that speaks ACP starts `attache acp`",
            wanted.escape_debug(),
            names.join(", ")
        );
    }
    Ok(found.join("\n"))
}

/// The page up to its tables: wraps paragraphs, and indents snippets unchanged.
fn sections(width: usize) -> Vec<EditorSection> {
    let snippets = PAGE.split_once("### ").map_or(PAGE, |(snippets, _)| snippets);
    let mut sections = vec![EditorSection::default()];
    let (mut paragraph, mut in_snippet) = (String::new(), false);
    for line in snippets.lines().skip(1).chain([""]) {
        let is_fence = line.starts_with("```");
        let starts_editor = !in_snippet && line.starts_with("**");
        if !in_snippet && (is_fence || starts_editor || line.is_empty()) {
            flush(&mut paragraph, &mut sections, width);
        }
        if is_fence {
            in_snippet = !in_snippet;
            write_line(&mut sections, "");
        } else if in_snippet {
            write_line(&mut sections, &format!("  {line}"));
        } else {
            if starts_editor {
                sections.push(EditorSection { name: name(line), text: String::new() });
            }
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    for section in &mut sections {
        section.text = format!("{}\n", section.text.trim_matches('\n'));
    }
    sections
}

fn flush(paragraph: &mut String, sections: &mut [EditorSection], width: usize) {
    let text = plain(std::mem::take(paragraph).trim());
    if !text.is_empty() {
        wrap(&text, Some(width)).iter().for_each(|line| write_line(sections, line));
    }
}

fn write_line(sections: &mut [EditorSection], line: &str) {
    if let Some(section) = sections.last_mut() {
        section.text.push_str(line);
        section.text.push('\n');
    }
}

/// `**Neovim** with avante.nvim. It passes …` gives `Neovim with avante.nvim`.
fn name(line: &str) -> String {
    let words = plain(line);
    let ends = [words.find(". "), words.find([',', ':']), Some(words.len())];
    let end = ends.into_iter().flatten().min().unwrap_or_default();
    words[..end].trim_end_matches('.').to_owned()
}

/// Without emphasis, code marks and links, which are useless in a terminal.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once(" ([") {
        text.push_str(before);
        rest = link.split_once("))").map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    text.replace("**", "").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_editor_of_the_documentation_is_there_as_plain_text() {
        let all = settings(None, Some(70)).unwrap();
        for name in ["Zed, settings.json", "JetBrains", "avante.nvim", "codecompanion.nvim", "Emacs", "Toad"]
        {
            assert!(all.contains(name), "{name}: {all}");
        }
        assert!(!["**", "](", "```", ".md", "`"].iter().any(|mark| all.contains(mark)), "{all}");
        assert!(all.ends_with('\n') && !all.ends_with("\n\n") && !all.starts_with('\n'), "{all}");
        let mut prose = all.lines().filter(|line| !line.starts_with("  "));
        assert!(prose.all(|line| line.chars().count() <= 70), "{all}");
    }

    #[test]
    fn one_editor_can_be_named() {
        let zed = settings(Some("zed"), None).unwrap();
        assert!(zed.starts_with("Zed, settings.json:\n\n  { \"agent_servers\""), "{zed}");
        assert!(!zed.contains("JetBrains"), "{zed}");
        let neovim = settings(Some("Neovim"), None).unwrap();
        assert!(neovim.contains("avante") && neovim.contains("codecompanion"), "{neovim}");
        let unknown = settings(Some("kate"), None).unwrap_err().to_string();
        assert!(unknown.contains("known: Zed, JetBrains, VS Code"), "{unknown}");
    }
}
