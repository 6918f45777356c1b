//! `attache sessions delete` and `archive`: change what is stored, under the session's lease.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use attache_core::hub::{HubError, StoredSessions};
use attache_core::ports::store::SessionRow;
use attache_store::FileBlobs;
use attache_tools::ScratchDirectories;

use super::{plain, title};
use crate::answer;
use crate::setup::{self, Sources};

/// Whether the user has agreed to delete the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    /// With `--yes`.
    Given,
    /// Asks on the terminal; without one, deletes nothing.
    Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Archiving {
    Do,
    Undo,
}

pub(super) async fn delete(sources: &Sources, row: &SessionRow, consent: Consent) -> Result<()> {
    match consent {
        Consent::Given => {}
        Consent::Asked if !answer::is_typed() => {
            bail!("a deleted session is gone for ever; add --yes to delete {}", named(row))
        }
        Consent::Asked => {
            let place = plain(&row.workspace_root.to_string_lossy());
            if !answer::is_agreed(&format!("Delete {} in {place}? It can't be brought back.", named(row)))? {
                bail!("nothing was deleted");
            }
        }
    }
    change(sources, row, SessionChange::Delete).await?;
    Ok(answer::write(&format!("deleted {}\n", named(row)))?)
}

pub(super) async fn archive(sources: &Sources, row: &SessionRow, archiving: Archiving) -> Result<()> {
    let (archived_at, done) = match archiving {
        Archiving::Do => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            (Some(i64::try_from(now.as_millis()).unwrap_or(i64::MAX)), "archived")
        }
        Archiving::Undo => (None, "listed again:"),
    };
    change(sources, row, SessionChange::Archive(archived_at)).await?;
    Ok(answer::write(&format!("{done} {}\n", named(row)))?)
}

enum SessionChange {
    Delete,
    Archive(Option<i64>),
}

async fn change(sources: &Sources, row: &SessionRow, change: SessionChange) -> Result<()> {
    let dirs = &sources.dirs;
    let (store, _) = setup::open_store(sources)?;
    let blobs = FileBlobs::new(dirs.blobs.clone());
    let scratch = ScratchDirectories::below(dirs.scratch.clone());
    let stored = StoredSessions { store: &store, leases: &store, blobs: &blobs, scratch: Some(&scratch) };
    let changed = match change {
        SessionChange::Delete => match stored.delete(&row.id).await {
            // When the command reports success, the text must be gone, also from the search index.
            Ok(()) => store.finish_erasing().await.map_err(HubError::from),
            refused => refused,
        },
        SessionChange::Archive(archived_at) => stored.archive(&row.id, archived_at).await,
    };
    store.shutdown();
    match changed {
        Err(HubError::RunningElsewhere(_)) => {
            bail!("{} is running in an editor; cancel its turn there, or wait for its end", named(row))
        }
        other => Ok(other?),
    }
}

fn named(row: &SessionRow) -> String {
    format!("{} ({})", plain(row.id.as_str()), title(row))
}
