//! Where texts are kept: on the disk, or by the client's editor. Same paths, same checks, another capability.

mod original;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::Delegate;
use attache_core::ports::delegate::{DelegateError, Lines};
use attache_core::ports::tool::Site;
use attache_core::seen::SeenFiles;
use attache_core::watchdog::ReadRules;
use tokio_util::sync::CancellationToken;

use crate::digest::{ABSENT, digest};
use crate::files::{self, FileError, NewMode, Parents, Target};
use crate::roots::OpenRoots;
use crate::text::{Decoded, Encoding};

use original::OnDisk;
pub(crate) use original::{Deed, Knowledge, Original, OriginalContent, Readable};

/// What keeps a text.
#[derive(Clone, Debug)]
pub(crate) enum TextStore {
    Disk,
    /// The client's editor, which may have unsaved changes and shows ours for review.
    Client(Arc<dyn Delegate>),
}

impl TextStore {
    fn of(site: &Site, offered: fn(&attache_core::ports::delegate::Offers) -> bool) -> Self {
        match &site.client {
            Some(client) if offered(&client.offers()) => Self::Client(Arc::clone(client)),
            Some(_) | None => Self::Disk,
        }
    }
}

/// The texts of one call.
#[derive(Clone, Debug)]
pub(crate) struct CallTexts {
    /// The root of the workspace: the model names files relative to it.
    root: PathBuf,
    reach: OpenRoots,
    reader: TextStore,
    writer: TextStore,
    cancel: CancellationToken,
    seen: Arc<SeenFiles>,
    closed: Option<ReadRules>,
}

impl CallTexts {
    /// For reading only.
    pub(crate) fn for_reading(site: &Site, cancel: &CancellationToken) -> Self {
        let reader = TextStore::of(site, |offers| offers.reads_texts);
        // A read has to see what a change would start from.
        let writer = TextStore::of(site, |offers| offers.writes_texts);
        Self::of(site, reader, writer, cancel)
    }

    /// For changes. A client that can't write texts is not asked for them either: its unsaved changes would end
    /// up on the disk.
    pub(crate) fn for_changing(site: &Site, cancel: &CancellationToken) -> Self {
        let writer = TextStore::of(site, |offers| offers.writes_texts);
        let reader = TextStore::of(site, |offers| offers.writes_texts && offers.reads_texts);
        Self::of(site, reader, writer, cancel)
    }

    fn of(site: &Site, reader: TextStore, writer: TextStore, cancel: &CancellationToken) -> Self {
        let (root, seen) = (site.workspace.root.clone(), site.seen.clone());
        let closed = site.closed.clone();
        Self { root, reach: OpenRoots::of(site), reader, writer, cancel: cancel.clone(), seen, closed }
    }

    /// What the model is told about a failure.
    pub(crate) fn in_words(&self, error: FileError) -> String {
        error.relative_to(&self.root).to_string()
    }

    pub(crate) fn seen(&self) -> &SeenFiles {
        &self.seen
    }

    pub(crate) fn reach(&self) -> &OpenRoots {
        &self.reach
    }

    /// The file at `path` from wherever it is kept, if it may be changed.
    pub(crate) async fn load(&self, path: &Path) -> Result<Original, FileError> {
        let (reach, owned) = (self.reach.clone(), path.to_owned());
        let mut found = blocking(path, "read", move || find(&owned, &reach)).await?;
        if !found.is_scratch {
            found.original.reader = self.reader.clone();
            found.original.writer = self.writer.clone();
        }
        if let TextStore::Client(client) = &found.original.reader {
            let asked = client.read_text(&found.named, Lines::default());
            match self.until_cancelled(path, asked).await? {
                Ok(body) => {
                    let body = found.original.with_its_end(body);
                    found.original.digest = digest(body.as_bytes());
                    found.original.content =
                        OriginalContent::Text(Decoded { encoding: Encoding::UTF_8, body });
                }
                // The client does not know the file either.
                Err(DelegateError::Refused(_)) if found.original.disk.is_none() => {}
                Err(source) => return Err(client_error(path, "read", source)),
            }
        }
        found.original.named.clone_from(&found.named);
        found.original.readable = self.readable([path, &found.named, &found.original.real]);
        found.original.name_below(&self.root);
        found.original.knowledge = match self.seen.digest(&found.original.real) {
            None => Knowledge::None,
            Some(digest) if digest != found.original.digest => Knowledge::Outdated,
            Some(_) if self.seen.is_partial(&found.original.real) => Knowledge::Partial,
            Some(_) => Knowledge::Current,
        };
        Ok(found.original)
    }

    /// Checked under each of its names.
    fn readable(&self, names: [&Path; 3]) -> Readable {
        match &self.closed {
            Some(closed) if names.iter().any(|name| closed.closes(name)) => Readable::Closed,
            Some(_) | None => Readable::Unasked,
        }
    }

    /// Applies one change to a file, in one step.
    pub(crate) async fn perform(&self, original: &Original, deed: Deed) -> Result<(), FileError> {
        let (reach, path) = (self.reach.clone(), original.path.clone());
        match (deed, &original.writer) {
            (Deed::Put { bytes, mode, .. }, TextStore::Disk) => {
                blocking(&original.path, "written", move || {
                    Target::open(&path, &reach, Parents::Make)?.replace(&bytes, mode)
                })
                .await
            }
            (Deed::Put { body, .. }, TextStore::Client(client)) => {
                let target =
                    blocking(&original.path, "written", move || Target::open(&path, &reach, Parents::Make));
                let written = client.write_text(&target.await?.named, body);
                let answer = self.until_cancelled(&original.path, written).await?;
                answer.map_err(|source| client_error(&original.path, "written", source))
            }
            // No client offers this.
            (Deed::Remove, TextStore::Disk | TextStore::Client(_)) => {
                blocking(&original.path, "removed", move || {
                    Target::open(&path, &reach, Parents::Require)?.remove()
                })
                .await
            }
        }
    }

    /// Restores a file as far as possible.
    pub(crate) async fn put_back(&self, original: &Original) -> Result<(), FileError> {
        if let (OriginalContent::Text(decoded), TextStore::Client(client)) =
            (&original.content, &original.writer)
        {
            let (reach, path) = (self.reach.clone(), original.path.clone());
            let target =
                blocking(&original.path, "put back", move || Target::open(&path, &reach, Parents::Require));
            let answer = client.write_text(&target.await?.named, decoded.body.clone()).await;
            return answer.map_err(|source| client_error(&original.path, "put back", source));
        }
        let (reach, path) = (self.reach.clone(), original.path.clone());
        let disk = original.disk.as_ref().map(|disk| (disk.bytes.clone(), NewMode::Exactly(disk.mode)));
        let directories = original.missing_directories;
        blocking(&original.path, "put back", move || match disk {
            Some((bytes, mode)) => Target::open(&path, &reach, Parents::Require)?.replace(&bytes, mode),
            None => take_away(&path, directories, &reach),
        })
        .await
    }

    /// The lines of a text from the client; `None` if the disk keeps it. `file` is the one on the disk.
    pub(crate) async fn lines_of_client(
        &self,
        path: &Path,
        lines: Lines,
    ) -> Result<Option<ClientLines>, FileError> {
        let TextStore::Client(client) = &self.reader else { return Ok(None) };
        let (reach, owned) = (self.reach.clone(), path.to_owned());
        let (named, file) = blocking(path, "read", move || {
            if reach.lacks_scratch_for(&owned) {
                return Ok((owned.clone(), files::open(&owned, &reach)));
            }
            let place = reach.resolve(&owned)?;
            reach.may_show(&place.real)?;
            let file = match files::open(&owned, &reach) {
                Ok(file) => Ok(file),
                Err(error @ FileError::Missing { .. }) => Err(error),
                Err(error) => return Err(error),
            };
            Ok((place.named, file))
        })
        .await?;
        if self.reach.is_scratch(&named) {
            return Ok(None);
        }
        let asked = client.read_text(&named, lines);
        match (self.until_cancelled(path, asked).await?, file) {
            (Ok(text), file) => {
                let whole = match lines == Lines::default() {
                    true => Some(text.clone()),
                    // Needs the whole text for its length and digest; if the client does not give it, do
                    // without.
                    false => {
                        self.until_cancelled(path, client.read_text(&named, Lines::default())).await?.ok()
                    }
                };
                let file = file.ok();
                let digest = match &self.writer {
                    TextStore::Client(_) => whole.as_ref().map(|whole| digest(whole.as_bytes())),
                    TextStore::Disk => self.digest_of_disk(path).await,
                };
                Ok(Some(ClientLines { text, whole, digest, file }))
            }
            (Err(DelegateError::Refused(_)), Err(missing)) => Err(missing),
            (Err(source), _) => Err(client_error(path, "read", source)),
        }
    }

    /// The digest of the file on the disk, if a client shows another text but can't write it.
    async fn digest_of_disk(&self, path: &Path) -> Option<String> {
        let (reach, owned) = (self.reach.clone(), path.to_owned());
        let read = blocking(path, "read", move || OnDisk::of(files::open(&owned, &reach)?, &owned)).await;
        match read {
            Ok(found) => Some(found.digest),
            Err(FileError::Missing { .. }) => Some(ABSENT.to_owned()),
            Err(_) => None,
        }
    }

    async fn until_cancelled<T>(
        &self,
        path: &Path,
        asked: impl Future<Output = Result<T, DelegateError>>,
    ) -> Result<Result<T, DelegateError>, FileError> {
        tokio::select! {
            answer = asked => Ok(answer),
            () = self.cancel.cancelled() => Err(FileError::Cancelled { path: path.to_owned() }),
        }
    }
}

/// A file's text according to a client.
#[derive(Debug)]
pub(crate) struct ClientLines {
    /// The wanted lines.
    pub(crate) text: String,
    /// The whole text.
    pub(crate) whole: Option<String>,
    /// The digest of the text that a change would start from.
    pub(crate) digest: Option<String>,
    /// The same file on the disk, if it exists: shows whether it is text at all.
    pub(crate) file: Option<File>,
}

struct LoadedText {
    original: Original,
    named: PathBuf,
    is_scratch: bool,
}

fn find(path: &Path, reach: &OpenRoots) -> Result<LoadedText, FileError> {
    if reach.lacks_scratch_for(path) {
        let missing = FileError::Missing { path: path.to_owned(), hint: String::new() };
        let original = Original::on_disk(path, path.to_owned(), OnDisk::missing(missing), 0);
        return Ok(LoadedText { original, named: path.to_owned(), is_scratch: true });
    }
    let place = reach.resolve(path)?;
    reach.may_change(path, &place.real)?;
    let is_scratch = reach.is_scratch(&place.real) || reach.is_scratch(path);
    let found = match files::open(path, reach) {
        Ok(file) => OnDisk::of(file, path)?,
        Err(error @ FileError::Missing { .. }) => OnDisk::missing(error),
        Err(error) => return Err(error),
    };
    let original = Original::on_disk(path, place.real, found, place.missing.len());
    Ok(LoadedText { original, named: place.named, is_scratch })
}

/// Removes a created file, and this many directories above it.
fn take_away(path: &Path, directories: usize, reach: &OpenRoots) -> Result<(), FileError> {
    Target::open(path, reach, Parents::Require)?.remove()?;
    let reach = &reach.for_own_traces();
    for directory in path.ancestors().skip(1).take(directories) {
        // Another program may have put something there meanwhile; then the directory stays.
        if let Err(error) = Target::open(directory, reach, Parents::Require)?.remove_directory() {
            tracing::debug!(%error, "a directory stays");
            break;
        }
    }
    Ok(())
}

fn client_error(path: &Path, action: &'static str, source: DelegateError) -> FileError {
    FileError::Client { path: path.to_owned(), action, source }
}

/// Runs outside of the runtime's threads, because disks may be slow. Work that has begun continues when its
/// caller has stopped waiting.
async fn blocking<T: Send + 'static>(
    path: &Path,
    action: &'static str,
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(FileError::io(path, action, std::io::Error::other(error))))
}
