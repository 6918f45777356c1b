//! Undoes what a command left in the repositories of a root and what would make git run or write something elsewhere.
//! Nothing is lost: what is taken away stays beside its place under another name, unless it was a link.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::baseline::End;
use super::below::{Entry, Held};
use super::configuration::without_programs;
use super::modules::pointed_at;
use super::state::{Piece, Repository, State, enter, names};
use crate::limits::{GIT_GUARD_ENTRIES, SET_ASIDE_TRIES};
use crate::paths::normal;

const CONFIGURATION: &str = "is configuration that only the user may make";

/// Behind the name of what is set aside.
pub(super) const ASIDE: &str = ".disabled";

pub(super) struct Undo<'a> {
    root: &'a OwnedFd,
    /// Where the root is, as it really is.
    real: &'a Path,
    /// All roots that the command may have written in.
    within: &'a [PathBuf],
    before: &'a State,
    /// Of a command that was killed with us: its user may have changed something since.
    end: Option<End>,
    told: Vec<String>,
}

impl<'a> Undo<'a> {
    pub(super) fn new(root: &'a OwnedFd, real: &'a Path, within: &'a [PathBuf], before: &'a State) -> Self {
        Self { root, real, within, before, end: None, told: Vec::new() }
    }

    pub(super) fn of_killed(self, end: End) -> Self {
        Self { end: Some(end), ..self }
    }

    pub(super) fn told(self) -> Vec<String> {
        self.told
    }

    pub(super) fn compare(&mut self, after: &State) {
        for (path, repository) in &after.repositories {
            self.repository(path, repository);
        }
        let before = &self.before.pointers;
        for (path, pointer) in
            after.pointers.iter().filter(|(path, pointer)| before.get(*path) != Some(pointer))
        {
            if !self.is_users(path) {
                self.pointer(path, pointer, after);
            }
        }
        let before = &self.before.protected;
        for (path, _) in after.protected.iter().filter(|(path, now)| before.get(*path) != Some(now)) {
            if self.is_users(path) {
                continue;
            }
            let was = before.get(path).and_then(Option::as_ref);
            let done = self.set_aside(path).and_then(|()| self.put_back(path, was));
            self.tell(path, CONFIGURATION, done);
        }
        for (path, was) in &self.before.below.0 {
            if let Some((at, now)) = after.below.find(path, was)
                && now.entries != was.entries
                && !self.is_users(at)
            {
                self.put_back_held(at, was);
            }
        }
    }

    /// A protected name below the top, which holds something else now.
    pub(super) fn put_back_held(&mut self, path: &Path, was: &Held) {
        let done = self.set_aside(path).and_then(|()| {
            was.entries.iter().try_for_each(|(inner, entry)| self.put_entry(&path.join(inner), entry))
        });
        self.tell(path, CONFIGURATION, done);
    }

    fn put_entry(&self, path: &Path, entry: &Entry) -> Result<(), Errno> {
        match entry {
            Entry::File { mode, text } => self.write(path, text, *mode),
            Entry::Link(led) => self.put_back(path, Some(&Piece::Link(led.clone()))),
            Entry::Directory => {
                let (directory, name) = self.place(path)?;
                fs::mkdirat(&directory, name, Mode::from_raw_mode(0o755))
            }
            Entry::Large(..) => Err(Errno::FBIG),
        }
    }

    fn repository(&mut self, path: &Path, now: &Repository) {
        let nothing = Repository::default();
        let was = self.before.repositories.get(path).unwrap_or(&nothing);
        if now == was {
            return;
        }
        for link in now.links.difference(&was.links) {
            let link = path.join(link);
            if self.is_users(&link) {
                continue;
            }
            let done = self.remove(&link);
            self.tell(&link, "was a link in a repository", done);
        }
        for (name, hook) in now.hooks.iter().filter(|(name, hook)| was.hooks.get(*name) != Some(hook)) {
            let hook_path = path.join("hooks").join(name);
            if self.is_users(&hook_path) {
                continue;
            }
            tracing::debug!(?hook, "a hook was made");
            let was = was.hooks.get(name);
            let done = self
                .set_aside(&hook_path)
                .and_then(|()| was.map_or(Ok(()), |was| self.put_entry(&hook_path, was)));
            self.tell(&hook_path, "is a hook that git would run", done);
        }
        for (name, piece) in now.control.iter().filter(|(name, piece)| was.control.get(*name) != Some(piece))
        {
            if self.is_users(&path.join(name)) {
                continue;
            }
            // A link was removed above.
            if matches!(piece, Piece::Link(_)) {
                self.restore(&path.join(name), was.control.get(name));
                continue;
            }
            self.control(path, name, piece, &was.control);
        }
    }

    fn control(&mut self, repository: &Path, name: &OsStr, piece: &Piece, was: &BTreeMap<OsString, Piece>) {
        let path = repository.join(name);
        let (text, is_text) = match piece {
            Piece::Text(text) => (String::from_utf8_lossy(text).into_owned(), true),
            Piece::Link(_) | Piece::Other => (String::new(), false),
        };
        let problem = match name.to_str().unwrap_or_default() {
            "config" | "config.worktree" => {
                let directory = self.real.join(repository);
                let has_tree = |tree: &str| self.is_within(&normal(&directory.join(tree)));
                match (without_programs(&text, has_tree), is_text) {
                    (None, true) => return,
                    (Some(harmless), true) => {
                        let done = self.replace_config(&path, &harmless, was.get(name));
                        return self.tell(&path, "named programs that git would run", done);
                    }
                    (_, false) => "could not be read through",
                }
            }
            "commondir"
                if is_text && is_work_tree(repository) && text.trim_end_matches(['\n', '\r']) == "../.." =>
            {
                return;
            }
            "commondir" => "leads git to another repository",
            "HEAD" if is_text && is_head(&text) => return,
            "HEAD" => "names no branch",
            "objects/info/alternates" if is_text && self.are_within(&path, &text) => return,
            "objects/info/alternates" => "leads git to objects elsewhere",
            // Of a work tree: where its `.git` is. Git only writes there what it has made itself.
            _ => return,
        };
        let done = self.set_aside(&path).and_then(|()| self.put_back(&path, was.get(name)));
        self.tell(&path, problem, done);
    }

    /// A `.git` that is a file or a link: it may lead to a repository in the roots, which then is judged by itself.
    fn pointer(&mut self, path: &Path, pointer: &Piece, after: &State) {
        let led = pointed_at(pointer);
        let directory = self.real.join(path.parent().unwrap_or(Path::new("")));
        // As git would come there, links included: only what is there can be run.
        let led = led.and_then(|led| directory.join(led).canonicalize().ok());
        let inside = led.as_ref().and_then(|led| led.strip_prefix(self.real).ok());
        match (led.as_ref(), inside) {
            (Some(_), Some(inside)) => {
                if !after.repositories.contains_key(inside)
                    && let Ok(git) = enter(self.root, inside)
                {
                    let mut found = State::default();
                    found.add(inside.to_owned(), &git);
                    found
                        .repositories
                        .iter()
                        .for_each(|(path, repository)| self.repository(path, repository));
                }
            }
            // In another root it is judged there, if it is near enough to its top to be seen.
            (Some(led), None) if self.is_within(led) && self.leads_plainly(led) => {}
            _ => {
                let done =
                    self.set_aside(path).and_then(|()| self.put_back(path, self.before.pointers.get(path)));
                self.tell(path, "leads git to a repository outside of the session's directories", done);
            }
        }
    }

    /// Whether what lies in another root could not run anything.
    fn leads_plainly(&self, led: &Path) -> bool {
        let Ok(git) = open_absolute(led) else { return false };
        let repository = Repository::of(&git);
        let config = repository.control.get(OsStr::new("config"));
        let is_plain = match config {
            Some(Piece::Text(text)) => without_programs(&String::from_utf8_lossy(text), |_| false).is_none(),
            Some(Piece::Link(_) | Piece::Other) => false,
            None => true,
        };
        is_plain && repository.hooks.is_empty() && repository.links.is_empty()
    }

    fn is_within(&self, path: &Path) -> bool {
        self.within.iter().any(|root| path.starts_with(root))
    }

    /// Whether all lines name directories in the roots, relative to the objects.
    fn are_within(&self, alternates: &Path, text: &str) -> bool {
        let objects = alternates.ancestors().nth(2).unwrap_or(Path::new(""));
        let objects = self.real.join(objects);
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.into_iter().all(|line| {
            let named = normal(&objects.join(line));
            let is_quoted = line.starts_with('"');
            // Both: a link below a root may lead out of it.
            !is_quoted
                && self.is_within(&named)
                && named.canonicalize().map_or(true, |real| self.is_within(&real))
        })
    }

    /// Whether the command can't have made it so, since it was dead by then or a mount held it.
    fn is_users(&self, path: &Path) -> bool {
        let Some(end) = self.end else { return false };
        let own = Path::new(".git");
        let was_held = end.is_held
            && self.before.repositories.contains_key(own)
            && path.strip_prefix(own).is_ok_and(|inner| {
                inner.starts_with("hooks") || inner == "config" || inner == "config.worktree"
            });
        let until = end.until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        was_held || self.is_later(path, until)
    }

    /// Whether everything there was changed later.
    fn is_later(&self, path: &Path, until: Duration) -> bool {
        let mut open = vec![path.to_owned()];
        let mut looked_at = 0;
        while let Some(path) = open.pop() {
            looked_at += 1;
            let found = self
                .place(&path)
                .and_then(|(directory, name)| fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW));
            let Ok(stat) = found else { return false };
            let seconds = u64::try_from(stat.st_ctime).unwrap_or_default();
            let changed = Duration::new(seconds, u32::try_from(stat.st_ctime_nsec).unwrap_or_default());
            if changed <= until || looked_at > GIT_GUARD_ENTRIES {
                return false;
            }
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                let entries = enter(self.root, &path).and_then(|directory| names(&directory));
                let Ok(entries) = entries else { return false };
                open.extend(entries.iter().map(|(name, _)| path.join(name)));
            }
        }
        true
    }

    fn tell(&mut self, path: &Path, what: &str, done: Result<(), Errno>) {
        let name = path.display();
        self.told.push(match done {
            Ok(()) => format!("{name} {what}"),
            Err(error) => {
                format!("{name} {what}, and it could not be undone ({error}): look at it before you use git")
            }
        });
    }

    /// The directory of a path and its name in it.
    fn place<'path>(&self, path: &'path Path) -> Result<(OwnedFd, &'path OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        Ok((enter(self.root, path.parent().unwrap_or(Path::new("")))?, name))
    }

    fn remove(&self, path: &Path) -> Result<(), Errno> {
        let (directory, name) = self.place(path)?;
        fs::unlinkat(&directory, name, AtFlags::empty())
    }

    /// Under another name beside it, never over something that is there.
    fn set_aside(&self, path: &Path) -> Result<(), Errno> {
        let (directory, name) = self.place(path)?;
        for number in 0..2 * SET_ASIDE_TRIES {
            let mut aside = OsString::from(name);
            aside.push(match number {
                0 => ASIDE.to_owned(),
                1..SET_ASIDE_TRIES => format!("{ASIDE}.{number}"),
                // Somebody took all of these: one that nobody could know.
                _ => format!("{ASIDE}.{:016x}", RandomState::new().hash_one(number)),
            });
            match fs::renameat_with(&directory, name, &directory, &aside, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                // A long name has no room for more: what would run goes.
                Err(Errno::NAMETOOLONG) => return fs::unlinkat(&directory, name, AtFlags::empty()),
                done => return done,
            }
        }
        fs::unlinkat(&directory, name, AtFlags::empty())
    }

    fn put_back(&self, path: &Path, was: Option<&Piece>) -> Result<(), Errno> {
        match was {
            Some(Piece::Text(text)) => self.write(path, text, 0o644),
            Some(Piece::Link(led)) => {
                let (directory, name) = self.place(path)?;
                fs::symlinkat(led, &directory, name)
            }
            Some(Piece::Other) | None => Ok(()),
        }
    }

    /// For what was told already.
    fn restore(&mut self, path: &Path, was: Option<&Piece>) {
        if let Err(error) = self.put_back(path, was) {
            self.tell(path, "was replaced by a link", Err(error));
        }
    }

    fn replace_config(&self, path: &Path, harmless: &str, was: Option<&Piece>) -> Result<(), Errno> {
        self.set_aside(path)?;
        match was {
            Some(Piece::Text(text)) => self.write(path, text, 0o644),
            Some(Piece::Link(_) | Piece::Other) | None => self.write(path, harmless.as_bytes(), 0o644),
        }
    }

    fn write(&self, path: &Path, text: &[u8], mode: u32) -> Result<(), Errno> {
        let (directory, name) = self.place(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(&directory, name, flags, Mode::from_raw_mode(mode))?;
        let written = File::from(file).write_all(text);
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

fn open_absolute(path: &Path) -> Result<OwnedFd, Errno> {
    fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

fn is_work_tree(repository: &Path) -> bool {
    repository.parent().is_some_and(|parent| parent.ends_with("worktrees"))
}

/// As git takes it: a branch below `refs/`, or a commit.
fn is_head(text: &str) -> bool {
    let text = text.trim_end();
    let is_id = text.len() >= 40 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let is_branch = text.strip_prefix("ref:").map(str::trim).is_some_and(|name| {
        name.starts_with("refs/") && !name.split('/').any(|part| part == ".." || part.is_empty())
    });
    is_id || is_branch
}
