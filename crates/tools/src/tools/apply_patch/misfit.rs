//! Why a hunk can't be placed: facts about the file, and a text that says what to do. Places nothing.

use std::ops::Range;

use crate::bounded::Bounded;
use crate::limits::{LISTED_MATCHES, QUOTED_LINE_BYTES};
use crate::text::counted;
use crate::tools::edit::nearest;

/// Lines are counted from 0 here, from 1 in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// The old lines are not in the file.
    Nowhere,
    /// They occur more than once after the previous hunks.
    Several { places: Vec<usize>, said: NamedPlace },
    /// They occur, but only before the end of the last placed hunk.
    BeforeHunks { places: Vec<usize> },
    /// They occur, but only before the line that `@@` names.
    BeforeAnchor { places: Vec<usize>, anchor: String, at: usize },
    /// No line of the file resembles the one that `@@` names.
    NoAnchor { anchor: String },
    /// Such a line exists, but only before the end of the last placed hunk, or before the anchor above it.
    EarlyAnchor { anchor: String, at: usize, from: usize },
    /// The patch says that the old lines end the file. They occur at these places, none of them the end.
    NotAtTheEnd { places: Vec<usize>, lines: usize },
    /// A hunk that only adds, after more lines than the file has.
    BehindTheEnd { lines: usize },
    /// A hunk that only adds, before the end of the last placed hunk.
    WithinHunks { at: usize },
}

/// What a hunk says about its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedPlace {
    Line,
    Nothing,
}

impl Misfit {
    /// `taken`: the lines of the file that the previous hunks cover, in order.
    pub(super) fn told(&self, text: &str, old: &[&str], taken: &[Range<usize>]) -> String {
        match self {
            Self::Nowhere => {
                // A patch has no such field, so the text must not name it.
                let nearest = nearest::nearest(text, &old.join("\n")).replace("`old_string`", "the patch");
                format!("its old lines do not occur in the file{nearest}")
            }
            Self::Several { places, said } => {
                let behind = if taken.is_empty() { "" } else { " after the previous hunks" };
                let unclear = match said {
                    NamedPlace::Line => ", and none is where it says; add context or correct the line number",
                    NamedPlace::Nothing => "; add context, or put a preceding line after `@@`",
                };
                format!("its old lines occur more than once{behind}, at {}{unclear}", listed(places))
            }
            Self::BeforeHunks { places } => {
                let at = listed(places);
                match places.iter().find_map(|at| covering(taken, *at..*at + old.len())) {
                    Some((number, lines)) => format!(
                        "its old lines occur only at {at}, among the lines of hunk {number} ({}); \
                         make one hunk of the two",
                        spelled(&lines)
                    ),
                    None => format!(
                        "its old lines occur only at {at}, before hunk {}; put the hunks in the order of the file",
                        taken.len()
                    ),
                }
            }
            Self::BeforeAnchor { places, anchor, at } => format!(
                "its old lines occur only at {}, before the line {} of its `@@` (line {}); name a line that stands \
                 before them, or leave it out",
                listed(places),
                quoted(anchor),
                at + 1
            ),
            Self::NoAnchor { anchor } => format!(
                "its `@@` names the line {}, which the file does not have; name a line as it stands in the file, \
                 or leave it out",
                quoted(anchor)
            ),
            Self::EarlyAnchor { anchor, at, from } => format!(
                "its `@@` names {} (line {}), which stands before line {}, where the search begins after the hunks \
                 and `@@` lines above it; put the hunks in the order of the file",
                quoted(anchor),
                at + 1,
                from + 1
            ),
            Self::NotAtTheEnd { places, lines } => match places.as_slice() {
                [] => format!(
                    "its old lines do not occur in the file{}",
                    nearest::nearest(text, &old.join("\n"))
                ),
                places => format!(
                    "its old lines occur at {}, but they do not end the file, which has {}; leave out \
                     `*** End of File`",
                    listed(places),
                    counted(*lines, "line")
                ),
            },
            Self::BehindTheEnd { lines } => format!("the file has only {}", counted(*lines, "line")),
            Self::WithinHunks { at } => {
                let place = if *at == 0 { "before line 1".to_owned() } else { format!("after line {at}") };
                format!(
                    "it adds {place}, which lies before the end of hunk {}; put the hunks in the order of the \
                     file, or make one of the two",
                    taken.len()
                )
            }
        }
    }
}

/// The first hunk that covers some of these lines, by its number.
fn covering(taken: &[Range<usize>], lines: Range<usize>) -> Option<(usize, Range<usize>)> {
    let overlaps = |range: &&Range<usize>| range.start < lines.end && lines.start < range.end;
    let number = taken.iter().position(|range| overlaps(&range))?;
    Some((number + 1, taken[number].clone()))
}

fn listed(places: &[usize]) -> String {
    let mut lines: Vec<_> = places.iter().take(LISTED_MATCHES).map(|at| (at + 1).to_string()).collect();
    if places.len() > LISTED_MATCHES {
        lines.push("…".to_owned());
    }
    format!("{} {}", if places.len() == 1 { "line" } else { "lines" }, lines.join(", "))
}

fn spelled(lines: &Range<usize>) -> String {
    match lines.len() {
        1 => format!("line {}", lines.end),
        _ => format!("lines {} to {}", lines.start + 1, lines.end),
    }
}

fn quoted(line: &str) -> String {
    format!("`{}`", Bounded::whole(line, QUOTED_LINE_BYTES).text())
}
