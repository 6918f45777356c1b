//! Records where the directories of a session were at their first use, beside the scratch directories, where no
//! command can reach. Another session may move one and put a link in its place, also while attache does not
//! run. Then its name no longer proves that the link's target is allowed.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::closed_directory;
use super::places::Followed;
use crate::limits::REMEMBERED_PLACES;

/// One directory, under the name the session uses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct KeptPlace {
    named: PathBuf,
    real: PathBuf,
    /// Device and inode, which stay the same when it moves.
    identity: (u64, u64),
}

/// What we keep of one session.
#[derive(Debug)]
pub(super) struct KeptPlaces {
    file: PathBuf,
    places: Vec<KeptPlace>,
}

/// Whether the directories of a session are the ones it first had by these names; records new ones. Ignores
/// directories that do not exist. `scratch` is the session's.
pub fn check_places(scratch: &Path, directories: &[PathBuf]) -> io::Result<()> {
    let mut kept = KeptPlaces::of(scratch)?;
    for named in directories {
        match kept.follow(named) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            checked => checked.map(drop)?,
        }
    }
    Ok(())
}

/// Forgets a deleted session.
pub fn forget_places(scratch: &Path) -> io::Result<()> {
    match std::fs::remove_file(file_of(scratch)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn file_of(scratch: &Path) -> PathBuf {
    closed_directory(scratch).join("places").join(scratch.file_name().unwrap_or(OsStr::new("any")))
}

impl KeptPlaces {
    /// A file that does not parse is an error: it must not look like a session that has used nothing yet.
    pub(super) fn of(scratch: &Path) -> io::Result<Self> {
        let file = file_of(scratch);
        let text = match std::fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let places = parsed(&text).ok_or_else(|| {
            let text = format!("{} is damaged; open a new session to work there", file.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        Ok(Self { file, places })
    }

    /// The current directory, unless it was another one at first.
    pub(super) fn follow(&mut self, named: &Path) -> io::Result<Followed> {
        let followed = Followed::of(named)?;
        let found = followed.real.metadata()?;
        let identity = (found.dev(), found.ino());
        match self.places.iter().find(|place| place.named == named) {
            // It is still the same directory if the user moved it and left a link in its old place.
            Some(first) if first.real == followed.real || first.identity == identity => Ok(followed),
            Some(first) => {
                let (named, first, now) = (named.display(), first.real.display(), followed.real.display());
                let text = format!(
                    "{named} was {first} when the session first used it and leads to {now} now; \
                     open a new session to work there"
                );
                Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
            }
            None => {
                let (named, real) = (named.to_owned(), followed.real.clone());
                self.add(KeptPlace { named, real, identity })?;
                Ok(followed)
            }
        }
    }

    fn add(&mut self, place: KeptPlace) -> io::Result<()> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        if self.places.len() >= REMEMBERED_PLACES {
            return Err(io::Error::other("the session has used too many directories; open a new one"));
        }
        self.places.push(place);
        let directory = self.file.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let new = directory.join(format!(".new-{}-{number}", std::process::id()));
        let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(&self.places.iter().flat_map(written).collect::<Vec<u8>>())?;
        std::fs::rename(&new, &self.file)
    }
}

/// Four fields, each followed by a NUL, which no path contains.
fn written(place: &KeptPlace) -> Vec<u8> {
    let (device, inode) = place.identity;
    let numbers = [device.to_string().into_bytes(), inode.to_string().into_bytes()];
    let paths = [&place.named, &place.real].map(|path| path.as_os_str().as_bytes().to_vec());
    paths.into_iter().chain(numbers).flat_map(|field| field.into_iter().chain([0])).collect()
}

fn parsed(text: &[u8]) -> Option<Vec<KeptPlace>> {
    let Some(text) = text.strip_suffix(&[0]) else { return text.is_empty().then(Vec::new) };
    let fields: Vec<&[u8]> = text.split(|byte| *byte == 0).collect();
    let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse().ok();
    let place = |fields: &[&[u8]]| match fields {
        [named, real, device, inode] => Some(KeptPlace {
            named: OsStr::from_bytes(named).into(),
            real: OsStr::from_bytes(real).into(),
            identity: (number(device)?, number(inode)?),
        }),
        _ => None,
    };
    fields.chunks(4).map(place).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn world() -> (tempfile::TempDir, PathBuf, [PathBuf; 2]) {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["root", "home"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        let scratches = ["ses_1", "ses_2"].map(|name| base.join("scratch").join(name));
        (directory, base, scratches)
    }

    fn real(scratch: &Path, named: &Path) -> io::Result<PathBuf> {
        Ok(KeptPlaces::of(scratch)?.follow(named)?.real)
    }

    /// Each look simulates a new process with nothing in memory.
    #[test]
    fn a_directory_that_was_swapped_for_a_link_is_no_root_any_more() {
        let (_directory, base, [one, other]) = world();
        let root = base.join("root");
        assert_eq!(real(&one, &root).unwrap(), root);
        std::fs::rename(&root, base.join("moved")).unwrap();
        assert!(check_places(&one, std::slice::from_ref(&root)).is_ok(), "it is only gone");
        symlink(base.join("home"), &root).unwrap();
        assert!(real(&one, &root).unwrap_err().to_string().contains("leads to"));
        assert!(check_places(&one, std::slice::from_ref(&root)).is_err());
        assert_eq!(real(&other, &root).unwrap(), base.join("home"), "opened after that");
        forget_places(&one).unwrap();
        forget_places(&one).unwrap();
        assert_eq!(real(&one, &root).unwrap(), base.join("home"));
    }

    #[test]
    fn one_that_was_moved_or_made_anew_is_still_its_users() {
        let (_directory, base, [one, _]) = world();
        let (root, moved) = (base.join("root"), base.join("moved"));
        assert_eq!(real(&one, &root).unwrap(), root);
        std::fs::rename(&root, &moved).unwrap();
        symlink(&moved, &root).unwrap();
        assert_eq!(real(&one, &root).unwrap(), moved);
        std::fs::remove_file(&root).unwrap();
        std::fs::create_dir(&root).unwrap();
        assert_eq!(real(&one, &root).unwrap(), root);
    }

    #[test]
    fn what_is_damaged_is_no_clean_slate() {
        let (_directory, base, [one, _]) = world();
        let strange = base.join(OsStr::from_bytes(b"ro\xff\not"));
        std::fs::create_dir(&strange).unwrap();
        assert_eq!(real(&one, &strange).unwrap(), strange);
        assert_eq!(KeptPlaces::of(&one).unwrap().places[0].named, strange);
        for damaged in [&b"x"[..], b"/a\0/b\0", b"/a\0/b\0one\x002\0"] {
            std::fs::write(file_of(&one), damaged).unwrap();
            assert!(real(&one, &strange).is_err(), "{damaged:?}");
        }
    }
}
