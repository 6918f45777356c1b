//! Follows a path link by link, as the kernel would, and reports the links on the way. Continues by name
//! through missing parts. Changes nothing.

use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use attache_core::scope::LinkChain;
use rustix::io::Errno;

use crate::limits::SYMLINK_HOPS;

/// Whether the whole path exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WayThere {
    Whole,
    /// A part of the way is missing.
    InPart,
    /// A directory on the way has a mode that keeps us out; we know nothing beyond it.
    Closed,
}

/// Where an absolute path leads, whether or not that exists.
pub fn link_chain(path: &Path) -> io::Result<LinkChain> {
    match follow(path)? {
        (chain, WayThere::Whole | WayThere::InPart) => Ok(chain),
        (_, WayThere::Closed) => Err(Errno::ACCESS.into()),
    }
}

pub(crate) fn follow(path: &Path) -> io::Result<(LinkChain, WayThere)> {
    LinkPass::default().follow(path)
}

/// Follows many paths at one time: hundreds share a few directories, so it looks at each only once.
#[derive(Debug, Default)]
pub(crate) struct LinkPass(HashMap<PathBuf, PathEntry>);

/// What we found at a path.
#[derive(Clone, Debug)]
enum PathEntry {
    Link(PathBuf),
    Other,
    Missing,
    /// The mode of its directory keeps us out.
    Denied,
}

impl LinkPass {
    fn entry(&mut self, place: &Path) -> io::Result<PathEntry> {
        if let Some(known) = self.0.get(place) {
            return Ok(known.clone());
        }
        let found = match place.symlink_metadata() {
            Ok(found) if found.is_symlink() => PathEntry::Link(std::fs::read_link(place)?),
            Ok(_) => PathEntry::Other,
            Err(error) if is_missing(&error) => PathEntry::Missing,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => PathEntry::Denied,
            Err(error) => return Err(error),
        };
        self.0.insert(place.to_owned(), found.clone());
        Ok(found)
    }

    pub(crate) fn follow(&mut self, path: &Path) -> io::Result<(LinkChain, WayThere)> {
        followed(path, |place| self.entry(place))
    }
}

fn followed(
    path: &Path,
    mut entry: impl FnMut(&Path) -> io::Result<PathEntry>,
) -> io::Result<(LinkChain, WayThere)> {
    let mut chain = LinkChain { end: PathBuf::from("/"), links: Vec::new() };
    let mut reached = WayThere::Whole;
    // How many of the last names are missing.
    let mut missing: usize = 0;
    let mut hops = 0;
    let mut open: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(rest) = open.pop() {
        let mut components = rest.components();
        let Some(component) = components.next() else { continue };
        let behind = components.as_path().to_owned();
        if behind.components().next().is_some() {
            open.push(behind);
        }
        match component {
            Component::RootDir | Component::Prefix(_) => (chain.end, missing) = (PathBuf::from("/"), 0),
            Component::CurDir => {}
            Component::ParentDir => {
                // If a command makes a link there, the rest would lead elsewhere.
                if missing > 0 {
                    chain.links.push(chain.end.clone());
                    missing -= 1;
                }
                chain.end.pop();
            }
            Component::Normal(name) if missing > 0 => {
                chain.end.push(name);
                missing += 1;
            }
            Component::Normal(name) => {
                let place = chain.end.join(name);
                match entry(&place)? {
                    PathEntry::Link(led) => {
                        hops += 1;
                        if hops > SYMLINK_HOPS {
                            return Err(io::Error::from(io::ErrorKind::QuotaExceeded));
                        }
                        open.push(led);
                        chain.links.push(place);
                    }
                    PathEntry::Other => chain.end = place,
                    PathEntry::Missing => (chain.end, reached, missing) = (place, WayThere::InPart, 1),
                    PathEntry::Denied => return Ok((chain, WayThere::Closed)),
                }
            }
        }
    }
    Ok((chain, reached))
}

/// Also for a path below a file: replacing the file by a directory could create it.
pub fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_is_named_and_what_is_missing_has_a_place() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("root/v1")).unwrap();
        std::fs::write(base.join("root/file"), "").unwrap();
        symlink("v1", base.join("root/current")).unwrap();
        symlink(base.join("root/current/rc"), base.join("rc")).unwrap();
        symlink("root/gone/rc", base.join("gone")).unwrap();
        symlink("root/gone/../rc", base.join("up")).unwrap();
        symlink("root/file/rc", base.join("below")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        for (name, links, end) in [
            ("rc", &["rc", "root/current"][..], "root/v1/rc"),
            ("gone", &["gone"], "root/gone/rc"),
            ("up", &["up", "root/gone"], "root/rc"),
            ("below", &["below"], "root/file/rc"),
            ("root/current/../file", &["root/current"], "root/file"),
        ] {
            let chain = link_chain(&base.join(name)).unwrap();
            let links: Vec<PathBuf> = links.iter().map(|link| base.join(link)).collect();
            assert_eq!(chain, LinkChain { links, end: base.join(end) }, "{name}");
        }
        assert!(link_chain(&base.join("loop")).is_err());
    }
}
