//! Looks from inside a sandbox, before its command begins, whether each mount of the plan is where it was planned and is
//! what was planned.
//!
//! Bubblewrap takes names, and follows links in them: what somebody swaps between our look and its mounts would lead a
//! mount astray. Then the command does not begin.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::look::{Identity, identity};
use super::plan::{Mount, What};

/// What has to be mounted at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) at: PathBuf,
    pub(super) what: Seen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Writable(Identity),
    ReadOnly(Identity),
    /// Whatever it is, it was mounted there.
    Cover,
}

impl Expected {
    /// As the machine is now. An error where something of the plan is not there any more, or is a link by now.
    pub(super) fn of(mounts: &[Mount]) -> io::Result<Vec<Self>> {
        let mut expected = BTreeMap::new();
        for Mount { at, what } in mounts {
            let what = match what {
                What::Writable => Seen::Writable(identity(at)?),
                What::ReadOnly => Seen::ReadOnly(identity(at)?),
                What::EmptyFile | What::EmptyDirectory => Seen::Cover,
            };
            // Of several at one path the last is seen.
            expected.insert(at.clone(), what);
        }
        Ok(expected.into_iter().map(|(at, what)| Self { at, what }).collect())
    }

    /// Two words, for the helper.
    pub(super) fn to_words(&self) -> [OsString; 2] {
        let numbers = |kind: &str, one: Identity| format!("{kind}:{}:{}", one.device, one.inode);
        let what = match self.what {
            Seen::Writable(one) => numbers("w", one),
            Seen::ReadOnly(one) => numbers("r", one),
            Seen::Cover => "c".to_owned(),
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
            "w" => Seen::Writable(identity(parts)?),
            "r" => Seen::ReadOnly(identity(parts)?),
            "c" => Seen::Cover,
            _ => return None,
        };
        Some(Self { at: at.into(), what })
    }
}

/// Whether everything is mounted as it should be; the error says what is not.
pub(super) fn verify(expected: &[Expected]) -> io::Result<()> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    let mounted = mounted(&table);
    for Expected { at, what } in expected {
        let changed = || {
            let text = format!("{} changed while the sandbox was built", at.display());
            Err(io::Error::other(text))
        };
        let Some(mode) = mounted.get(at.as_path()) else { return changed() };
        let is_right = match what {
            Seen::Writable(planned) => identity(at) == Ok(*planned),
            Seen::ReadOnly(planned) => *mode == Mode::ReadOnly && identity(at) == Ok(*planned),
            Seen::Cover => true,
        };
        if !is_right {
            return changed();
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    ReadOnly,
    Writable,
}

/// Where something is mounted, and how; of several at one place the last.
fn mounted(table: &[u8]) -> BTreeMap<PathBuf, Mode> {
    let lines = table.split(|byte| *byte == b'\n');
    let mounts = lines.filter_map(|line| {
        // Number, parent, device, root, mount point, options.
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let (point, options) = (fields.next()?, fields.next()?);
        let is_read_only = options.split(|byte| *byte == b',').any(|option| option == b"ro");
        let mode = if is_read_only { Mode::ReadOnly } else { Mode::Writable };
        Some((unescaped(point), mode))
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
        let mounted = mounted(table);
        assert_eq!(mounted.get(Path::new("/")), Some(&Mode::ReadOnly));
        assert_eq!(mounted.get(Path::new("/w/a b\\")), Some(&Mode::Writable));
        assert_eq!(mounted.get(Path::new("/w")), Some(&Mode::ReadOnly), "the last one is seen");
        assert_eq!(mounted.len(), 3);
    }

    #[test]
    fn what_is_expected_is_read_as_it_was_written() {
        let one = Identity { device: u64::MAX, inode: 7 };
        for what in [Seen::Writable(one), Seen::ReadOnly(one), Seen::Cover] {
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
        let expected = |at: &str, what: Seen| [Expected { at: at.into(), what }];
        assert!(verify(&expected("/proc", Seen::Writable(here))).is_ok());
        assert!(verify(&expected("/proc", Seen::Cover)).is_ok());
        let other = Identity { inode: here.inode + 1, ..here };
        assert!(verify(&expected("/proc", Seen::Writable(other))).is_err());
        assert!(verify(&expected("/no/such/mount", Seen::Cover)).is_err());
    }
}
