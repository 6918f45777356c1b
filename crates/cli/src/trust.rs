//! `attache trust`: shows what a project wants to change beyond text for the model, and keeps the user's
//! consent.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use attache_core::trust::{Consents, Trust, TrustChange, TrustChangeKind};

use crate::answer;
use crate::args::TrustArgs;
use crate::dirs::{Dirs, create_private_directory};
use crate::projects::{ProjectFiles, read_consents, shell_word};

pub(crate) fn run(dirs: &Dirs, args: &TrustArgs) -> Result<()> {
    let consents = read_consents(&dirs.trust_file).map_err(anyhow::Error::msg)?;
    if args.list {
        return Ok(answer::write(&listed(&consents))?);
    }
    let directory = args.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    if args.revoke {
        return revoke(dirs, consents, &directory);
    }
    let found =
        ProjectFiles::find(&directory).with_context(|| format!("can't open {}", directory.display()))?;
    give(dirs, &consents, &found, args)
}

fn give(dirs: &Dirs, consents: &Consents, found: &ProjectFiles, args: &TrustArgs) -> Result<()> {
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
        Trust::Given => return Ok(answer::write(&format!("You trust {project} as it is.\n"))?),
        Trust::NeverGiven => None,
        Trust::Outdated(changes) => Some(changes),
    };
    answer::write(&shown(found, changes.as_deref()))?;
    if !args.yes && !agreed(&found.project)? {
        bail!("nothing was trusted; to trust it: attache trust {} --yes", shell_word(&found.project));
    }
    // Somebody may have trusted another project while this one was read.
    let mut consents = read_consents(&dirs.trust_file).map_err(anyhow::Error::msg)?;
    consents.give(&found.project, content);
    store(&dirs.trust_file, &consents)?;
    Ok(answer::write(&format!("You trust {project} now. Sessions that begin from now on follow it.\n"))?)
}

fn revoke(dirs: &Dirs, mut consents: Consents, directory: &Path) -> Result<()> {
    // A project that is gone is known by the name it had.
    let project = directory.canonicalize().or_else(|_| std::path::absolute(directory))?;
    if !consents.revoke(&project) {
        bail!("{} was not trusted; `attache trust --list` shows what is", project.display());
    }
    store(&dirs.trust_file, &consents)?;
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

/// Each file whole, because all of it takes effect; of what was trusted before only what is other now.
fn shown(found: &ProjectFiles, changes: Option<&[TrustChange]>) -> String {
    let mut text = match changes {
        None => format!("{} wants to change more than what the model reads:\n", found.project.display()),
        Some(_) => format!("Changed in {} since you trusted it:\n", found.project.display()),
    };
    for (path, bytes) in &found.files {
        let what = match changes.map(|changes| changes.iter().find(|change| change.path == *path)) {
            Some(None) => continue,
            Some(Some(TrustChange { kind: TrustChangeKind::Added, .. })) => " (new)",
            Some(Some(TrustChange { kind: TrustChangeKind::Changed, .. })) => " (changed)",
            Some(Some(TrustChange { kind: TrustChangeKind::Removed, .. })) | None => "",
        };
        text.push_str(&format!("\n--- {}{what}\n", path.display()));
        text.push_str(String::from_utf8_lossy(bytes).trim_end());
        text.push('\n');
    }
    let removed = changes.into_iter().flatten().filter(|change| change.kind == TrustChangeKind::Removed);
    removed.for_each(|change| text.push_str(&format!("\n--- {} (gone)\n", change.path.display())));
    text.push('\n');
    text
}

/// Anything but a clear yes is a no; so is nobody there to give it.
fn agreed(project: &Path) -> Result<bool> {
    if !answer::is_typed() {
        return Ok(false);
    }
    write!(io::stderr(), "Trust {}? [y/N] ", shell_word(project))?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("the answer could not be read")?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// In place as a whole or not at all, and for its owner alone.
fn store(path: &Path, consents: &Consents) -> Result<()> {
    let failed = || format!("can't write {}", path.display());
    let directory = path.parent().unwrap_or(Path::new("/"));
    create_private_directory(directory).with_context(failed)?;
    let mut file = tempfile::Builder::new().prefix(".trust-").tempfile_in(directory).with_context(failed)?;
    file.write_all(format!("{:#}\n", consents.to_json()).as_bytes()).with_context(failed)?;
    file.as_file().sync_all().with_context(failed)?;
    file.persist(path).with_context(failed)?;
    Ok(())
}
