//! `attache trust`: shows what a project wants to change beyond text for the model, and stores the user's
//! consent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use attache_core::trust::{Consents, Trust};

use crate::answer;
use crate::args::TrustArgs;
use crate::config::Config;
use crate::consents::{change_consents, read_consents};
use crate::dirs::Dirs;
use crate::foreign_agents::ForeignHost;
use crate::mcp::told;
use crate::project_files::ProjectFiles;
use crate::projects::{HostProjects, shell_word, shown};

pub(crate) fn run(config: &Arc<Config>, dirs: &Dirs, args: &TrustArgs) -> Result<()> {
    let consents = read_consents(&dirs.trust_file).map_err(anyhow::Error::msg)?;
    if args.list {
        return Ok(answer::write(&listed(&consents))?);
    }
    let directory = args.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    if args.revoke {
        return revoke(dirs, &directory);
    }
    let found =
        ProjectFiles::find(&directory).with_context(|| format!("can't open {}", directory.display()))?;
    let mistakes = HostProjects::new(config, dirs, &ForeignHost::without_variables()).mistakes(&found);
    give(dirs, &consents, &FoundProject { found, mistakes }, args)
}

/// A project, with the parts of it that would have no effect even if trusted.
struct FoundProject {
    found: ProjectFiles,
    mistakes: Vec<String>,
}

fn give(dirs: &Dirs, consents: &Consents, project: &FoundProject, args: &TrustArgs) -> Result<()> {
    let FoundProject { found, mistakes } = project;
    let (content, project) = (found.content(), found.project.display());
    for left_out in &found.left_out {
        answer::note(&format!("attache: not used: {left_out}"));
    }
    let changes = match consents.judge(&found.project, &content) {
        Trust::NotNeeded => {
            let text = format!(
                "{project} has nothing that needs your consent: its instructions, skills and commands are only text.\n"
            );
            return Ok(answer::write(&text)?);
        }
        Trust::Given => {
            return Ok(answer::write(&format!("You trust {project} as it is{}.\n", but(mistakes)))?);
        }
        Trust::NeverGiven | Trust::Declined => None,
        Trust::Outdated(changes) => Some(changes),
    };
    answer::write(&shown(found, changes.as_deref(), consents.servers(&found.project)))?;
    // With `--yes` the last line contains them.
    for mistake in mistakes.iter().filter(|_| !args.yes) {
        answer::write(&format!("not used: {mistake}\n"))?;
    }
    if !args.yes && !answer::is_agreed(&format!("Trust {}?", shell_word(&found.project)))? {
        bail!("nothing was trusted; to trust it: attache trust {} --yes", shell_word(&found.project));
    }
    let servers = told::servers_of(found);
    change_consents(&dirs.trust_file, |consents| consents.give(&found.project, content, servers))?;
    let but = but(mistakes);
    Ok(answer::write(&format!("You trust {project} now. Sessions that begin from now on follow it{but}.\n"))?)
}

/// Tells a user who trusts a project that some of it has no effect.
fn but(mistakes: &[String]) -> String {
    match mistakes.len() {
        0 => String::new(),
        _ => format!(", except for what has mistakes: {}", mistakes.join("; ")),
    }
}

fn revoke(dirs: &Dirs, directory: &Path) -> Result<()> {
    // For a project that is gone, use the path it had.
    let project = directory.canonicalize().or_else(|_| std::path::absolute(directory))?;
    if !change_consents(&dirs.trust_file, |consents| consents.revoke(&project))? {
        bail!("{} was not trusted; `attache trust --list` shows what is", project.display());
    }
    Ok(answer::write(&format!("{} is not trusted any more.\n", project.display()))?)
}

fn listed(consents: &Consents) -> String {
    let mut text = String::new();
    for (project, content) in consents.iter() {
        let files: Vec<_> = content.paths().map(|path| path.display().to_string()).collect();
        text.push_str(&format!("{}: {}\n", project.display(), files.join(", ")));
    }
    if text.is_empty() { "You trust no project yet.\n".to_owned() } else { text }
}
