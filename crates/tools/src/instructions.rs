//! Finds the instructions that apply to a workspace, and what they import. Whoever made a repository chose its
//! files and links: nothing outside of the roots, hidden or kept by a rule becomes part of a prompt.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use attache_core::instructions::{self, FILE_NAMES, FoundInstructions, InstructionFile, ProjectInstructions};
use attache_core::legible::visible_block;
use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{Site, Workspace};
use attache_core::seen::{SeenLines, Sight};
use attache_core::watchdog::ReadRules;
use attache_sandbox::regular_file;
use serde_json::Value;

use crate::digest::digest;
use crate::limits::{INSTRUCTION_BYTES, INSTRUCTION_DEPTH, INSTRUCTION_FILES, NESTED_INSTRUCTION_BYTES};

/// One look at the disk.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    workspace: &'a Workspace,
    rules: Option<&'a ReadRules>,
    /// Real paths and contents: a link, a copy and an import that leads back bring nothing twice.
    seen: HashSet<PathBuf>,
    texts: HashSet<String>,
    found: Vec<ReadInstructions>,
    left_out: Vec<String>,
}

/// A file, and what the model knows of it once it was told.
#[derive(Clone, Debug)]
struct ReadInstructions {
    file: InstructionFile,
    sight: Sight,
}

/// Instructions of directories below a root, for a model that reads its first file there.
#[derive(Debug, Default)]
pub(crate) struct NestedInstructions(Vec<ReadInstructions>);

impl NestedInstructions {
    /// Those between a root and a file that the model has not seen yet. Blocks.
    pub(crate) fn of(site: &Site, file: &Path) -> Self {
        let workspace = &site.workspace;
        let Some(root) =
            workspace.roots().filter(|root| file.starts_with(root)).max_by_key(|root| root.as_os_str().len())
        else {
            return Self::default();
        };
        let mut directories: Vec<&Path> =
            file.ancestors().skip(1).take_while(|directory| directory != root).collect();
        directories.reverse();
        let mut reader = Reader::new(workspace, site.closed.as_ref());
        reader.seen.extend(file.canonicalize());
        for directory in directories {
            reader.directory(directory, InstructionOrigin::Root);
        }
        let mut room = NESTED_INSTRUCTION_BYTES;
        reader.found.retain(|found| {
            let is_new = site.seen.digest(&found.sight.path).is_none();
            let fits = found.file.text.len() <= room;
            room = room.saturating_sub(if is_new && fits { found.file.text.len() } else { 0 });
            is_new && fits
        });
        Self(reader.found)
    }

    pub(crate) fn sights(&self) -> impl Iterator<Item = Sight> + '_ {
        self.0.iter().map(|read| read.sight.clone())
    }

    /// The result of a call with the instructions behind it.
    pub(crate) fn behind(&self, outcome: ToolOutcome) -> ToolOutcome {
        match outcome {
            ToolOutcome::Output { data: Value::String(mut text), presentation } if !self.0.is_empty() => {
                text.push_str("\nInstructions of the user for files in this directory:\n");
                self.0.iter().for_each(|read| text.push_str(&read.file.block()));
                ToolOutcome::Output { data: Value::String(text), presentation }
            }
            other => other,
        }
    }
}

/// Where a chain of imports began: that decides whom its author is trusted to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstructionOrigin {
    /// The user's own directory for all projects.
    User,
    /// A directory above the root, which others may write: `/tmp` above all.
    Above,
    Root,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(workspace: &'a Workspace, rules: Option<&'a ReadRules>) -> Self {
        let (seen, texts) = (HashSet::new(), HashSet::new());
        Self { workspace, rules, seen, texts, found: Vec::new(), left_out: Vec::new() }
    }

    /// The user's own first, then from the outermost directory to the root.
    pub(crate) fn all(mut self, user_directory: Option<&Path>) -> FoundInstructions {
        user_directory.into_iter().for_each(|directory| self.directory(directory, InstructionOrigin::User));
        let root = self.workspace.root.clone();
        for directory in instructions::directories(&root) {
            self.directory(
                directory,
                if directory == root { InstructionOrigin::Root } else { InstructionOrigin::Above },
            );
        }
        let files = self.found.into_iter().map(|read| read.file).collect();
        FoundInstructions { files: ProjectInstructions(files), left_out: self.left_out }
    }

    fn directory(&mut self, directory: &Path, origin: InstructionOrigin) {
        let Ok(base) = directory.canonicalize() else { return };
        FILE_NAMES.iter().for_each(|name| self.file(&directory.join(name), (origin, &base), 0));
    }

    /// One file and what it imports, unless it was read before. What does not exist is no instruction.
    fn file(&mut self, path: &Path, began: (InstructionOrigin, &Path), depth: usize) {
        let Ok(real) = path.canonicalize() else { return };
        let is_known = !real.is_file() || self.seen.contains(&real);
        if is_known || self.found.len() >= INSTRUCTION_FILES {
            return;
        }
        self.seen.insert(real.clone());
        if let Some(reason) = self.refusal(&real, began) {
            self.left_out.push(format!("{}: {reason}", path.display()));
            return;
        }
        let (text, sight) = match read(&real) {
            Ok(read) => read,
            Err(error) => {
                self.left_out.push(format!("{}: {error}", path.display()));
                return;
            }
        };
        if text.trim().is_empty() || !self.texts.insert(text.clone()) {
            return;
        }
        let imported: Vec<PathBuf> = instructions::imports(&text).into_iter().map(PathBuf::from).collect();
        self.found.push(ReadInstructions { file: InstructionFile { path: path.to_owned(), text }, sight });
        if depth < INSTRUCTION_DEPTH {
            let from = real.parent().unwrap_or(&real);
            imported.iter().for_each(|import| self.file(&from.join(import), began, depth + 1));
        }
    }

    /// Why a file is not followed.
    fn refusal(&self, real: &Path, (origin, base): (InstructionOrigin, &Path)) -> Option<&'static str> {
        let Workspace { guarded, scratch, .. } = self.workspace;
        let mut roots = self.workspace.roots().filter_map(|root| root.canonicalize().ok());
        let is_near = real.starts_with(base) || roots.any(|root| real.starts_with(root));
        match origin {
            _ if !is_near => return Some("it leads out of its directory"),
            // The user's own directory is hidden from agents as a whole; these files in it are meant for them.
            InstructionOrigin::User => return None,
            InstructionOrigin::Above if !is_trusted(real) => return Some("it belongs to another user"),
            InstructionOrigin::Above | InstructionOrigin::Root => {}
        }
        let is_kept = self.rules.is_some_and(|rules| rules.keeps(real, &self.workspace.root));
        (guarded.hides(real, scratch).is_some() || is_kept).then_some("it may not be read without a question")
    }
}

fn read(real: &Path) -> io::Result<(String, Sight)> {
    let most = usize::try_from(INSTRUCTION_BYTES).unwrap_or(usize::MAX);
    let mut bytes = regular_file::read(real, INSTRUCTION_BYTES)?;
    let is_whole = bytes.len() <= most;
    bytes.truncate(most);
    let text = String::from_utf8_lossy(&bytes);
    let lines = (!is_whole).then(|| SeenLines { first: 0, end: text.lines().count() as u64, total: None });
    let sight = Sight { path: real.to_owned(), digest: digest(&bytes), lines };
    Ok((visible_block(text.trim_start_matches('\u{feff}')), sight))
}

/// Whether its owner is the user or the machine's administrator.
fn is_trusted(real: &Path) -> bool {
    let is_own = |owner: u32| owner == 0 || owner == rustix::process::geteuid().as_raw();
    real.metadata().is_ok_and(|found| is_own(found.uid()))
}
