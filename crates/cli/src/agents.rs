//! The files of agents: finds them, and decides which of them a session gets. The core reads their text.

use std::path::{Path, PathBuf};

use attache_core::agents::{Agents, FoundAgent, LoadedAgents, ManifestDialect};

use crate::dirs::Dirs;
use crate::project_files::{ProjectFiles, file_names, small_file};

/// Below a project or a home; another agent reads this directory, too.
pub(crate) const CLAUDE_AGENTS: &str = ".claude/agents";

/// The agents that sessions of this host have beside their project's.
#[derive(Clone, Debug)]
pub(crate) struct AgentSources {
    built_in: Agents,
    /// The user's directories; earlier ones win.
    of_user: Vec<(PathBuf, ManifestDialect)>,
}

impl AgentSources {
    pub(crate) fn new(built_in: Agents, dirs: &Dirs) -> Self {
        let own = dirs.config_file.parent().map(|directory| directory.join("agents"));
        let claude = dirs.home.as_ref().map(|home| home.join(CLAUDE_AGENTS));
        let own = own.map(|directory| (directory, ManifestDialect::Own));
        let claude = claude.map(|directory| (directory, ManifestDialect::Claude));
        Self { built_in, of_user: own.into_iter().chain(claude).collect() }
    }

    /// The user's agents with those of a trusted project, which come first. Blocks. Reports a file that we
    /// cannot use.
    pub(crate) fn load(&self, project: Option<&ProjectFiles>) -> LoadedAgents {
        let (mut files, mut unread) = (Vec::new(), Vec::new());
        if let Some(project) = project {
            files.extend(of_project(project));
        }
        for (directory, dialect) in &self.of_user {
            // If the home is also the project, its files have been read already.
            let is_read = |path: &Path| files.iter().any(|file: &FoundAgent| file.path == path);
            let names = file_names(directory).into_iter().filter(|name| is_markdown(name));
            let paths: Vec<PathBuf> = names.map(|name| directory.join(name)).collect();
            let new: Vec<PathBuf> = paths.into_iter().filter(|path| !is_read(path)).collect();
            for path in new {
                match small_file(&path) {
                    Ok(bytes) => files.push(found(path, &bytes, *dialect)),
                    Err(reason) => unread.push(format!("{}: {reason}", path.display())),
                }
            }
        }
        let beside = |file: &FoundAgent, name: &str| beside(project, file, name);
        let mut loaded = self.built_in.with_files(&files, &beside);
        loaded.left_out.splice(..0, unread);
        loaded
    }
}

fn found(path: PathBuf, bytes: &[u8], dialect: ManifestDialect) -> FoundAgent {
    FoundAgent { path, text: String::from_utf8_lossy(bytes).into_owned(), dialect }
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "md")
}

/// The agents of our own directory first, in the form that the user consented to.
fn of_project(project: &ProjectFiles) -> impl Iterator<Item = FoundAgent> {
    project.files.iter().filter(|(path, _)| is_markdown(path)).map(|(path, bytes)| {
        let dialect = match path.starts_with(CLAUDE_AGENTS) {
            true => ManifestDialect::Claude,
            false => ManifestDialect::Own,
        };
        found(project.project.join(path), bytes, dialect)
    })
}

/// A file in the agent's directory. From a project, only the content that its user consented to.
fn beside(project: Option<&ProjectFiles>, file: &FoundAgent, name: &str) -> Result<String, String> {
    let is_plain = Path::new(name).file_name().is_some_and(|plain| plain == name);
    if !is_plain || !name.ends_with(".json") {
        return Err("it must be the name of a `.json` file in the same directory".to_owned());
    }
    let path = file.path.with_file_name(name);
    let of_project =
        project.and_then(|project| path.strip_prefix(&project.project).ok().map(|path| (project, path)));
    let bytes = match of_project {
        Some((project, path)) => project.text_of(path).map(<[u8]>::to_vec).ok_or("there is no such file")?,
        None => small_file(&path)?,
    };
    String::from_utf8(bytes).map_err(|_| "it is not valid UTF-8".to_owned())
}
