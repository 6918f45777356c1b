//! What no grant reaches: files that run or rule are never changed by an agent, secrets are never seen. Lexical; who opens
//! files asks with real paths. What leads elsewhere over links is guarded by both names: the host says where it leads.

mod protected;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use protected::fits as name_fits;
pub use protected::{ProtectedKind, ProtectedName, WhenMissing, Where};

/// Below a home directory: keys and tokens by their usual places.
const SECRET_AT_HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/git/credentials",
    ".config/google-chrome",
    ".config/chromium",
    ".mozilla",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".bash_history",
    ".zsh_history",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
];

/// Of the machine itself.
const SECRET_OF_SYSTEM: &[&str] = &[
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/shadow-",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/proc/kcore",
];

/// Private keys under the names that programs give them.
const SECRET_NAMES: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"];

/// What of a process tells its secrets.
const SECRET_OF_PROCESS: &[&str] = &["environ", "mem", "auxv", "maps", "smaps", "syscall", "stack"];

/// The places of one host that no grant reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarded {
    /// The user's home, as it is named.
    home: Option<PathBuf>,
    /// Our own configuration, database, logs and keys, and the scratch of all sessions, as they are named.
    own: Vec<PathBuf>,
    real: Option<RealPath>,
    places: Places,
}

/// What is guarded by its place, under every name it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Places {
    secret: Vec<PathBuf>,
    own: Vec<PathBuf>,
    /// Where protected names of the home lead, if elsewhere.
    protected: Vec<(PathBuf, &'static str)>,
}

/// Says where a path really is, once its links are followed; what does not exist lies where its directory does.
#[derive(Clone)]
pub struct RealPath(Arc<Lookup>);

type Lookup = dyn Fn(&Path) -> Option<PathBuf> + Send + Sync;

impl RealPath {
    pub fn found_by(real: impl Fn(&Path) -> Option<PathBuf> + Send + Sync + 'static) -> Self {
        Self(Arc::new(real))
    }
}

impl fmt::Debug for RealPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RealPath")
    }
}

impl PartialEq for RealPath {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for RealPath {}

impl Places {
    fn of(home: Option<&Path>, own: &[PathBuf], real: Option<&RealPath>) -> Self {
        let real = |path: &Path| real.and_then(|real| (real.0)(path)).filter(|real| real != path);
        let homes: Vec<PathBuf> =
            home.into_iter().flat_map(|home| [Some(home.to_owned()), real(home)]).flatten().collect();
        // A link to something above the home would close everything.
        let is_place = |path: &PathBuf| !homes.iter().any(|home| home.starts_with(path));
        let mut secret: Vec<PathBuf> =
            homes.iter().flat_map(|home| SECRET_AT_HOME.iter().map(|name| home.join(name))).collect();
        secret.extend(SECRET_OF_SYSTEM.iter().map(PathBuf::from));
        let found: Vec<PathBuf> = secret.iter().filter_map(|path| real(path)).filter(is_place).collect();
        secret.extend(found);
        let own_real: Vec<PathBuf> = own.iter().filter_map(|path| real(path)).collect();
        let names = protected::table().iter().filter(|row| !row.has_wildcard());
        let leads = |row: &ProtectedName| {
            let named = home?.join(row.name);
            let real = real(&named).filter(is_place)?;
            let is_elsewhere = homes.iter().all(|home| real != home.join(row.name));
            is_elsewhere.then_some((real, row.name))
        };
        let mut places = Self {
            protected: names.filter_map(leads).collect(),
            own: own.iter().cloned().chain(own_real).collect(),
            secret,
        };
        places.secret.sort();
        places.secret.dedup();
        places.own.sort();
        places.own.dedup();
        places
    }
}

impl Guarded {
    pub fn new(home: Option<PathBuf>, own: Vec<PathBuf>) -> Self {
        let places = Places::of(home.as_deref(), &own, None);
        Self { home, own, real: None, places }
    }

    /// The same under the real names of everything, too.
    pub fn with_real_names(self, real: RealPath) -> Self {
        Self { real: Some(real), ..self }.as_it_is_now()
    }

    /// With the links that are there now: they come and go while a host runs.
    pub fn as_it_is_now(&self) -> Self {
        let places = Places::of(self.home.as_deref(), &self.own, self.real.as_ref());
        Self { places, ..self.clone() }
    }

    /// The user's home: what `~` stands for in rules, and where shells and desktops read what they run.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Why a file must not be changed; `scratch` is the asking session's own.
    pub fn protects(&self, path: &Path, scratch: &Path) -> Option<String> {
        if let Some(reason) = self.hides(path, scratch) {
            return Some(reason);
        }
        let name = self.protected_name(path)?;
        Some(format!("{} is protected: {name} may not be changed by an agent", path.display()))
    }

    fn protected_name(&self, path: &Path) -> Option<&'static str> {
        let led_to = || {
            let leads = self.places.protected.iter().find(|(real, _)| path.starts_with(real));
            leads.map(|(_, name)| *name)
        };
        protected::row_of(path).map(|row| row.name).or_else(|| repository_part(path)).or_else(led_to)
    }

    /// Why a file must not be seen; `scratch` is the asking session's own.
    pub fn hides(&self, path: &Path, scratch: &Path) -> Option<String> {
        let hidden = self.is_own(path, scratch)
            || self.places.secret.iter().any(|secret| path.starts_with(secret))
            || is_private_key(path)
            || is_process_secret(path);
        hidden.then(|| format!("{} is not shown to agents: it may hold keys or tokens", path.display()))
    }

    /// The same question for many files below one directory: what can't lie there is not compared.
    pub fn hidden_below(&self, directory: &Path, scratch: &Path) -> HiddenBelow {
        let touches = |place: &&PathBuf| place.starts_with(directory) || directory.starts_with(place);
        HiddenBelow {
            secret: self.places.secret.iter().filter(touches).cloned().collect(),
            own: self.places.own.iter().filter(touches).cloned().collect(),
            scratch: scratch.to_owned(),
            holds_processes: touches(&&PathBuf::from("/proc")),
        }
    }

    /// Files and directories that a sandbox hides, our own included, under every name they have. Not all of them exist.
    pub fn hidden_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.places.secret.iter().chain(&self.places.own).cloned()
    }

    /// Where protected names of the home lead, if elsewhere: a sandbox keeps that from being written, too.
    pub fn protected_paths(&self) -> impl Iterator<Item = &Path> + '_ {
        self.places.protected.iter().map(|(real, _)| real.as_path())
    }

    /// Every protected name, with what is known of it.
    pub fn protected() -> &'static [ProtectedName] {
        protected::table()
    }

    /// Names that a sandbox keeps from coming into being below a directory, `/` between their parts.
    pub fn protected_names() -> impl Iterator<Item = &'static str> {
        let held = |row: &&ProtectedName| row.missing != WhenMissing::Undone;
        protected::table().iter().filter(held).map(|row| row.name)
    }

    /// Those of them that mean something in the home only.
    pub fn names_read_at_home() -> &'static [&'static str] {
        static NAMES: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(|| {
            let at_home = protected::table().iter().filter(|row| row.place == Where::Home);
            at_home.map(|row| row.name).collect()
        });
        &NAMES
    }

    /// Whether an entry of this name, in any directory, is protected as a whole. Names with several parts are in `protected`.
    pub fn is_protected_entry(name: &OsStr) -> bool {
        protected::is_entry(name)
    }

    /// Names that private keys have, in lower case, wherever they lie.
    pub fn secret_names() -> &'static [&'static str] {
        SECRET_NAMES
    }

    fn is_own(&self, path: &Path, scratch: &Path) -> bool {
        !path.starts_with(scratch) && self.places.own.iter().any(|own| path.starts_with(own))
    }
}

/// What of `Guarded` can lie below one directory.
#[derive(Clone, Debug)]
pub struct HiddenBelow {
    secret: Vec<PathBuf>,
    own: Vec<PathBuf>,
    scratch: PathBuf,
    holds_processes: bool,
}

impl HiddenBelow {
    /// Whether a file below the directory must not be seen.
    pub fn hides(&self, path: &Path) -> bool {
        is_private_key(path)
            || self.secret.iter().any(|secret| path.starts_with(secret))
            || self.own.iter().any(|own| path.starts_with(own)) && !path.starts_with(&self.scratch)
            || self.holds_processes && is_process_secret(path)
    }
}

/// Modules and work trees keep hooks and configuration of their own deeper down.
fn repository_part(path: &Path) -> Option<&'static str> {
    let mut names = path.components().map(|name| lower(name.as_os_str()));
    names.find(|name| name == ".git")?;
    names.find_map(|name| match name.as_str() {
        "hooks" => Some(".git/…/hooks"),
        "config" | "config.worktree" => Some(".git/…/config"),
        _ => None,
    })
}

fn is_private_key(path: &Path) -> bool {
    // Asked for every file of a search: a look at the first letter spares the rest for almost all.
    let begins_alike = |name: &&OsStr| matches!(name.as_encoded_bytes().first(), Some(b'i' | b'I'));
    path.file_name().filter(begins_alike).is_some_and(|name| SECRET_NAMES.contains(&lower(name).as_str()))
}

/// `/proc/N/environ` and its like, of any process and any of its tasks.
fn is_process_secret(path: &Path) -> bool {
    path.starts_with("/proc")
        && path.file_name().is_some_and(|name| SECRET_OF_PROCESS.contains(&lower(name).as_str()))
}

fn lower(name: &OsStr) -> String {
    name.to_string_lossy().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRATCH: &str = "/data/attache/scratch/ses_1";

    fn guarded() -> Guarded {
        Guarded::new(Some("/home/ada".into()), vec!["/data/attache".into()])
    }

    fn protected(path: &str) -> bool {
        guarded().protects(Path::new(path), Path::new(SCRATCH)).is_some()
    }

    fn hidden(path: &str) -> bool {
        guarded().hides(Path::new(path), Path::new(SCRATCH)).is_some()
    }

    #[test]
    fn what_runs_or_rules_is_protected_whether_it_exists_or_not() {
        for path in [
            "/w/.git/hooks/pre-commit",
            "/w/.GIT/Config",
            "/w/.git/modules/a/hooks/x",
            "/w/sub/.mcp.json",
            "/w/.vscode/tasks.json",
            "/home/ada/.zshrc",
            "/home/ada/.config/fish/config.fish",
        ] {
            assert!(protected(path), "{path}");
        }
        for path in [
            "/w/config",
            "/w/.github/config",
            "/w/hooks/.git",
            "/w/.git/info/exclude",
            "/w/zshrc",
            "/w/.config/x",
        ] {
            assert!(!protected(path), "{path}");
        }
    }

    #[test]
    fn below_a_directory_the_same_is_hidden() {
        let paths = [
            "/home/ada/.ssh/config",
            "/home/ada/w/deploy/ID_RSA",
            "/home/ada/w/deploy/ideas",
            "/proc/7/environ",
            "/proc/7/status",
            "/data/attache/sessions.db",
            "/data/attache/scratch/ses_1/x",
            "/data/attache/scratch/ses_2/x",
            "/data/other",
            "/etc/shadow",
        ];
        for directory in
            ["/", "/home/ada", "/home/ada/.ssh", "/home/ada/w", "/proc/7", "/data", "/data/attache"]
        {
            let below = guarded().hidden_below(Path::new(directory), Path::new(SCRATCH));
            for path in paths.iter().filter(|path| Path::new(path).starts_with(directory)) {
                assert_eq!(below.hides(Path::new(path)), hidden(path), "{path} below {directory}");
            }
        }
    }

    #[test]
    fn secrets_are_hidden_and_so_never_written() {
        for path in [
            "/home/ada/.ssh/config",
            "/home/ada/.aws/credentials",
            "/w/deploy/id_ed25519",
            "/proc/self/environ",
            "/proc/1/task/2/environ",
            "/etc/shadow",
            "/data/attache/sessions.db",
            "/data/attache/scratch/ses_2/x",
        ] {
            assert!(hidden(path) && protected(path), "{path}");
        }
        for path in [
            "/home/bob/.ssh/config",
            "/w/id_ed25519.pub",
            "/proc/self/status",
            "/w/environ",
            "/data/attache/scratch/ses_1/x",
        ] {
            assert!(!hidden(path), "{path}");
        }
    }

    /// Links of a host: each leads to where it says, whatever lies below it.
    fn with_links(guarded: Guarded, links: &'static [(&'static str, &'static str)]) -> Guarded {
        guarded.with_real_names(RealPath::found_by(|path| {
            let led =
                links.iter().find_map(|(link, to)| Some(Path::new(to).join(path.strip_prefix(link).ok()?)));
            // Without a slash behind what is led to as a whole.
            led.map(|path| path.components().collect())
        }))
    }

    #[test]
    fn what_is_guarded_is_so_by_both_names() {
        let guarded = with_links(
            guarded(),
            &[
                ("/home/ada/.aws", "/w/aws"),
                ("/home/ada/.netrc", "/w/dotfiles/netrc"),
                ("/home/ada/.zshrc", "/w/dotfiles/zshrc"),
                ("/home/ada/.claude", "/w/dotfiles/claude"),
                ("/data/attache", "/mnt/attache"),
                ("/home/ada", "/mnt/ada"),
            ],
        );
        let (scratch, hidden) =
            (Path::new(SCRATCH), |path: &str| guarded.hides(Path::new(path), Path::new(SCRATCH)));
        for path in [
            "/home/ada/.aws/credentials",
            "/mnt/ada/.aws/credentials",
            "/w/aws/credentials",
            "/w/dotfiles/netrc",
            "/mnt/ada/.ssh/id",
            "/mnt/attache/sessions.db",
            "/data/attache/sessions.db",
        ] {
            assert!(hidden(path).is_some(), "{path}");
            let below = guarded.hidden_below(Path::new(path).parent().unwrap(), scratch);
            assert!(below.hides(Path::new(path)), "{path}");
        }
        assert!(hidden("/w/dotfiles/zshrc").is_none() && hidden("/w/aws2").is_none());
        for path in ["/w/dotfiles/zshrc", "/w/dotfiles/claude/settings.json", "/mnt/ada/.bashrc"] {
            assert!(guarded.protects(Path::new(path), scratch).is_some(), "{path}");
        }
        let paths: Vec<PathBuf> = guarded.hidden_paths().collect();
        assert!(paths.contains(&"/w/aws".into()) && paths.contains(&"/mnt/attache".into()));
    }

    #[test]
    fn a_link_to_something_above_the_home_closes_nothing_else() {
        let guarded = with_links(guarded(), &[("/home/ada/.aws", "/"), ("/home/ada/.vim", "/home")]);
        assert!(guarded.hides(Path::new("/w/x"), Path::new(SCRATCH)).is_none());
        assert!(guarded.protects(Path::new("/home/ada/w/x"), Path::new(SCRATCH)).is_none());
    }
}
