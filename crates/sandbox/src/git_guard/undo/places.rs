//! Where a repository's configuration leads: its work tree and the local repositories that git pushes to must
//! lie in the roots, with no link on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::super::configuration::without_programs;
use super::super::local_places::{LocalPlace, has_link, local_places};
use super::super::state::{ControlFile, RepositoryState};
use super::Undo;
use crate::paths::normal;

/// Where a configuration led before the command, as the user wants it.
#[derive(Default)]
pub(super) struct FormerPlaces(BTreeSet<LocalPlace>);

impl FormerPlaces {
    pub(super) fn of(was: &BTreeMap<OsString, ControlFile>) -> Self {
        Self(
            ["config", "config.worktree"]
                .iter()
                .flat_map(|name| places_in(was.get(OsStr::new(name))))
                .collect(),
        )
    }
}

fn places_in(piece: Option<&ControlFile>) -> Vec<LocalPlace> {
    let text = piece.and_then(ControlFile::text);
    text.map_or_else(Vec::new, |text| local_places(&String::from_utf8_lossy(text)))
}

impl Undo<'_> {
    /// Whether the configuration of a repository may lead there.
    pub(super) fn may_lead(&self, repository: &Path, place: &LocalPlace, former: &FormerPlaces) -> bool {
        former.0.contains(place) || self.leads_within(repository, place)
    }

    fn leads_within(&self, repository: &Path, place: &LocalPlace) -> bool {
        let ways = place.ways_from(&self.real.join(repository));
        // Check the words, because missing parts may appear later, and the disk, because a link below a root
        // may lead out of it.
        ways.iter().all(|way| self.is_within(&normal(way)) && !has_link(way))
    }

    /// A plain path has a link on the way now, though the configuration is the same.
    pub(super) fn compare_places(&mut self, repository: &Path, now: &RepositoryState, was: &RepositoryState) {
        if !now.leads_through_link || was.leads_through_link {
            return;
        }
        for name in ["config", "config.worktree"] {
            let Some(ControlFile::Text(text)) = now.control.get(OsStr::new(name)) else { continue };
            let path = repository.join(name);
            // A configuration that has changed has its own check.
            if now.control.get(OsStr::new(name)) != was.control.get(OsStr::new(name)) || self.is_users(&path)
            {
                continue;
            }
            let is_plain = |place: &LocalPlace| {
                !place.ways_from(&self.real.join(repository)).iter().any(|way| has_link(way))
            };
            let Some(harmless) = without_places(&String::from_utf8_lossy(text), is_plain) else { continue };
            let done = self.replace(&path, || self.write(&path, harmless.as_bytes(), 0o644));
            self.tell(&path, "led git through a link that was made", done);
        }
    }
}

/// The text without these places; keeps everything else of the user's in it.
fn without_places(text: &str, is_plain: impl Fn(&LocalPlace) -> bool) -> Option<String> {
    let bad: BTreeSet<LocalPlace> = local_places(text).into_iter().filter(|place| !is_plain(place)).collect();
    if bad.is_empty() {
        return None;
    }
    let harmless = without_programs(text, |place| !bad.contains(place));
    Some(harmless.unwrap_or_default())
}
