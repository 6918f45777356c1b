//! Finds the instructions that apply to a workspace and what they import, as far as `provenance` allows.

use std::collections::HashSet;
use std::io;
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
use crate::limits::{INSTRUCTION_BYTES, INSTRUCTION_DEPTH, INSTRUCTION_FILES, NESTED_INSTRUCTION_TOKENS};
use crate::provenance::{FileOrigin, TextRules};
use crate::search::is_ignored;

/// One look at the disk.
#[derive(Debug)]
pub(crate) struct InstructionReader<'a> {
    workspace: &'a Workspace,
    rules: TextRules<'a>,
    /// Real paths and contents: a link, a copy or a circular import adds nothing twice.
    seen: HashSet<PathBuf>,
    texts: HashSet<String>,
    found: Vec<ReadInstructions>,
    left_out: Vec<String>,
}

/// A file, and the sight to record once the model is told of it.
#[derive(Clone, Debug)]
struct ReadInstructions {
    file: InstructionFile,
    sight: Sight,
}

/// Instructions of directories below a root, for a model that reads or changes its first file there.
#[derive(Debug, Default)]
pub(crate) struct NestedInstructions {
    files: ProjectInstructions,
    /// Files of which the model gets only the beginning, or nothing.
    cut: Vec<PathBuf>,
    /// A sight for each file, so that the model gets it only once: results of calls are stored with the
    /// session.
    sights: Vec<Sight>,
}

impl NestedInstructions {
    /// The instructions between a root and the files of a call that the model has not seen yet.
    pub(crate) async fn of(site: &Site, files: Vec<PathBuf>) -> Self {
        let site = site.clone();
        let looking = tokio::task::spawn_blocking(move || Self::found(&site, &files));
        looking.await.unwrap_or_default()
    }

    fn found(site: &Site, files: &[PathBuf]) -> Self {
        let workspace = &site.workspace;
        let mut reader = InstructionReader::new(workspace, site.closed.as_ref());
        // The model knows the files of the call itself.
        reader.seen.extend(files.iter().filter_map(|file| file.canonicalize().ok()));
        let mut looked_into = HashSet::new();
        for directory in files.iter().flat_map(|file| directories_below_root(workspace, file)) {
            if looked_into.insert(directory) && !is_of_others(workspace, directory) {
                reader.directory(directory, FileOrigin::Root);
            }
        }
        let is_new = |found: &ReadInstructions| site.seen.digest(&found.sight.path).is_none();
        let (files, mut sights): (Vec<_>, Vec<_>) =
            reader.found.into_iter().filter(is_new).map(|read| (read.file, read.sight)).unzip();
        let places: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        let (files, cut) = ProjectInstructions(files).within(NESTED_INSTRUCTION_TOKENS);
        for (sight, place) in sights.iter_mut().zip(places).filter(|(_, place)| cut.contains(place)) {
            let told = files.0.iter().find(|file| file.path == place);
            let end = told.map_or(0, |file| file.text.lines().count() as u64);
            sight.lines = Some(SeenLines { first: 0, end, total: None });
        }
        Self { files, cut, sights }
    }

    pub(crate) fn sights(&self) -> impl Iterator<Item = Sight> + '_ {
        self.sights.iter().cloned()
    }

    /// The result of a call, followed by the instructions.
    pub(crate) fn behind(&self, outcome: ToolOutcome) -> ToolOutcome {
        match outcome {
            ToolOutcome::Output { data: Value::String(mut text), presentation }
                if !self.sights.is_empty() =>
            {
                text.push_str("\nInstructions of the project for files in this directory:\n");
                self.files.0.iter().for_each(|file| text.push_str(&file.block()));
                if !self.cut.is_empty() {
                    let names: Vec<_> = self.cut.iter().map(|path| path.display().to_string()).collect();
                    text.push_str(&format!("[too long to be told whole; read: {}]\n", names.join(", ")));
                }
                ToolOutcome::Output { data: Value::String(text), presentation }
            }
            other => other,
        }
    }
}

/// Directories with files by others, whatever git says about them.
const DEPENDENCIES: [&str; 7] =
    ["node_modules", "vendor", "target", ".venv", "venv", "site-packages", ".git"];

/// Whether a directory holds dependencies or build output: its files do not speak for the project.
fn is_of_others(workspace: &Workspace, directory: &Path) -> bool {
    let holding = workspace.roots().filter(|root| directory.starts_with(root));
    let Some(root) = holding.max_by_key(|root| root.as_os_str().len()) else { return true };
    let below = directory.strip_prefix(root).unwrap_or(directory);
    below.components().any(|name| DEPENDENCIES.iter().any(|other| name.as_os_str() == *other))
        || match (root.canonicalize(), directory.canonicalize()) {
            (Ok(root), Ok(directory)) => is_ignored(&root, &directory),
            // A directory that does not exist has no instructions.
            (Err(_), _) | (_, Err(_)) => false,
        }
}

/// The directories between a root and a file in it, the outermost first.
fn directories_below_root<'a>(workspace: &Workspace, file: &'a Path) -> Vec<&'a Path> {
    let holding = workspace.roots().filter(|root| file.starts_with(root));
    let Some(root) = holding.max_by_key(|root| root.as_os_str().len()) else { return Vec::new() };
    let mut directories: Vec<&Path> =
        file.ancestors().skip(1).take_while(|directory| directory != root).collect();
    directories.reverse();
    directories
}

impl<'a> InstructionReader<'a> {
    pub(crate) fn new(workspace: &'a Workspace, rules: Option<&'a ReadRules>) -> Self {
        let (seen, texts) = (HashSet::new(), HashSet::new());
        let rules = TextRules::new(workspace, rules);
        Self { workspace, rules, seen, texts, found: Vec::new(), left_out: Vec::new() }
    }

    /// The user's own first, then from the outermost directory to the root.
    pub(crate) fn all(mut self, user_directory: Option<&Path>) -> FoundInstructions {
        user_directory.into_iter().for_each(|directory| self.directory(directory, FileOrigin::User));
        let root = self.workspace.root.clone();
        for directory in instructions::directories(&root) {
            self.directory(directory, if directory == root { FileOrigin::Root } else { FileOrigin::Above });
        }
        let files = self.found.into_iter().map(|read| read.file).collect();
        FoundInstructions { files: ProjectInstructions(files), left_out: self.left_out }
    }

    fn directory(&mut self, directory: &Path, origin: FileOrigin) {
        let Ok(base) = directory.canonicalize() else { return };
        for name in FILE_NAMES {
            // Most directories have none: one look then, and not one for each directory above.
            if base.join(name).symlink_metadata().is_ok() {
                self.file(&directory.join(name), (origin, &base), 0);
            }
        }
    }

    /// One file and its imports, unless it was read before. A missing file is ignored.
    fn file(&mut self, path: &Path, began: (FileOrigin, &Path), depth: usize) {
        let Ok(real) = path.canonicalize() else { return };
        let is_known = !real.is_file() || self.seen.contains(&real);
        if is_known || self.found.len() >= INSTRUCTION_FILES {
            return;
        }
        self.seen.insert(real.clone());
        if let Some(reason) = self.rules.refusal(&real, began.0, began.1) {
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
            // From here on the author of the project decides what is imported, whichever file imported the
            // project's.
            let began = match began {
                (FileOrigin::User, _) if self.rules.is_in_roots(&real) => (FileOrigin::Root, from),
                began => began,
            };
            for import in imported {
                let target = from.join(&import);
                if instructions::is_plainly_path(&import) && !target.exists() {
                    let (import, path) = (import.display(), path.display());
                    self.left_out.push(format!("{import}: {path} imports it, but it does not exist"));
                }
                self.file(&target, began, depth + 1);
            }
        }
    }
}

fn read(real: &Path) -> io::Result<(String, Sight)> {
    let most = usize::try_from(INSTRUCTION_BYTES).unwrap_or(usize::MAX);
    let mut bytes = regular_file::read_real(real, INSTRUCTION_BYTES)?;
    let is_whole = bytes.len() <= most;
    bytes.truncate(most);
    let text = String::from_utf8_lossy(&bytes);
    let lines = (!is_whole).then(|| SeenLines { first: 0, end: text.lines().count() as u64, total: None });
    let sight = Sight { path: real.to_owned(), digest: digest(&bytes), lines };
    Ok((visible_block(text.trim_start_matches('\u{feff}')), sight))
}
