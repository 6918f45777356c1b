//! Places hunks where they match: every line of context has to equal the file's line, and line numbers are only
//! a hint. Pure.

use std::ops::Range;

use super::misfit::{Misfit, NamedPlace};
use super::parse::{LineEnd, PatchHunk, PatchLine, Side, Spot};
use crate::text::LineEnding;

/// A hunk that can't be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HunkConflict {
    /// Counted from 1.
    number: usize,
    header: String,
    problem: String,
}

impl HunkConflict {
    pub(super) fn about(&self, file: &str) -> String {
        let Self { number, header, problem } = self;
        format!("hunk {number} (`{header}`) of {file}: {problem}; nothing was changed")
    }
}

/// The text with all hunks applied.
pub(super) fn fit(text: &str, hunks: &[PatchHunk]) -> Result<String, HunkConflict> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut result = PatchedText { text: String::with_capacity(text.len()), ending: LineEnding::of(text) };
    let mut next = 0;
    for (hunk, at) in hunks.iter().zip(placed(text, &lines, hunks)?) {
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
    // Such a patch can't say that the last line has no line feed: a file without one stays without.
    let is_silent = hunks.iter().any(|hunk| matches!(hunk.spot, Spot::Behind { .. }));
    if is_silent && !text.is_empty() && !text.ends_with('\n') {
        result.text.truncate(bare(&result.text).len());
    }
    Ok(result.text)
}

/// The place of each hunk: the index of its first old line, or of the line before which it adds.
fn placed(text: &str, lines: &[&str], hunks: &[PatchHunk]) -> Result<Vec<usize>, HunkConflict> {
    let mut taken: Vec<Range<usize>> = Vec::new();
    let mut drift = 0_isize;
    for (index, hunk) in hunks.iter().enumerate() {
        let old = old_lines(hunk);
        let next = taken.last().map_or(0, |range| range.end);
        let at = found(lines, next, &mut drift, hunk, &old).map_err(|misfit| {
            let problem = misfit.told(text, &old, &taken);
            HunkConflict { number: index + 1, header: hunk.header.clone(), problem }
        })?;
        taken.push(at..at + old.len());
    }
    Ok(taken.into_iter().map(|range| range.start).collect())
}

fn old_lines(hunk: &PatchHunk) -> Vec<&str> {
    hunk.lines.iter().filter(|line| line.side != Side::New).map(|line| &*line.text).collect()
}

/// `next`: where the search begins; `drift`: the distance of the previous hunks from their stated lines.
fn found(
    lines: &[&str],
    next: usize,
    drift: &mut isize,
    hunk: &PatchHunk,
    old: &[&str],
) -> Result<usize, Misfit> {
    match &hunk.spot {
        Spot::Line(start) => {
            // A hunk without old lines comes after its stated line.
            let named = if old.is_empty() { *start } else { start.saturating_sub(1) };
            let expected = named.saturating_add_signed(*drift);
            let at = place(lines, next, expected, old)?;
            *drift = at as isize - named as isize;
            Ok(at)
        }
        Spot::Behind { anchors, is_end: false } => behind(lines, next, anchors, old),
        Spot::Behind { anchors, is_end: true } => at_end(lines, next, anchors, old),
    }
}

/// The index of the line where `old` is: at the expected place, or else at the only place from `from` on.
fn place(lines: &[&str], from: usize, expected: usize, old: &[&str]) -> Result<usize, Misfit> {
    if old.is_empty() {
        return match expected {
            at if at > lines.len() => Err(Misfit::BehindTheEnd { lines: lines.len() }),
            at if at < from => Err(Misfit::WithinHunks { at }),
            at => Ok(at),
        };
    }
    let stands_at = |at: usize| {
        let Some(found) = lines.get(at..at + old.len()) else { return false };
        found.iter().zip(old).all(|(line, old)| bare(line) == bare(old))
    };
    if expected >= from && stands_at(expected) {
        return Ok(expected);
    }
    only(lines, from, old, NamedPlace::Line)
}

/// The only place of `old` from `from` on, where the previous hunks end.
fn only(lines: &[&str], from: usize, old: &[&str], said: NamedPlace) -> Result<usize, Misfit> {
    let (earlier, places) = split(occurrences(lines, old), from);
    match (places.as_slice(), earlier.is_empty()) {
        ([only], _) => Ok(*only),
        ([], true) => Err(Misfit::Nowhere),
        ([], false) => Err(Misfit::BeforeHunks { places: earlier }),
        ([..], _) => Err(Misfit::Several { places, said }),
    }
}

fn split(places: Vec<usize>, from: usize) -> (Vec<usize>, Vec<usize>) {
    places.into_iter().partition(|at| *at < from)
}

/// The index of the line where `old` is after the anchors: the first place there; without anchors, the only
/// place.
fn behind(lines: &[&str], from: usize, anchors: &[String], old: &[&str]) -> Result<usize, Misfit> {
    let anchor = anchored(lines, from, anchors)?;
    if old.is_empty() {
        return Ok(anchor.map_or(lines.len(), |anchor| anchor + 1));
    }
    let Some(at) = anchor else { return only(lines, from, old, NamedPlace::Nothing) };
    // The hunk may repeat the anchor among its lines.
    let (earlier, places) = split(occurrences(lines, old), at);
    match (places.first(), earlier.is_empty()) {
        (Some(first), _) => Ok(*first),
        (None, true) => Err(Misfit::Nowhere),
        (None, false) => {
            let anchor = anchors.last().cloned().unwrap_or_default();
            Err(Misfit::BeforeAnchor { places: earlier, anchor, at })
        }
    }
}

/// The same for lines that have to be the file's last.
fn at_end(lines: &[&str], from: usize, anchors: &[String], old: &[&str]) -> Result<usize, Misfit> {
    let anchor = anchored(lines, from, anchors)?;
    let first = anchor.unwrap_or(from);
    if old.is_empty() {
        return Ok(lines.len());
    }
    let places = occurrences(lines, old);
    let last = places.last().copied().filter(|at| at + old.len() == lines.len());
    match (last, anchor) {
        (Some(at), _) if at >= first => Ok(at),
        (Some(_), Some(at)) => {
            let anchor = anchors.last().cloned().unwrap_or_default();
            Err(Misfit::BeforeAnchor { places, anchor, at })
        }
        (Some(_), None) => Err(Misfit::BeforeHunks { places }),
        (None, _) => Err(Misfit::NotAtTheEnd { places, lines: lines.len() }),
    }
}

/// The line of the last anchor; `None` without anchors. Models often write anchors without indentation or
/// without their end.
fn anchored(lines: &[&str], from: usize, anchors: &[String]) -> Result<Option<usize>, Misfit> {
    let mut at = None;
    for anchor in anchors {
        let from = at.map_or(from, |at: usize| at + 1);
        let find = |from: usize, fits: &dyn Fn(&str) -> bool| {
            lines.iter().skip(from).position(|line| fits(line.trim())).map(|found| from + found)
        };
        let find = |from: usize| {
            let whole = find(from, &|line| line == anchor.trim());
            whole.or_else(|| find(from, &|line| line.starts_with(anchor.trim())))
        };
        at = Some(find(from).ok_or_else(|| match find(0) {
            Some(at) => Misfit::EarlyAnchor { anchor: anchor.clone(), at, from },
            None => Misfit::NoAnchor { anchor: anchor.clone() },
        })?);
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

/// A line without its line ending, which the file decides.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

struct PatchedText {
    text: String,
    ending: LineEnding,
}

impl PatchedText {
    /// Copies lines of the file unchanged.
    fn keep(&mut self, lines: &[&str]) {
        for line in lines {
            self.end_line();
            self.text.push_str(line);
        }
    }

    fn add(&mut self, line: &PatchLine) {
        self.end_line();
        let end = match line.end {
            LineEnd::Newline => "\n",
            LineEnd::Nothing => "",
        };
        self.text.push_str(&self.ending.applied_to(&format!("{}{end}", line.text)));
    }

    /// The file's last line may lack a line ending; it needs one when another line follows.
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
        fit(old, &files[0].hunks).map_err(|conflict| conflict.about("/x"))
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
        fit(old, &files[0].hunks).map_err(|conflict| conflict.about("/x"))
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
        assert!(error.contains("names the line `class C:`, which the file does not have"), "{error}");
        assert_eq!(enveloped("a\nb\n", "@@ a\n+x\n").unwrap(), "a\nx\nb\n");
        assert_eq!(enveloped("a\nb\n", "@@\n+x\n").unwrap(), "a\nb\nx\n");
        assert_eq!(enveloped("a\nb", "@@\n-b\n+x\n").unwrap(), "a\nx", "the file's own end");
        assert_eq!(enveloped("x\ny\nx\n", "@@\n-x\n+z\n*** End of File\n").unwrap(), "x\ny\nz\n");
    }

    /// Each failure names its real reason and what to do.
    #[test]
    fn a_hunk_that_fits_elsewhere_says_where_and_why_not_there() {
        let lines = "a\nb\nc\nd\ne\n";
        for (old, hunks, told) in [
            // Out of order, in both formats.
            (lines, "@@\n-d\n+D\n@@\n-b\n+B\n", "only at line 2, before hunk 1; put the hunks in the order"),
            (
                lines,
                "@@ -4 +4 @@\n-d\n+D\n@@ -2 +2 @@\n-b\n+B\n",
                "only at line 2, before hunk 1; put the hunks",
            ),
            // Two hunks of the same lines.
            (
                lines,
                "@@\n b\n-c\n+C\n@@\n-c\n+X\n",
                "line 3, among the lines of hunk 1 (lines 2 to 3); make one",
            ),
            (lines, "@@ d\n-e\n+E\n@@ b\n-c\n+C\n", "`b` (line 2), which stands before line 6"),
            (lines, "@@ d\n-b\n+B\n", "only at line 2, before the line `d` of its `@@` (line 4)"),
            (lines, "@@ x\n-b\n+B\n", "names the line `x`, which the file does not have"),
            (
                lines,
                "@@ -3 +3 @@\n-c\n+C\n@@ -1,0 +2 @@\n+x\n",
                "adds after line 1, which lies before the end of hunk 1",
            ),
            (lines, "@@ -9,0 +10 @@\n+x\n", "the file has only 5 lines"),
            // The end of the file.
            (
                "x\ny\n",
                "@@\n-x\n+z\n*** End of File\n",
                "at line 1, but they do not end the file, which has 2 lines; leave out",
            ),
            ("x\ny\n", "@@\n-q\n+z\n*** End of File\n", "do not occur in the file"),
            ("x\ny\n", "@@\n-y\n+z\n@@\n-y\n+w\n*** End of File\n", "among the lines of hunk 1 (line 2)"),
            (
                "x\nx\n",
                "@@\n-x\n+z\n",
                "more than once, at lines 1, 2; add context, or put a preceding line after",
            ),
            (
                "a\nx\nx\n",
                "@@\n-a\n+A\n@@\n-x\n+z\n",
                "more than once after the previous hunks, at lines 2, 3",
            ),
        ] {
            let error = enveloped(old, hunks).unwrap_err();
            assert!(error.contains(told), "{hunks}\n{error}");
        }
    }

    /// Whether a misfit's statement about a hunk is true.
    fn is_true(misfit: &Misfit, lines: &[&str], next: usize, old: &[&str]) -> bool {
        let lines: Vec<&str> = lines.iter().map(|line| bare(line)).collect();
        let all: Vec<usize> =
            (0..lines.len()).filter(|at| !old.is_empty() && lines[*at..].starts_with(old)).collect();
        let is_like = |at: usize, anchor: &str| lines[at].trim().starts_with(anchor.trim());
        match misfit {
            Misfit::Nowhere => all.is_empty(),
            Misfit::Several { places, .. } => {
                places.len() > 1 && *places == all.into_iter().filter(|at| *at >= next).collect::<Vec<_>>()
            }
            Misfit::BeforeHunks { places } => {
                *places == all && !all.is_empty() && all.iter().all(|at| *at < next)
            }
            Misfit::BeforeAnchor { places, anchor, at } => {
                *places == all
                    && !all.is_empty()
                    && all.iter().all(|place| place < at)
                    && is_like(*at, anchor)
            }
            Misfit::NoAnchor { anchor } => (0..lines.len()).all(|at| !is_like(at, anchor)),
            Misfit::EarlyAnchor { anchor, at, from } => {
                at < from
                    && *from >= next
                    && is_like(*at, anchor)
                    && (*from..lines.len()).all(|at| !is_like(at, anchor))
            }
            Misfit::NotAtTheEnd { places, lines: count } => {
                *places == all
                    && *count == lines.len()
                    && all.last().is_none_or(|at| at + old.len() < lines.len())
            }
            Misfit::BehindTheEnd { lines: count } => *count == lines.len(),
            Misfit::WithinHunks { at } => *at < next,
        }
    }

    fn some_hunk() -> impl Strategy<Value = PatchHunk> {
        let line = ("[abc]", prop_oneof![Just(Side::Both), Just(Side::Old), Just(Side::New)])
            .prop_map(|(text, side)| PatchLine { side, text, end: LineEnd::Newline });
        let spot = prop_oneof![
            (0..9_usize).prop_map(Spot::Line),
            (proptest::collection::vec("[abcd]", 0..3), any::<bool>())
                .prop_map(|(anchors, is_end)| Spot::Behind { anchors, is_end }),
        ];
        (spot, proptest::collection::vec(line, 1..4)).prop_map(|(spot, lines)| PatchHunk {
            header: "@@".to_owned(),
            spot,
            lines,
        })
    }

    proptest! {
        /// Every statement about a hunk that was not placed is true of the file.
        #[test]
        fn an_explanation_is_true(text in "([abc]\n){0,9}", hunks in proptest::collection::vec(some_hunk(), 1..4)) {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let (mut next, mut drift) = (0, 0);
            for hunk in &hunks {
                let old = old_lines(hunk);
                match found(&lines, next, &mut drift, hunk, &old) {
                    Ok(at) => next = at + old.len(),
                    Err(misfit) => {
                        prop_assert!(is_true(&misfit, &lines, next, &old), "{:?}", misfit);
                        prop_assert!(fit(&text, &hunks).is_err());
                        return Ok(());
                    }
                }
            }
            prop_assert!(fit(&text, &hunks).is_ok());
        }

        /// A patch in the other format, with all lines as context, turns the first text into the second.
        #[test]
        fn enveloped_patches_apply(old in "([abc]{0,2}\n){1,20}", new in "([abc]{0,2}\n){1,20}") {
            let diff = similar::TextDiff::from_lines(&old, &new);
            let patch: String = diff.iter_all_changes().map(|change| format!("{}{change}", change.tag())).collect();
            prop_assert_eq!(enveloped(&old, &format!("@@\n{patch}")), Ok(new));
        }

        /// A patch that another library makes of two texts turns the first into the second.
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
