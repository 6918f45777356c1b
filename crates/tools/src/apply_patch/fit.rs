//! Puts hunks where they fit: every line of context as it stands in the file, line numbers only as a hint. Pure.

use std::path::Path;

use super::parse::{End, Hunk, Line, Side, Spot};
use crate::bounded::Bounded;
use crate::edit::nearest;
use crate::limits::{LISTED_MATCHES, QUOTED_LINE_BYTES};
use crate::paths::told;
use crate::text::{Ending, counted};

/// A hunk that can't be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// 1-based.
    number: usize,
    header: String,
    problem: String,
}

impl Conflict {
    pub(super) fn about(&self, path: &Path) -> String {
        let Self { number, header, problem } = self;
        format!("hunk {number} (`{header}`) of {}: {problem}; nothing was changed", told(path))
    }
}

/// The text with all hunks in place.
pub(super) fn fit(text: &str, hunks: &[Hunk]) -> Result<String, Conflict> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut result = Output { text: String::with_capacity(text.len()), ending: Ending::of(text) };
    let mut next = 0;
    let mut drift = 0_isize;
    for (index, hunk) in hunks.iter().enumerate() {
        let conflict = |problem: String| Conflict { number: index + 1, header: hunk.header.clone(), problem };
        let old: Vec<&str> =
            hunk.lines.iter().filter(|line| line.side != Side::New).map(|line| &*line.text).collect();
        let misfit = |problem: Misfit| conflict(problem.told(text, &old));
        let at = match &hunk.spot {
            Spot::Line(start) => {
                // A hunk without old lines stands behind the line it names.
                let named = if old.is_empty() { *start } else { start.saturating_sub(1) };
                let expected = named.saturating_add_signed(drift);
                let at = place(&lines, next, expected, &old).map_err(misfit)?;
                drift = at as isize - named as isize;
                at
            }
            Spot::Behind { anchors, is_end: false } => behind(&lines, next, anchors, &old).map_err(misfit)?,
            Spot::Behind { anchors, is_end: true } => at_end(&lines, next, anchors, &old).map_err(misfit)?,
        };
        result.keep(&lines[next..at]);
        next = at;
        for line in &hunk.lines {
            match line.side {
                Side::Both => {
                    result.keep(&lines[next..=next]);
                    next += 1;
                }
                Side::Old => next += 1,
                Side::New => result.add(line),
            }
        }
    }
    result.keep(&lines[next..]);
    // Such a patch can't say that the last line has no end: it stays as it was.
    let is_silent = hunks.iter().any(|hunk| matches!(hunk.spot, Spot::Behind { .. }));
    if is_silent && !text.is_empty() && !text.ends_with('\n') {
        result.text.truncate(bare(&result.text).len());
    }
    Ok(result.text)
}

enum Misfit {
    Nowhere,
    Several(Vec<usize>),
    /// This line is not there, or only before the last place.
    NoAnchor(String),
    NotAtTheEnd,
    /// Nothing to look for, and fewer lines than the hunk names.
    BehindTheEnd(usize),
}

impl Misfit {
    fn told(&self, text: &str, old: &[&str]) -> String {
        match self {
            Self::Nowhere => {
                format!("its old lines do not occur in the file{}", nearest::nearest(text, &old.join("\n")))
            }
            Self::Several(places) => {
                let mut lines: Vec<_> =
                    places.iter().take(LISTED_MATCHES).map(|at| (at + 1).to_string()).collect();
                if places.len() > LISTED_MATCHES {
                    lines.push("…".to_owned());
                }
                let lines = lines.join(", ");
                format!(
                    "its old lines occur more than once, at lines {lines}, and none is where it says; add context"
                )
            }
            Self::NoAnchor(anchor) => {
                let anchor = Bounded::whole(anchor.as_str(), QUOTED_LINE_BYTES);
                format!("there is no line `{}` after the hunks before it", anchor.text())
            }
            Self::NotAtTheEnd => {
                format!(
                    "its old lines are not the last of the file{}",
                    nearest::nearest(text, &old.join("\n"))
                )
            }
            Self::BehindTheEnd(count) => format!("the file has only {}", counted(*count, "line")),
        }
    }
}

/// The index of the line where `old` stands: where it is expected, or else at the only place from `from` on.
fn place(lines: &[&str], from: usize, expected: usize, old: &[&str]) -> Result<usize, Misfit> {
    if old.is_empty() {
        return if (from..=lines.len()).contains(&expected) {
            Ok(expected)
        } else {
            Err(Misfit::BehindTheEnd(lines.len()))
        };
    }
    let stands_at = |at: usize| {
        let Some(found) = lines.get(at..at + old.len()) else { return false };
        found.iter().zip(old).all(|(line, old)| bare(line) == bare(old))
    };
    if expected >= from && stands_at(expected) {
        return Ok(expected);
    }
    let places = occurrences(&lines[from.min(lines.len())..], old);
    match places.as_slice() {
        [] => Err(Misfit::Nowhere),
        [only] => Ok(from + only),
        [..] => Err(Misfit::Several(places.iter().map(|at| from + at).collect())),
    }
}

/// The index of the line where `old` stands behind the anchors: there the first place, without anchors the only one.
fn behind(lines: &[&str], from: usize, anchors: &[String], old: &[&str]) -> Result<usize, Misfit> {
    let anchor = anchored(lines, from, anchors)?;
    if old.is_empty() {
        return Ok(anchor.map_or(lines.len(), |anchor| anchor + 1));
    }
    // The anchor itself may stand among the lines once more.
    let from = anchor.unwrap_or(from);
    let places = occurrences(&lines[from.min(lines.len())..], old);
    match (places.as_slice(), anchor) {
        ([], _) => Err(Misfit::Nowhere),
        ([only], _) | ([only, ..], Some(_)) => Ok(from + only),
        ([..], None) => Err(Misfit::Several(places.iter().map(|at| from + at).collect())),
    }
}

/// The same for lines that are the file's last.
fn at_end(lines: &[&str], from: usize, anchors: &[String], old: &[&str]) -> Result<usize, Misfit> {
    let from = anchored(lines, from, anchors)?.unwrap_or(from);
    let at = lines.len().checked_sub(old.len()).filter(|at| *at >= from).ok_or(Misfit::NotAtTheEnd)?;
    let is_there = lines[at..].iter().zip(old).all(|(line, old)| bare(line) == bare(old));
    if is_there { Ok(at) } else { Err(Misfit::NotAtTheEnd) }
}

/// The line of the last anchor; `None` without anchors. Anchors are often written without their indentation or their end.
fn anchored(lines: &[&str], from: usize, anchors: &[String]) -> Result<Option<usize>, Misfit> {
    let mut at = None;
    for anchor in anchors {
        let from = at.map_or(from, |at: usize| at + 1);
        let find = |fits: &dyn Fn(&str) -> bool| {
            lines.iter().skip(from).position(|line| fits(line.trim())).map(|found| from + found)
        };
        let found =
            find(&|line| line == anchor.trim()).or_else(|| find(&|line| line.starts_with(anchor.trim())));
        at = Some(found.ok_or_else(|| Misfit::NoAnchor(anchor.clone()))?);
    }
    Ok(at)
}

/// All places of `old` in `lines`, in time that is linear in both (Knuth, Morris and Pratt).
fn occurrences(lines: &[&str], old: &[&str]) -> Vec<usize> {
    let wanted: Vec<&str> = old.iter().map(|line| bare(line)).collect();
    let mut fallback = vec![0; wanted.len()];
    let mut matched = 0;
    for index in 1..wanted.len() {
        while matched > 0 && wanted[index] != wanted[matched] {
            matched = fallback[matched - 1];
        }
        matched += usize::from(wanted[index] == wanted[matched]);
        fallback[index] = matched;
    }
    let mut places = Vec::new();
    matched = 0;
    for (index, line) in lines.iter().enumerate() {
        let line = bare(line);
        while matched > 0 && (matched == wanted.len() || line != wanted[matched]) {
            matched = fallback[matched - 1];
        }
        matched += usize::from(line == wanted[matched]);
        if matched == wanted.len() {
            places.push(index + 1 - wanted.len());
        }
    }
    places
}

/// A line without its end, which is the file's own business.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

struct Output {
    text: String,
    ending: Ending,
}

impl Output {
    /// Lines of the file, as they are.
    fn keep(&mut self, lines: &[&str]) {
        for line in lines {
            self.end_line();
            self.text.push_str(line);
        }
    }

    fn add(&mut self, line: &Line) {
        self.end_line();
        let end = match line.end {
            End::Newline => "\n",
            End::Nothing => "",
        };
        self.text.push_str(&self.ending.applied_to(&format!("{}{end}", line.text)));
    }

    /// What was the last line of the file without an end needs one when another line follows.
    fn end_line(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push_str(&self.ending.applied_to("\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;
    use proptest::prelude::*;

    fn patched(old: &str, patch: &str) -> Result<String, String> {
        let files = parse(&format!("--- a/x\n+++ b/x\n{patch}")).map_err(|error| error.to_string())?;
        fit(old, &files[0].hunks).map_err(|conflict| conflict.about(Path::new("/x")))
    }

    #[test]
    fn wrong_line_numbers_are_found_again() {
        assert_eq!(patched("a\nb\nc\nd\n", "@@ -40,2 +1,2 @@\n c\n-d\n+D\n").unwrap(), "a\nb\nc\nD\n");
    }

    #[test]
    fn what_occurs_twice_needs_its_line() {
        assert_eq!(patched("x\ny\nx\n", "@@ -3 +3 @@\n-x\n+X\n").unwrap(), "x\ny\nX\n");
        let error = patched("x\ny\nx\n", "@@ -9 +9 @@\n-x\n+X\n").unwrap_err();
        assert!(error.contains("more than once, at lines 1, 3"), "{error}");
    }

    #[test]
    fn a_hunk_that_does_not_fit_names_itself_and_the_nearest_place() {
        let error =
            patched("let a = 1;\nlet b = 2;\n", "@@ -1,2 +1,2 @@\n let a = 1;\n-let b = 3;\n+let b = 4;\n")
                .unwrap_err();
        assert!(error.contains("hunk 1 (`@@ -1,2 +1,2 @@`) of /x"), "{error}");
        assert!(error.contains("line 2 is `let b = 2;` and not `let b = 3;`"), "{error}");
    }

    #[test]
    fn line_ends_are_the_files_own() {
        assert_eq!(patched("a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n+x\n b\n").unwrap(), "a\r\nx\r\nb\r\n");
        assert_eq!(patched("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n").unwrap(), "a\nb\nc\n");
        assert_eq!(patched("a\n", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n").unwrap(), "a");
    }

    fn enveloped(old: &str, hunks: &str) -> Result<String, String> {
        let patch = format!("*** Begin Patch\n*** Update File: x\n{hunks}*** End Patch");
        let files = super::super::envelope::parse(&patch).map_err(|error| error.to_string())?;
        fit(old, &files[0].hunks).map_err(|conflict| conflict.about(Path::new("/x")))
    }

    #[test]
    fn anchors_tell_places_apart() {
        let old = "class A:\n    def f():\n        pass\nclass B:\n    def f():\n        pass\n";
        let error = enveloped(old, "@@\n-        pass\n+        return\n").unwrap_err();
        assert!(error.contains("more than once, at lines 3, 6"), "{error}");
        let new = enveloped(old, "@@ class B:\n@@ def f():\n-        pass\n+        return\n").unwrap();
        assert_eq!(new, "class A:\n    def f():\n        pass\nclass B:\n    def f():\n        return\n");
        let new = enveloped(old, "@@ class B\n-        pass\n+        return\n").unwrap();
        assert!(new.ends_with("return\n"));
        let error = enveloped(old, "@@ class C:\n-        pass\n+x\n").unwrap_err();
        assert!(error.contains("no line `class C:`"), "{error}");
        assert_eq!(enveloped("a\nb\n", "@@ a\n+x\n").unwrap(), "a\nx\nb\n");
        assert_eq!(enveloped("a\nb\n", "@@\n+x\n").unwrap(), "a\nb\nx\n");
        assert_eq!(enveloped("a\nb", "@@\n-b\n+x\n").unwrap(), "a\nx", "the file's own end");
        assert_eq!(enveloped("x\ny\nx\n", "@@\n-x\n+z\n*** End of File\n").unwrap(), "x\ny\nz\n");
        assert!(enveloped("x\ny\n", "@@\n-x\n+z\n*** End of File\n").unwrap_err().contains("not the last"));
    }

    proptest! {
        /// A patch in the other format, with all lines as context, makes the second text out of the first.
        #[test]
        fn enveloped_patches_apply(old in "([abc]{0,2}\n){1,20}", new in "([abc]{0,2}\n){1,20}") {
            let diff = similar::TextDiff::from_lines(&old, &new);
            let patch: String = diff.iter_all_changes().map(|change| format!("{}{change}", change.tag())).collect();
            prop_assert_eq!(enveloped(&old, &format!("@@\n{patch}")), Ok(new));
        }

        /// A patch written by another library from two texts makes the second out of the first.
        #[test]
        fn patches_of_others_apply(old in "([abc]{0,2}\n){0,30}[ab]?", new in "([abc]{0,2}\n){0,30}[ab]?") {
            prop_assume!(old != new);
            let diff = similar::TextDiff::from_lines(&old, &new);
            let patch = diff.unified_diff().context_radius(3).to_string();
            prop_assert_eq!(patched(&old, &patch), Ok(new));
        }

        #[test]
        fn occurrences_are_those_of_a_naive_search(lines in "[ab]{0,30}", old in "[ab]{1,4}") {
            let split = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
            let (lines, old) = (split(&lines), split(&old));
            let (lines, old): (Vec<&str>, Vec<&str>) =
                (lines.iter().map(|line| &**line).collect(), old.iter().map(|line| &**line).collect());
            let naive: Vec<usize> = (0..lines.len()).filter(|at| lines[*at..].starts_with(&old)).collect();
            prop_assert_eq!(occurrences(&lines, &old), naive);
        }
    }
}
