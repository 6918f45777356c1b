//! `.git` belongs to git: edit tools change nothing there, and afterwards we undo what a command left in a
//! repository that would make the user's own git run something. Compares the state before and after; keeps what
//! git itself does.
//!
//! Reaches everything from the handle of a root, without following links. `limits` bounds the search.

mod baseline;
mod below;
mod cached_directory;
mod command_words;
mod configuration;
mod directory_cache;
mod directory_watch;
mod entries;
mod findings;
mod git_part;
mod git_paths;
mod known;
mod links;
mod local_places;
mod lossless;
mod modules;
mod named;
mod protected_at_top;
mod reopen;
mod state;
mod undo;
mod unseen;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::tool::{Site, Workspace, WriteGrant};
use attache_core::scope::Guarded;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::limits::{GIT_GUARD_DIRECTORIES, MOUNTED_FOR_GIT};
use crate::platform::path_of;
use crate::sandbox::Level;
use baseline::{Announced, Baselines, Others, PendingBaseline};
use below::Below;
use findings::{Findings, undone_again_and_again};
pub use git_paths::belongs_to_git;
use known::{HomeNames, KnownPaths};
use modules::{RootPlace, look_at_repositories, look_everywhere};
use named::{NamedBy, Names, common_directory, general_files, governing};
use reopen::reopen;
use state::RootState;
use undo::Undo;
use unseen::NotSeen;

/// The state of a call's writable roots before its command.
#[derive(Debug, Default)]
pub struct GitGuard {
    roots: Vec<GuardedRoot>,
    /// The session of the command, for what we report only once.
    session: Vec<u8>,
    /// What we found of earlier commands, before this one.
    told: Findings,
}

#[derive(Debug)]
struct GuardedRoot {
    handle: OwnedFd,
    real: PathBuf,
    /// As it was before this command and before those that run beside it.
    before: RootState,
    baselines: Option<Baselines>,
    kept: Option<PendingBaseline>,
}

impl GitGuard {
    /// Before a command: skips roots that it cannot write, and commands without a sandbox.
    pub fn before(site: &Site, writes: WriteGrant, level: Level) -> Self {
        let workspace = &site.workspace;
        match (writes, level) {
            (WriteGrant::Granted, Level::Full | Level::Reduced) => {}
            (WriteGrant::Withheld, _) | (_, Level::None) => return Self::default(),
        }
        let named = std::iter::once(&workspace.root).chain(&workspace.additional).chain(site.granted.iter());
        // Make no copy of keys: the sandbox hides them.
        let is_key =
            |path: &Path| workspace.guarded.hides(path, &workspace.scratch).is_some() && path.exists();
        let led_to = workspace.guarded.led_to().iter().map(|led| led.path.clone());
        let led_to = led_to.filter(|path| !is_key(path)).chain(missing_at_home(workspace));
        let home = workspace.guarded.home().and_then(|home| home.canonicalize().ok());
        let names = HomeNames { led_to: led_to.collect(), home };
        let mut guard = Self::of(named.cloned().collect(), &names, &workspace.scratch, level);
        // At this level nothing protects these names, and git itself may bring others.
        if level == Level::Reduced {
            guard.roots.iter_mut().for_each(|root| root.before.below = Below::default());
        }
        guard
    }

    fn of(mut named: Vec<PathBuf>, names: &HomeNames, scratch: &Path, level: Level) -> Self {
        named.sort();
        named.dedup();
        let opened = opened(&named);
        let places: Vec<RootPlace<'_>> =
            opened.iter().map(|(handle, real)| RootPlace { handle, real }).collect();
        let baselines: Vec<Option<Baselines>> =
            places.iter().map(|place| baselines(scratch, place)).collect();
        let (before, told) = settled(&places, &baselines, names);
        let session = scratch.as_os_str().as_encoded_bytes().to_vec();
        let mut guard = Self { roots: Vec::new(), session, told };
        for (((handle, real), baselines), before) in opened.into_iter().zip(baselines).zip(before) {
            let kept = baselines.as_ref().and_then(|baselines| {
                let kept = baselines.keep(&real, level, &before);
                kept.inspect_err(|error| tracing::warn!(%error, "nothing is kept on disk")).ok()
            });
            guard.roots.push(GuardedRoot { handle, real, before, baselines, kept });
        }
        guard
    }

    /// The existing files in the roots that the user's git configuration names: real paths, and at most as many
    /// of each root as we can mount.
    pub(crate) fn named(&self) -> Vec<PathBuf> {
        let named = self.roots.iter().flat_map(|root| {
            let by_git = root.before.named.iter().filter(|(_, named)| named.origin.by != NamedBy::Home);
            let existing =
                by_git.filter(|(_, named)| named.held.is_some()).map(|(path, _)| root.real.join(path));
            existing.filter(|path| path.canonicalize().is_ok_and(|real| real == *path)).take(MOUNTED_FOR_GIT)
        });
        named.collect()
    }

    /// The kept files: a process that holds these says that the command may still run.
    pub fn kept(&self) -> Vec<Arc<File>> {
        self.roots.iter().filter_map(|root| Some(root.kept.as_ref()?.file())).collect()
    }

    /// After everything that the command started has ended: undoes what must not stay, and reports it.
    pub fn after(&self) -> Option<String> {
        let places: Vec<RootPlace<'_>> =
            self.roots.iter().map(|root| RootPlace { handle: &root.handle, real: &root.real }).collect();
        let mut told = self.told.clone();
        let known: Vec<KnownPaths> = self.roots.iter().map(|root| root.before.known()).collect();
        let mut now = Vec::new();
        let found = undone_again_and_again(|| {
            now = self.reopened(&places, &known, &mut told);
            let states = self.roots.iter().zip(&now).enumerate();
            let compared = states.map(|(at, (root, now))| {
                let mut undo = Undo::new(&places, at, &root.before);
                undo.compare(now);
                undo.told()
            });
            compared.collect()
        });
        for ((root, now), found) in self.roots.iter().zip(&now).zip(found) {
            let unreached = now.unreached.as_ref();
            told.unchecked.extend(unreached.and_then(|path| self.not_looked_through(root, path)));
            if let (false, Some(kept)) = (found.unfinished.is_empty(), &root.kept) {
                kept.leave(&root.real, &root.before, &found.unfinished);
            }
            told.extend(found);
            remember(
                root.baselines.as_ref(),
                &root.before.below.vanished_from(&now.below),
                &root.before.known().then(now.known()),
            );
        }
        told.text()
    }

    /// Reports a tree that is too large for any search, once for each session, because it stays so.
    fn not_looked_through(&self, root: &GuardedRoot, path: &Path) -> Option<String> {
        let told = root.baselines.as_ref().map(|baselines| baselines.tell_once(&self.session));
        if let Some(Ok(Announced::Before)) = told {
            return None;
        }
        Some(format!(
            "{} and more directories are too many to be looked through for repositories that a command made",
            path.display()
        ))
    }

    /// The state of all roots, after opening again every directory whose mode was changed to closed.
    fn reopened(
        &self,
        places: &[RootPlace<'_>],
        known: &[KnownPaths],
        told: &mut Findings,
    ) -> Vec<RootState> {
        let mut tried: BTreeSet<PathBuf> = BTreeSet::new();
        loop {
            let now = look_everywhere(places, known.to_vec());
            let closed = self.roots.iter().zip(&now).flat_map(|(root, now)| {
                let before = root.before.all_unseen();
                let is_new = move |path: &PathBuf| before.get(path) != Some(&NotSeen::Closed);
                let closed = now.all_unseen().into_iter().filter(|(_, why)| *why == NotSeen::Closed);
                closed.map(|(path, _)| path).filter(is_new).map(move |path| (root, path))
            });
            // A directory that we open may contain further closed ones.
            let closed: Vec<(&GuardedRoot, PathBuf)> =
                closed.filter(|(root, path)| tried.insert(root.real.join(path))).collect();
            if closed.is_empty() {
                return now;
            }
            if tried.len() > GIT_GUARD_DIRECTORIES {
                let left = closed.iter().map(|(_, path)| format!("{} is closed by its mode", path.display()));
                told.unchecked.extend(left.take(1));
                return now;
            }
            for (root, path) in closed {
                let name = if path.as_os_str().is_empty() { Path::new(".") } else { &path }.display();
                match reopen(&root.handle, &path) {
                    Ok(Some(mode)) => {
                        let text =
                            format!("{name} was closed to its owner (mode {mode:o}) and is open again");
                        told.undone.push(text);
                    }
                    // Another opening included it, or it was behind that one and does not exist.
                    Ok(None) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => told.unchecked.push(format!("{name} can't be opened ({error})")),
                }
            }
        }
    }
}

/// Names of a home inside a root that must not come into being.
fn missing_at_home(workspace: &Workspace) -> Vec<PathBuf> {
    let home = workspace.guarded.home().and_then(|home| home.canonicalize().ok());
    let is_in_root = |home: &PathBuf| {
        workspace.roots().any(|root| root.canonicalize().is_ok_and(|root| home.starts_with(root)))
    };
    let Some(home) = home.filter(is_in_root) else { return Vec::new() };
    let paths = Guarded::other_names_at_home().map(|(name, _)| home.join(name));
    paths.filter(|path| path.symlink_metadata().is_err()).collect()
}

/// What the user's git configuration names in these directories, existing or not: real paths. Blocks.
pub fn named_by_git(roots: &[PathBuf]) -> Vec<PathBuf> {
    let opened = opened(roots);
    let places: Vec<RootPlace<'_>> = opened.iter().map(|(handle, real)| RootPlace { handle, real }).collect();
    let states = look_at_repositories(&places);
    let named = opened.iter().zip(&states).flat_map(|((_, real), state)| {
        let by_git = state.named.iter().filter(|(_, named)| named.origin.by != NamedBy::Home);
        by_git.map(|(path, _)| real.join(path))
    });
    named.collect()
}

/// Those of them that exist, at most as many as we can mount: for a program after which we compare nothing.
/// Blocks.
pub(crate) fn named_and_there(roots: &[PathBuf]) -> Vec<PathBuf> {
    let named = named_by_git(roots).into_iter();
    named.filter(|path| path.canonicalize().is_ok_and(|real| real == *path)).take(MOUNTED_FOR_GIT).collect()
}

/// The configuration files that git reads in a work tree: the repository's, the user's and the machine's,
/// existing or not. Without the files that they include; with the file that says where they are, if that is
/// unreadable.
pub fn configurations(tree: &Path) -> Vec<PathBuf> {
    let own = governing(tree).next().map_or_else(Vec::new, |(_, git)| match git {
        Ok(git) => {
            let common =
                common_directory(&git).map_or_else(|unread| unread.0, |common| common.join("config"));
            vec![common, git.join("config.worktree")]
        }
        Err(unread) => vec![unread.0],
    });
    own.into_iter().chain(general_files()).collect()
}

/// Whether the user's own git configuration, or the machine's, makes commands that only read run or obey
/// something in a work tree: a filter, `textconv`, `diff.external`, an included file. Blocks.
pub fn is_run_for_reading(tree: &Path) -> bool {
    is_run_by(&general_files(), tree)
}

fn is_run_by(general: &[PathBuf], tree: &Path) -> bool {
    let Ok(real) = tree.canonicalize() else { return true };
    let named = Names::of(&real, &[], general);
    if !(named.cut.is_empty() && named.unread.is_empty()) {
        return true;
    }
    named.origins.values().any(|origin| match origin.by {
        NamedBy::Setting | NamedBy::Command => true,
        NamedBy::Home | NamedBy::Hooks => false,
    })
}

/// The directories that we can open, by their real paths: others cannot be written either.
fn opened(roots: &[PathBuf]) -> Vec<(OwnedFd, PathBuf)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = roots.iter().filter_map(|root| {
        let handle = open(root, flags, Mode::empty()).ok()?;
        let real = path_of(&handle).ok()?;
        Some((handle, real))
    });
    opened.collect()
}

fn baselines(scratch: &Path, place: &RootPlace<'_>) -> Option<Baselines> {
    let baselines = Baselines::of(scratch, place.real);
    baselines.inspect_err(|error| tracing::warn!(%error, "nothing is kept on disk")).ok()
}

/// The states to compare with later, after undoing everything that earlier commands have left.
fn settled(
    places: &[RootPlace<'_>],
    baselines: &[Option<Baselines>],
    names: &HomeNames,
) -> (Vec<RootState>, Findings) {
    let of_all =
        |baselines: &Option<Baselines>| baselines.as_ref().map(Baselines::others).unwrap_or_default();
    let others: Vec<Others> = baselines.iter().map(of_all).collect();
    let mut told = Findings::default();
    for (at, left) in
        others.iter().enumerate().flat_map(|(at, others)| others.left.iter().map(move |left| (at, left)))
    {
        let mut known = vec![KnownPaths::default(); places.len()];
        known[at] = left.state.known();
        let found = undone_again_and_again(|| {
            let now = look_everywhere(places, known.clone());
            let mut undo = Undo::new(places, at, &left.state).of_left(&left.author);
            undo.compare(&now[at]);
            vec![undo.told()]
        });
        let found = found.into_iter().next().unwrap_or_default();
        if found.unfinished.is_empty() {
            left.settled();
        }
        told.extend(found);
    }
    let known =
        baselines.iter().map(|baselines| baselines.as_ref().map(Baselines::known).unwrap_or_default());
    let known = known.zip(places).map(|(known, place)| known.with_home(place.real, names));
    let now = look_everywhere(places, known.collect());
    let settled =
        now.into_iter().zip(others).zip(baselines).enumerate().map(|(at, ((now, others), baselines))| {
            // A command that runs beside this one may have changed something already.
            others.oldest.unwrap_or_else(|| {
                let moved = baselines.as_ref().map_or_else(|| Ok(Below::default()), Baselines::moved);
                let unknown = |error| format!("what earlier commands moved away is not known ({error})");
                let moved = moved.map_err(|error| told.unchecked.push(unknown(error)));
                with_moved(places, at, now, moved.unwrap_or_default(), &mut told)
            })
        });
    let settled = settled.collect();
    (settled, told)
}

/// What a command moved out of sight, and what has come back unchanged.
fn with_moved(
    places: &[RootPlace<'_>],
    at: usize,
    mut now: RootState,
    moved: Below,
    told: &mut Findings,
) -> RootState {
    let mut still_gone = Below::default();
    for (path, was) in moved.0 {
        match now.below.find(&path, &was).map(|(at, held)| (at.clone(), held.clone())) {
            None => {
                still_gone.0.insert(path, was);
            }
            // In another directory of that name it belongs to the user.
            Some((found, held)) if held.entries != was.entries && held.is_in_the_directory_of(&was) => {
                let nothing = RootState::default();
                let mut undo = Undo::new(places, at, &nothing);
                undo.put_back_held(&found, &was);
                told.extend(undo.told());
                now.below.0.insert(found, was);
            }
            Some(_) => {}
        }
    }
    now.below.0.extend(still_gone.0);
    now
}

fn remember(baselines: Option<&Baselines>, vanished: &Below, known: &KnownPaths) {
    let Some(baselines) = baselines else { return };
    if let Err(error) = baselines.set_moved(vanished).and_then(|()| baselines.set_known(known)) {
        tracing::warn!(%error, "what a command has moved is not remembered");
    }
}

/// Undoes, in all of their roots, what commands left whose attache was killed. `scratches` is the directory of
/// all scratch directories.
pub fn settle_what_is_left(scratches: &Path) {
    for root in baseline::left_roots(scratches) {
        let guard = GitGuard::of(vec![root], &HomeNames::default(), &scratches.join("any"), Level::Reduced);
        if let Some(told) = guard.after() {
            tracing::warn!("{told}");
        }
    }
}

#[cfg(test)]
mod tests;
