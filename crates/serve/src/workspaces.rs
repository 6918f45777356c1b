//! A host that lets sessions work only below some directories. Looks at directories, at nothing in them.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use attache_acp::{Host, SameDirectory, Warning};
use attache_core::ids::SessionId;
use attache_core::legible::legible_line;
use attache_core::ports::BoxFuture;

/// Another host, held to these directories.
#[derive(Clone, Debug)]
pub struct WorkspaceHost {
    host: Arc<dyn Host>,
    allowed: AllowedPlaces,
}

/// Real paths.
#[derive(Clone, Debug)]
struct AllowedPlaces(Arc<[PathBuf]>);

impl WorkspaceHost {
    /// The error names the directory that is not there.
    pub fn new(host: Arc<dyn Host>, workspaces: &[PathBuf]) -> Result<Self, (PathBuf, io::Error)> {
        let real = |path: &PathBuf| path.canonicalize().map_err(|error| (path.clone(), error));
        let allowed: Vec<PathBuf> = workspaces.iter().map(real).collect::<Result<_, _>>()?;
        Ok(Self { host, allowed: AllowedPlaces(allowed.into()) })
    }
}

impl AllowedPlaces {
    /// A directory that is gone counts by its name: sessions in it can still be read.
    fn contain(&self, path: &Path) -> bool {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let climbs = real.components().any(|part| part == Component::ParentDir);
        !climbs && self.0.iter().any(|allowed| real.starts_with(allowed))
    }

    fn check(&self, path: &Path) -> Result<(), String> {
        if self.contain(path) {
            return Ok(());
        }
        let shown = |path: &Path| legible_line(&path.display().to_string());
        let allowed: Vec<String> = self.0.iter().map(|allowed| shown(allowed)).collect();
        let (path, allowed) = (shown(path), allowed.join(", "));
        Err(format!(
            "{path} is not below a directory that this server works in: {allowed} (`serve.workspaces`)"
        ))
    }
}

impl Host for WorkspaceHost {
    fn check_directory(&self, path: &Path) -> BoxFuture<'static, Result<(), String>> {
        let (checked, allowed, path) =
            (self.host.check_directory(path), self.allowed.clone(), path.to_owned());
        Box::pin(async move {
            in_thread(move || allowed.check(&path)).await?;
            checked.await
        })
    }

    fn compare_directories(&self, one: &Path, other: &Path) -> BoxFuture<'static, SameDirectory> {
        self.host.compare_directories(one, other)
    }

    fn check_places(
        &self,
        session: &SessionId,
        directories: Vec<PathBuf>,
    ) -> BoxFuture<'static, Result<(), String>> {
        let (checked, allowed) = (self.host.check_places(session, directories.clone()), self.allowed.clone());
        Box::pin(async move {
            in_thread(move || directories.iter().try_for_each(|path| allowed.check(path))).await?;
            checked.await
        })
    }

    fn take_warnings(&self) -> Vec<Warning> {
        self.host.take_warnings()
    }

    fn admitted(&self, roots: Vec<PathBuf>) -> Option<BoxFuture<'static, Vec<bool>>> {
        let allowed = self.allowed.clone();
        Some(Box::pin(async move {
            let count = roots.len();
            let looked = tokio::task::spawn_blocking(move || {
                roots.iter().map(|root| allowed.contain(root)).collect::<Vec<_>>()
            });
            looked.await.unwrap_or_else(|_| vec![false; count])
        }))
    }
}

async fn in_thread(look: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<(), String> {
    match tokio::task::spawn_blocking(look).await {
        Ok(checked) => checked,
        Err(error) => Err(format!("a directory could not be looked at: {error}")),
    }
}
