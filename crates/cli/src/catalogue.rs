//! The catalogue in force: the data fetched last, else the catalogue that came with the program. Read on first
//! use, because a start with a scripted model needs none.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use attache_models::Catalogue;

use crate::config::read_text;
use crate::dirs::Dirs;
use crate::limits::MAX_CATALOGUE_BYTES;
use crate::troubles::Troubles;

/// A cheap handle.
#[derive(Clone, Debug)]
pub(crate) struct CurrentCatalogue(Arc<CatalogueSource>);

#[derive(Debug)]
struct CatalogueSource {
    fetched: PathBuf,
    troubles: Troubles,
    read: OnceLock<Catalogue>,
}

impl CurrentCatalogue {
    pub(crate) fn new(dirs: &Dirs, troubles: Troubles) -> Self {
        let fetched = dirs.catalogue_file.clone();
        Self(Arc::new(CatalogueSource { fetched, troubles, read: OnceLock::new() }))
    }

    /// Ignores fetched data that does not parse: models must not vanish because of a damaged file.
    pub(crate) fn get(&self) -> &Catalogue {
        let path = &self.0.fetched;
        self.0.read.get_or_init(|| {
            let fetched = match read_text(path, MAX_CATALOGUE_BYTES) {
                Ok(Some(text)) => Catalogue::parse(&text).map_err(|error| error.to_string()),
                Ok(None) => Ok(Catalogue::embedded().clone()),
                Err(error) => Err(error),
            };
            fetched.unwrap_or_else(|error| {
                let why = format!("{} {error}; `attache models refresh` fetches it anew", path.display());
                self.0.troubles.report("attache uses its built-in model data", why);
                Catalogue::embedded().clone()
            })
        })
    }
}
