//! `attache mcp login` and `logout`: sends the user's browser to the authorization server, and stores the login
//! with the keys. Shows no token.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use attache_core::legible::legible_line;
use attache_core::ports::Projects;
use attache_core::ports::mcp::{
    OAuthSettings, ServerDeadlines, ServerEntry, ServerOrigin, ServerRights, ServerSampling, ServerTransport,
};
use attache_mcp::oauth::{LoginPlan, Logout, Revocation};
use attache_sandbox::programs::Programs;

use crate::answer::{self, Interrupted};
use crate::args::McpLoginArgs;
use crate::config::nearest;
use crate::credentials::{KeyPlace, LedgerEntry, Patience, ServerLogins};
use crate::projects::HostProjects;
use crate::setup::Sources;

pub(super) async fn log_in(sources: &Sources, args: &McpLoginArgs) -> Result<ExitCode> {
    let place = if args.file { KeyPlace::File } else { KeyPlace::KeyringElseFile };
    let logins = Arc::new(ServerLogins::new(&sources.credentials, Patience::ForUnlocking, place));
    let plan = plan(sources, &args.name, logins.clone()).await?;
    let name = legible_line(&plan.entry.name);
    let pending = plan.begin().await.with_context(|| format!("can't log in to {name}"))?;
    let is_open = !args.no_browser && open_in_browser(pending.address().as_str());
    let how = if is_open { "Your browser opens this address" } else { "Open this address in a browser" };
    answer::note(&format!("{how} to log in to {name}; Ctrl-C ends the wait:\n{}", pending.address()));
    let server = pending.server().to_owned();
    let finished = tokio::select! {
        finished = pending.finish() => finished.with_context(|| format!("can't log in to {name}"))?,
        _ = tokio::signal::ctrl_c() => return Err(Interrupted.into()),
    };
    let kept = match logins.place_of(&server)? {
        Some(LedgerEntry::Keyring) => "in the keyring".to_owned(),
        Some(LedgerEntry::Here(_)) | None => {
            format!("in {}, which only you can read", sources.credentials.file().display())
        }
    };
    let scopes = match finished.scopes.is_empty() {
        true => String::new(),
        false => format!(" It may: {}.", finished.scopes.join(" ")),
    };
    answer::write(&format!("Logged in to {name} at {}. Stored {kept}.{scopes}\n", finished.issuer))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn log_out(sources: &Sources, name: &str) -> Result<ExitCode> {
    let place = KeyPlace::KeyringElseFile;
    let logins = Arc::new(ServerLogins::new(&sources.credentials, Patience::ForUnlocking, place));
    let plan = plan(sources, name, logins).await?;
    let name = legible_line(&plan.entry.name);
    match plan.log_out().await? {
        Logout::NothingKept => answer::write(&format!("No login at {name} is stored.\n"))?,
        Logout::Forgotten(revocation) => {
            match revocation {
                Revocation::Done => {}
                Revocation::NotOffered => {
                    answer::note("Its authorization server takes no tokens back; they end by themselves.");
                }
                Revocation::Failed(error) => {
                    answer::note(&format!(
                        "Its authorization server could not be told ({error}); the tokens end by themselves."
                    ));
                }
            }
            answer::write(&format!("Deleted the login at {name}.\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The plan for the server of this name or address, as a session in the current directory would have it.
async fn plan(sources: &Sources, name: &str, logins: Arc<ServerLogins>) -> Result<LoginPlan> {
    let root = std::env::current_dir().context("the current directory can't be found")?;
    let settings = HostProjects::new(&sources.config, &sources.dirs, &sources.foreign).settings(&root).await;
    if settings.waiting_servers.iter().any(|waiting| waiting.name == name) {
        bail!("the project's MCP server `{name}` waits for your consent: attache trust");
    }
    let of_user = sources.config.servers.iter().map(|server| server.entry.clone());
    let entries: Vec<ServerEntry> = of_user.chain(settings.servers).collect();
    let is_address = name.starts_with("http://") || name.starts_with("https://");
    let is_meant = |entry: &&ServerEntry| match &entry.transport {
        ServerTransport::Http { url, .. } | ServerTransport::Sse { url, .. } if is_address => url == name,
        ServerTransport::Http { .. }
        | ServerTransport::Sse { .. }
        | ServerTransport::Stdio { .. }
        | ServerTransport::Unusable(_) => entry.name == name,
    };
    let entry = match entries.iter().find(is_meant) {
        Some(entry) => entry.clone(),
        None if is_address => at_address(name),
        None => {
            let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
            let near = nearest(name, &names).map(|near| format!(", did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            bail!("there is no MCP server `{name}`{near}; `attache mcp list` shows them");
        }
    };
    Ok(LoginPlan { entry, root, variables: sources.variables.clone(), logins })
}

/// An entry for a server that only an editor knows.
fn at_address(url: &str) -> ServerEntry {
    ServerEntry {
        name: url.to_owned(),
        origin: ServerOrigin::Client,
        transport: ServerTransport::Http { url: url.to_owned(), headers: Vec::new() },
        rights: ServerRights::USUAL,
        deadlines: ServerDeadlines::default(),
        sampling: ServerSampling::Refused,
        oauth: OAuthSettings::default(),
    }
}

/// Asks a browser to open the address; true if one started. Runs the opener by its full path, with the address
/// as one word and without a shell. The search path it gets contains no directory of a project.
fn open_in_browser(address: &str) -> bool {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()));
    let programs = Programs::of_machine();
    let opener = match cfg!(target_os = "macos") {
        true => programs.helper("open"),
        false if has_display => programs.helper("xdg-open"),
        false => None,
    };
    opener.is_some_and(|opener| opening(&opener, address, &programs).spawn().is_ok())
}

/// In its own process group: Ctrl-C in the terminal ends us, not the browser.
fn opening(opener: &Path, address: &str, programs: &Programs) -> Command {
    let mut command = Command::new(opener);
    command.arg(address).env("PATH", programs.path_for_helpers()).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_address_reaches_the_browser_as_one_word_that_no_shell_has_read() {
        let place = tempfile::tempdir().unwrap();
        let (opener, told) = (place.path().join("open it"), place.path().join("told"));
        let script = format!("#!/bin/sh\nprintf '%s|' \"$#\" \"$@\" > '{}'\n", told.display());
        std::fs::write(&opener, script).unwrap();
        std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
        let address = "https://a.test/?x=$(touch made)&y=`touch made`;touch made|'\"*";
        let status = opening(&opener, address, &Programs::of_machine()).current_dir(place.path()).status();
        assert!(status.unwrap().success());
        assert_eq!(std::fs::read_to_string(&told).unwrap(), format!("1|{address}|"));
        assert!(!place.path().join("made").exists());
    }
}
