//! What no grant reaches: an agent never changes files that are executed or that configure programs, and never
//! sees secrets. Compares paths as text; code that opens files asks with real paths. A name that leads
//! elsewhere through links is guarded under both names; the host says where it leads.

mod link_chains;
mod moved;
mod protected;
mod secret;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use link_chains::{LinkChain, LinkChains};
use moved::{MovedName, MovedWhy};
pub(crate) use protected::fits as name_fits;
pub use protected::{ProtectedKind, ProtectedName, WhenMissing, Where};

/// Secrets of the machine itself.
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

/// Files of a process in `/proc` that reveal its secrets.
const SECRET_OF_PROCESS: &[&str] = &["environ", "mem", "auxv", "maps", "smaps", "syscall", "stack"];

/// The places on one host that no grant reaches.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    /// The user's home, under its given name.
    home: Option<PathBuf>,
    /// The home of the account that we run as, if `HOME` names another: its files belong to the user just as
    /// much.
    account_home: Option<PathBuf>,
    /// Places that variables move out of the home.
    moved: Vec<MovedName>,
    /// attache's own configuration, database, logs and keys, and the scratch directories of all sessions, under
    /// their given names.
    own: Vec<PathBuf>,
    /// Those of them that are files; a sandbox also guards those that do not exist yet.
    own_files: Vec<PathBuf>,
    /// Directories below our own that agents may read nevertheless: skills.
    readable: Vec<PathBuf>,
    chains: Option<LinkChains>,
    places: OnceLock<Places>,
}

/// Places that are guarded, under every name they have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Places {
    secret: Vec<PathBuf>,
    own: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    /// Where names in the home lead through or to, if that is elsewhere.
    led_to: Vec<LedTo>,
}

/// A place that a name in the home leads through or to: a program that changes it decides what that name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedTo {
    /// The place.
    pub path: PathBuf,
    /// The name in the home.
    pub name: &'static str,
    /// What is there, or would be there.
    pub kind: ProtectedKind,
    /// How the name leads to it.
    pub step: ChainStep,
}

/// The role of a place on the way from a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainStep {
    /// A link, or a missing name that could become one: only this exact path is guarded, what lies below is
    /// elsewhere.
    Link,
    /// The target, existing or not, with everything below it.
    End,
}

impl Places {
    fn of(guarded: &Guarded) -> Self {
        let own = &guarded.own;
        let named: Vec<&Path> = guarded.homes().collect();
        let mut lookup = guarded.chains.as_ref().map(LinkChains::start);
        let mut chain = |path: &Path| lookup.as_mut()?(path);
        let mut real = |path: &Path| chain(path).map(|chain| chain.end).filter(|real| real != path);
        let homes: Vec<PathBuf> =
            named.iter().flat_map(|home| [Some(home.to_path_buf()), real(home)]).flatten().collect();
        // Guarding the target of a link to a directory above the home would close everything.
        let is_place = |path: &PathBuf| !homes.iter().any(|home| home.starts_with(path));
        let mut secret: Vec<PathBuf> =
            homes.iter().flat_map(|home| secret::table().iter().map(|row| home.join(row.name))).collect();
        secret.extend(SECRET_OF_SYSTEM.iter().map(PathBuf::from));
        let moved = || guarded.moved.iter().filter(|moved| is_place(&moved.path));
        let moved_secrets = moved().filter(|moved| moved.why == MovedWhy::Secret);
        secret.extend(moved_secrets.map(|moved| moved.path.clone()));
        let found: Vec<PathBuf> = secret.iter().filter_map(|path| real(path)).filter(is_place).collect();
        secret.extend(found);
        let mut under_every_name = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().flat_map(|path| [Some(path.clone()), real(path)]).flatten().collect()
        };
        let (own, readable) = (under_every_name(own), under_every_name(&guarded.readable));
        let mut led_to = Vec::new();
        for (home, (name, kind)) in
            named.into_iter().flat_map(|home| names_at_home().map(move |row| (home, row)))
        {
            let Some(LinkChain { links, end }) = chain(&home.join(name)) else { continue };
            let links = links.into_iter().map(|path| (path, ChainStep::Link));
            let all = links.chain([(end, ChainStep::End)]).filter(|(path, _)| is_place(path));
            // The name itself is guarded already.
            let elsewhere = all.filter(|(path, _)| homes.iter().all(|home| *path != home.join(name)));
            led_to.extend(elsewhere.map(|(path, step)| LedTo { path, name, kind, step }));
        }
        for MovedName { path, name, kind, why: _ } in moved() {
            let chain = chain(path).unwrap_or_else(|| LinkChain { links: Vec::new(), end: path.clone() });
            let links = chain.links.into_iter().map(|path| (path, ChainStep::Link));
            let all = links.chain([(chain.end, ChainStep::End), (path.clone(), ChainStep::End)]);
            let elsewhere =
                all.filter(|(path, _)| is_place(path) && homes.iter().all(|home| *path != home.join(name)));
            led_to.extend(elsewhere.map(|(path, step)| LedTo { path, name, kind: *kind, step }));
        }
        led_to.dedup();
        let mut places = Self { led_to, own, readable, secret };
        places.secret.sort();
        places.secret.dedup();
        places.own.sort();
        places.own.dedup();
        places
    }
}

/// Names in the home that the user's programs read, without wildcards: protected names, and those of keys,
/// because `.ssh/config` and similar files name programs, too.
fn names_at_home() -> impl Iterator<Item = (&'static str, ProtectedKind)> {
    let protected = protected::table().iter().filter(|row| !row.has_wildcard());
    let protected = protected.map(|row| (row.name(), row.kind)).chain(PROGRAMS_AT_HOME);
    protected.chain(secret::table().iter().map(|row| (row.name, row.kind)))
}

/// Where shells find the user's own programs. Not in the table, because elsewhere these names mean nothing.
const PROGRAMS_AT_HOME: [(&str, ProtectedKind); 2] =
    [("bin", ProtectedKind::Directory), ("go/bin", ProtectedKind::Directory)];

impl PartialEq for Guarded {
    /// Compares what they guard, whether link targets have been looked up or not.
    fn eq(&self, other: &Self) -> bool {
        let homes = (&self.home, &self.account_home) == (&other.home, &other.account_home);
        let homes = homes && (&self.moved, &self.own_files) == (&other.moved, &other.own_files);
        let named = homes && (&self.own, &self.chains) == (&other.own, &other.chains);
        named && self.places() == other.places()
    }
}

impl Eq for Guarded {}

impl Guarded {
    /// Guards only the user's home and the files of this program.
    pub fn new(home: Option<PathBuf>, own: Vec<PathBuf>) -> Self {
        Self { home, own, ..Self::default() }
    }

    /// Adds the home of the account that we run as, which `HOME` need not name.
    pub fn with_account_home(self, account_home: Option<PathBuf>) -> Self {
        let account_home = account_home.filter(|home| self.home.as_ref() != Some(home));
        Self { account_home, places: OnceLock::new(), ..self }
    }

    /// Adds what variables move out of the home; `value` returns the value of a variable.
    pub fn with_variables(self, value: impl Fn(&str) -> Option<OsString>) -> Self {
        Self { moved: moved::moved(value), places: OnceLock::new(), ..self }
    }

    /// The variables that move guarded places.
    pub fn variables() -> impl Iterator<Item = &'static str> {
        moved::variables()
    }

    /// Marks these of our own places as files; the others are directories.
    pub fn with_own_files(mut self, files: Vec<PathBuf>) -> Self {
        self.own.extend(files.iter().cloned());
        Self { own_files: files, places: OnceLock::new(), ..self }
    }

    /// Adds directories below our own that agents may read but never change.
    pub fn with_readable(self, readable: Vec<PathBuf>) -> Self {
        Self { readable, places: OnceLock::new(), ..self }
    }

    /// Guards everything under its real name, too. The names are resolved when the first question needs them: a
    /// starting host has no time to resolve two hundred names in a home.
    pub fn with_real_names(self, chains: LinkChains) -> Self {
        Self { chains: Some(chains), places: OnceLock::new(), ..self }
    }

    /// Resolves the links again, because they come and go while a host runs.
    pub fn as_it_is_now(&self) -> Self {
        Self {
            places: Places::of(self).into(),
            home: self.home.clone(),
            account_home: self.account_home.clone(),
            moved: self.moved.clone(),
            own: self.own.clone(),
            own_files: self.own_files.clone(),
            readable: self.readable.clone(),
            chains: self.chains.clone(),
        }
    }

    fn places(&self) -> &Places {
        self.places.get_or_init(|| Places::of(self))
    }

    /// The user's home: the meaning of `~` in rules, and where shells and desktops read what they run.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Every home whose names are guarded. A home that contains the whole machine is left out.
    fn homes(&self) -> impl Iterator<Item = &Path> {
        let account = self.account_home.as_deref().filter(|home| home.parent().is_some());
        self.home.as_deref().into_iter().chain(account)
    }

    /// Why a file must not be changed; `scratch` is the scratch directory of the session that asks.
    pub fn protects(&self, path: &Path, scratch: &Path) -> Option<String> {
        if let Some(reason) = self.hides(path, scratch) {
            return Some(reason);
        }
        let own = self.is_own(path, scratch).then_some("what is attache's own");
        let name = own.or_else(|| self.protected_name(path))?;
        // Avoids naming a file twice in one sentence.
        let name = if path.ends_with(name) { "it" } else { name };
        Some(format!(
            "{} is protected: {name} may not be changed by an agent; tell the user what to change there",
            path.display()
        ))
    }

    fn protected_name(&self, path: &Path) -> Option<&'static str> {
        let led_to = || {
            let is_it = |led: &&LedTo| match led.step {
                ChainStep::Link => path == led.path,
                ChainStep::End => path.starts_with(&led.path),
            };
            self.places().led_to.iter().find(is_it).map(|led| led.name)
        };
        let program = || {
            let mut names = PROGRAMS_AT_HOME.iter().map(|(name, _)| *name);
            names.find(|name| self.homes().any(|home| path.starts_with(home.join(name))))
        };
        let by_name = protected::row_of(path).map(|row| row.name()).or_else(|| repository_part(path));
        by_name.or_else(program).or_else(led_to)
    }

    /// Why a file must not be seen; `scratch` is the scratch directory of the session that asks.
    pub fn hides(&self, path: &Path, scratch: &Path) -> Option<String> {
        let is_readable = || self.places().readable.iter().any(|readable| path.starts_with(readable));
        let hidden = self.is_own(path, scratch) && !is_readable()
            || self.places().secret.iter().any(|secret| path.starts_with(secret))
            || is_private_key(path)
            || is_process_secret(path);
        hidden.then(|| format!("{} is not shown to agents: it may hold keys or tokens", path.display()))
    }

    /// The same question for many files below one directory: skips comparisons with what can't lie there.
    pub fn hidden_below(&self, directory: &Path, scratch: &Path) -> HiddenBelow {
        let touches = |place: &&PathBuf| place.starts_with(directory) || directory.starts_with(place);
        HiddenBelow {
            secret: self.places().secret.iter().filter(touches).cloned().collect(),
            own: self.places().own.iter().filter(touches).cloned().collect(),
            readable: self.places().readable.iter().filter(touches).cloned().collect(),
            scratch: scratch.to_owned(),
            holds_processes: touches(&&PathBuf::from("/proc")),
        }
    }

    /// Files and directories that a sandbox hides, including our own, under every name they have. Some do not
    /// exist.
    pub fn hidden_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.places().secret.iter().chain(&self.places().own).cloned()
    }

    /// Our own places, existing or not, under their given names.
    pub fn own_places(&self) -> impl Iterator<Item = (&Path, ProtectedKind)> {
        self.own.iter().map(|path| match self.own_files.contains(path) {
            true => (path.as_path(), ProtectedKind::File),
            false => (path.as_path(), ProtectedKind::Directory),
        })
    }

    /// Where names in the home lead through or to, if elsewhere: a sandbox prevents changes there, too.
    pub fn led_to(&self) -> &[LedTo] {
        &self.places().led_to
    }

    /// Names in the home that programs obey although the table demands no place-holder for them: names checked
    /// after a command, and names of keys.
    pub fn other_names_at_home() -> impl Iterator<Item = (&'static str, ProtectedKind)> {
        let is_held = |name: &str| Self::protected_names().any(|held| held == name);
        names_at_home().filter(move |(name, _)| !is_held(name))
    }

    /// Every protected name with its row in the table.
    pub fn protected() -> &'static [ProtectedName] {
        protected::table()
    }

    /// Names that a sandbox prevents commands from creating below a directory, with `/` between their parts.
    pub fn protected_names() -> impl Iterator<Item = &'static str> {
        let held = |row: &&ProtectedName| row.missing != WhenMissing::Undone;
        protected::table().iter().filter(held).map(|row| row.name())
    }

    /// Those of them that matter only in the home.
    pub fn names_read_at_home() -> &'static [&'static str] {
        static NAMES: std::sync::LazyLock<Vec<&'static str>> = std::sync::LazyLock::new(|| {
            let at_home = protected::table().iter().filter(|row| row.place == Where::Home);
            at_home.map(|row| row.name()).collect()
        });
        &NAMES
    }

    /// Whether an entry of this name is protected as a whole in any directory. `protected` has the names with
    /// several parts.
    pub fn is_protected_entry(name: &OsStr) -> bool {
        protected::is_entry(name)
    }

    /// Names of private keys, in lower case, which are guarded everywhere.
    pub fn secret_names() -> &'static [&'static str] {
        SECRET_NAMES
    }

    fn is_own(&self, path: &Path, scratch: &Path) -> bool {
        !path.starts_with(scratch) && self.places().own.iter().any(|own| path.starts_with(own))
    }
}

/// The guarded places that can lie below one directory.
#[derive(Clone, Debug)]
pub struct HiddenBelow {
    secret: Vec<PathBuf>,
    own: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    scratch: PathBuf,
    holds_processes: bool,
}

impl HiddenBelow {
    /// Whether a file below the directory must not be seen.
    pub fn hides(&self, path: &Path) -> bool {
        is_private_key(path)
            || self.secret.iter().any(|secret| path.starts_with(secret))
            || self.own.iter().any(|own| path.starts_with(own))
                && !path.starts_with(&self.scratch)
                && !self.readable.iter().any(|readable| path.starts_with(readable))
            || self.holds_processes && is_process_secret(path)
    }
}

/// Submodules and work trees keep their own hooks and configuration further below.
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
    // Called for every file of a search: comparing the first letter first decides almost all cases.
    let begins_alike = |name: &&OsStr| matches!(name.as_encoded_bytes().first(), Some(b'i' | b'I'));
    path.file_name().filter(begins_alike).is_some_and(|name| SECRET_NAMES.contains(&lower(name).as_str()))
}

/// `/proc/N/environ` and similar files of any process and any of its threads.
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

    #[test]
    fn the_home_of_the_account_is_guarded_beside_the_one_that_is_named() {
        let guarded = guarded().with_account_home(Some("/people/ada".into()));
        for home in ["/home/ada", "/people/ada"].map(Path::new) {
            let secret = home.join(".ssh/config");
            assert!(guarded.hides(&secret, Path::new(SCRATCH)).is_some(), "{secret:?}");
            assert!(guarded.hidden_paths().any(|path| path == home.join(".aws")));
            for name in ["bin/x", "go/bin/x", ".bashrc"] {
                assert!(guarded.protects(&home.join(name), Path::new(SCRATCH)).is_some(), "{home:?} {name}");
            }
        }
        assert_eq!(guarded.protects(Path::new("/home/ada/w/bin/x"), Path::new(SCRATCH)), None);
        let told = |path: &str| guarded.protects(Path::new(path), Path::new(SCRATCH)).unwrap();
        assert!(told("/w/.git/config").starts_with("/w/.git/config is protected: it may not be changed"));
        assert!(told("/w/.git/hooks/x").contains(": .git/hooks may not be changed"));
        assert_eq!(guarded.hides(Path::new("/people/bob/.ssh/config"), Path::new(SCRATCH)), None);
    }

    #[test]
    fn skills_of_our_own_are_read_and_never_changed() {
        let guarded = guarded().with_readable(vec!["/data/attache/skills".into()]);
        let (skill, key) = (Path::new("/data/attache/skills/pdf/more.md"), Path::new("/data/attache/key"));
        let scratch = Path::new(SCRATCH);
        assert_eq!(guarded.hides(skill, scratch), None);
        assert!(guarded.hides(key, scratch).is_some());
        assert!(guarded.protects(skill, scratch).is_some());
        let below = guarded.hidden_below(Path::new("/data"), scratch);
        assert!(!below.hides(skill) && below.hides(key));
        assert!(guarded.hides(Path::new("/data/attache/skills/x/id_rsa"), scratch).is_some());
    }

    #[test]
    fn what_variables_move_is_guarded_where_it_is() {
        let value = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/w/cfg".into()),
            "KUBECONFIG" => Some("/w/kube:/m/kube".into()),
            "GNUPGHOME" | "CARGO_HOME" => Some("/home".into()),
            "HISTFILE" => Some("/home/ada/.bash_history".into()),
            _ => None,
        };
        let guarded = guarded().with_variables(value);
        let scratch = Path::new(SCRATCH);
        for path in ["/w/cfg/gh/hosts.yml", "/w/kube", "/m/kube", "/home/ada/.config/gh/hosts.yml"] {
            assert!(guarded.hides(Path::new(path), scratch).is_some(), "{path}");
            let below = guarded.hidden_below(Path::new(path).parent().unwrap(), scratch);
            assert!(below.hides(Path::new(path)), "{path}");
        }
        for path in
            ["/w/cfg/git/config", "/w/cfg/fish/conf.d/x.fish", "/w/cfg/systemd/user/x", "/w/cfg/Code/User/x"]
        {
            assert!(guarded.protects(Path::new(path), scratch).is_some(), "{path}");
            assert!(guarded.hides(Path::new(path), scratch).is_none(), "{path}");
        }
        // Guarding a variable's value that contains the home would close everything.
        for path in ["/w/cfg/x", "/w/kube2", "/home/ada/w/x", "/home/bin/x"] {
            assert_eq!(guarded.hides(Path::new(path), scratch), None, "{path}");
        }
        assert!(guarded.led_to().iter().any(|led| led.path == Path::new("/w/cfg/git")));
        assert!(!guarded.led_to().iter().any(|led| led.path.starts_with("/home/ada")));
    }

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

    /// Links of a host: each leads to its target, with everything below it.
    fn with_links(guarded: Guarded, links: &'static [(&'static str, &'static str)]) -> Guarded {
        guarded.with_real_names(LinkChains::found_by(|| {
            |path: &Path| {
                let led = |path: &Path| {
                    let step = |(link, to): &(&str, &str)| {
                        Some((PathBuf::from(link), Path::new(to).join(path.strip_prefix(link).ok()?)))
                    };
                    // Removes the trailing slash when the whole path is the link.
                    links
                        .iter()
                        .find_map(step)
                        .map(|(link, path)| (link, path.components().collect::<PathBuf>()))
                };
                let mut chain = LinkChain { links: Vec::new(), end: path.to_owned() };
                while let Some((link, end)) = led(&chain.end) {
                    chain.links.push(link);
                    chain.end = end;
                }
                Some(chain)
            }
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
    fn every_step_from_a_name_of_the_home_is_protected_there_or_not() {
        let links = &[
            ("/home/ada/.bashrc", "/w/current/rc"),
            ("/w/current", "/w/v1"),
            ("/home/ada/.config", "/w/config"),
            ("/home/ada/.ssh", "/w/ssh"),
        ];
        let guarded = with_links(guarded(), links);
        let protects = |path: &str| guarded.protects(Path::new(path), Path::new(SCRATCH)).is_some();
        for path in ["/w/current", "/w/v1/rc", "/w/config/fish/config.fish", "/w/config/git", "/w/ssh/config"]
        {
            assert!(protects(path), "{path}");
        }
        for path in ["/w/current/other", "/w/v1", "/w/v1/other", "/w/config", "/w/config/other"] {
            assert!(!protects(path), "{path}");
        }
    }

    #[test]
    fn a_link_to_something_above_the_home_closes_nothing_else() {
        let guarded = with_links(guarded(), &[("/home/ada/.aws", "/"), ("/home/ada/.vim", "/home")]);
        assert!(guarded.hides(Path::new("/w/x"), Path::new(SCRATCH)).is_none());
        assert!(guarded.protects(Path::new("/home/ada/w/x"), Path::new(SCRATCH)).is_none());
    }
}
