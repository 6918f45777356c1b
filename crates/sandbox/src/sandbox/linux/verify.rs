//! Checks from inside a sandbox, before its command begins, whether each mount of the plan is in its place and
//! is what we planned.
//!
//! Bubblewrap takes names and follows links in them: if something is swapped between our look and its mounts, a
//! mount goes astray. Then the command does not begin.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Stat, StatxFlags, fstat, statx};
use rustix::io::Errno;

use super::super::plan::{Mount, MountKind};
use crate::platform::{look_at, stat_real};

/// Which file it is, as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl Identity {
    fn of(found: &Stat) -> Self {
        Self { device: found.st_dev, inode: found.st_ino }
    }
}

/// Which file a real path names now; an error where a link is on the way or at its end.
fn identity(path: &Path) -> Result<Identity, Errno> {
    Ok(Identity::of(&stat_real(path)?))
}

/// What must be mounted at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Expected {
    pub(super) at: PathBuf,
    pub(super) what: FoundMount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum FoundMount {
    Writable(Identity),
    ReadOnly(Identity),
    /// Any mount, whatever it shows.
    Cover,
}

impl Expected {
    /// According to the machine now. An error if something of the plan has vanished or has become a link.
    pub(super) fn of(mounts: &[Mount]) -> io::Result<Vec<Self>> {
        let expected = mounts.iter().map(|Mount { at, what }| {
            let what = match what {
                MountKind::Writable => FoundMount::Writable(identity(at)?),
                MountKind::ReadOnly => FoundMount::ReadOnly(identity(at)?),
                MountKind::EmptyFile | MountKind::EmptyDirectory => FoundMount::Cover,
            };
            Ok(Self { at: at.clone(), what })
        });
        expected.collect()
    }

    /// Two words of the helper's arguments.
    pub(super) fn to_words(&self) -> [OsString; 2] {
        let numbers = |kind: &str, one: Identity| format!("{kind}:{}:{}", one.device, one.inode);
        let what = match self.what {
            FoundMount::Writable(one) => numbers("w", one),
            FoundMount::ReadOnly(one) => numbers("r", one),
            FoundMount::Cover => "c".to_owned(),
        };
        [what.into(), self.at.clone().into()]
    }

    pub(super) fn from_words(what: &OsStr, at: OsString) -> Option<Self> {
        let mut parts = what.to_str()?.split(':');
        let kind = parts.next()?;
        let identity = |mut numbers: std::str::Split<'_, char>| {
            Some(Identity { device: numbers.next()?.parse().ok()?, inode: numbers.next()?.parse().ok()? })
        };
        let what = match kind {
            "w" => FoundMount::Writable(identity(parts)?),
            "r" => FoundMount::ReadOnly(identity(parts)?),
            "c" => FoundMount::Cover,
            _ => return None,
        };
        Some(Self { at: at.into(), what })
    }
}

/// Whether everything is mounted as planned; the error says what is not.
///
/// Opens each path once; the handle tells both what is there and which mount it is in. Separate looks at the
/// path and at the table could see two different moments of a swap. A plan covers none of its own mounts. So if
/// every path is the root of a mount, none of these mounts is anywhere else.
pub(super) fn verify(expected: &[Expected]) -> io::Result<()> {
    let changed = |at: &Path| {
        let text = format!("{} changed while the sandbox was built", at.display());
        io::Error::other(text)
    };
    let seen = expected.iter().map(|Expected { at, .. }| SeenMount::at(at).map_err(|_| changed(at)));
    let seen = seen.collect::<io::Result<Vec<_>>>()?;
    let table = mounted(&std::fs::read("/proc/self/mountinfo")?);
    match expected.iter().zip(&seen).find(|(expected, seen)| !seen.is_as(expected, &table)) {
        Some((Expected { at, .. }, _)) => Err(changed(at)),
        None => Ok(()),
    }
}

/// What a path leads to, from a single look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenMount {
    identity: Identity,
    number: u64,
}

impl SeenMount {
    fn at(path: &Path) -> io::Result<Self> {
        let handle = look_at(path)?;
        let identity = Identity::of(&fstat(&handle)?);
        Ok(Self { identity, number: mount_number(&handle)? })
    }

    fn is_as(&self, Expected { at, what }: &Expected, table: &BTreeMap<u64, TableRow>) -> bool {
        let Some(row) = table.get(&self.number).filter(|row| row.point == *at) else { return false };
        match what {
            FoundMount::Writable(planned) => self.identity == *planned,
            FoundMount::ReadOnly(planned) => row.mode == MountMode::ReadOnly && self.identity == *planned,
            FoundMount::Cover => true,
        }
    }
}

/// The number in the table of the mount that contains this handle.
fn mount_number(handle: &OwnedFd) -> io::Result<u64> {
    let found = statx(handle, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID);
    if let Ok(found) = found
        && found.stx_mask & StatxFlags::MNT_ID.bits() != 0
    {
        return Ok(found.stx_mnt_id);
    }
    // Kernels before 5.8.
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd()))?;
    let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    number.ok_or_else(|| io::Error::other("the kernel does not report which mount contains the file"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MountMode {
    ReadOnly,
    Writable,
}

/// A mount as the kernel's table shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TableRow {
    point: PathBuf,
    mode: MountMode,
}

/// All mounts by their numbers.
fn mounted(table: &[u8]) -> BTreeMap<u64, TableRow> {
    let lines = table.split(|byte| *byte == b'\n');
    let mounts = lines.filter_map(|line| {
        // Number, parent, device, root, mount point, options.
        let mut fields = line.split(|byte| *byte == b' ');
        let number = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let mut fields = fields.skip(3);
        let (point, options) = (fields.next()?, fields.next()?);
        let is_read_only = options.split(|byte| *byte == b',').any(|option| option == b"ro");
        let mode = if is_read_only { MountMode::ReadOnly } else { MountMode::Writable };
        Some((number, TableRow { point: unescaped(point), mode }))
    });
    mounts.collect()
}

/// The kernel writes blanks, tabs, newlines and backslashes as three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, behind @ ..] = rest {
        let octal = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(text, 8).ok()
        };
        match (byte, behind.get(..3).and_then(octal)) {
            (b'\\', Some(code)) => {
                bytes.push(code);
                rest = &behind[3..];
            }
            _ => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_kernels_table_is_read() {
        let table = b"21 1 8:1 / / ro,relatime - ext4 /dev/sda1 rw\n\
                      22 21 8:1 /w /w rw,nosuid - ext4 /dev/sda1 rw\n\
                      23 22 8:1 /w/a\\040b\\134 /w/a\\040b\\134 rw - ext4 x rw\n\
                      24 22 8:1 /w /w ro - ext4 x rw\n\nshort\n";
        let rows = mounted(table);
        let row = |point: &str, mode| TableRow { point: point.into(), mode };
        assert_eq!(rows[&21], row("/", MountMode::ReadOnly));
        assert_eq!(rows[&22], row("/w", MountMode::Writable));
        assert_eq!(rows[&23], row("/w/a b\\", MountMode::Writable));
        assert_eq!(rows[&24], row("/w", MountMode::ReadOnly));
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn what_is_expected_is_read_as_it_was_written() {
        let one = Identity { device: u64::MAX, inode: 7 };
        for what in [FoundMount::Writable(one), FoundMount::ReadOnly(one), FoundMount::Cover] {
            let expected = Expected { at: OsStr::from_bytes(b"/w/\xff:x").into(), what };
            let [kind, at] = expected.to_words();
            assert_eq!(Expected::from_words(&kind, at), Some(expected));
        }
        for wrong in ["", "x:1:2", "w", "w:1", "r:1:x"] {
            assert_eq!(Expected::from_words(wrong.as_ref(), "/w".into()), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_not_mounted_or_something_else_is_noticed() {
        let here = identity(Path::new("/proc")).unwrap();
        let expected = |at: &str, what: FoundMount| [Expected { at: at.into(), what }];
        assert!(verify(&expected("/proc", FoundMount::Writable(here))).is_ok());
        assert!(verify(&expected("/proc", FoundMount::Cover)).is_ok());
        let other = Identity { inode: here.inode + 1, ..here };
        assert!(verify(&expected("/proc", FoundMount::Writable(other))).is_err());
        assert!(verify(&expected("/no/such/mount", FoundMount::Cover)).is_err());
        let table = std::fs::read("/proc/self/mountinfo").unwrap();
        assert_eq!(
            mounted(&table)[&SeenMount::at(Path::new("/proc")).unwrap().number].point,
            Path::new("/proc")
        );
    }

    /// A swap can show a link when we make the plan, then a directory to bubblewrap, which mounts the link's
    /// target there, and the link again to us.
    #[test]
    fn a_link_is_neither_planned_nor_found() {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().canonicalize().unwrap().join("link");
        std::os::unix::fs::symlink("/proc", &link).unwrap();
        for what in [MountKind::Writable, MountKind::ReadOnly] {
            assert!(Expected::of(&[Mount { at: link.clone(), what }]).is_err());
        }
        assert!(SeenMount::at(&link).is_err());
        assert!(SeenMount::at(&link.join("self")).is_err());
    }

    /// An entry in the right place that is no mount's root: its mount is somewhere else.
    #[test]
    fn a_mount_that_was_moved_away_is_missed() {
        let place = tempfile::tempdir().unwrap();
        let at = place.path().canonicalize().unwrap();
        let seen = SeenMount::at(&at).unwrap();
        for what in
            [FoundMount::Writable(seen.identity), FoundMount::ReadOnly(seen.identity), FoundMount::Cover]
        {
            assert!(verify(&[Expected { at: at.clone(), what }]).is_err());
            // The table from a moment before, with the mount still in this place.
            let before = BTreeMap::from([(
                seen.number + 1,
                TableRow { point: at.clone(), mode: MountMode::ReadOnly },
            )]);
            assert!(!seen.is_as(&Expected { at: at.clone(), what }, &before));
            let row = TableRow { point: at.clone(), mode: MountMode::ReadOnly };
            assert!(seen.is_as(&Expected { at: at.clone(), what }, &BTreeMap::from([(seen.number, row)])));
        }
    }
}
