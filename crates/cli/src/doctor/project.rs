//! What sessions in this directory have beside the model: agents, skills, hooks, MCP servers, and which of them
//! they cannot use. Starts none of them.

use std::path::Path;
use std::sync::Arc;

use attache_core::ports::Surroundings;
use attache_core::ports::mcp::ServerTransport;
use attache_core::ports::projects::ProjectSettings;
use attache_tools::MachineSurroundings;

use super::Finding;
use crate::config::enabled_servers;
use crate::projects::HostProjects;
use crate::setup::{Sources, looking_workspace};

pub(super) async fn check(sources: &Sources) -> Vec<Finding> {
    let Ok(root) = std::env::current_dir() else { return Vec::new() };
    let projects = HostProjects::new(&sources.config, &sources.dirs, &sources.foreign);
    let settings = projects.settings_now(&root);
    let mut findings = vec![agents(sources, &projects, &root, &settings)];
    findings.extend(skills(sources, &root).await);
    findings.push(hooks(sources, &settings));
    findings.extend(servers(sources, &settings));
    findings.extend(
        settings
            .notices
            .iter()
            .map(|notice| Finding::warn("project", format!("{}: {}", notice.title, notice.description), "")),
    );
    findings
}

fn agents(sources: &Sources, projects: &HostProjects, root: &Path, settings: &ProjectSettings) -> Finding {
    let agents = settings.agents.clone().unwrap_or_default();
    let wanted = &sources.config.agent;
    if agents.primary(&wanted.value).is_none() {
        let problem = projects.unknown_agent(root, &wanted.value);
        return Finding::fail("agents", format!("{}: {problem}", wanted.origin), "correct `agent`");
    }
    let names: Vec<&str> = agents.primaries().chain(agents.subagents()).map(|agent| &*agent.id).collect();
    let mut once: Vec<&str> = Vec::new();
    names.into_iter().for_each(|name| {
        if !once.contains(&name) {
            once.push(name)
        }
    });
    Finding::ok("agents", once.join(", "))
}

async fn skills(sources: &Sources, root: &Path) -> Option<Finding> {
    let (config, dirs) = (&sources.config, &sources.dirs);
    let sandbox = crate::sandbox::open(config, &dirs.scratch).ok()?;
    let surroundings = MachineSurroundings::new(sandbox, dirs.config_file.parent().map(Path::to_owned))
        .with_skill_paths(config.skill_paths.value.clone());
    let workspace = Arc::new(looking_workspace(sources, root, "doctor"));
    let found = surroundings.knowledge(workspace, None).await;
    let (skills, commands) = (found.skills.len(), found.templates.len());
    let text = format!("{skills} of them, and {commands} commands");
    Some(match found.left_out.is_empty() {
        true => Finding::ok("skills", text),
        false => {
            let left_out = found.left_out.join("; ");
            Finding::warn("skills", format!("{text}; left out: {left_out}"), "correct these files")
        }
    })
}

fn hooks(sources: &Sources, settings: &ProjectSettings) -> Finding {
    let text = match (sources.config.hooks.len(), settings.hooks.len()) {
        (0, 0) => "none".to_owned(),
        (own, 0) => format!("{own} of yours"),
        (own, project) => format!("{own} of yours, {project} of this project"),
    };
    Finding::ok("hooks", text)
}

/// Only `attache mcp list` finds out whether they answer, because it starts programs.
fn servers(sources: &Sources, settings: &ProjectSettings) -> Vec<Finding> {
    let own = enabled_servers(&sources.config.servers);
    let mut findings = Vec::new();
    let mut names = Vec::new();
    for entry in own.iter().chain(&settings.servers) {
        match &entry.transport {
            ServerTransport::Unusable(problem) => {
                findings.push(Finding::warn(
                    "mcp",
                    format!("{}: {problem}", entry.name),
                    "correct this entry",
                ));
            }
            ServerTransport::Stdio { .. } | ServerTransport::Http { .. } | ServerTransport::Sse { .. } => {
                names.push(entry.name.as_str());
            }
        }
    }
    let waiting = settings.waiting_servers.len();
    let mut text = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    if waiting > 0 {
        text.push_str(&format!("; {waiting} of this project wait for your consent"));
    }
    if !names.is_empty() {
        text.push_str(" (to try them: attache mcp list)");
    }
    findings.push(Finding::ok("mcp", text));
    findings
}
