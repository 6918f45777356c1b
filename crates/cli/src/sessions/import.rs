//! `attache sessions import`: stores a JSONL export again, completely or not at all.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use attache_core::ids::Ids;
use attache_core::import::{Authority, ImportError, Imported, SessionArchive, import};
use attache_store::{FileBlobs, SqliteStore};

use super::plain;
use crate::answer;
use crate::args::ImportArgs;
use crate::setup::{self, Sources};
use crate::unfinished_imports::{self, ImportMarker};

pub(super) async fn run(sources: &Sources, arguments: &ImportArgs) -> Result<()> {
    // Read all of it before opening anything, so that a damaged file creates no database.
    let mut archive = read(&arguments.file)?;
    if let Some(directory) = &arguments.workspace {
        let directory = std::path::absolute(directory).and_then(|path| path.canonicalize());
        archive.set_workspace(directory.context("can't work in the directory of --workspace")?);
    } else if let Some(home) = &sources.dirs.home
        && home.starts_with(&archive.session().workspace_root)
    {
        bail!(
            "nothing was imported: the file says that the session works in {}, which holds your home directory; name \
             another with --workspace DIR",
            plain(&archive.session().workspace_root.to_string_lossy())
        );
    }
    let title = plain(archive.session().metadata.title().unwrap_or("(no title)"));
    let place = plain(&archive.session().workspace_root.to_string_lossy());
    sources.dirs.create()?;
    let (store, _) = setup::open_store(sources)?;
    let imported = into_store(sources, &store, archive, arguments).await;
    store.shutdown();
    let Imported { session_id, messages, missing_blobs, left_out, .. } = imported?;
    if missing_blobs > 0 {
        answer::note(&format!("{missing_blobs} attachments are not in the file"));
    }
    if left_out > 0 {
        answer::note(&format!(
            "left out {left_out} rules, directories and choices of approval; --with-permissions keeps them"
        ));
    }
    Ok(answer::write(&format!("imported {session_id} ({title}), {messages} messages, in {place}\n"))?)
}

fn read(path: &Path) -> Result<SessionArchive> {
    let mut input: Box<dyn BufRead> = match path.to_str() {
        Some("-") => Box::new(BufReader::new(io::stdin())),
        Some(_) | None => {
            let file = File::open(path).with_context(|| format!("can't open {}", path.display()))?;
            Box::new(BufReader::new(file))
        }
    };
    SessionArchive::read(&mut *input).with_context(|| format!("nothing was imported from {}", path.display()))
}

async fn into_store(
    sources: &Sources,
    store: &SqliteStore,
    archive: SessionArchive,
    arguments: &ImportArgs,
) -> Result<Imported> {
    let blobs = FileBlobs::new(sources.dirs.blobs.clone());
    let database = &sources.config.store.value;
    unfinished_imports::clean_up(&sources.dirs, database, store, &blobs).await?;
    let archive = match arguments.new_ids {
        true => archive.with_new_ids(&Ids::new(setup::system_clock(), setup::seed()))?,
        false => archive,
    };
    let marker = ImportMarker::set(&sources.dirs, database, &archive.session().id)?;
    let authority = if arguments.with_permissions { Authority::Keep } else { Authority::LeaveOut };
    let imported = import(archive, authority, store, &blobs).await;
    match imported.is_ok() {
        true => marker.remove()?,
        false => {
            drop(marker);
            unfinished_imports::clean_up(&sources.dirs, database, store, &blobs).await?;
        }
    }
    match imported {
        Ok(imported) => Ok(imported),
        Err(taken @ (ImportError::SessionExists(_) | ImportError::IdTaken(_))) => {
            bail!("{taken}; nothing was imported: add --new-ids to store it as another session")
        }
        Err(error) => Err(error.into()),
    }
}
