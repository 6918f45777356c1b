//! `attache mcp`: shows, tests and changes the MCP servers of the user's configuration, and logs in to them.

mod add;
mod edit;
mod import;
pub(crate) mod json;
mod login;
pub(crate) mod of_project;
mod serve;
pub(crate) mod told;

pub(crate) use add::with_options_first;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use attache_core::legible::legible_line;
use attache_core::ports::Projects;
use attache_core::ports::mcp::{
    ServerNotices, ServerState, ServerStatus, SessionServers, TRIED_AGAIN, ToolServers, WantedServers,
};

use crate::answer;
use crate::args::{McpArgs, McpCommand};
use crate::config::{nearest, open_document, store_document};
use crate::limits::MCP_LOOK;
use crate::project_files::ProjectFiles;
use crate::projects::HostProjects;
use crate::setup::{Sources, looking_workspace, mcp_servers};

pub(crate) async fn run(sources: &Sources, args: &McpArgs) -> Result<ExitCode> {
    match &args.command {
        McpCommand::List => list(sources).await,
        McpCommand::Add(args) => add::run(&sources.config.file, args),
        McpCommand::Remove { name } => remove(sources, name),
        McpCommand::Test { name } => test(sources, name).await,
        McpCommand::Login(args) => login::log_in(sources, args).await,
        McpCommand::Logout { name } => login::log_out(sources, name).await,
        McpCommand::Serve(args) => serve::run(sources, args).await,
        McpCommand::Import { file, yes } => {
            let consent = if *yes { import::ImportConsent::Given } else { import::ImportConsent::Asked };
            import::run(sources, file.as_deref(), consent)
        }
    }
}

async fn list(sources: &Sources) -> Result<ExitCode> {
    let servers = open(sources, None).await?;
    let here = std::env::current_dir().unwrap_or_default();
    let mistakes = ProjectFiles::find(&here).map(|found| of_project::mistakes_of_files(&found));
    let mistakes = mistakes.unwrap_or_default();
    for mistake in &mistakes {
        answer::note(&format!("attache: not used: {}", legible_line(mistake)));
    }
    if tokio::time::timeout(MCP_LOOK, servers.settled()).await.is_err() {
        answer::note("attache: some servers are still connecting");
    }
    let mut text = String::new();
    for status in servers.status() {
        line(&mut text, &status);
    }
    for server in sources.config.servers.iter().filter(|server| !server.enabled) {
        text.push_str(&format!("{}: switched off ({})\n", legible_line(&server.entry.name), server.origin));
    }
    if text.is_empty() && mistakes.is_empty() {
        text = "There are no MCP servers yet. To add one: attache mcp add NAME COMMAND\n".to_owned();
    }
    servers.close().await;
    answer::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn line(text: &mut String, status: &ServerStatus) {
    let ServerStatus { name, about, state, tools, prompts } = status;
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let reason = match state {
        ServerState::Ready if prompts.is_empty() => format!(": {}", counted(tools.len(), "tool")),
        ServerState::Ready => {
            format!(": {}, {}", counted(tools.len(), "tool"), counted(prompts.len(), "prompt"))
        }
        ServerState::Connecting => String::new(),
        // The command ends here, so nothing will try again.
        ServerState::Failed(why) => {
            format!(": {}", why.rsplit_once(TRIED_AGAIN).map_or(&**why, |(why, _)| why))
        }
        ServerState::WaitingForConsent(how) => format!(": {how}"),
    };
    let (name, reason) = (legible_line(name), legible_line(&reason));
    text.push_str(&format!("{name} ({about}): {}{reason}\n", state.as_str()));
}

async fn test(sources: &Sources, name: &str) -> Result<ExitCode> {
    let servers = open(sources, Some(name)).await?;
    let known: Vec<String> = servers.status().into_iter().map(|status| status.name).collect();
    if known.is_empty() {
        let all = open(sources, None).await?;
        let names: Vec<String> = all.status().into_iter().map(|status| status.name).collect();
        all.close().await;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let near = nearest(name, &names).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        bail!("there is no MCP server `{name}`{near}; `attache mcp list` shows them");
    }
    let settled = tokio::time::timeout(MCP_LOOK, servers.settled()).await;
    let mut text = String::new();
    let mut code = ExitCode::SUCCESS;
    for status in servers.status() {
        line(&mut text, &status);
        if status.state != ServerState::Ready {
            code = ExitCode::FAILURE;
        }
    }
    for tool in servers.tools().iter() {
        let spec = tool.spec();
        text.push_str(&format!("  {}: {}\n", spec.id, legible_line(&spec.description)));
    }
    for prompt in servers.prompts().iter() {
        let hint = prompt.hint().map(|hint| format!(" {hint}")).unwrap_or_default();
        let line = format!("/{}{hint}: {}", prompt.command, prompt.description);
        text.push_str(&format!("  {}\n", legible_line(&line)));
    }
    servers.close().await;
    answer::write(&text)?;
    if settled.is_err() {
        bail!("it did not connect within {} s", MCP_LOOK.as_secs());
    }
    Ok(code)
}

fn remove(sources: &Sources, name: &str) -> Result<ExitCode> {
    let file = &sources.config.file;
    let mut document = open_document(file)?;
    if !edit::remove(&mut document, name) {
        let names: Vec<&str> =
            sources.config.servers.iter().map(|server| server.entry.name.as_str()).collect();
        let near = nearest(name, &names).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        bail!("{} has no MCP server `{name}`{near}", file.display());
    }
    store_document(file, &document)?;
    answer::write(&format!("Removed {name} from {}.\n", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The servers as a session in the current directory would have them; with a name, only that one.
async fn open(sources: &Sources, only: Option<&str>) -> Result<Arc<dyn SessionServers>> {
    let (config, dirs) = (&sources.config, &sources.dirs);
    let root = std::env::current_dir().context("the current directory can't be found")?;
    let projects = HostProjects::new(config, dirs, &sources.foreign);
    let mut settings = projects.settings(&root).await;
    dirs.create()?;
    let scratch = dirs.scratch.canonicalize().unwrap_or_else(|_| dirs.scratch.clone());
    let sandbox = crate::sandbox::open(config, &scratch)?;
    let servers = match only {
        None => mcp_servers(sources, &sandbox),
        Some(name) => {
            settings.servers.retain(|entry| entry.name == name);
            settings.waiting_servers.retain(|waiting| waiting.name == name);
            let mut config = (**config).clone();
            config.servers.retain(|server| server.entry.name == name);
            mcp_servers(&Sources { config: Arc::new(config), ..sources.clone() }, &sandbox)
        }
    };
    let workspace = looking_workspace(sources, &root, "mcp");
    let wanted = WantedServers {
        of_client: Vec::new(),
        of_project: settings.servers,
        waiting: settings.waiting_servers,
    };
    Ok(servers.open(Arc::new(workspace), wanted, ServerNotices::new(|_| {})))
}
