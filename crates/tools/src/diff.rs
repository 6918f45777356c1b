//! Line differences for clients: hunks, their places in the new file, a count. Does no I/O.

use std::path::Path;
use std::time::Instant;

use attache_core::ports::tool::{Location, Shown};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

use crate::limits::{DIFF_CONTEXT, DIFF_TIME, SHOWN_DIFF_BYTES, WHOLE_DIFF_BYTES};

/// One changed place with the lines around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiffHunk {
    pub(crate) old_text: String,
    pub(crate) new_text: String,
    /// Counted from 1, in the new text: the first changed line; after a deletion, the next line.
    pub(crate) line: u32,
    /// Counted from 0: the line of the old text at which `old_text` begins.
    #[cfg(test)]
    pub(crate) old_start: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) hunks: Vec<DiffHunk>,
    added: usize,
    removed: usize,
}

impl Difference {
    pub(crate) fn between(old: &str, new: &str) -> Self {
        let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
        let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
        let deadline = Instant::now() + DIFF_TIME;
        let operations =
            capture_diff_slices_deadline(Algorithm::Myers, &old_lines, &new_lines, Some(deadline));
        let mut difference = Self::default();
        for operation in &operations {
            if operation.tag() != DiffTag::Equal {
                difference.added += operation.new_range().len();
                difference.removed += operation.old_range().len();
            }
        }
        difference.hunks = group_diff_ops(operations, DIFF_CONTEXT)
            .iter()
            .filter_map(|group| hunk(group, &old_lines, &new_lines))
            .collect();
        difference
    }

    /// `+3 -1 lines`
    pub(crate) fn stat(&self) -> String {
        let unit = if self.added + self.removed == 1 { "line" } else { "lines" };
        format!("+{} -{} {unit}", self.added, self.removed)
    }

    pub(crate) fn locations(&self, path: &Path) -> Vec<Location> {
        self.hunks.iter().map(|hunk| Location { path: path.to_owned(), line: Some(hunk.line) }).collect()
    }

    /// One block per hunk.
    pub(crate) fn shown(&self, path: &Path) -> Vec<Shown> {
        let mut room = SHOWN_DIFF_BYTES;
        let mut blocks = Vec::new();
        for (index, hunk) in self.hunks.iter().enumerate() {
            let size = hunk.old_text.len() + hunk.new_text.len();
            if size > room {
                let rest = self.hunks.len() - index;
                blocks.push(Shown::Text {
                    text: format!("{rest} of {} changed places are too large to show", self.hunks.len()),
                });
                break;
            }
            room -= size;
            blocks.push(Shown::Diff {
                path: path.to_owned(),
                old_text: Some(hunk.old_text.clone()),
                new_text: hunk.new_text.clone(),
            });
        }
        blocks
    }
}

/// A whole file before and after; hunks if that would be too much.
pub(crate) fn replaced_file(path: &Path, old: &str, new: &str, difference: &Difference) -> Vec<Shown> {
    if difference.hunks.is_empty() {
        return Vec::new();
    }
    if old.len() > WHOLE_DIFF_BYTES || new.len() > WHOLE_DIFF_BYTES {
        return difference.shown(path);
    }
    vec![Shown::Diff { path: path.to_owned(), old_text: Some(old.to_owned()), new_text: new.to_owned() }]
}

pub(crate) fn new_file(path: &Path, content: &str) -> Vec<Shown> {
    if content.len() > SHOWN_DIFF_BYTES {
        return vec![Shown::Text {
            text: format!("a new file of {} bytes, too large to show", content.len()),
        }];
    }
    vec![Shown::Diff { path: path.to_owned(), old_text: None, new_text: content.to_owned() }]
}

fn hunk(group: &[DiffOp], old_lines: &[&str], new_lines: &[&str]) -> Option<DiffHunk> {
    let (first, last) = (group.first()?, group.last()?);
    let changed = group.iter().find(|operation| operation.tag() != DiffTag::Equal)?;
    let old = first.old_range().start..last.old_range().end;
    let new = first.new_range().start..last.new_range().end;
    // After a deletion at the end of the file there is no next line, so the last one is named.
    let line = (changed.new_range().start + 1).min(new_lines.len()).max(1);
    Some(DiffHunk {
        #[cfg(test)]
        old_start: old.start,
        old_text: old_lines.get(old)?.concat(),
        new_text: new_lines.get(new)?.concat(),
        line: u32::try_from(line).unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn apply(old: &str, difference: &Difference) -> String {
        let lines: Vec<&str> = old.split_inclusive('\n').collect();
        let mut result = String::new();
        let mut next = 0;
        for hunk in &difference.hunks {
            result.push_str(&lines[next..hunk.old_start].concat());
            let length = hunk.old_text.split_inclusive('\n').count();
            assert_eq!(lines[hunk.old_start..hunk.old_start + length].concat(), hunk.old_text);
            result.push_str(&hunk.new_text);
            next = hunk.old_start + length;
        }
        result.push_str(&lines[next..].concat());
        result
    }

    fn numbered(range: std::ops::RangeInclusive<u32>) -> String {
        range.map(|number| format!("{number}\n")).collect()
    }

    #[test]
    fn far_changes_are_hunks_with_three_lines_around() {
        let old = numbered(1..=30);
        let new = old.replace("\n5\n", "\nfive\n").replace("\n20\n", "\n");
        let difference = Difference::between(&old, &new);
        let lines: Vec<u32> = difference.hunks.iter().map(|hunk| hunk.line).collect();
        assert_eq!(difference.hunks[0].old_text, numbered(2..=8));
        assert_eq!(difference.hunks[1].new_text, numbered(17..=19) + &numbered(21..=23));
        assert_eq!(lines, [5, 20]);
    }

    #[test]
    fn a_deletion_points_to_the_line_that_follows() {
        let old = numbered(1..=9);
        assert_eq!(Difference::between(&old, &old.replace("4\n", "")).hunks[0].line, 4);
        assert_eq!(Difference::between(&old, &old.replace("9\n", "")).hunks[0].line, 8);
        assert_eq!(Difference::between("a\n", "").hunks[0].line, 1);
    }

    #[test]
    fn the_stat_counts_lines() {
        assert_eq!(Difference::between("a\nb\n", "a\nc\nd\n").stat(), "+2 -1 lines");
        assert_eq!(Difference::between("", "a").stat(), "+1 -0 line");
    }

    #[test]
    fn a_large_replacement_is_shown_as_hunks() {
        let old = numbered(1..=10_000);
        let new = old.replace("\n7777\n", "\nx\n");
        let difference = Difference::between(&old, &new);
        let shown = replaced_file(Path::new("/a"), &old, &new, &difference);
        let Shown::Diff { old_text: Some(text), .. } = &shown[0] else { panic!("no diff") };
        assert_eq!(*text, numbered(7774..=7780));
    }

    #[test]
    fn a_flood_of_hunks_is_shown_in_part() {
        let old: String = (0..40_000).map(|number| format!("line number {number}\n")).collect();
        let new = old.replace("0\n", "zero\n");
        let shown = Difference::between(&old, &new).shown(Path::new("/a"));
        let Some(Shown::Text { text }) = shown.last() else { panic!("no note") };
        assert!(text.contains("too large to show"), "{text}");
    }

    proptest! {
        #[test]
        fn hunks_applied_to_the_old_text_give_the_new_one(old in "[ab\n]{0,60}", new in "[ab\n]{0,60}") {
            let difference = Difference::between(&old, &new);
            prop_assert_eq!(apply(&old, &difference), new.clone());
            prop_assert_eq!(difference.hunks.is_empty(), old == new);
        }

        #[test]
        fn every_location_is_a_line_of_the_new_file_within_its_hunk(old in "[ab\n]{0,60}", new in "[ab\n]{0,60}") {
            let count = new.split_inclusive('\n').count().max(1);
            for hunk in Difference::between(&old, &new).hunks {
                prop_assert!((1..=count).contains(&(hunk.line as usize)));
            }
        }
    }
}
