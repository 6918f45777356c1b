//! The catalogue in force: what was fetched last, else the one that came with the program.

use std::sync::Arc;

use attache_models::Catalogue;

use crate::config::read_text;
use crate::dirs::Dirs;

/// What is fetched is trimmed to far less.
pub(crate) const MAX_CATALOGUE_BYTES: u64 = 8 * 1024 * 1024;

/// A fetched one that can't be read is passed over: models must not vanish because of a damaged file.
pub(crate) fn open(dirs: &Dirs) -> Arc<Catalogue> {
    let path = &dirs.catalogue_file;
    let fetched = match read_text(path, MAX_CATALOGUE_BYTES) {
        Ok(Some(text)) => Catalogue::parse(&text).map_err(|error| error.to_string()),
        Ok(None) => return Arc::new(Catalogue::embedded().clone()),
        Err(error) => Err(error),
    };
    Arc::new(fetched.unwrap_or_else(|error| {
        tracing::warn!("{} {error}; the built-in model data is used", path.display());
        Catalogue::embedded().clone()
    }))
}
