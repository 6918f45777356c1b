//! `.git` belongs to git: edit tools change nothing there, and what a command left in a repository that would make its user's
//! own git run something is undone afterwards. Compares the state before and after; what git does by itself stays.
//!
//! Everything is reached from the handle of a root without following links. The search is bounded: see `limits`.

mod baseline;
mod below;
mod configuration;
mod lossless;
mod modules;
mod state;
mod territory;
mod undo;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use attache_core::ports::tool::{Site, WriteGrant};
use rustix::fs::{Mode, OFlags, open};

use crate::reach::path_of;
use crate::sandbox::Level;
use baseline::{Baselines, Kept};
use below::Below;
use state::{Known, State};
pub(crate) use territory::belongs_to_git;
use undo::Undo;

/// What there was in the writable roots of a call before its command.
#[derive(Debug, Default)]
pub(crate) struct GitGuard {
    roots: Vec<Root>,
    /// What earlier commands had left and was undone before this one.
    told: Vec<String>,
}

#[derive(Debug)]
struct Root {
    handle: OwnedFd,
    real: PathBuf,
    /// As it was before this command and before those that run beside it.
    before: State,
    baselines: Option<Baselines>,
    _kept: Option<Kept>,
}

impl GitGuard {
    /// Before a command: nothing is looked at where it can't write, nor where nothing holds it.
    pub(crate) fn before(site: &Site, writes: WriteGrant, level: Level) -> Self {
        let workspace = &site.workspace;
        match (writes, level) {
            (WriteGrant::Granted, Level::Full | Level::Reduced) => {}
            (WriteGrant::Withheld, _) | (_, Level::None) => return Self::default(),
        }
        let named = std::iter::once(&workspace.root).chain(&workspace.additional).chain(site.granted.iter());
        let mut guard = Self::of(named.cloned().collect(), &workspace.scratch, level == Level::Full);
        // Nothing holds protected names there, and git itself may bring others.
        if level == Level::Reduced {
            guard.roots.iter_mut().for_each(|root| root.before.below = Below::default());
        }
        guard
    }

    /// `is_held`: mounts keep hooks and configuration of the roots' own repositories as they are.
    fn of(mut named: Vec<PathBuf>, scratch: &Path, is_held: bool) -> Self {
        named.sort();
        named.dedup();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A root that can't be opened can't be written either.
        let opened = named.iter().filter_map(|root| {
            let handle = open(root, flags, Mode::empty()).ok()?;
            let real = path_of(&handle).ok()?;
            Some((handle, real))
        });
        let opened: Vec<(OwnedFd, PathBuf)> = opened.collect();
        let within: Vec<PathBuf> = opened.iter().map(|(_, real)| real.clone()).collect();
        let mut guard = Self::default();
        for (handle, real) in opened {
            let baselines = Baselines::of(scratch, &real);
            let baselines =
                baselines.inspect_err(|error| tracing::warn!(%error, "nothing is kept on disk")).ok();
            let (before, told) = settled(&handle, &real, &within, baselines.as_ref());
            guard.told.extend(told);
            let kept = baselines.as_ref().and_then(|baselines| {
                let kept = baselines.keep(&real, is_held, &before);
                kept.inspect_err(|error| tracing::warn!(%error, "nothing is kept on disk")).ok()
            });
            guard.roots.push(Root { handle, real, before, baselines, _kept: kept });
        }
        guard
    }

    /// After everything that the command started has ended: undoes what must not stay, and says what that was.
    pub(crate) fn after(&self) -> Option<String> {
        let within: Vec<PathBuf> = self.roots.iter().map(|root| root.real.clone()).collect();
        let mut told = self.told.clone();
        for root in &self.roots {
            let now = State::of(&root.handle, &root.real, &root.before.known());
            let mut undo = Undo::new(&root.handle, &root.real, &within, &root.before);
            undo.compare(&now);
            told.extend(undo.told());
            remember(
                root.baselines.as_ref(),
                &root.before.below.vanished_from(&now.below),
                &root.before.known().then(now.known()),
            );
        }
        told.dedup();
        (!told.is_empty()).then(|| format!("undone by attache: {}", told.join("; ")))
    }
}

/// The state to compare with later, once everything that earlier commands have left is undone.
fn settled(
    handle: &OwnedFd,
    real: &Path,
    within: &[PathBuf],
    baselines: Option<&Baselines>,
) -> (State, Vec<String>) {
    let others = baselines.map(Baselines::others).unwrap_or_default();
    let mut told = Vec::new();
    for left in &others.left {
        let mut undo = Undo::new(handle, real, within, &left.state).of_killed(left.end);
        undo.compare(&State::of(handle, real, &left.state.known()));
        told.extend(undo.told());
    }
    // What runs beside this command may have changed something already.
    if let Some(oldest) = others.oldest {
        return (oldest, told);
    }
    let known = baselines.map(Baselines::known).unwrap_or_default();
    let mut now = State::of(handle, real, &known);
    let moved = baselines.map(Baselines::moved).unwrap_or_default();
    let mut still_gone = Below::default();
    for (path, was) in moved.0 {
        match now.below.find(&path, &was).map(|(at, held)| (at.clone(), held.clone())) {
            None => {
                still_gone.0.insert(path, was);
            }
            // In another directory of that name it is its user's.
            Some((at, held)) if held.entries != was.entries && held.is_in_the_directory_of(&was) => {
                let nothing = State::default();
                let mut undo = Undo::new(handle, real, within, &nothing);
                undo.put_back_held(&at, &was);
                told.extend(undo.told());
                now.below.0.insert(at, was);
            }
            Some(_) => {}
        }
    }
    now.below.0.extend(still_gone.0);
    (now, told)
}

fn remember(baselines: Option<&Baselines>, vanished: &Below, known: &Known) {
    let Some(baselines) = baselines else { return };
    if let Err(error) = baselines.set_moved(vanished).and_then(|()| baselines.set_known(known)) {
        tracing::warn!(%error, "what a command has moved is not remembered");
    }
}

/// Undoes what commands have left whose process was killed, in every root of theirs. `scratches`: the directory of all.
pub(crate) fn settle_what_is_left(scratches: &Path) {
    for root in baseline::left_roots(scratches) {
        let guard = GitGuard::of(vec![root], &scratches.join("any"), false);
        if let Some(told) = guard.after() {
            tracing::warn!("{told}");
        }
    }
}

#[cfg(test)]
mod tests;
