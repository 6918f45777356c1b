//! Rules about comments and documents: how wide a comment is, and that the paths they name exist.

use std::collections::BTreeSet;

use super::{Finding, SourceFile};
use crate::limits::MAX_COMMENT_COLUMNS;

/// Folders of the repository: a path that begins with one of them is ours.
const FOLDERS: [&str; 6] = ["bench/", "crates/", "docs/", "fuzz/", "peers/", "xtask/"];

pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let known = paths(files);
    let mut findings = Vec::new();
    for file in files {
        if file.path.ends_with(".rs") {
            findings.extend(widths(file));
            findings.extend(broken_wraps(file));
            let comments = comments(&file.text);
            findings.extend(comments.flat_map(|(number, text)| missing(file, number, text, &known)));
        } else if is_document(&file.path) {
            for (index, text) in file.text.lines().enumerate() {
                findings.extend(missing(file, index + 1, text, &known));
                findings.extend(lost_hops(file, index + 1, text, files));
            }
        }
    }
    findings
}

/// Scenarios and prompts name files of made-up projects; the change log names what was there once.
fn is_document(path: &str) -> bool {
    let at_the_root = !path.contains('/') && path != "CHANGELOG.md";
    path.ends_with(".md") && (at_the_root || path.starts_with("docs/"))
}

fn widths(file: &SourceFile) -> Vec<Finding> {
    let too_wide = comments(&file.text).filter(|(_, line)| line.chars().count() > MAX_COMMENT_COLUMNS);
    too_wide
        .map(|(number, line)| {
            let columns = line.chars().count();
            let message = format!("a comment of {columns} columns, above {MAX_COMMENT_COLUMNS}: wrap it");
            Finding::new(format!("{}:{number}", file.path), message)
        })
        .collect()
}

/// A line of one or two words in the middle of a paragraph: a wrap that was left when the text changed.
fn broken_wraps(file: &SourceFile) -> Vec<Finding> {
    let lines: Vec<(usize, &str)> = comments(&file.text).collect();
    let mut findings = Vec::new();
    for three in lines.windows(3) {
        let [(above, before), (number, line), (below, after)] = [three[0], three[1], three[2]];
        let is_whole =
            above + 2 == below && [before, line, after].iter().all(|line| words_of(line).is_some());
        let words = words_of(line).unwrap_or_default();
        let ends =
            words.ends_with(['.', ':', ';', '?', '!', '`']) || words.starts_with(['-', '*', '|', '#', '`']);
        let next = words_of(after).unwrap_or_default();
        let goes_on = next.starts_with(|c: char| c.is_lowercase() || c == '`');
        if number == above + 1 && is_whole && words.split(' ').count() <= 2 && !ends && goes_on {
            let message = "a comment breaks in the middle of a sentence: wrap it anew";
            findings.push(Finding::new(format!("{}:{number}", file.path), message));
        }
    }
    findings
}

/// The text of a comment's line; `None` for an empty or an indented one, and for blocks of code.
fn words_of(line: &str) -> Option<&str> {
    let text = line.trim_start().trim_start_matches(['/', '!']);
    let text = text.strip_prefix(' ')?;
    (!text.starts_with(' ') && !text.starts_with("```") && !text.is_empty()).then(|| text.trim_end())
}

/// Numbered lines that are nothing but a comment.
fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| line.trim_start().starts_with("//"))
}

/// Every file, and every folder that holds one.
fn paths(files: &[SourceFile]) -> BTreeSet<&str> {
    let mut paths = BTreeSet::new();
    for file in files {
        paths.insert(file.path.as_str());
        paths.extend(file.path.match_indices('/').map(|(end, _)| &file.path[..end]));
    }
    paths
}

fn missing(file: &SourceFile, number: usize, text: &str, known: &BTreeSet<&str>) -> Vec<Finding> {
    let quoted = text.split('`').skip(1).step_by(2);
    let lost = quoted.filter(|path| is_ours(path) && !exists(path, known));
    lost.map(|path| Finding::new(format!("{}:{number}", file.path), format!("there is no `{path}`")))
        .collect()
}

/// Hops of a walk through the code, `file:function`, that lead nowhere.
fn lost_hops(file: &SourceFile, number: usize, text: &str, files: &[SourceFile]) -> Vec<Finding> {
    let quoted = text.split('`').skip(1).step_by(2);
    let hops = quoted.filter_map(|hop| Some((hop, hop.split_once(".rs:")?)));
    let is_there = |path: &str, function: &str| {
        let named = files.iter().find(|file| file.path.strip_suffix(".rs") == Some(path));
        named.is_some_and(|file| {
            [format!("fn {function}("), format!("fn {function}<")]
                .iter()
                .any(|start| file.text.contains(start))
        })
    };
    let lost = hops.filter(|(_, (path, function))| !is_there(path, function));
    lost.map(|(hop, _)| Finding::new(format!("{}:{number}", file.path), format!("there is no `{hop}`")))
        .collect()
}

/// A path from the root, or the end of one to a source file. Patterns and place-holders name no file.
fn is_ours(text: &str) -> bool {
    let plain = text.chars().all(|c| c.is_alphanumeric() || "._-/".contains(c));
    let named = FOLDERS.iter().any(|folder| text.starts_with(folder) && text.len() > folder.len());
    plain && (named || (text.contains("/src/") && text.ends_with(".rs")))
}

/// Only kinds of files that are read here are known; others pass.
fn exists(path: &str, known: &BTreeSet<&str>) -> bool {
    let path = path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_unread = name.rsplit_once('.').is_some_and(|(_, extension)| !super::TEXT.contains(&extension));
    let ending = format!("/{path}");
    is_unread || known.contains(path) || known.iter().any(|known| known.ends_with(&ending))
}

#[cfg(test)]
mod tests {
    use super::super::samples::file;
    use super::*;

    fn messages(files: &[SourceFile]) -> Vec<String> {
        check(files).into_iter().map(|finding| format!("{}: {}", finding.place, finding.message)).collect()
    }

    #[test]
    fn a_wide_comment_is_found_but_not_wide_code() {
        let wide = "x".repeat(MAX_COMMENT_COLUMNS);
        for mark in ["//", "///", "//!", "    //"] {
            let found = messages(&[file("crates/acp/src/a.rs", &format!("//! A.\n{mark} {wide}\n"))]);
            assert!(
                found.len() == 1 && found[0].starts_with("crates/acp/src/a.rs:2: a comment of"),
                "{found:?}"
            );
        }
        let code = format!("//! A.\nconst A: &str = \"{wide}\"; // short\n");
        assert_eq!(messages(&[file("crates/acp/src/a.rs", &code)]), Vec::<String>::new());
    }

    #[test]
    fn a_hop_of_a_walk_that_leads_nowhere_is_found() {
        let code = file("crates/acp/src/a.rs", "//! A.\nfn go() {}\nasync fn come<T>() {}\n");
        let walk = "`crates/acp/src/a.rs:go`, `crates/acp/src/a.rs:come`\n\
                    `crates/acp/src/a.rs:gone` `crates/acp/src/b.rs:go`\n";
        assert_eq!(
            messages(&[code, file("ARCHITECTURE.md", walk)]),
            [
                "ARCHITECTURE.md:2: there is no `crates/acp/src/a.rs:gone`",
                "ARCHITECTURE.md:2: there is no `crates/acp/src/b.rs:go`"
            ]
        );
    }

    #[test]
    fn a_wrap_in_the_middle_of_a_sentence_is_found() {
        let broken = "//! Takes what comes\n//! in,\n//! and gives it on.\n";
        assert_eq!(messages(&[file("crates/acp/src/a.rs", broken)]).len(), 1);
        for whole in [
            "//! Takes what comes.\n//! Or not.\n//! And gives it on.\n",
            "//! Takes what comes in, and gives it\n//! on.\n",
            "//! These:\n//! - one\n//! - two\n",
            "/// A.\n/// ```\n/// b c\n/// ```\n",
        ] {
            assert_eq!(messages(&[file("crates/acp/src/a.rs", whole)]), Vec::<String>::new(), "{whole}");
        }
    }

    #[test]
    fn columns_are_characters() {
        let text = format!("// {}\n", "é".repeat(MAX_COMMENT_COLUMNS - 3));
        assert_eq!(messages(&[file("crates/acp/src/a.rs", &text)]), Vec::<String>::new());
    }

    #[test]
    fn a_path_that_is_not_there_is_found_in_comments_and_documents() {
        let place = "crates/acp/src/a.rs";
        let gone = "`crates/acp/src/b.rs`";
        let found =
            messages(&[file(place, &format!("//! See {gone}.\n")), file("docs/x.md", &format!("{gone}\n"))]);
        assert_eq!(found.len(), 2, "{found:?}");
        let code = format!("//! A.\nconst A: &str = \"{gone}\";\n");
        assert_eq!(messages(&[file(place, &code), file("CHANGELOG.md", gone)]), Vec::<String>::new());
    }

    #[test]
    fn what_is_there_or_is_no_path_of_ours_passes() {
        let names = "`crates/acp/src/a.rs` `acp/src/a.rs` `crates/acp` `crates/acp/src/` `src/main.rs` `crates/*/x.rs` \
                     `docs/picture.png` `tests/requests/NAME.json`";
        assert_eq!(
            messages(&[file("crates/acp/src/a.rs", "//! A.\n"), file("docs/x.md", names)]),
            Vec::<String>::new()
        );
    }
}
