//! `attache sessions export`: one whole session to stdout or to a file that only its owner can read.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use attache_core::export::{self, ExportError, ExportStyle, Format};
use attache_core::ids::SessionId;
use attache_core::redact::Redactor;
use attache_store::{FileBlobs, ReadOnlyStore};
use tempfile::NamedTempFile;

use super::{find, plain, unknown};
use crate::answer::{self, AnswerKind, AnswerWriter};
use crate::args::{ExportArgs, ExportFormat};
use crate::setup::Sources;

/// What to do if a file with the name of the export exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existing {
    Keep,
    Replace,
}

/// A stored session, and how to write it.
pub(super) struct Export<'a> {
    pub(super) store: &'a ReadOnlyStore,
    pub(super) blobs: FileBlobs,
    pub(super) id: SessionId,
    pub(super) style: ExportStyle,
}

pub(super) async fn run(sources: &Sources, store: &ReadOnlyStore, arguments: &ExportArgs) -> Result<()> {
    let format = export_format(arguments.format, arguments.output.as_deref())?;
    // Find it before creating the file, so that a mistyped id leaves no file behind.
    let id = find(store, &arguments.id).await?;
    let redactor = arguments.redact.then(|| Redactor::new(sources.dirs.home.as_deref()));
    let blobs = FileBlobs::new(sources.dirs.blobs.clone());
    let export = Export { store, blobs, id, style: ExportStyle { format, redactor } };
    let existing = if arguments.force { Existing::Replace } else { Existing::Keep };
    match &arguments.output {
        Some(path) => export.to_file(path, existing).await,
        None => export.to_stdout().await,
    }
}

impl Export<'_> {
    pub(super) async fn to_stdout(&self) -> Result<()> {
        match self.write(&mut answer::stream()).await {
            Err(ExportError::Write(error)) => Ok(answer::forgive(Err(error))?),
            other => told(other),
        }
    }

    async fn write(&self, out: &mut (dyn Write + Send)) -> Result<(), ExportError> {
        let sources = export::ExportSources { store: self.store, blobs: &self.blobs };
        export::export(sources, &self.id, &self.style, out).await
    }

    /// Renames the file when it is complete, so that a failure halfway keeps the old one. Only the owner can
    /// read it, because a conversation may hold secrets.
    async fn to_file(&self, path: &Path, existing: Existing) -> Result<()> {
        let cannot_write = || format!("can't write {}", path.display());
        let path = match path.metadata() {
            // Write to a pipe or a device (`/dev/stderr`) instead of replacing it.
            Ok(found) if !found.is_file() => {
                let stream = std::fs::OpenOptions::new().write(true).open(path).with_context(cannot_write)?;
                let mut stream = AnswerWriter::to(stream, AnswerKind::Text);
                told(self.write(&mut stream).await)?;
                return stream.flush().with_context(cannot_write);
            }
            Ok(_) if existing == Existing::Keep => bail!(is_there(path)),
            // If it is a link, keep the link and replace its target.
            Ok(_) => path.canonicalize().with_context(cannot_write)?,
            Err(_) => path.to_owned(),
        };
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        if !directory.is_dir() {
            bail!("there is no directory {}", directory.display());
        }
        // A temporary file belongs to its owner alone. Do not show its name to the user.
        let file = NamedTempFile::new_in(directory)
            .map_err(|error| io::Error::from(error.kind()))
            .with_context(cannot_write)?;
        let mut writer = BufWriter::new(file);
        told(self.write(&mut writer).await)?;
        writer.flush().with_context(cannot_write)?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error).with_context(cannot_write)?;
        let named = match existing {
            Existing::Keep => file.persist_noclobber(&path),
            Existing::Replace => file.persist(&path),
        };
        match named {
            Ok(_) => Ok(()),
            // Another process created it meanwhile.
            Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => bail!(is_there(&path)),
            Err(failed) => Err(failed.error).with_context(cannot_write),
        }
    }
}

fn is_there(path: &Path) -> String {
    format!("{} exists already; add --force to replace it, or name another file", path.display())
}

fn told(result: Result<(), ExportError>) -> Result<()> {
    match result {
        Err(ExportError::UnknownSession(id)) => bail!(unknown(id.as_str())),
        other => Ok(other?),
    }
}

/// The format of `--format`, else the one the file's ending implies.
fn export_format(stated: Option<ExportFormat>, output: Option<&Path>) -> Result<Format> {
    match (stated, output.and_then(Path::extension)) {
        (Some(ExportFormat::Jsonl), _) | (None, None) => Ok(Format::Jsonl),
        (Some(ExportFormat::Json), _) => Ok(Format::Json),
        (Some(ExportFormat::Md), _) => Ok(Format::Markdown),
        (Some(ExportFormat::Csv), _) => Ok(Format::Csv),
        (Some(ExportFormat::Html), _) => Ok(Format::Html),
        (None, Some(ending)) => {
            let ending = ending.to_string_lossy().to_lowercase();
            let Some(format) = Format::parse(&ending) else {
                bail!(".{} is no export format; add --format jsonl, json, md, csv or html", plain(&ending));
            };
            Ok(format)
        }
    }
}
