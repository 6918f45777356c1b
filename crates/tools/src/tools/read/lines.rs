//! Reads wanted lines from a stream, each up to a limit, and counts lines. Knows only bytes, no encodings.

use std::io::{self, BufRead};

use tokio_util::sync::CancellationToken;

use crate::limits::{READ_BYTES, READ_LINE_CHARACTERS};

/// Enough for the characters that are shown of a line, whatever they are.
const LINE_BYTES: usize = READ_LINE_CHARACTERS * 4;

/// Enough for the bytes that are shown in all, whatever is cut from lines.
const TAKEN_BYTES: usize = READ_BYTES * 4;

/// A line without its ending, up to the length that may be shown.
#[derive(Debug, Default)]
pub(super) struct FileLine {
    pub(super) bytes: Vec<u8>,
    /// The length of the whole line.
    pub(super) length: u64,
    /// Whether it contains a zero byte, which no text has.
    pub(super) has_zero: bool,
}

#[derive(Debug, Default)]
pub(super) struct Portion {
    pub(super) lines: Vec<FileLine>,
    /// How many lines the whole text has.
    pub(super) total: Total,
}

/// How many lines there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Total {
    Lines(u64),
    /// More than were wanted.
    More,
    /// The source returned as many as were asked for, so there may be more.
    #[default]
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Counts the rest.
    TheEnd,
    /// Does not read the rest.
    TheLastWanted,
}

/// Which lines are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) skip: u64,
    pub(super) most: u64,
    pub(super) until: Until,
}

/// Reads `reader` once. Shows every byte that it passes to `passed`.
pub(super) fn scan(
    reader: &mut impl BufRead,
    range: Range,
    cancel: &CancellationToken,
    mut passed: impl FnMut(&[u8]),
) -> io::Result<Portion> {
    let mut scan = LineScan { range, at: 0, inside: false, lines: Vec::new(), bytes: 0 };
    loop {
        if cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if range.until == Until::TheLastWanted && scan.is_done() {
            return Ok(Portion { lines: scan.lines, total: Total::More });
        }
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            let total = Total::Lines(scan.at + u64::from(scan.inside));
            return Ok(Portion { lines: scan.lines, total });
        }
        passed(buffer);
        scan.take(buffer);
        let used = buffer.len();
        reader.consume(used);
    }
}

struct LineScan {
    range: Range,
    /// How many lines have ended.
    at: u64,
    /// Whether the line `at` has begun.
    inside: bool,
    lines: Vec<FileLine>,
    bytes: usize,
}

impl LineScan {
    fn take(&mut self, buffer: &[u8]) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', buffer) {
            self.piece(&buffer[start..end]);
            self.at += 1;
            self.inside = false;
            start = end + 1;
        }
        if start < buffer.len() {
            self.piece(&buffer[start..]);
            self.inside = true;
        }
    }

    fn piece(&mut self, piece: &[u8]) {
        if self.at < self.range.skip || (!self.inside && self.is_full()) {
            return;
        }
        if !self.inside {
            self.lines.push(FileLine::default());
        } else if self.lines.len() as u64 + self.range.skip != self.at + 1 {
            // Still within a line after the last one taken.
            return;
        }
        let Some(line) = self.lines.last_mut() else { return };
        line.length += piece.len() as u64;
        line.has_zero |= memchr::memchr(0, piece).is_some();
        let room = LINE_BYTES.saturating_sub(line.bytes.len()).min(piece.len());
        line.bytes.extend_from_slice(&piece[..room]);
        self.bytes += room;
    }

    /// Whether no further line may begin.
    fn is_full(&self) -> bool {
        self.lines.len() as u64 >= self.range.most || self.bytes > TAKEN_BYTES
    }

    /// Whether the last wanted line has ended.
    fn is_done(&self) -> bool {
        self.is_full() && self.at >= self.range.skip.saturating_add(self.lines.len() as u64)
    }
}

impl FileLine {
    /// The kept bytes, without a character that the limit cut in two; invalid text stays, to be reported as
    /// such.
    pub(super) fn whole_characters(&self) -> &[u8] {
        let is_cut = self.length > self.bytes.len() as u64;
        match std::str::from_utf8(&self.bytes) {
            Err(error) if is_cut && error.error_len().is_none() => &self.bytes[..error.valid_up_to()],
            Ok(_) | Err(_) => &self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::BufReader;

    fn scanned(text: &str, range: Range, buffer: usize) -> (Vec<String>, Total) {
        let mut reader = BufReader::with_capacity(buffer, text.as_bytes());
        let mut seen = Vec::new();
        let cancel = CancellationToken::new();
        let portion = scan(&mut reader, range, &cancel, |piece| seen.extend_from_slice(piece)).unwrap();
        if range.until == Until::TheEnd {
            assert_eq!(seen, text.as_bytes());
        }
        let lines = portion.lines.iter().map(|line| String::from_utf8(line.bytes.clone()).unwrap());
        (lines.collect(), portion.total)
    }

    proptest! {
        #[test]
        fn the_same_lines_as_by_splitting(text in "[ab\n]{0,40}", skip in 0u64..6, most in 1u64..6, buffer in 1usize..9) {
            let all: Vec<&str> = text.split_inclusive('\n').map(|line| line.trim_end_matches('\n')).collect();
            let wanted: Vec<_> =
                all.iter().skip(skip as usize).take(most as usize).map(|line| (*line).to_owned()).collect();
            let range = Range { skip, most, until: Until::TheEnd };
            prop_assert_eq!(scanned(&text, range, buffer), (wanted.clone(), Total::Lines(all.len() as u64)));
            let range = Range { until: Until::TheLastWanted, ..range };
            prop_assert_eq!(scanned(&text, range, buffer).0, wanted);
        }
    }

    #[test]
    fn a_long_line_is_taken_in_part_and_measured_whole() {
        let text = format!("{}\nnext\n", "x".repeat(100_000));
        let range = Range { skip: 0, most: 9, until: Until::TheEnd };
        let cancel = CancellationToken::new();
        let portion = scan(&mut text.as_bytes(), range, &cancel, |_| {}).unwrap();
        assert_eq!((portion.lines[0].bytes.len(), portion.lines[0].length), (LINE_BYTES, 100_000));
        assert_eq!(portion.lines[1].bytes, b"next");
    }
}
