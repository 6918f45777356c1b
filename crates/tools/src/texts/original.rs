//! A file before it is changed: what it holds, who keeps it, what the model knows of it. Reads the disk, asks no client.

use std::fs::File;
use std::path::{Path, PathBuf};

use attache_core::seen::Sight;

use super::Keeper;
use crate::digest::{ABSENT, digest, stamp};
use crate::files::{self, FileError, NewMode};
use crate::text::{Decoded, Encoding};

/// What the model knows of a file before it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// It never read or wrote it.
    None,
    Current,
    /// Somebody else changed it since.
    Outdated,
}

/// A file before a change.
#[derive(Debug)]
pub(crate) struct Original {
    pub(crate) path: PathBuf,
    /// Every link followed.
    pub(super) real: PathBuf,
    pub(crate) content: Content,
    /// Of what it holds.
    pub(super) digest: String,
    pub(crate) knowledge: Knowledge,
    /// As it is on the disk, to be put back should a later change fail.
    pub(super) disk: Option<Kept>,
    /// Directories on the way that are not there yet.
    pub(super) missing_directories: usize,
    pub(super) reader: Keeper,
    pub(super) writer: Keeper,
}

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
}

/// What the disk says about a file.
#[derive(Debug)]
pub(super) struct OnDisk {
    content: Content,
    pub(super) digest: String,
    bytes: Option<Kept>,
}

impl OnDisk {
    pub(super) fn missing(error: FileError) -> Self {
        Self { content: Content::Missing(error), digest: ABSENT.to_owned(), bytes: None }
    }

    /// Reads it, as far as it is not too large.
    pub(super) fn of(file: File, path: &Path) -> Result<Self, FileError> {
        let metadata = file.metadata().map_err(|error| FileError::io(path, "read", error))?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777;
        let bytes = match files::load(file, path) {
            Ok(bytes) => bytes,
            Err(error @ FileError::TooLarge { .. }) => {
                return Ok(OnDisk { content: Content::Opaque(error), digest: stamp(&metadata), bytes: None });
            }
            Err(error) => return Err(error),
        };
        let content = match Decoded::from_bytes(bytes.clone()) {
            Ok(decoded) => Content::Text(decoded),
            Err(reason) => Content::Opaque(FileError::NotText { path: path.to_owned(), reason }),
        };
        Ok(OnDisk { content, digest: digest(&bytes), bytes: Some(Kept { bytes, mode }) })
    }
}

/// What a file holds. The errors are what a tool says that needs a text.
#[derive(Debug)]
pub(crate) enum Content {
    Missing(FileError),
    Text(Decoded),
    /// Binary, or too large to compare.
    Opaque(FileError),
}

/// What becomes of a file.
#[derive(Debug)]
pub(crate) enum Deed {
    Put { bytes: Vec<u8>, body: String, mode: NewMode },
    Remove,
}

impl Original {
    pub(super) fn on_disk(path: &Path, real: PathBuf, found: OnDisk, missing_directories: usize) -> Self {
        Self {
            path: path.to_owned(),
            real,
            content: found.content,
            digest: found.digest,
            knowledge: Knowledge::None,
            disk: found.bytes,
            missing_directories,
            reader: Keeper::Disk,
            writer: Keeper::Disk,
        }
    }

    /// What the model knows of it from now on: its own change, or that there was nothing to change. A change of somebody
    /// else's stays unknown until it is read.
    pub(crate) fn sight(&self, deed: Option<&Deed>) -> Option<Sight> {
        let digest = match (deed, self.knowledge) {
            (Some(_), Knowledge::Outdated) => return None,
            (Some(Deed::Put { bytes, body, .. }), Knowledge::None | Knowledge::Current) => {
                match self.writer {
                    Keeper::Disk => digest(bytes),
                    Keeper::Client(_) => digest(body.as_bytes()),
                }
            }
            (Some(Deed::Remove), Knowledge::None | Knowledge::Current) => ABSENT.to_owned(),
            (None, _) => self.digest.clone(),
        };
        Some(Sight { path: self.real.clone(), digest })
    }

    /// The text, or why there is none.
    pub(crate) fn text(&self) -> Result<&Decoded, String> {
        match &self.content {
            Content::Text(decoded) => Ok(decoded),
            Content::Missing(error) | Content::Opaque(error) => Err(error.to_string()),
        }
    }

    /// What its text is written in; new files are UTF-8.
    pub(crate) fn encoding(&self) -> Encoding {
        match &self.content {
            Content::Text(decoded) => decoded.encoding,
            Content::Missing(_) | Content::Opaque(_) => Encoding::UTF_8,
        }
    }

    /// The file with this text instead.
    pub(crate) fn put(&self, body: String, mode: NewMode, encoding: Encoding) -> Result<Deed, FileError> {
        let encoding = match self.writer {
            Keeper::Disk => encoding,
            // How a client writes its files is its own business.
            Keeper::Client(_) => Encoding::UTF_8,
        };
        let encoded = encoding.encode(&body);
        let bytes = encoded.map_err(|reason| FileError::Unencodable { path: self.path.clone(), reason })?;
        Ok(Deed::Put { bytes, body, mode })
    }

    /// A client's text with the end that the file has: some clients take the last line feed away, others add one.
    pub(super) fn with_its_end(&self, body: String) -> String {
        let Content::Text(disk) = &self.content else { return body };
        let bare = |text: &str| {
            let text = text.strip_suffix('\n').unwrap_or(text);
            text.strip_suffix('\r').unwrap_or(text).len()
        };
        let same = body[..bare(&body)] == disk.body[..bare(&disk.body)];
        if same { disk.body.clone() } else { body }
    }

    /// Whether the user may run it.
    pub(crate) fn is_executable(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.mode & 0o100 != 0)
    }

    /// What a change of it holds in memory.
    pub(crate) fn size(&self) -> usize {
        self.disk.as_ref().map_or(0, |disk| disk.bytes.len())
    }
}
