//! What no grant reaches: files that run or rule are never changed by an agent, secrets are never seen. Lexical; who opens files asks with real paths.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Sequences of names that stay as they are wherever they stand. Lower case: some file systems know no other.
const PROTECTED: &[&str] = &[
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".attache",
    ".agents",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".zed",
    ".envrc",
    ".cargo/config.toml",
    ".cargo/config",
];

/// The same of what shells and desktops read from the home only: elsewhere a new one of that name is only a file.
const PROTECTED_AT_HOME: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".gitconfig",
    ".config/git",
];

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
    /// The user's home, as it really is.
    home: Option<PathBuf>,
    /// Our own configuration, database, logs and keys, and the scratch of all sessions.
    own: Vec<PathBuf>,
}

impl Guarded {
    pub fn new(home: Option<PathBuf>, own: Vec<PathBuf>) -> Self {
        Self { home, own }
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
        let name = protected_sequence(path)?;
        Some(format!("{} is protected: {name} may not be changed by an agent", path.display()))
    }

    /// Why a file must not be seen; `scratch` is the asking session's own.
    pub fn hides(&self, path: &Path, scratch: &Path) -> Option<String> {
        let hidden = self.is_own(path, scratch)
            || self.secret_paths().any(|secret| path.starts_with(secret))
            || is_private_key(path)
            || is_process_secret(path);
        hidden.then(|| format!("{} is not shown to agents: it may hold keys or tokens", path.display()))
    }

    /// The same question for many files below one directory: what can't lie there is not compared.
    pub fn hidden_below(&self, directory: &Path, scratch: &Path) -> HiddenBelow {
        let touches = |place: &PathBuf| place.starts_with(directory) || directory.starts_with(place);
        HiddenBelow {
            secret: self.secret_paths().filter(touches).collect(),
            own: self.own.iter().filter(|place| touches(place)).cloned().collect(),
            scratch: scratch.to_owned(),
            holds_processes: touches(&PathBuf::from("/proc")),
        }
    }

    /// Files and directories that a sandbox hides, our own included. Not all of them exist.
    pub fn hidden_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.secret_paths().chain(self.own.iter().cloned())
    }

    /// Names below any directory that a sandbox keeps from being written, `/` between their parts.
    pub fn protected_names() -> impl Iterator<Item = &'static str> {
        PROTECTED.iter().chain(PROTECTED_AT_HOME).copied()
    }

    /// Those of them that mean something in the home only.
    pub fn names_read_at_home() -> &'static [&'static str] {
        PROTECTED_AT_HOME
    }

    /// Names that private keys have, in lower case, wherever they lie.
    pub fn secret_names() -> &'static [&'static str] {
        SECRET_NAMES
    }

    fn secret_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let at_home = self.home.iter().flat_map(|home| SECRET_AT_HOME.iter().map(|secret| home.join(secret)));
        at_home.chain(SECRET_OF_SYSTEM.iter().map(PathBuf::from))
    }

    fn is_own(&self, path: &Path, scratch: &Path) -> bool {
        !path.starts_with(scratch) && self.own.iter().any(|own| path.starts_with(own))
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

fn protected_sequence(path: &Path) -> Option<&'static str> {
    let names: Vec<String> = path.components().map(|name| lower(name.as_os_str())).collect();
    let found = |sequence: &&str| {
        let wanted: Vec<&str> = sequence.split('/').collect();
        names.windows(wanted.len()).any(|window| window == wanted)
    };
    if let Some(sequence) = Guarded::protected_names().find(|sequence| found(sequence)) {
        return Some(sequence);
    }
    // Modules and work trees keep hooks and configuration of their own deeper down.
    let git = names.iter().position(|name| name == ".git")?;
    let below = &names[git + 1..];
    below.iter().find_map(|name| match name.as_str() {
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
}
