//! The scratch directories of all sessions below one directory: lists and removes them, and saves a file into
//! one. Other code creates the rest of their content.

mod removal;

use std::fs::{DirBuilder, DirEntry, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use attache_core::ids::SessionId;
use attache_core::ports::BoxFuture;
use attache_core::ports::scratch::{Scratch, ScratchDirectory};

use attache_sandbox::git_guard;

/// Each is `DIRECTORY/SESSION`; names that begin with a dot do not belong to sessions.
#[derive(Clone, Debug)]
pub struct ScratchDirectories(PathBuf);

impl ScratchDirectories {
    /// Touches nothing before it is used.
    pub fn below(directory: PathBuf) -> Self {
        Self(directory)
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, io::Result<T>> {
        let directory = self.0.clone();
        Box::pin(async move {
            tokio::task::spawn_blocking(move || work(&directory)).await.map_err(io::Error::other)?
        })
    }
}

impl Scratch for ScratchDirectories {
    fn left(&self) -> BoxFuture<'static, io::Result<Vec<ScratchDirectory>>> {
        self.run(|directory| {
            git_guard::settle_what_is_left(directory);
            match directory.read_dir() {
                Ok(entries) => Ok(entries.flatten().filter_map(|entry| left(&entry)).collect()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        })
    }

    fn remove(&self, session: &SessionId) -> BoxFuture<'static, io::Result<()>> {
        let session = session.clone();
        self.run(move |directory| removal::remove(&directory.join(session.directory_name())))
    }

    fn save(
        &self,
        session: &SessionId,
        file: &str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'static, io::Result<PathBuf>> {
        let (session, file) = (session.clone(), file.to_owned());
        self.run(move |directory| save(&directory.join(session.directory_name()), &file, &bytes))
    }

    fn forget(&self, session: &SessionId) -> BoxFuture<'static, io::Result<()>> {
        let session = session.clone();
        self.run(move |directory| attache_sandbox::forget_places(&directory.join(session.directory_name())))
    }
}

/// The file gets its name only when it is complete. Commands write here, too: a link of theirs is replaced, not
/// followed.
fn save(directory: &Path, file: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let (path, incoming) = (directory.join(file), directory.join(format!(".{file}.{}", std::process::id())));
    remove_file(&incoming)?;
    let mut open = OpenOptions::new();
    let written = open.write(true).create_new(true).mode(0o600).open(&incoming);
    let written =
        written.and_then(|mut file| file.write_all(bytes)).and_then(|()| std::fs::rename(&incoming, &path));
    if let Err(error) = written {
        remove_file(&incoming)?;
        return Err(error);
    }
    Ok(path)
}

fn remove_file(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn left(entry: &DirEntry) -> Option<ScratchDirectory> {
    let session = SessionId::of_directory(entry.file_name().to_str()?)?;
    if !entry.file_type().ok()?.is_dir() {
        return None;
    }
    let inner = entry.path().read_dir().into_iter().flatten().flatten();
    let times = inner.filter_map(|entry| entry.metadata().ok()).chain(entry.metadata().ok());
    let newest = times.filter_map(|metadata| metadata.modified().ok()).max()?;
    Some(ScratchDirectory { session, touched_at: milliseconds(newest) })
}

fn milliseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{self, Mode, OFlags};

    use super::*;

    #[tokio::test]
    async fn sessions_are_listed_and_what_is_ours_is_not() {
        let place = tempfile::tempdir().unwrap();
        let scratch = ScratchDirectories::below(place.path().join("scratch"));
        assert_eq!(scratch.left().await.unwrap(), []);
        for name in ["ses_1/deep", ".sandbox"] {
            std::fs::create_dir_all(place.path().join("scratch").join(name)).unwrap();
        }
        std::fs::write(place.path().join("scratch/file"), "x").unwrap();
        symlink("ses_1", place.path().join("scratch/ses_2")).unwrap();
        let left = scratch.left().await.unwrap();
        assert_eq!(left.iter().map(|left| left.session.as_str()).collect::<Vec<_>>(), ["ses_1"]);
        let now = milliseconds(SystemTime::now());
        assert!((now - left[0].touched_at).abs() < 60_000);
    }

    #[tokio::test]
    async fn everything_in_it_goes_and_nothing_that_it_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let scratch = ScratchDirectories::below(place.path().join("scratch"));
        let (own, other) = (place.path().join("scratch/ses_1"), place.path().join("other"));
        std::fs::create_dir_all(own.join("modules/a")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("kept"), "x").unwrap();
        std::fs::write(own.join("modules/a/x"), "x").unwrap();
        symlink(&other, own.join("link")).unwrap();
        for closed in ["modules/a", "modules"] {
            std::fs::set_permissions(own.join(closed), Permissions::from_mode(0o555)).unwrap();
        }
        scratch.remove(&SessionId::new("ses_1")).await.unwrap();
        assert!(!own.exists() && other.join("kept").exists());
        scratch.remove(&SessionId::new("ses_1")).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_is_saved_for_its_owner_and_follows_no_link() {
        let place = tempfile::tempdir().unwrap();
        let scratch = ScratchDirectories::below(place.path().join("scratch"));
        let session = SessionId::new("ses_1");
        let path = scratch.save(&session, "session.md", b"one".to_vec()).await.unwrap();
        assert_eq!(path, place.path().join("scratch/ses_1/session.md"));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(place.path().join("other"), "kept").unwrap();
        symlink(place.path().join("other"), &path).unwrap();
        scratch.save(&session, "session.md", b"two".to_vec()).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read(place.path().join("other")).unwrap(), b"kept");
        let odd = scratch.save(&SessionId::new("../x"), "a", Vec::new()).await.unwrap();
        assert_eq!(odd, place.path().join("scratch/%2e%2e%2fx/a"));
    }

    /// Deeper than a process can open handles, and deeper than its stack allows.
    #[tokio::test]
    async fn no_depth_keeps_a_directory() {
        let place = tempfile::tempdir().unwrap();
        let scratch = ScratchDirectories::below(place.path().join("scratch"));
        let own = place.path().join("scratch/ses_1");
        std::fs::create_dir_all(own.join(".moved-1")).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut inner = fs::open(&own, flags, Mode::empty()).unwrap();
        for level in 0..5_000 {
            fs::mkdirat(&inner, "d", Mode::from_raw_mode(0o700)).unwrap();
            fs::symlinkat("/", &inner, "link").unwrap();
            let below = fs::openat(&inner, "d", flags, Mode::empty()).unwrap();
            if level % 1_000 == 7 {
                fs::fchmod(&inner, Mode::from_raw_mode(0o500)).unwrap();
            }
            inner = below;
        }
        scratch.remove(&SessionId::new("ses_1")).await.unwrap();
        assert!(!own.exists());
    }

    #[tokio::test]
    async fn an_id_leads_nowhere_else() {
        let place = tempfile::tempdir().unwrap();
        let scratch = ScratchDirectories::below(place.path().join("scratch"));
        for name in ["scratch/ses_1", "scratch/.sandbox", "other"] {
            std::fs::create_dir_all(place.path().join(name)).unwrap();
        }
        let absolute = place.path().join("other").display().to_string();
        for id in ["..", ".", "", "../other", ".sandbox", "ses_1/../../other", &absolute] {
            scratch.remove(&SessionId::new(id)).await.unwrap();
            let saved = scratch.save(&SessionId::new(id), "a", Vec::new()).await.unwrap();
            assert_eq!(saved.parent().and_then(Path::parent), Some(place.path().join("scratch").as_path()));
        }
        for name in ["scratch/ses_1", "scratch/.sandbox", "other"] {
            assert_eq!(place.path().join(name).read_dir().unwrap().count(), 0, "{name}");
        }
    }
}
