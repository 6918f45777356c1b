//! Rules of the house that no compiler checks. Each rule is a function from what was read to findings.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::house::{House, output};

mod code;
mod comments;
mod dependencies;
mod documents;
mod functions;
mod mentions;
mod names;
mod scenarios;
mod sources;
mod systems;

/// One text file of the repository.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// From the root, with `/`.
    pub path: String,
    pub text: String,
    /// Made when a rule first asks for it.
    code: OnceLock<code::Code>,
}

impl SourceFile {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into(), code: OnceLock::new() }
    }

    /// Of a Rust file.
    fn code(&self) -> &code::Code {
        self.code.get_or_init(|| code::Code::of(&self.text))
    }
}

/// What breaks a rule, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub place: String,
    pub message: String,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

/// Kinds of files whose text is looked at.
const TEXT: [&str; 8] = ["rs", "md", "toml", "mjs", "js", "sh", "html", "css"];

/// Not ours: build products and installed packages.
const SKIPPED: [&str; 3] = ["target", "node_modules", ".git"];

pub(crate) fn run(house: &House) -> Result<()> {
    let mut files = Vec::new();
    read_tree(&house.root, &house.root, &mut files)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let metadata = output(house.cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let mut findings = dependencies::check(&metadata);
    findings.extend(sources::check(&files));
    findings.extend(documents::check(&files));
    findings.extend(scenarios::check(&files));
    findings.extend(names::check(&files));
    findings.extend(functions::check(&files));
    findings.extend(comments::check(&files));
    findings.extend(mentions::check(&files));
    findings.extend(systems::check(&files));
    for finding in &findings {
        eprintln!("{}: {}", finding.place, finding.message);
    }
    match findings.len() {
        0 => {
            eprintln!("{} files are tidy", files.len());
            Ok(())
        }
        found => bail!("{found} findings"),
    }
}

fn read_tree(root: &Path, directory: &Path, files: &mut Vec<SourceFile>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if SKIPPED.contains(&name) {
            continue;
        }
        if kind.is_dir() {
            read_tree(root, &path, files)?;
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if !TEXT.contains(&extension) {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        files.push(SourceFile::new(relative, text));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod samples {
    //! Files made up for the tests of the rules.
    use super::SourceFile;

    pub(crate) fn file(path: &str, text: &str) -> SourceFile {
        SourceFile::new(path, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_read_without_what_is_not_ours() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a/b.rs", "target/c.rs", "a/node_modules/d.mjs", "e.lock"] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "//! x").unwrap();
        }
        let mut files = Vec::new();
        read_tree(root.path(), root.path(), &mut files).unwrap();
        assert_eq!(files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), ["a/b.rs"]);
    }
}
