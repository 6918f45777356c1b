//! The files of a project that need consent, as they are: configuration, servers, agents, and the scripts that
//! hooks may run.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use attache_core::prompt::digest;
use attache_core::trust::TrustContent;
use attache_sandbox::regular_file;

use crate::agents::CLAUDE_AGENTS;
use crate::limits::{MAX_TRUST_FILE_BYTES, TRUST_FILES};
use crate::mcp::of_project::PROJECT_SERVERS;

/// A project's own configuration.
pub(crate) const PROJECT_CONFIG: &str = ".attache/config.toml";

/// Directories whose Markdown files are agents, with JSON Schemas beside them.
pub(crate) const PROJECT_AGENTS: [&str; 2] = [".attache/agents", CLAUDE_AGENTS];

/// Hooks may run files of this directory; no tool and no command of a session can change them.
const PROJECT_HOOKS: &str = ".attache/hooks";

/// The files of a project that need consent, read once: sessions use the same bytes that the user judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectFiles {
    /// With every link resolved.
    pub(crate) project: PathBuf,
    /// Paths below the project, each with its text.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
    /// Files that we cannot use, with the reason.
    pub(crate) left_out: Vec<String>,
    /// A file that hooks may run but consent cannot cover, because it is not in `files`.
    pub(crate) unseen_script: Option<String>,
}

impl ProjectFiles {
    /// Blocks.
    pub(crate) fn find(root: &Path) -> io::Result<Self> {
        let mut found = Self { project: root.canonicalize()?, ..Self::default() };
        found.file(Path::new(PROJECT_CONFIG));
        PROJECT_SERVERS.map(Path::new).into_iter().for_each(|file| found.file(file));
        for directory in PROJECT_AGENTS.map(Path::new) {
            let is_used = |name: &PathBuf| name.extension().is_some_and(|end| end == "md" || end == "json");
            for name in file_names(&found.project.join(directory)).into_iter().filter(is_used) {
                found.file(&directory.join(name));
            }
        }
        found.scripts();
        Ok(found)
    }

    /// Adds the files beside the configuration that its hooks may run, at any depth. A hook can run any file
    /// there, even one we left out of the list; if there is such a file, no hook runs.
    fn scripts(&mut self) {
        // Only files under exactly this name are out of an agent's reach.
        let place = self.project.join(PROJECT_HOOKS);
        if place.canonicalize().is_ok_and(|real| real != place) {
            return self.unseen(Path::new(PROJECT_HOOKS), "a link leads there");
        }
        let (mut directories, mut count) = (vec![PathBuf::from(PROJECT_HOOKS)], 0);
        while let Some(directory) = directories.pop() {
            let entries = match self.project.join(&directory).read_dir() {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return self.unseen(&directory, &error.to_string()),
            };
            let mut found: Vec<_> = entries.take(TRUST_FILES).flatten().collect();
            found.sort_by_key(std::fs::DirEntry::file_name);
            for entry in found {
                let path = directory.join(entry.file_name());
                count += 1;
                match entry.file_type() {
                    _ if count >= TRUST_FILES => {
                        return self.unseen(Path::new(PROJECT_HOOKS), "it has too many files");
                    }
                    Ok(kind) if kind.is_dir() => directories.push(path),
                    Ok(kind) if kind.is_file() => {
                        let known = self.files.len();
                        self.file(&path);
                        if self.files.len() == known {
                            self.unseen(&path, "it can't be read, or is too large");
                        }
                    }
                    Ok(_) => self.unseen(&path, "it is no file of the project's own"),
                    Err(error) => self.unseen(&path, &error.to_string()),
                }
            }
        }
    }

    fn unseen(&mut self, path: &Path, reason: &str) {
        self.unseen_script = Some(format!("its hooks do not run because of {}: {reason}", path.display()));
    }

    pub(crate) fn content(&self) -> TrustContent {
        self.files.iter().map(|(path, bytes)| (path.clone(), digest(bytes))).collect()
    }

    pub(crate) fn text_of(&self, path: &Path) -> Option<&[u8]> {
        self.files.iter().find(|(known, _)| known == path).map(|(_, bytes)| bytes.as_slice())
    }

    /// Adds a file, unless a link leads out of the project.
    fn file(&mut self, path: &Path) {
        let Ok(real) = self.project.join(path).canonicalize() else { return };
        // While a command of another session runs, its sandbox puts sockets at such names to reserve them:
        // there is no file.
        if real.symlink_metadata().is_ok_and(|found| found.file_type().is_socket()) {
            return;
        }
        let read = match real.starts_with(&self.project) {
            false => Err("it leads out of the project".to_owned()),
            true => small_file(&real),
        };
        match read {
            Ok(bytes) => self.files.push((path.to_owned(), bytes)),
            Err(reason) => self.left_out.push(format!("{}: {reason}", path.display())),
        }
    }
}

/// The names in a directory, in order; none if the directory does not exist.
pub(crate) fn file_names(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = directory.read_dir() else { return Vec::new() };
    let mut names: Vec<PathBuf> =
        entries.take(TRUST_FILES).flatten().map(|entry| entry.file_name().into()).collect();
    names.sort();
    names
}

/// The content of a file that is small enough, or why we cannot use it.
pub(crate) fn small_file(real: &Path) -> Result<Vec<u8>, String> {
    match regular_file::read(real, MAX_TRUST_FILE_BYTES) {
        Ok(bytes) if bytes.len() as u64 > MAX_TRUST_FILE_BYTES => {
            Err(format!("it has more than {MAX_TRUST_FILE_BYTES} bytes"))
        }
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}
