//! A file before it is changed: its content, what keeps it, what the model knows of it. Reads the disk, asks no
//! client.

use std::fs::File;
use std::path::{Path, PathBuf};

use attache_core::seen::{SeenLines, Sight};

use super::TextStore;
use crate::digest::{ABSENT, digest, stamp};
use crate::files::{self, FileError, NewMode};
use crate::paths::{below, told};
use crate::text::{Decoded, Encoding};

/// What the model knows of a file before it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// The model never read or wrote it.
    None,
    Current,
    /// The model saw only some of its lines.
    Partial,
    /// Another program changed it since.
    Outdated,
}

/// Whether the model may read a file without a question; if not, nothing that it is told may depend on the
/// content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readable {
    Unasked,
    /// A rule asks or denies.
    Closed,
}

/// A file before a change.
#[derive(Debug)]
pub(crate) struct Original {
    pub(crate) path: PathBuf,
    /// The name that the model is told.
    pub(crate) told: String,
    /// With all links resolved.
    pub(crate) real: PathBuf,
    /// The same below the session's name of the root.
    pub(crate) named: PathBuf,
    pub(crate) content: OriginalContent,
    /// The digest of its content.
    pub(crate) digest: String,
    pub(crate) knowledge: Knowledge,
    pub(crate) readable: Readable,
    /// The bytes on the disk, to restore them if a later change fails.
    pub(crate) disk: Option<OldBytes>,
    /// How many directories on the way are missing.
    pub(crate) missing_directories: usize,
    pub(super) reader: TextStore,
    pub(crate) writer: TextStore,
}

#[derive(Debug)]
pub(crate) struct OldBytes {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mode: u32,
}

/// What the disk says about a file.
#[derive(Debug)]
pub(super) struct OnDisk {
    content: OriginalContent,
    pub(crate) digest: String,
    bytes: Option<OldBytes>,
}

impl OnDisk {
    pub(super) fn missing(error: FileError) -> Self {
        Self { content: OriginalContent::Missing(error), digest: ABSENT.to_owned(), bytes: None }
    }

    /// Reads it, unless it is too large.
    pub(super) fn of(file: File, path: &Path) -> Result<Self, FileError> {
        let metadata = file.metadata().map_err(|error| FileError::io(path, "read", error))?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777;
        let bytes = match files::load(file, path) {
            Ok(bytes) => bytes,
            Err(error @ FileError::TooLarge { .. }) => {
                return Ok(OnDisk {
                    content: OriginalContent::Opaque(error),
                    digest: stamp(&metadata),
                    bytes: None,
                });
            }
            Err(error) => return Err(error),
        };
        let content = match Decoded::from_bytes(bytes.clone()) {
            Ok(decoded) => OriginalContent::Text(decoded),
            Err(reason) => OriginalContent::Opaque(FileError::NotText { path: path.to_owned(), reason }),
        };
        Ok(OnDisk { content, digest: digest(&bytes), bytes: Some(OldBytes { bytes, mode }) })
    }
}

/// The content of a file. The errors are those of tools that need a text.
#[derive(Debug)]
pub(crate) enum OriginalContent {
    Missing(FileError),
    Text(Decoded),
    /// Binary, or too large to compare.
    Opaque(FileError),
}

/// What to do with a file.
#[derive(Debug)]
pub(crate) enum Deed {
    Put { bytes: Vec<u8>, body: String, mode: NewMode },
    Remove,
}

impl Original {
    pub(super) fn on_disk(path: &Path, real: PathBuf, found: OnDisk, missing_directories: usize) -> Self {
        Self {
            path: path.to_owned(),
            told: told(path),
            named: real.clone(),
            real,
            content: found.content,
            digest: found.digest,
            knowledge: Knowledge::None,
            readable: Readable::Unasked,
            disk: found.bytes,
            missing_directories,
            reader: TextStore::Disk,
            writer: TextStore::Disk,
        }
    }

    /// Names it relative to the workspace's root for the model.
    pub(super) fn name_below(&mut self, root: &Path) {
        self.told = told(below(root, &self.path));
        let content = std::mem::replace(
            &mut self.content,
            OriginalContent::Opaque(FileError::Cancelled { path: PathBuf::new() }),
        );
        self.content = match content {
            OriginalContent::Missing(error) => OriginalContent::Missing(error.relative_to(root)),
            OriginalContent::Opaque(error) => OriginalContent::Opaque(error.relative_to(root)),
            OriginalContent::Text(decoded) => OriginalContent::Text(decoded),
        };
    }

    /// What the model knows of it from now on: its own change, or that nothing had to change. Changes by others
    /// stay unknown until it reads them.
    pub(crate) fn sight(&self, deed: Option<&Deed>) -> Option<Sight> {
        if deed.is_some() && self.knowledge == Knowledge::Outdated {
            return None;
        }
        let digest = self.digest_after(deed);
        // The lines that it has not seen are still there: a file that is known in part is never replaced.
        let is_partial = self.knowledge == Knowledge::Partial && matches!(deed, Some(Deed::Put { .. }));
        let lines = is_partial.then_some(SeenLines { first: 0, end: 0, total: None });
        Some(Sight { path: self.real.clone(), digest, lines })
    }

    /// The digest of its content after the change.
    pub(crate) fn digest_after(&self, deed: Option<&Deed>) -> String {
        match (deed, &self.writer) {
            (Some(Deed::Put { bytes, .. }), TextStore::Disk) => digest(bytes),
            (Some(Deed::Put { body, .. }), TextStore::Client(_)) => digest(body.as_bytes()),
            (Some(Deed::Remove), _) => ABSENT.to_owned(),
            (None, _) => self.digest.clone(),
        }
    }

    /// The text, or why there is none.
    pub(crate) fn text(&self) -> Result<&Decoded, String> {
        match &self.content {
            OriginalContent::Text(decoded) => Ok(decoded),
            OriginalContent::Missing(error) | OriginalContent::Opaque(error) => Err(error.to_string()),
        }
    }

    /// Its encoding; new files are UTF-8.
    pub(crate) fn encoding(&self) -> Encoding {
        match &self.content {
            OriginalContent::Text(decoded) => decoded.encoding,
            OriginalContent::Missing(_) | OriginalContent::Opaque(_) => Encoding::UTF_8,
        }
    }

    /// Replaces the file's text by this one.
    pub(crate) fn put(&self, body: String, mode: NewMode, encoding: Encoding) -> Result<Deed, FileError> {
        let encoding = match self.writer {
            TextStore::Disk => encoding,
            // A client chooses itself how it encodes its files.
            TextStore::Client(_) => Encoding::UTF_8,
        };
        let encoded = encoding.encode(&body);
        let bytes = encoded.map_err(|reason| FileError::Unencodable { path: self.path.clone(), reason })?;
        Ok(Deed::Put { bytes, body, mode })
    }

    /// A client's text with the file's own end: some clients remove the last line feed, others add one.
    pub(super) fn with_its_end(&self, body: String) -> String {
        let OriginalContent::Text(disk) = &self.content else { return body };
        let bare = |text: &str| {
            let text = text.strip_suffix('\n').unwrap_or(text);
            text.strip_suffix('\r').unwrap_or(text).len()
        };
        let same = body[..bare(&body)] == disk.body[..bare(&disk.body)];
        if same { disk.body.clone() } else { body }
    }

    /// Whether the user may execute it.
    pub(crate) fn is_executable(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.mode & 0o100 != 0)
    }

    /// How much memory a change of it takes.
    pub(crate) fn size(&self) -> usize {
        self.disk.as_ref().map_or(0, |disk| disk.bytes.len())
    }
}
