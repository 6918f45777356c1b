//! `attache sessions import`: a JSONL export back into the store, whole or not at all.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail};
use attache_core::ids::Ids;
use attache_core::import::{Authority, ImportError, Imported, ImportedIds, SessionArchive, import};
use attache_store::{FileBlobs, SqliteStore};

use super::plain;
use crate::answer;
use crate::args::ImportArgs;
use crate::setup::{self, Sources};

pub(super) async fn run(sources: &Sources, arguments: &ImportArgs) -> Result<()> {
    // Read to its end before anything is opened: a damaged file makes no database.
    let archive = read(&arguments.file)?;
    let title = plain(archive.session().metadata.title().unwrap_or("(no title)"));
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
    Ok(answer::write(&format!("imported {session_id} ({title}), {messages} messages\n"))?)
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
    let new_ids = arguments.new_ids.then(|| Ids::new(setup::system_clock(), setup::seed()));
    let ids = new_ids.as_ref().map_or(ImportedIds::Same, ImportedIds::New);
    let authority = if arguments.with_permissions { Authority::Keep } else { Authority::LeaveOut };
    match import(archive, ids, authority, store, &blobs).await {
        Ok(imported) => Ok(imported),
        Err(taken @ (ImportError::SessionExists(_) | ImportError::IdTaken(_))) => {
            bail!("{taken}; nothing was imported: add --new-ids to store it as another session")
        }
        Err(error) => Err(error.into()),
    }
}
