//! `attache models refresh`: fetches the public model data and stores what we use. The old data stays in use
//! until the new data is complete.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, anyhow};
use attache_models::{BaseUrl, Catalogue, fetch};

use crate::answer;
use crate::dirs::create_private_directory;
use crate::limits::DOWNLOAD;
use crate::setup::Sources;

pub(super) async fn run(sources: &Sources) -> Result<()> {
    let url = &sources.config.catalogue_url.value;
    let kept = match sources.dirs.catalogue_file.exists() {
        true => "what was fetched before stays in use",
        false => "the built-in data stays in use",
    };
    // First the cause, then what it means and what to do.
    let catalogue = fetched(sources, url).await.map_err(|cause| {
        anyhow!("{cause}; {kept}. To fetch from elsewhere, set url in [catalogue] of the configuration")
    })?;
    let path = &sources.dirs.catalogue_file;
    replace(path, &catalogue.to_json())
        .map_err(|cause| anyhow!("can't write {}: {cause:#}; {kept}", path.display()))?;
    answer::write(&format!("attache now uses the model data of {url}, from {}.\n", path.display()))?;
    Ok(())
}

async fn fetched(sources: &Sources, url: &str) -> Result<Catalogue> {
    let address = BaseUrl::parse(url).map_err(|bad| anyhow!("{url} {bad}"))?;
    let bytes = fetch(&sources.opener.http, &address, DOWNLOAD).await?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{url} did not answer with text"))?;
    Catalogue::from_models_dev(&text).map_err(|error| anyhow!("what {url} answers {error}"))
}

/// Replaces the file completely or not at all.
fn replace(path: &Path, text: &str) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    create_private_directory(directory)?;
    let mut file = tempfile::Builder::new().prefix(".catalogue-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
