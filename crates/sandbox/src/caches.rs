//! The user's package caches: finds them by a table, the home and the environment. Creates missing ones; grants
//! nothing.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::no_follow;
use crate::platform::stat_real;

static TABLE: LazyLock<Vec<CacheRow>> =
    LazyLock::new(|| include_str!("caches.txt").lines().filter_map(CacheRow::read).collect());

/// A cache, where its tool looks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The same for all possible places of this cache.
    pub name: &'static str,
    kind: CacheKind,
    base: PathBuf,
    below: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheKind {
    Directory,
    File,
}

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CacheRow {
    name: &'static str,
    kind: CacheKind,
    base: Base,
    /// Empty if the base itself is the cache.
    below: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Home(&'static str),
    Variable { name: &'static str, directory: &'static str },
}

impl CacheRow {
    /// `None` for comments and blank lines; a test parses all other lines.
    fn read(line: &'static str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?;
        let kind = match words.next()? {
            "directory" => CacheKind::Directory,
            "file" => CacheKind::File,
            _ => return None,
        };
        let base = words.next()?;
        let base = match (base.strip_prefix("~/"), base.strip_prefix('$')) {
            (Some(directory), _) => Base::Home(directory),
            (None, Some(variable)) => {
                let (name, directory) = variable.split_once('/').unwrap_or((variable, ""));
                Base::Variable { name, directory }
            }
            (None, None) => return None,
        };
        let below = words.next().map(|below| if below == "." { "" } else { below })?;
        Some(Self { name, kind, base, below })
    }
}

/// Whether a variable sets the place of a cache.
pub fn is_variable(name: &str) -> bool {
    TABLE.iter().any(|line| matches!(line.base, Base::Variable { name: variable, .. } if variable == name))
}

/// Where each cache would be. `variable` reads the environment that commands get, too.
pub fn all(home: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Vec<Cache> {
    let mut all: Vec<Cache> = Vec::new();
    for CacheRow { name, kind, base, below } in TABLE.iter() {
        let base = match base {
            Base::Home(directory) => home.map(|home| home.join(directory)),
            Base::Variable { name, directory } => variable(name)
                .filter(|value| !value.is_empty())
                .map(|value| PathBuf::from(value).join(directory)),
        };
        let is_new = !all.iter().any(|cache| cache.name == *name);
        if let (Some(base), true) = (base, is_new) {
            all.push(Cache { name, kind: *kind, base, below });
        }
    }
    // A path with other components is no real path.
    let is_plain = |component: Component<'_>| matches!(component, Component::RootDir | Component::Normal(_));
    all.retain(|cache| cache.base.is_absolute() && cache.base.components().all(is_plain));
    all
}

impl Cache {
    /// Its real path, if `ready` can prepare it at all.
    pub fn path(&self) -> PathBuf {
        // Without the trailing separator that an empty name would leave.
        self.base.join(self.below).components().collect()
    }

    /// Creates what is missing below the base. `None` if the cache is unusable: the base is missing, a link is
    /// on the way, or another user owns it.
    pub fn ready(&self) -> Option<PathBuf> {
        let path = self.path();
        let found = match (stat_real(&path), self.kind) {
            (Err(Errno::NOENT), CacheKind::Directory) => fs::fstat(self.make().ok()?).ok()?,
            (found, CacheKind::Directory | CacheKind::File) => found.ok()?,
        };
        let is_of_kind = match (self.kind, FileType::from_raw_mode(found.st_mode)) {
            (CacheKind::Directory, FileType::Directory) => true,
            // Another name of the same file may be anything.
            (CacheKind::File, FileType::RegularFile) => found.st_nlink == 1,
            (CacheKind::Directory | CacheKind::File, _) => false,
        };
        (is_of_kind && found.st_uid == rustix::process::geteuid().as_raw()).then_some(path)
    }

    /// Creates one name after the other, each below the handle of the one before.
    fn make(&self) -> Result<OwnedFd, Errno> {
        let mut current = no_follow::directory(&self.base)?;
        if fs::fstat(&current)?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(Errno::PERM);
        }
        for name in self.below.split('/').map(OsStr::new).filter(|name| !name.is_empty()) {
            match fs::mkdirat(&current, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            current = fs::openat(&current, name, flags, Mode::empty())?;
        }
        Ok(current)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn at(home: &Path, variables: &[(&str, &str)], name: &str) -> Option<Cache> {
        let variable = |wanted: &str| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| OsString::from(value))
        };
        all(Some(home), variable).into_iter().find(|cache| cache.name == name)
    }

    #[test]
    fn every_line_is_read_and_names_a_cache_only() {
        let lines = include_str!("caches.txt").lines();
        let written = lines.filter(|line| !line.starts_with('#') && !line.is_empty()).count();
        assert_eq!(TABLE.len(), written);
        let forbidden =
            ["bin", "config", "credential", "auth", "token", "settings", "properties", "init", "rc"];
        for line in TABLE.iter() {
            let directory = match line.base {
                Base::Home(directory) | Base::Variable { directory, .. } => directory,
            };
            for part in directory.split('/').chain(line.below.split('/')) {
                let is_forbidden = |word: &&str| match *word {
                    "bin" | "rc" => part.ends_with(*word),
                    word => part.contains(word),
                };
                assert!(!forbidden.iter().any(is_forbidden), "{line:?}");
                assert!(!matches!(part, ".." | "."), "{line:?}");
            }
            // Never grant a whole directory that also holds programs or settings.
            if line.below.is_empty() {
                let whole =
                    [".cargo", ".npm", ".gradle", ".m2", ".yarn", "go", ".local/share/pnpm", ".cache"];
                assert!(!whole.contains(&directory), "{line:?}");
                let of_tools = ["CARGO_HOME", "GOPATH", "GRADLE_USER_HOME", "PNPM_HOME", "npm_config_cache"];
                let Base::Variable { name, directory } = line.base else { continue };
                assert!(!directory.is_empty() || !of_tools.contains(&name), "{line:?}");
                assert!(!directory.is_empty() || !name.starts_with("XDG"), "{line:?}");
            }
        }
    }

    #[test]
    fn a_variable_counts_before_the_home() {
        let path = |variables: &[(&str, &str)], name: &str| {
            at(Path::new("/h"), variables, name).map(|cache| cache.path())
        };
        assert_eq!(path(&[], "cargo-registry"), Some("/h/.cargo/registry".into()));
        assert_eq!(path(&[("CARGO_HOME", "/c")], "cargo-registry"), Some("/c/registry".into()));
        assert_eq!(path(&[("CARGO_HOME", "")], "cargo-registry"), Some("/h/.cargo/registry".into()));
        assert_eq!(path(&[("XDG_CACHE_HOME", "/x")], "pip"), Some("/x/pip".into()));
        assert_eq!(path(&[("XDG_CACHE_HOME", "/x"), ("PIP_CACHE_DIR", "/p")], "pip"), Some("/p".into()));
        assert_eq!(path(&[("GOPATH", "/g")], "go-modules"), Some("/g/pkg/mod".into()));
        for strange in ["relative", "/a/../b", "a:b"] {
            assert_eq!(path(&[("PIP_CACHE_DIR", strange)], "pip"), None, "{strange}");
        }
        assert!(is_variable("PIP_CACHE_DIR") && is_variable("GOPATH") && !is_variable("HOME"));
    }

    #[test]
    fn only_what_is_the_users_own_and_no_link_is_made_ready() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        let ready = |name: &str| at(&home, &[], name).unwrap().ready();
        assert_eq!(ready("gradle-wrapper"), None);
        assert!(!home.join(".gradle").exists(), "a tool that is not used gets nothing");
        std::fs::create_dir_all(home.join(".gradle")).unwrap();
        std::fs::create_dir_all(home.join(".cargo")).unwrap();
        std::fs::create_dir_all(home.join("elsewhere")).unwrap();
        let made = ready("gradle-wrapper").unwrap();
        assert_eq!(made, home.join(".gradle/wrapper/dists"));
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        symlink(home.join("elsewhere"), home.join(".cargo/registry")).unwrap();
        symlink(home.join("elsewhere"), home.join(".m2")).unwrap();
        std::fs::write(home.join(".cargo/git"), "").unwrap();
        for name in ["cargo-registry", "cargo-git", "cargo-lock", "maven"] {
            assert_eq!(ready(name), None, "{name}");
        }
        assert!(home.join("elsewhere").read_dir().unwrap().next().is_none());
        std::fs::write(home.join(".cargo/.package-cache"), "").unwrap();
        assert!(ready("cargo-lock").is_some());
        std::fs::hard_link(home.join(".cargo/.package-cache"), home.join("other")).unwrap();
        assert_eq!(ready("cargo-lock"), None, "it has another name");
    }
}
