//! The walk that `glob` and `grep` share: where it starts, what it skips, when it stops. Does not look into
//! files.

mod file_pattern;
mod ignore_files;
mod search_root;
mod spill;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use attache_core::ports::tool::{Presentation, ToolKind, Workspace};
use attache_core::watchdog::ReadRuleOrigin;
use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use crate::limits::SEARCH_TIME;
use crate::markdown::quoted;
use crate::paths::titled;
use crate::text::counted;

pub(crate) use file_pattern::FilePattern;
use ignore_files::{IgnoreFiles, IgnoreLook, WalkedKind};

pub(crate) use ignore_files::is_ignored;
pub(crate) use search_root::{PlaceError, SearchRoot, Shape};
pub(crate) use spill::keep;

/// One file of a walk.
pub(crate) struct WalkedFile<'a> {
    /// The path below the directory of the walk.
    pub(crate) relative: &'a Path,
    /// Whether it is a symbolic link: its name counts, its target does not.
    pub(crate) link: IsLink,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsLink {
    No,
    Yes,
}

/// When a walk has to end early; checked for every file.
#[derive(Debug)]
pub(crate) struct SearchStop {
    cancel: CancellationToken,
    deadline: Instant,
    out_of_time: AtomicBool,
}

impl SearchStop {
    pub(crate) fn new(cancel: CancellationToken) -> Self {
        Self { cancel, deadline: Instant::now() + SEARCH_TIME, out_of_time: AtomicBool::new(false) }
    }

    /// For a second search that must not take long.
    pub(crate) fn sooner(&self, time: Duration) -> Self {
        let deadline = self.deadline.min(Instant::now() + time);
        Self { cancel: self.cancel.clone(), deadline, out_of_time: AtomicBool::new(false) }
    }

    pub(crate) fn is_due(&self) -> bool {
        if Instant::now() >= self.deadline {
            self.out_of_time.store(true, Ordering::Relaxed);
            return true;
        }
        self.cancel.is_cancelled()
    }

    /// Whether the time ran out before the walk was complete.
    pub(crate) fn was_due(&self) -> bool {
        self.out_of_time.load(Ordering::Relaxed)
    }
}

/// What a walk skipped.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    /// Entries that could not be read.
    pub(crate) failures: AtomicU64,
    /// Files that the user's rules protect from reading.
    closed: AtomicU64,
    /// Files that usually hold secrets.
    secret: AtomicU64,
}

/// What to do with files that `.gitignore` and similar files name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    PassedBy,
    Visited,
}

/// Calls `visit` for every wanted file and link below the directory that is not hidden from agents, not
/// protected by a rule and not below `.git`. Each thread has its own visitor. Adds to `unseen` what it could
/// not look at.
///
/// Walks names that begin with a dot, which are not secret; never follows links.
pub(crate) fn walk<'s, Visit>(
    place: &'s SearchRoot,
    wanted: Option<&'s FilePattern>,
    ignored: Ignored,
    stop: &'s SearchStop,
    unseen: &'s Unseen,
    visitor: impl Fn() -> Visit,
) where
    Visit: FnMut(WalkedFile<'_>) + Send + 's,
{
    // The library must not read ignore files itself: it would open anything with such a name.
    let walk = WalkBuilder::new(place.real()).standard_filters(false).follow_links(false).build_parallel();
    let files = match ignored {
        Ignored::PassedBy => Some(IgnoreFiles::of(place)),
        Ignored::Visited => None,
    };
    walk.run(|| {
        let mut visit = visitor();
        let mut look = files.as_ref().map(IgnoreFiles::look);
        Box::new(move |entry| {
            if stop.is_due() {
                return WalkState::Quit;
            }
            match entry {
                Ok(entry) => visit_entry(place, wanted, &entry, look.as_mut(), unseen, &mut visit),
                Err(_) => {
                    unseen.failures.fetch_add(1, Ordering::Relaxed);
                    WalkState::Continue
                }
            }
        })
    });
}

fn visit_entry(
    place: &SearchRoot,
    wanted: Option<&FilePattern>,
    entry: &DirEntry,
    look: Option<&mut IgnoreLook<'_>>,
    unseen: &Unseen,
    visit: &mut impl FnMut(WalkedFile<'_>),
) -> WalkState {
    if entry.depth() == 0 {
        return WalkState::Continue;
    }
    if entry.file_name() == ".git" || place.hides(entry.path()) {
        return WalkState::Skip;
    }
    let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
    let kind = if is_directory { WalkedKind::Directory } else { WalkedKind::Other };
    if look.is_some_and(|look| look.passes_by(entry.path(), kind)) {
        return WalkState::Skip;
    }
    let link = match entry.file_type() {
        Some(kind) if kind.is_file() => IsLink::No,
        Some(kind) if kind.is_symlink() => IsLink::Yes,
        Some(_) | None => return WalkState::Continue,
    };
    let relative = place.relative(entry.path());
    if wanted.is_some_and(|wanted| !wanted.means(relative)) {
        return WalkState::Continue;
    }
    if let Some(keeper) = place.keeper(relative) {
        let count = match keeper {
            ReadRuleOrigin::Rule => &unseen.closed,
            ReadRuleOrigin::BuiltIn => &unseen.secret,
        };
        count.fetch_add(1, Ordering::Relaxed);
        return WalkState::Continue;
    }
    visit(WalkedFile { relative, link });
    WalkState::Continue
}

/// Orders paths by their components, as plain bytes, so that the files of a directory stay together.
pub(crate) fn path_order(left: &OsStr, right: &OsStr) -> std::cmp::Ordering {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let weight = |byte: &u8| if *byte == b'/' { 0 } else { u16::from(*byte) + 1 };
    match left.iter().zip(right).position(|(left, right)| left != right) {
        Some(at) => weight(&left[at]).cmp(&weight(&right[at])),
        None => left.len().cmp(&right.len()),
    }
}

/// The title of a search: ``grep "pat" in `src` ``. It has no locations, because editors would open each as a
/// buffer.
pub(crate) fn presentation(
    tool: &str,
    pattern: &str,
    path: Option<&Path>,
    workspace: &Workspace,
) -> Presentation {
    let place = path.map(|path| format!(" in {}", titled(path, workspace))).unwrap_or_default();
    Presentation {
        title: format!("{tool} {}{place}", quoted(pattern)),
        kind: Some(ToolKind::Search),
        ..Presentation::default()
    }
}

/// What a search could not examine.
pub(crate) fn shortfall(stop: &SearchStop, unseen: &Unseen) -> Vec<String> {
    let count = |count: &AtomicU64| usize::try_from(count.load(Ordering::Relaxed)).unwrap_or(usize::MAX);
    let (failures, closed, secret) = (count(&unseen.failures), count(&unseen.closed), count(&unseen.secret));
    let mut notes = Vec::new();
    if stop.was_due() {
        notes.push(format!("stopped after {} s: name a narrower `path`", SEARCH_TIME.as_secs()));
    }
    if failures > 0 {
        notes.push(format!("{} can't be read", counted(failures, "name")));
    }
    if closed > 0 {
        notes.push(format!("{} skipped under the user's rules", counted(closed, "file")));
    }
    if secret > 0 {
        let files = counted(secret, "file");
        notes.push(format!("{files} skipped as possible secrets (.env, keys)"));
    }
    notes
}

/// Notes for the model after a result.
pub(crate) fn bracketed(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!("[{}]", notes.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_ordered_as_paths_are(left in "[ab./-]{1,8}", right in "[ab./-]{1,8}") {
            let plain = |text: &str| text.split('/').filter(|name| !name.is_empty() && *name != "." && *name != "..")
                .collect::<Vec<_>>().join("/");
            let (left, right) = (plain(&left), plain(&right));
            prop_assert_eq!(
                path_order(OsStr::new(&left), OsStr::new(&right)),
                Path::new(&left).cmp(Path::new(&right))
            );
        }
    }
}
