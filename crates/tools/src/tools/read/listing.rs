//! The names in a directory, in the form for the model. Reads nothing itself.

use attache_core::legible::visible_name;
use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::Shown;

use crate::files::Entries;
use crate::limits::{DIRECTORY_ENTRIES, LISTED_BYTES, LISTED_ENTRIES};
use crate::markdown::fenced;
use crate::outcome::RunningCall;
use crate::text::counted;

#[derive(Debug)]
pub(super) struct DirectoryListing {
    pub(super) entries: Entries,
    /// How many names are skipped, like lines of a file.
    pub(super) skip: u64,
    pub(super) limit: Option<u64>,
}

impl DirectoryListing {
    pub(super) fn finish(self, mut call: RunningCall) -> ToolOutcome {
        let total = self.entries.names.len();
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        if skip > 0 && skip >= total {
            let names = counted(total, "name");
            return call.failed(format!("read: offset {skip} skips everything: the directory has {names}"));
        }
        let limit = self.limit.map_or(LISTED_ENTRIES, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut text = String::new();
        let mut last = skip;
        for name in self.entries.names.iter().skip(skip).take(limit.min(LISTED_ENTRIES)) {
            let name = visible_name(name);
            if text.len() + name.len() >= LISTED_BYTES && last > skip {
                break;
            }
            text.push_str(&name);
            text.push('\n');
            last += 1;
        }
        call.truncated = last < total || self.entries.is_cut;
        if !text.is_empty() {
            call.presentation.content = vec![Shown::Text { text: fenced(&text, "") }];
        }
        let note = self.note(skip, last, total);
        call.presentation.note_bytes = note.len();
        call.done(text + &note)
    }

    /// A note only for the model.
    fn note(&self, skip: usize, last: usize, total: usize) -> String {
        let at_least = if self.entries.is_cut { "at least " } else { "" };
        let said = match (total, last < total) {
            (0, _) => "The directory is empty.".to_owned(),
            (_, true) => {
                format!("Entries {} - {last} of {at_least}{total}; go on with offset {last}.", skip + 1)
            }
            (_, false) if self.entries.is_cut => format!("Only {DIRECTORY_ENTRIES} entries were looked at."),
            (_, false) if skip > 0 => format!("Entries {} - {last} of {total}, the last ones.", skip + 1),
            (_, false) => return String::new(),
        };
        format!("<file-read-info>{said}</file-read-info>")
    }
}
