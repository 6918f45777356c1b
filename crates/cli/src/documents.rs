//! The pages of docs/ beside the program: generates the reference, and parses every block of code with the code
//! that would read it. For tests only.

use std::path::{Path, PathBuf};

mod blocks;
mod examples;
mod reference;
mod shell_lines;

/// A page of the repository.
struct DocumentPage {
    /// Its path from the root of the repository.
    name: String,
    text: String,
}

/// A fenced block of a page.
struct CodeBlock<'a> {
    language: &'a str,
    text: String,
    /// Its position, for messages.
    place: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and everything in docs/.
fn pages() -> Vec<DocumentPage> {
    fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => collect(&path, found),
                false if path.extension().is_some_and(|ending| ending == "md") => found.push(path),
                false => {}
            }
        }
    }
    let mut paths = vec![repository().join("README.md")];
    collect(&repository().join("docs"), &mut paths);
    paths.sort();
    let page = |path: PathBuf| DocumentPage {
        name: path.strip_prefix(repository()).unwrap().display().to_string(),
        text: std::fs::read_to_string(&path).unwrap(),
    };
    paths.into_iter().map(page).collect()
}

impl DocumentPage {
    fn blocks(&self) -> Vec<CodeBlock<'_>> {
        let mut blocks: Vec<CodeBlock<'_>> = Vec::new();
        let mut open: Option<CodeBlock<'_>> = None;
        for (index, line) in self.text.lines().enumerate() {
            match (line.trim_start().strip_prefix("```"), &mut open) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(language), None) => {
                    let place = format!("{}:{}", self.name, index + 1);
                    open = Some(CodeBlock { language: language.trim(), text: String::new(), place });
                }
                (None, Some(block)) => block.text += &format!("{line}\n"),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block that does not end", self.name);
        blocks
    }

    /// The text in back-ticks outside of blocks and headings, with its line.
    fn spans(&self) -> Vec<(usize, &str)> {
        let (mut spans, mut in_block) = (Vec::new(), false);
        for (index, line) in self.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            } else if !in_block && !line.starts_with('#') {
                spans.extend(line.split('`').skip(1).step_by(2).map(|span| (index + 1, span)));
            }
        }
        spans
    }
}
