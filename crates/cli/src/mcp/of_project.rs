//! The MCP servers in a project's files. Works on files already read; starts nothing.

use std::path::{Path, PathBuf};

use attache_core::ports::mcp::{ServerEntry, ServerOrigin, ServerTransport, WaitingServer};
use attache_core::ports::projects::ProjectNotice;

use super::json;
use crate::project_files::{PROJECT_CONFIG, ProjectFiles};
use crate::projects::shell_word;

/// Files of other agents and editors that list MCP servers.
pub(crate) const PROJECT_SERVERS: [&str; 3] = [".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"];

/// The servers that start once the user consents; `of_config` are those of the project's own file.
pub(crate) fn waiting_servers(found: &ProjectFiles, of_config: Vec<ServerEntry>) -> Vec<WaitingServer> {
    let waiting = |entry: ServerEntry| WaitingServer {
        file: file_of(&entry),
        name: entry.name,
        how: format!("attache trust {}", shell_word(&found.project)),
    };
    // The question for consent reports what is wrong with them.
    let of_files = servers_of_files(found, &mut Vec::new());
    of_config.into_iter().chain(of_files).map(waiting).collect()
}

/// The servers in files of other programs. Reports a file that is wrong as a whole.
pub(crate) fn servers_of_files(found: &ProjectFiles, notices: &mut Vec<ProjectNotice>) -> Vec<ServerEntry> {
    let (mut servers, mut problems): (Vec<ServerEntry>, Vec<String>) = (Vec::new(), Vec::new());
    for file in PROJECT_SERVERS {
        let Some(bytes) = found.text_of(Path::new(file)) else { continue };
        let text = String::from_utf8_lossy(bytes);
        match json::servers(&text, file, ServerOrigin::Project(file.into())) {
            Ok(named) => {
                let is_new = |entry: &ServerEntry| servers.iter().all(|known| known.name != entry.name);
                let new: Vec<_> = named.into_iter().filter(is_new).collect();
                servers.extend(new);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        let title = "Some MCP servers of the project are not used".to_owned();
        notices.push(ProjectNotice { title, description: problems.join("; ") });
    }
    servers
}

/// The mistakes in a project's files of other programs, each with file and line.
pub(crate) fn mistakes_of_files(found: &ProjectFiles) -> Vec<String> {
    let mut mistakes = Vec::new();
    for file in PROJECT_SERVERS {
        let Some(bytes) = found.text_of(Path::new(file)) else { continue };
        let text = String::from_utf8_lossy(bytes);
        match json::servers(&text, file, ServerOrigin::Project(file.into())) {
            Err(problem) => mistakes.push(problem),
            Ok(servers) => mistakes.extend(servers.into_iter().filter_map(|entry| match entry.transport {
                ServerTransport::Unusable(problem) => Some(problem),
                ServerTransport::Stdio { .. }
                | ServerTransport::Http { .. }
                | ServerTransport::Sse { .. } => None,
            })),
        }
    }
    mistakes
}

fn file_of(entry: &ServerEntry) -> PathBuf {
    match &entry.origin {
        ServerOrigin::Project(file) => file.clone(),
        ServerOrigin::Client | ServerOrigin::User => PathBuf::from(PROJECT_CONFIG),
    }
}
