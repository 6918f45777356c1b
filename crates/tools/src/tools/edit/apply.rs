//! Replaces strings and reports conflicts: pure, on text without its byte order mark. Opens nothing.

use std::borrow::Cow;
use std::ops::Range;

use super::nearest::nearest;
use crate::limits::LISTED_MATCHES;
use crate::text::LineEnding;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occurrences {
    One,
    All,
}

#[derive(Clone, Debug)]
pub(super) struct Replacement {
    /// The argument that `old` came from, for errors.
    pub(super) field: String,
    pub(super) old: String,
    pub(super) new: String,
    pub(super) occurrences: Occurrences,
}

impl Replacement {
    /// Checks what can be checked without the file.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.old.is_empty() {
            return Err(format!("field `{}` must not be empty (write makes and fills files)", self.field));
        }
        if self.old == self.new {
            return Err(format!("field `{}` must differ from its new_string", self.field));
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditConflict {
    #[error(
        "`{field}` does not occur any more: it did before the edits above it, and each applies to what they made"
    )]
    Replaced { field: String },
    #[error("`{field}` does not occur in the file{nearest}")]
    NoMatch { field: String, nearest: String },
    #[error(
        "`{field}` occurs more than once, at lines {lines}; add lines around it until it is unique, \
         or set replace_all"
    )]
    SeveralMatches { field: String, lines: String },
    #[error("the edits change nothing")]
    Nothing,
}

/// The text after all replacements, each applied to the result of the previous ones.
///
/// A line feed in `old` also matches the file's CRLF, and, if nothing else matches, the other way round; new
/// lines end like most lines of the file.
pub(super) fn apply(body: &str, replacements: &[Replacement]) -> Result<String, EditConflict> {
    let ending = LineEnding::of(body);
    let mut text = body.to_owned();
    for replacement in replacements {
        let replacement = &with_line_ends_of(&text, replacement);
        let places =
            Haystack::new(&text, &replacement.old).places(replacement, &text).map_err(|conflict| {
                match conflict {
                    EditConflict::NoMatch { field, .. } if body.contains(&replacement.old) => {
                        EditConflict::Replaced { field }
                    }
                    other => other,
                }
            })?;
        let new = ending.applied_to(&replacement.new);
        let mut result = String::with_capacity(text.len());
        let mut next = 0;
        for place in places {
            result.push_str(&text[next..place.start]);
            result.push_str(&new);
            next = place.end;
        }
        result.push_str(&text[next..]);
        text = result;
    }
    if text == body { Err(EditConflict::Nothing) } else { Ok(text) }
}

/// The text without double escaping: a model may have written a backslash and an `n` for a line end.
fn escaped(text: &str, old: &str) -> Option<String> {
    let meant = old.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
    (meant != old && text.replace("\r\n", "\n").contains(&meant)).then(|| {
        "; it does with line ends, tabs and quotes in the place of `\\n`, `\\t` and `\\\"`: escape them once, not twice"
            .to_owned()
    })
}

/// Without carriage returns, if `old` has them and the text has none.
fn with_line_ends_of<'a>(text: &str, replacement: &'a Replacement) -> Cow<'a, Replacement> {
    let Replacement { old, new, .. } = replacement;
    if !old.contains("\r\n") || text.contains(old) {
        return Cow::Borrowed(replacement);
    }
    let [old, new] = [old, new].map(|text| text.replace("\r\n", "\n"));
    Cow::Owned(Replacement { old, new, ..replacement.clone() })
}

/// The text to search in, with CRLF folded unless `old` contains carriage returns itself.
struct Haystack<'text> {
    text: Cow<'text, str>,
    /// Positions in the folded text of line feeds that lost their carriage return, ascending.
    folded: Vec<usize>,
}

impl<'text> Haystack<'text> {
    fn new(text: &'text str, old: &str) -> Self {
        if old.contains('\r') || !old.contains('\n') || !text.contains("\r\n") {
            return Self { text: text.into(), folded: Vec::new() };
        }
        let mut folded = Vec::new();
        let mut without = String::with_capacity(text.len());
        for (index, piece) in text.split("\r\n").enumerate() {
            if index > 0 {
                folded.push(without.len());
                without.push('\n');
            }
            without.push_str(piece);
        }
        Self { text: without.into(), folded }
    }

    fn places(&self, replacement: &Replacement, text: &str) -> Result<Vec<Range<usize>>, EditConflict> {
        let old = replacement.old.as_str();
        let found: Vec<usize> = match replacement.occurrences {
            Occurrences::All => self.text.match_indices(old).map(|(start, _)| start).collect(),
            // Overlapping matches count: "aa" in "aaa" is not unique. Takes one more than is listed, to know
            // whether there are more.
            Occurrences::One => self.overlapping(old).take(LISTED_MATCHES + 1).collect(),
        };
        let field = replacement.field.clone();
        match (found.len(), replacement.occurrences) {
            (0, _) => {
                let nearest = escaped(text, old).unwrap_or_else(|| nearest(text, old));
                Err(EditConflict::NoMatch { field, nearest })
            }
            (1, _) | (_, Occurrences::All) => Ok(found
                .into_iter()
                .map(|start| self.original(start)..self.original(start + old.len()))
                .collect()),
            (_, Occurrences::One) => Err(EditConflict::SeveralMatches { field, lines: self.lines(&found) }),
        }
    }

    fn overlapping(&self, old: &str) -> impl Iterator<Item = usize> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = from + self.text.get(from..)?.find(old)?;
            from = self.text.ceil_char_boundary(start + 1);
            Some(start)
        })
    }

    /// The original position of a position in the folded text. The position before a folded line feed is the
    /// one before its carriage return.
    fn original(&self, position: usize) -> usize {
        position + self.folded.partition_point(|folded| *folded < position)
    }

    fn lines(&self, found: &[usize]) -> String {
        let mut lines: Vec<String> = found
            .iter()
            .take(LISTED_MATCHES)
            .map(|start| (self.text[..*start].matches('\n').count() + 1).to_string())
            .collect();
        if found.len() > LISTED_MATCHES {
            lines.push("…".to_owned());
        }
        lines.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(old: &str, new: &str, occurrences: Occurrences) -> Replacement {
        Replacement { field: "old_string".into(), old: old.into(), new: new.into(), occurrences }
    }

    fn one(body: &str, old: &str, new: &str) -> Result<String, EditConflict> {
        apply(body, &[edit(old, new, Occurrences::One)])
    }

    #[test]
    fn crlf_matches_line_feeds_and_is_kept() {
        assert_eq!(one("a\r\nb\r\nc", "a\nb", "x\ny\nz").unwrap(), "x\r\ny\r\nz\r\nc");
        assert_eq!(one("a\r\nb\r\nc", "\nb", "\nB").unwrap(), "a\r\nB\r\nc");
        assert_eq!(one("a\r\nb\r\nc", "a\n", "").unwrap(), "b\r\nc");
        assert_eq!(one("a\r\nb\r\nc", "b\r\n", "x\n").unwrap(), "a\r\nx\r\nc");
    }

    #[test]
    fn in_a_mixed_file_what_is_not_touched_stays() {
        assert_eq!(one("a\nb\nc", "a\r\nb", "x\r\ny").unwrap(), "x\ny\nc");
        assert_eq!(one("a\nb\nc", "b\r\n", "").unwrap(), "a\nc");
        assert_eq!(one("a\nb\r\nc\r\n", "a\r\nb", "x\r\ny").unwrap(), "x\r\ny\r\nc\r\n");
        assert_eq!(one("a\r\nb\nc\r\nd\n\r\n", "b\nc\n", "x\n").unwrap(), "a\r\nx\r\nd\n\r\n");
    }

    #[test]
    fn several_matches_tell_their_lines() {
        let conflict = one("x\ny\nx\n", "x", "z").unwrap_err().to_string();
        assert!(conflict.contains("at lines 1, 3;"), "{conflict}");
        let conflict = one(&"x\n".repeat(50), "x", "z").unwrap_err().to_string();
        assert!(conflict.contains("9, 10, …;"), "{conflict}");
        assert!(matches!(one("aaa", "aa", "b"), Err(EditConflict::SeveralMatches { .. })));
    }

    #[test]
    fn later_edits_see_what_earlier_ones_made() {
        let edits = [edit("a", "b", Occurrences::One), edit("b", "c", Occurrences::All)];
        assert_eq!(apply("ab", &edits).unwrap(), "cc");
        let back = [edit("a", "b", Occurrences::One), edit("b", "a", Occurrences::One)];
        assert_eq!(apply("a", &back), Err(EditConflict::Nothing));
    }

    fn to_crlf(text: &str) -> String {
        text.replace('\n', "\r\n")
    }

    proptest! {
        /// The reference: simple replacement by the standard library.
        #[test]
        fn agrees_with_naive_replacement(body in "[abé\n]{0,40}", old in "[abé\n]{1,3}", new in "[abé\n]{0,3}", all: bool) {
            prop_assume!(old != new);
            let overlapping = (0..body.len()).filter(|at| body.get(*at..).is_some_and(|rest| rest.starts_with(&old))).count();
            let result = apply(&body, &[edit(&old, &new, if all { Occurrences::All } else { Occurrences::One })]);
            let expected = body.replace(&old, &new);
            if overlapping == 0 {
                prop_assert!(matches!(result, Err(EditConflict::NoMatch { .. })), "{:?}", result);
            } else if overlapping > 1 && !all {
                prop_assert!(matches!(result, Err(EditConflict::SeveralMatches { .. })), "{:?}", result);
            } else if expected == body {
                prop_assert_eq!(result, Err(EditConflict::Nothing));
            } else {
                prop_assert_eq!(result.unwrap(), expected);
            }
        }

        /// Editing a CRLF file with line feeds gives the same as editing the file with line feeds and
        /// converting it to CRLF.
        #[test]
        fn line_endings_commute_with_editing(body in "[ab\n]{0,40}\n", old in "[ab\n]{1,3}", new in "[ab\n]{0,3}", all: bool) {
            prop_assume!(old != new);
            let edits = [edit(&old, &new, if all { Occurrences::All } else { Occurrences::One })];
            match (apply(&body, &edits), apply(&to_crlf(&body), &edits)) {
                (Ok(plain), Ok(crlf)) => prop_assert_eq!(to_crlf(&plain), crlf),
                (plain, crlf) => prop_assert_eq!(plain, crlf),
            }
        }
    }
}
