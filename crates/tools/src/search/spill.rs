//! Saves what a call found beyond its limit in the session's scratch directory. Its caller limits the size.

use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use attache_core::ids::CallId;
use attache_sandbox::scratch_file;

/// Writes `text` to a file. `None` if that fails: then only the file is missing, and the call continues.
pub(crate) fn keep(scratch: &Path, tool: &str, call_id: &CallId, text: &[u8]) -> Option<PathBuf> {
    let path = path(scratch, tool, call_id);
    match write(scratch, &path, text) {
        Ok(()) => Some(path),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a long result could not be kept");
            None
        }
    }
}

/// The call's id comes from a model: only its harmless characters become part of the name.
fn path(scratch: &Path, tool: &str, call_id: &CallId) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let id: String = call_id.as_str().chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    scratch.join(format!("{tool}-{id}-{}-{count}.txt", std::process::id()))
}

fn write(scratch: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
    scratch_file::create(path)?.write_all(text)
}
