//! Names that variables move out of the home, from a table: guarded in the home, they are guarded where the
//! variable points, too. Gets the values; does not look at the disk.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::{PROGRAMS_AT_HOME, ProtectedKind, protected, secret};

/// The kernel provides these: `HISTFILE=/dev/null` moves nothing there.
const OF_THE_KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// One line of `moved.txt`, which explains its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MovedRow {
    variable: &'static str,
    /// Empty if the value itself is the place.
    below: &'static str,
    value: ValueForm,
    name: &'static str,
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueForm {
    Directory,
    File,
    List,
}

/// A name from the home at another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MovedName {
    pub(super) path: PathBuf,
    /// The table row that guards it.
    pub(super) name: &'static str,
    pub(super) kind: ProtectedKind,
    pub(super) why: MovedWhy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovedWhy {
    /// Agents never see it.
    Secret,
    /// Agents never change it.
    Protected,
}

static TABLE: LazyLock<Vec<MovedRow>> =
    LazyLock::new(|| include_str!("moved.txt").lines().filter_map(line).collect());

/// A test below finds lines that are no rows.
fn line(line: &'static str) -> Option<MovedRow> {
    let mut rest = line.trim();
    let mut column = || {
        let (word, behind) = rest.split_once(char::is_whitespace)?;
        rest = behind.trim_start();
        Some(word)
    };
    let (base, value, name) = (column()?.strip_prefix('$')?, column()?, column()?);
    let (variable, below) = base.split_once('/').unwrap_or((base, ""));
    let value = match value {
        "dir" => ValueForm::Directory,
        "file" => ValueForm::File,
        "list" => ValueForm::List,
        _ => return None,
    };
    Some(MovedRow { variable, below, value, name, reason: rest })
}

pub(super) fn variables() -> impl Iterator<Item = &'static str> {
    let rows = TABLE.iter().enumerate();
    let is_first = |at: usize| TABLE[..at].iter().all(|other| other.variable != TABLE[at].variable);
    rows.filter(move |(at, _)| is_first(*at)).map(|(_, row)| row.variable)
}

/// The places that the values of these variables name. Relative values are ignored: they mean a different place
/// in each directory.
pub(super) fn moved(value: impl Fn(&str) -> Option<OsString>) -> Vec<MovedName> {
    let mut moved = Vec::new();
    for row in TABLE.iter() {
        let Some(value) = value(row.variable) else { continue };
        for base in row.bases(&value) {
            let secrets = secret::table().iter().map(|row| (row.name, row.kind, MovedWhy::Secret));
            let protected = protected::table().iter().filter(|row| !row.has_wildcard());
            let protected = protected.map(|row| (row.name(), row.kind)).chain(PROGRAMS_AT_HOME);
            let all = secrets.chain(protected.map(|(name, kind)| (name, kind, MovedWhy::Protected)));
            moved.extend(all.filter_map(|(name, kind, why)| {
                let (path, kind) = row.place_of(name, kind, &base)?;
                Some(MovedName { path, name, kind, why })
            }));
        }
    }
    moved.dedup();
    moved
}

impl MovedRow {
    fn bases(&self, value: &OsStr) -> Vec<PathBuf> {
        let bytes = value.as_bytes();
        let parts: Vec<&[u8]> = match self.value {
            ValueForm::List => bytes.split(|byte| *byte == b':').collect(),
            ValueForm::Directory | ValueForm::File => vec![bytes],
        };
        let places = parts.into_iter().map(|part| Path::new(OsStr::from_bytes(part)));
        let is_place = |place: &&Path| {
            place.is_absolute() && !OF_THE_KERNEL.iter().any(|of_kernel| place.starts_with(of_kernel))
        };
        // Removes the trailing separators that an empty `below` would leave.
        places.filter(is_place).map(|place| place.join(self.below).components().collect()).collect()
    }

    /// The moved place of a guarded name, if it is moved.
    fn place_of(&self, name: &str, kind: ProtectedKind, base: &Path) -> Option<(PathBuf, ProtectedKind)> {
        if name == self.name {
            return Some((base.to_owned(), kind));
        }
        let below =
            |path: &'_ str, above: &str| path.strip_prefix(above)?.strip_prefix('/').map(str::to_owned);
        if let Some(rest) = below(name, self.name) {
            return Some((base.join(rest), kind));
        }
        let own = match self.value {
            ValueForm::Directory => ProtectedKind::Directory,
            ValueForm::File | ValueForm::List => ProtectedKind::File,
        };
        below(self.name, name).map(|_| (base.to_owned(), own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved_by(variable: &str, value: &str) -> Vec<MovedName> {
        moved(|name| (name == variable).then(|| value.into()))
    }

    #[test]
    fn every_line_of_the_table_is_a_row_that_moves_something() {
        let lines = include_str!("moved.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(lines.count(), TABLE.len());
        for (at, row) in TABLE.iter().enumerate() {
            assert!(row.reason.split(' ').count() >= 2, "{row:?}");
            assert!(!row.name.starts_with('/') && !row.name.ends_with('/'), "{row:?}");
            assert!(
                TABLE[..at].iter().all(|other| (other.variable, other.below) != (row.variable, row.below))
            );
            assert!(!moved_by(row.variable, "/m").is_empty(), "{row:?} moves nothing that is guarded");
        }
        assert_eq!(variables().filter(|name| *name == "ZDOTDIR").count(), 1);
    }

    /// Checks the whole class: whatever a row guards below a directory that a variable moves.
    #[test]
    fn every_row_of_the_home_counts_below_its_variable() {
        let secrets = secret::table().iter().map(|row| row.name);
        let rows: Vec<&str> = secrets
            .chain(protected::table().iter().filter(|row| !row.has_wildcard()).map(|row| row.name()))
            .collect();
        for (variable, above) in [
            ("XDG_CONFIG_HOME", ".config/"),
            ("XDG_DATA_HOME", ".local/share/"),
            ("XDG_STATE_HOME", ".local/state/"),
            ("XDG_CACHE_HOME", ".cache/"),
            ("CARGO_HOME", ".cargo/"),
            ("GRADLE_USER_HOME", ".gradle/"),
            ("DOCKER_CONFIG", ".docker/"),
        ] {
            let moved = moved_by(variable, "/m");
            let below: Vec<&str> = rows.iter().filter_map(|row| row.strip_prefix(above)).collect();
            assert!(!below.is_empty(), "{variable}");
            for name in below {
                let path = Path::new("/m").join(name);
                assert!(moved.iter().any(|moved| moved.path == path), "{variable}: {name}");
            }
        }
    }

    #[test]
    fn a_variable_may_name_what_a_row_guards_as_a_part() {
        let paths = |variable: &str, value: &str| -> Vec<(String, MovedWhy)> {
            let of_name = |moved: MovedName| (moved.path.display().to_string(), moved.why);
            moved_by(variable, value).into_iter().map(of_name).collect()
        };
        let both = [("/a".to_owned(), MovedWhy::Secret), ("/b/c".to_owned(), MovedWhy::Secret)];
        assert_eq!(paths("KUBECONFIG", "/a:relative::/b/c:/dev/null"), both);
        assert_eq!(paths("GNUPGHOME", "/g/"), [("/g".to_owned(), MovedWhy::Secret)]);
        assert_eq!(paths("GIT_CONFIG_GLOBAL", "/g"), [("/g".to_owned(), MovedWhy::Protected)]);
        assert_eq!(paths("ZDOTDIR", "/z").len(), 5);
        assert_eq!(paths("GOPATH", "/g:/h").len(), 2);
        for nothing in ["", "production", "./x", "/dev/null"] {
            assert_eq!(paths("ENV", nothing), [], "{nothing}");
        }
    }
}
