//! The hits of a search, by file in path order, within a limit: keeps the first ones, whatever order they
//! arrive in.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::hits::Hits;
use crate::limits::SEARCH_KEPT_BYTES;
use crate::search::path_order;

#[derive(Debug, Default)]
pub(super) struct GrepResults {
    files: BTreeMap<InPathOrder, Hits>,
    bytes: usize,
    matches: usize,
    is_cut: bool,
}

/// The part that the answer shows.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) text: String,
    pub(super) matches: usize,
}

/// What a head leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OmittedMatches {
    Nothing,
    /// This is the number of all matches.
    Some(usize),
    /// There are at least this many: not every file was searched to its end.
    Uncounted(usize),
}

#[derive(Debug, PartialEq, Eq)]
struct InPathOrder(OsString);

impl Ord for InPathOrder {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        path_order(&self.0, &other.0)
    }
}

impl PartialOrd for InPathOrder {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl GrepResults {
    pub(super) fn insert(&mut self, file: &Path, hits: Hits) {
        self.is_cut |= hits.is_cut;
        self.bytes += cost(file.as_os_str(), &hits);
        self.matches += hits.matches.len();
        self.files.insert(InPathOrder(file.as_os_str().to_owned()), hits);
        while let Some(last) = self.files.last_entry() {
            let cost = cost(&last.key().0, last.get());
            // Dropped only if enough remains: the first file stays however large it is.
            if self.bytes - cost < SEARCH_KEPT_BYTES {
                break;
            }
            self.bytes -= cost;
            self.matches -= last.remove().matches.len();
            self.is_cut = true;
        }
    }

    /// Whether hits of this file would be dropped at once.
    pub(super) fn has_no_room_for(&self, file: &Path) -> bool {
        self.bytes >= SEARCH_KEPT_BYTES
            && self
                .files
                .last_key_value()
                .is_some_and(|(last, _)| path_order(file.as_os_str(), &last.0) == std::cmp::Ordering::Greater)
    }

    /// Whether files after the kept ones need not be kept.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= SEARCH_KEPT_BYTES
    }

    /// Records that a file was skipped.
    pub(super) fn cut(&mut self) {
        self.is_cut = true;
    }

    pub(super) fn missing(&self, head: &Head) -> OmittedMatches {
        match self.is_cut {
            true => OmittedMatches::Uncounted(self.matches),
            false if head.matches < self.matches => OmittedMatches::Some(self.matches),
            false => OmittedMatches::Nothing,
        }
    }

    /// The first matches with their lines, within both limits; the first match that does not fit ends it.
    pub(super) fn head(&self, matches: usize, bytes: usize, told: impl Fn(&Path) -> String) -> Head {
        let mut head = Head { text: String::new(), matches: 0 };
        for (file, hits) in &self.files {
            let title = title(&head.text, &told(Path::new(&file.0)));
            let room = bytes.saturating_sub(head.text.len() + title.len());
            let wanted = hits.matches.len().min(matches - head.matches);
            // Match `index` ends where the next one begins.
            let end = |index: usize| hits.matches.get(index + 1).map_or(hits.text.len(), |next| next.start);
            let fitting = (0..wanted).take_while(|index| end(*index) <= room).count();
            if fitting > 0 {
                head.text += &title;
                head.text += &hits.text[..end(fitting - 1)];
                head.matches += fitting;
            }
            if fitting < hits.matches.len() || head.matches == matches {
                break;
            }
        }
        head
    }

    /// Everything that was kept.
    pub(super) fn whole(&self, told: impl Fn(&Path) -> String) -> String {
        let mut text = String::with_capacity(self.bytes);
        for (file, hits) in &self.files {
            let title = title(&text, &told(Path::new(&file.0)));
            text += &title;
            text += &hits.text;
        }
        text
    }
}

/// The heading of a file's matches, with a separator from earlier text.
fn title(before: &str, name: &str) -> String {
    if before.is_empty() { format!("{name}\n") } else { format!("\n{name}\n") }
}

fn cost(file: &OsStr, hits: &Hits) -> usize {
    2 * file.len() + hits.text.len() + hits.matches.len() * size_of::<super::hits::MatchStart>()
}
