//! The user's file as an editable document: read and written whole, with its comments. Knows no keys.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use toml_edit::DocumentMut;

use super::read_text;
use crate::dirs::create_private_directory;
use crate::limits::MAX_CONFIG_FILE_BYTES;

/// The file's document; an empty one if there is no file.
pub(crate) fn open_document(file: &Path) -> Result<DocumentMut> {
    let text = read_text(file, MAX_CONFIG_FILE_BYTES).map_err(anyhow::Error::msg)?.unwrap_or_default();
    text.parse().with_context(|| format!("{} is not valid TOML", file.display()))
}

/// Replaces the file completely or not at all; only the owner can read it.
pub(crate) fn store_document(file: &Path, document: &DocumentMut) -> Result<()> {
    let failed = || format!("can't write {}", file.display());
    // If the user's file is a link, keep the link and replace its target.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let directory = file.parent().unwrap_or(Path::new("/"));
    create_private_directory(directory).with_context(failed)?;
    let mut written =
        tempfile::Builder::new().prefix(".config-").tempfile_in(directory).with_context(failed)?;
    written.write_all(document.to_string().as_bytes()).with_context(failed)?;
    written.as_file().sync_all().with_context(failed)?;
    written.persist(&file).with_context(failed)?;
    Ok(())
}
