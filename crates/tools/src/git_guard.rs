//! `.git` belongs to git: edit tools change nothing there, and what a command left in a repository that would make its user's
//! own git run something is undone afterwards. Compares the state before and after; what git does by itself stays.
//!
//! Everything is reached from the handle of a root without following links. The search is bounded: see `limits`.

mod configuration;
mod modules;
mod state;
mod territory;
mod undo;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use attache_core::ports::tool::{Site, WriteGrant};
use rustix::fs::{Mode, OFlags, open};

use crate::reach::path_of;
use crate::sandbox::Level;
use state::State;
pub(crate) use territory::belongs_to_git;
use undo::Undo;

/// What there was in the writable roots of a call before its command.
#[derive(Debug, Default)]
pub(crate) struct GitGuard {
    roots: Vec<Root>,
}

#[derive(Debug)]
struct Root {
    handle: OwnedFd,
    real: PathBuf,
    before: State,
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
        Self::of(named.cloned().collect())
    }

    fn of(mut named: Vec<PathBuf>) -> Self {
        named.sort();
        named.dedup();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A root that can't be opened can't be written either.
        let opened = named.iter().filter_map(|root| {
            let handle = open(root, flags, Mode::empty()).ok()?;
            let real = path_of(&handle).ok()?;
            let before = State::of(&handle, &real);
            Some(Root { handle, real, before })
        });
        Self { roots: opened.collect() }
    }

    /// After everything that the command started has ended: undoes what must not stay, and says what that was.
    pub(crate) fn after(&self) -> Option<String> {
        let within: Vec<PathBuf> = self.roots.iter().map(|root| root.real.clone()).collect();
        let mut told = Vec::new();
        for root in &self.roots {
            let mut undo = Undo::new(&root.handle, &root.real, &within, &root.before);
            undo.compare(&State::of(&root.handle, &root.real));
            told.extend(undo.told());
        }
        told.dedup();
        (!told.is_empty()).then(|| format!("undone by attache: {}", told.join("; ")))
    }
}

#[cfg(test)]
mod tests;
