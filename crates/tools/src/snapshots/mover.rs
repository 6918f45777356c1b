//! Moves files between two states for a rewind: with the same handles, checks and locks as the tools, each file
//! in one step. A file with unexpected content is left alone.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::snapshots::MoveOutcome;
use attache_core::ports::tool::Site;
use attache_core::ports::{BoxFuture, FileMover};
use attache_core::prompt;
use attache_core::snapshot::{FileKeeper, FileMove, FileState, SnapshotShelf};
use attache_sandbox::paths::normal;
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use crate::FileTurns;
use crate::digest::{ABSENT, digest};
use crate::files::{self, FileError, FoundThere, NewMode, Parents, Target};
use crate::roots::OpenRoots;
use crate::snapshots::left_at;
use crate::text::Decoded;
use crate::texts::{CallTexts, Deed};

/// A change by another program is never undone.
const CHANGED: &str = "it was changed since the agent last wrote it";
const GONE: &str = "its content is not kept any more";
const NO_CLIENT: &str = "its text is kept by an editor that is not connected";
const UNSAVED: &str =
    "its text is only in the editor, which can't be asked to drop it: close it there without saving";

/// Moves files on this machine, or through the client's editor if that keeps them.
#[derive(Clone, Debug)]
pub struct SnapshotMover {
    turns: FileTurns,
}

impl SnapshotMover {
    /// Shares its locks with the tools, so that none changes a file that is being moved.
    pub fn new(turns: &FileTurns) -> Self {
        Self { turns: turns.clone() }
    }

    async fn move_file(
        &self,
        reach: &OpenRoots,
        site: &Site,
        shelf: &SnapshotShelf,
        wanted: &FileMove,
    ) -> MoveOutcome {
        let _turn = self.turns.0.lock(&files::real_name(&wanted.path, reach)).await;
        let content = match content(shelf, &wanted.to).await {
            Ok(content) => content,
            Err(reason) => return MoveOutcome::NotCovered(reason),
        };
        let moved = match wanted.keeper {
            FileKeeper::Disk => move_on_disk(reach, shelf, wanted, content).await,
            FileKeeper::Client => move_at_client(reach, site, wanted, content).await,
        };
        moved.unwrap_or_else(|error| MoveOutcome::NotCovered(error.to_string()))
    }
}

impl FileMover for SnapshotMover {
    fn move_files(
        &self,
        site: Site,
        shelf: Arc<SnapshotShelf>,
        moves: Vec<FileMove>,
    ) -> BoxFuture<'_, Vec<MoveOutcome>> {
        Box::pin(async move {
            let reach = OpenRoots::new(&site.workspace, &site.granted);
            let mut outcomes = Vec::with_capacity(moves.len());
            for wanted in &moves {
                outcomes.push(self.move_file(&reach, &site, &shelf, wanted).await);
            }
            outcomes
        })
    }

    fn look_at(&self, site: Site, paths: Vec<PathBuf>) -> BoxFuture<'_, Vec<Option<FileState>>> {
        Box::pin(async move {
            let reach = OpenRoots::new(&site.workspace, &site.granted);
            let mut found = Vec::with_capacity(paths.len());
            for path in &paths {
                found.push(left_at(path, &reach).await);
            }
            found
        })
    }
}

/// The bytes that a file has to contain; `None` if the state is no file.
async fn content(shelf: &SnapshotShelf, state: &FileState) -> Result<Option<Vec<u8>>, String> {
    match state {
        FileState::File { digest, blob, .. } => {
            let found = shelf.content(blob.as_deref().unwrap_or(digest)).await;
            let found = found.map_err(|error| error.to_string())?;
            Ok(Some(found.ok_or_else(|| GONE.to_owned())?))
        }
        FileState::Absent | FileState::Link { .. } => Ok(None),
        FileState::Unkept { reason } => Err(reason.clone()),
    }
}

/// Reads, stores the content, reads again and replaces: the last two without a pause between them.
async fn move_on_disk(
    reach: &OpenRoots,
    shelf: &SnapshotShelf,
    wanted: &FileMove,
    content: Option<Vec<u8>>,
) -> Result<MoveOutcome, FileError> {
    let found = blocking(reach, wanted, |target, wanted| match target {
        Some(target) => Ok(judged(target.look()?, wanted)),
        None => Ok(judged(FoundThere::Nothing, wanted)),
    });
    match found.await? {
        MoveCheck::As(outcome) => return Ok(outcome),
        MoveCheck::Expected(None) => {}
        MoveCheck::Expected(Some(bytes)) => {
            if let Err(error) = shelf.keep_moved(bytes).await {
                return Ok(MoveOutcome::NotCovered(error.to_string()));
            }
        }
    }
    let reach_of_parents = reach.clone();
    blocking(reach, wanted, move |target, wanted| {
        let target = match (target, &wanted.to) {
            (Some(target), _) => target,
            (None, FileState::Absent) => return Ok(MoveOutcome::Unneeded),
            (None, _) => Target::open_unfollowed(&wanted.path, &reach_of_parents, Parents::Make)?,
        };
        if let MoveCheck::As(outcome) = judged(target.look()?, wanted) {
            return Ok(outcome);
        }
        put(&target, wanted, content.unwrap_or_default(), &reach_of_parents)?;
        Ok(MoveOutcome::Moved)
    })
    .await
}

fn put(target: &Target, wanted: &FileMove, content: Vec<u8>, reach: &OpenRoots) -> Result<(), FileError> {
    match &wanted.to {
        FileState::File { mode, .. } => {
            // Only the user may set the bits that make a program run as another user.
            target.replace(&content, mode.map_or(NewMode::Usual, |mode| NewMode::Exactly(mode & 0o777)))
        }
        FileState::Link { target: leads_to } if stays_inside(&wanted.path, leads_to, reach) => {
            target.replace_by_link(leads_to)
        }
        FileState::Link { .. } => {
            Err(FileError::Guarded { reason: "it was a link that leads out of the workspace".to_owned() })
        }
        FileState::Absent => {
            target.remove()?;
            remove_directories(&wanted.path, wanted.made_directories, reach);
            Ok(())
        }
        FileState::Unkept { reason } => Err(FileError::Guarded { reason: reason.clone() }),
    }
}

/// Whether a link's target is within reach, both by its text and in fact.
fn stays_inside(link: &Path, leads_to: &Path, reach: &OpenRoots) -> bool {
    let Some(directory) = link.parent() else { return false };
    // The meaning of `..` after a name depends on what that name is when the link is followed.
    let mut names = leads_to.components().skip_while(|name| *name == Component::ParentDir);
    if names.any(|name| name == Component::ParentDir) {
        return false;
    }
    match reach.follow(&normal(&directory.join(leads_to))) {
        Ok(_) => true,
        // The target does not exist, but lies within the roots: this error never comes from outside.
        Err(FileError::Io { source, .. }) => {
            [Errno::LOOP, Errno::NOTDIR].contains(&Errno::from_io_error(&source).unwrap_or(Errno::IO))
        }
        Err(_) => false,
    }
}

/// Removes directories that the agent created, if they are empty.
fn remove_directories(path: &Path, directories: usize, reach: &OpenRoots) {
    for directory in path.ancestors().skip(1).take(directories) {
        let removed = Target::open_unfollowed(directory, reach, Parents::Require)
            .and_then(|target| target.remove_directory());
        if let Err(error) = removed {
            tracing::debug!(%error, "a directory stays");
            break;
        }
    }
}

/// The result of checking a file before its move.
enum MoveCheck {
    /// It can be moved; these are its current bytes.
    Expected(Option<Vec<u8>>),
    As(MoveOutcome),
}

fn judged(found: FoundThere, wanted: &FileMove) -> MoveCheck {
    let (state, bytes) = match found {
        FoundThere::Nothing => (FileState::Absent, None),
        FoundThere::File { bytes, mode } => {
            let digest = prompt::digest(&bytes);
            (FileState::File { digest, blob: None, mode: Some(mode) }, Some(bytes))
        }
        FoundThere::Link { target } => (FileState::Link { target }, None),
        FoundThere::Other(reason) => return MoveCheck::As(MoveOutcome::Conflict(reason.to_owned())),
    };
    if state.is_same(&wanted.to) {
        MoveCheck::As(MoveOutcome::Unneeded)
    } else if state.is_same(&wanted.from) {
        MoveCheck::Expected(bytes)
    } else {
        MoveCheck::As(MoveOutcome::Conflict(CHANGED.to_owned()))
    }
}

/// Runs outside of the runtime's threads, at the place of the file; `None` if its directory does not exist.
async fn blocking<T: Send + 'static>(
    reach: &OpenRoots,
    wanted: &FileMove,
    work: impl FnOnce(Option<Target>, &FileMove) -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    let (reach, wanted) = (reach.clone(), wanted.clone());
    let path: PathBuf = wanted.path.clone();
    let done = tokio::task::spawn_blocking(move || {
        let target = match Target::open_unfollowed(&wanted.path, &reach, Parents::Require) {
            Ok(target) => Some(target),
            Err(FileError::Missing { .. }) => None,
            Err(error) => return Err(error),
        };
        work(target, &wanted)
    });
    done.await.unwrap_or_else(|error| Err(FileError::io(&path, "moved", std::io::Error::other(error))))
}

/// Through the editor that keeps the text; ignores its own choice of line ends and of the last line feed.
async fn move_at_client(
    reach: &OpenRoots,
    site: &Site,
    wanted: &FileMove,
    content: Option<Vec<u8>>,
) -> Result<MoveOutcome, FileError> {
    let offers = site.client.as_ref().map(|client| client.offers());
    if !offers.is_some_and(|offers| offers.reads_texts && offers.writes_texts) {
        return Ok(MoveOutcome::NotCovered(NO_CLIENT.to_owned()));
    }
    let judged = Some([wanted.path.clone()].into());
    let texts = CallTexts::for_changing(&Site { judged, ..site.clone() }, &CancellationToken::new());
    let original = texts.load(&wanted.path).await?;
    let named = |state: &FileState| match state {
        FileState::File { digest, .. } => Some(digest.clone()),
        FileState::Absent => Some(ABSENT.to_owned()),
        FileState::Link { .. } | FileState::Unkept { .. } => None,
    };
    let current = Some(original.digest.clone());
    if current == named(&wanted.to) {
        return Ok(MoveOutcome::Unneeded);
    }
    if current != named(&wanted.from) {
        return Ok(MoveOutcome::Conflict(CHANGED.to_owned()));
    }
    let deed = match (content, &original.disk) {
        (Some(bytes), _) => {
            let body = String::from_utf8_lossy(&bytes).into_owned();
            Deed::Put { bytes, body, mode: NewMode::Usual }
        }
        // Files are removed on the disk, whose content may differ from the editor's.
        (None, Some(disk)) if named(&wanted.from) == text_on_disk(&disk.bytes) => Deed::Remove,
        (None, Some(_)) => return Ok(MoveOutcome::Conflict(CHANGED.to_owned())),
        (None, None) => return Ok(MoveOutcome::NotCovered(UNSAVED.to_owned())),
    };
    let removes = matches!(deed, Deed::Remove);
    texts.perform(&original, deed).await?;
    if removes {
        remove_directories(&wanted.path, wanted.made_directories, reach);
    }
    Ok(MoveOutcome::Moved)
}

/// The digest of a text on the disk, computed like that of a client's text.
fn text_on_disk(bytes: &[u8]) -> Option<String> {
    let decoded = Decoded::from_bytes(bytes.to_vec()).ok()?;
    Some(digest(decoded.body.as_bytes()))
}
