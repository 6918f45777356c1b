//! What no session of this process may reach: the usual places of keys, and all of our own files, wherever the
//! user put them.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use attache_core::scope::{Guarded, LinkChain, LinkChains};
use attache_sandbox::account::account_home;
use attache_sandbox::link_chain::{is_missing, link_chain};

use crate::config::{Config, ProviderWire};
use crate::dirs::Dirs;

/// What SQLite keeps beside a database, and the file by which writers line up.
const BESIDE_DATABASE: [&str; 4] = ["-wal", "-shm", "-journal", "-queue"];

/// The file of one of our repairs in progress.
const REPAIR: &str = ".repair";

/// `files` are further files of ours: a trace, a database that we set aside.
pub(crate) fn guarded<'a>(
    config: &'a Config,
    dirs: &'a Dirs,
    files: impl Iterator<Item = &'a Path>,
) -> Guarded {
    let database = &config.store.value;
    let beside = |suffix: &str| {
        let mut name = OsString::from(database);
        name.push(suffix);
        PathBuf::from(name)
    };
    let directories = [&dirs.config_file, &dirs.sessions_db].into_iter().filter_map(|file| file.parent());
    let scripts = config.providers.iter().filter_map(|provider| match &provider.wire {
        ProviderWire::Script { script, .. } => Some(script.value.as_path()),
        ProviderWire::Http(_) => None,
    });
    let locks = database.parent().map(|directory| directory.join("locks"));
    let own = directories
        .chain([dirs.blobs.as_path(), &dirs.scratch, &dirs.packages, &dirs.logs, &dirs.chat_history])
        .map(PathBuf::from)
        .chain(locks);
    let own_files =
        [&dirs.credentials_file, &dirs.catalogue_file, &dirs.token_file, &dirs.trust_file].into_iter();
    let own_files = own_files
        .map(PathBuf::as_path)
        .chain([database.as_path(), &config.file])
        .chain(scripts)
        .chain(files)
        .map(PathBuf::from)
        .chain(BESIDE_DATABASE.into_iter().chain([REPAIR]).map(beside));
    // Options may be relative to the directory where the user started us.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let skills = dirs.config_file.parent().map(|directory| directory.join("skills"));
    let variable = |wanted: &str| {
        let set = dirs.moved.iter().find(|(name, _)| *name == wanted);
        set.map(|(_, value)| value.clone())
    };
    let guarded = Guarded::new(dirs.home.clone(), own.map(absolute).collect())
        .with_own_files(own_files.map(absolute).collect())
        .with_account_home(account_home())
        .with_variables(variable)
        .with_readable(skills.into_iter().collect());
    guarded.with_real_names(LinkChains::found_by(|| {
        let mut chains = KnownChains::default();
        move |path: &Path| chains.of(path)
    }))
}

/// A directory with more names is not listed: each name is looked at alone.
const LISTED_NAMES: usize = 4_096;

/// So many names of a directory are looked at alone before it is listed: of most directories only one is asked
/// for, the next on the way.
const LOOKS_BEFORE_LIST: usize = 4;

/// Follows every link; what does not exist lies where its directory does. Looks at each directory once: of the
/// names that are asked for most are nowhere, and one list says so of all of them.
#[derive(Debug, Default)]
struct KnownChains {
    known: HashMap<PathBuf, LinkChain>,
    /// By the directory's real path.
    listed: HashMap<PathBuf, DirectoryNames>,
}

/// The names in a directory.
#[derive(Debug)]
enum DirectoryNames {
    /// Not listed yet, after so many looks.
    Looks(usize),
    /// In small letters: some file systems don't tell them apart.
    Listed(HashSet<OsString>),
    /// Too many, or they can't be read.
    Unknown,
}

impl DirectoryNames {
    fn of(directory: &Path) -> Self {
        let entries = match directory.read_dir() {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return Self::Listed(HashSet::new()),
            Err(_) => return Self::Unknown,
        };
        let names = entries.take(LISTED_NAMES + 1).map(|entry| Ok(entry?.file_name().to_ascii_lowercase()));
        match names.collect::<std::io::Result<HashSet<OsString>>>() {
            Ok(names) if names.len() <= LISTED_NAMES => Self::Listed(names),
            Ok(_) | Err(_) => Self::Unknown,
        }
    }

    fn lack(&mut self, directory: &Path, name: &OsStr) -> bool {
        if let Self::Looks(looks) = self {
            *looks += 1;
            if *looks > LOOKS_BEFORE_LIST {
                *self = Self::of(directory);
            }
        }
        match self {
            Self::Listed(names) => !names.contains(&name.to_ascii_lowercase()),
            Self::Looks(_) | Self::Unknown => false,
        }
    }
}

impl KnownChains {
    fn of(&mut self, path: &Path) -> Option<LinkChain> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return link_chain(path).ok();
        };
        let LinkChain { mut links, end } = self.of_directory(parent)?;
        let named = end.join(name);
        if self.listed.entry(end.clone()).or_insert(DirectoryNames::Looks(0)).lack(&end, name) {
            return Some(LinkChain { links, end: named });
        }
        match named.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                let behind = link_chain(&named).ok()?;
                links.extend(behind.links);
                Some(LinkChain { links, end: behind.end })
            }
            Ok(_) => Some(LinkChain { links, end: named }),
            Err(error) if is_missing(&error) => Some(LinkChain { links, end: named }),
            Err(_) => None,
        }
    }

    fn of_directory(&mut self, path: &Path) -> Option<LinkChain> {
        if let Some(chain) = self.known.get(path) {
            return Some(chain.clone());
        }
        let chain = self.of(path)?;
        self.known.insert(path.to_owned(), chain.clone());
        Some(chain)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use clap::Parser;

    use super::*;
    use crate::args::Args;
    use crate::config::ProcessEnvironment;

    const NOBODYS: &str = "/nobodys/scratch";

    struct Place {
        base: PathBuf,
        guarded: Guarded,
        _directory: tempfile::TempDir,
    }

    /// A home whose keys are links into a project, our own home behind a link, and files of ours in the
    /// project.
    fn place() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for path in ["home", "project/dotfiles/aws", "data"] {
            std::fs::create_dir_all(base.join(path)).unwrap();
        }
        std::fs::write(base.join("project/attache.toml"), "").unwrap();
        symlink(base.join("project/dotfiles/aws"), base.join("home/.aws")).unwrap();
        symlink("../project/dotfiles/netrc", base.join("home/.netrc")).unwrap();
        std::fs::write(base.join("project/dotfiles/netrc"), "machine x").unwrap();
        symlink(base.join("data"), base.join("attache")).unwrap();
        let text = |name: &str| base.join(name).to_string_lossy().into_owned();
        let variables = [("HOME", text("home")), ("ATTACHE_HOME", text("attache"))];
        let pairs = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        let environment = ProcessEnvironment::from_pairs(&pairs);
        let (config, store) = (text("project/attache.toml"), text("project/s.db"));
        let args = Args::parse_from(["attache", "--config", &config, "--store", &store, "acp"]);
        let dirs = Dirs::from_environment(&environment).unwrap();
        let config = Config::load(&args, &environment, &dirs).unwrap();
        let trace = base.join("project/trace.jsonl");
        let guarded = guarded(&config, &dirs, [trace.as_path()].into_iter());
        Place { base, guarded, _directory: directory }
    }

    #[test]
    fn keys_behind_links_and_our_own_files_are_hidden_by_both_names() {
        let Place { base, guarded, _directory } = place();
        let hidden =
            |guarded: &Guarded, name: &str| guarded.hides(&base.join(name), Path::new(NOBODYS)).is_some();
        for name in [
            "home/.aws/credentials",
            "project/dotfiles/aws/credentials",
            "home/.netrc",
            "project/dotfiles/netrc",
            "attache/sessions.db",
            "data/sessions.db",
            "data/credentials.json",
            "project/attache.toml",
            "project/s.db",
            "project/s.db-wal",
            "project/s.db-journal",
            "project/locks/1",
            "project/trace.jsonl",
        ] {
            assert!(hidden(&guarded, name), "{name}");
        }
        for name in ["project/dotfiles/zshrc", "project/src/main.rs", "project/s.db2"] {
            assert!(!hidden(&guarded, name), "{name}");
        }
    }

    #[test]
    fn every_step_from_a_name_of_the_home_is_protected_there_or_not() {
        let Place { base, guarded, _directory } = place();
        symlink(base.join("project/current/rc"), base.join("home/.bashrc")).unwrap();
        symlink("v1", base.join("project/current")).unwrap();
        symlink("../project/missing", base.join("home/.config")).unwrap();
        let guarded = guarded.as_it_is_now();
        let protects = |name: &str| guarded.protects(&base.join(name), Path::new(NOBODYS)).is_some();
        for name in ["project/current", "project/v1/rc", "project/missing/fish/config.fish"] {
            assert!(protects(name), "{name}");
        }
        for name in ["project/v1/other", "project/missing/other"] {
            assert!(!protects(name), "{name}");
        }
    }

    #[test]
    fn a_link_that_comes_later_is_seen_by_the_next_look() {
        let Place { base, guarded, _directory } = place();
        let key = base.join("project/kube");
        std::fs::create_dir(&key).unwrap();
        assert!(guarded.hides(&key.join("config"), Path::new(NOBODYS)).is_none());
        symlink(&key, base.join("home/.kube")).unwrap();
        assert!(guarded.as_it_is_now().hides(&key.join("config"), Path::new(NOBODYS)).is_some());
    }
}
