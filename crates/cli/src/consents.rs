//! The file with what users consented to: many processes may read it, one at a time changes it.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use attache_core::trust::Consents;
use serde_json::Value;

use crate::config::read_text;
use crate::dirs::create_private_directory;
use crate::limits::MAX_TRUST_BYTES;

/// The stored consents. A file that does not parse is an error, because we must not replace it.
pub(crate) fn read_consents(file: &Path) -> Result<Consents, String> {
    let shown = file.display();
    let Some(text) = read_text(file, MAX_TRUST_BYTES).map_err(|problem| format!("{shown}: {problem}"))?
    else {
        return Ok(Consents::default());
    };
    let value: Option<Value> = serde_json::from_str(&text).ok();
    let consents = value.as_ref().and_then(Consents::from_json);
    consents.ok_or_else(|| format!("{shown} is damaged; delete it and trust your projects again"))
}

/// Changes the consents, one process at a time: another one may be trusting another project right now. Replaces
/// the file completely or not at all; only the owner can read it.
pub(crate) fn change_consents<T>(file: &Path, change: impl FnOnce(&mut Consents) -> T) -> anyhow::Result<T> {
    let failed = || format!("can't write {}", file.display());
    let directory = file.parent().unwrap_or(Path::new("/"));
    create_private_directory(directory).with_context(failed)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let lock = options.open(file.with_extension("lock")).with_context(failed)?;
    lock.lock().with_context(failed)?;
    let mut consents = read_consents(file).map_err(anyhow::Error::msg)?;
    let changed = change(&mut consents);
    let mut text = tempfile::Builder::new().prefix(".trust-").tempfile_in(directory).with_context(failed)?;
    text.write_all(format!("{:#}\n", consents.to_json()).as_bytes()).with_context(failed)?;
    text.as_file().sync_all().with_context(failed)?;
    text.persist(file).with_context(failed)?;
    drop(lock);
    Ok(changed)
}
