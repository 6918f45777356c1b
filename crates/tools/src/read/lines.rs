//! Lines out of a stream, in portions: skipped without collecting, taken while they fit. Knows no encoding but bytes.

use std::io::{self, BufRead};

use tokio_util::sync::CancellationToken;

use crate::limits::READ_HARD_BYTES;

/// What of the file lies behind a portion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rest {
    #[default]
    Nothing,
    Lines,
    /// The one line of the portion did not fit.
    Line,
    /// Whoever has the file gave as many lines as were asked for.
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Portion {
    pub(super) bytes: Vec<u8>,
    pub(super) lines: u64,
    pub(super) rest: Rest,
}

/// Whole lines while they fit; the first one always, up to the hard cap.
pub(super) fn take_lines(
    reader: &mut impl BufRead,
    most_lines: u64,
    most_bytes: usize,
) -> io::Result<Portion> {
    let mut portion = Portion::default();
    while portion.lines < most_lines {
        let before = portion.bytes.len();
        let room = if before == 0 { READ_HARD_BYTES } else { most_bytes - before.min(most_bytes) };
        match take_line(reader, &mut portion.bytes, room)? {
            Line::End => return Ok(portion),
            Line::Whole => portion.lines += 1,
            Line::TooLong if before == 0 => {
                portion.bytes.truncate(whole_characters(&portion.bytes));
                portion.lines += 1;
                portion.rest = Rest::Line;
                return Ok(portion);
            }
            Line::TooLong => {
                portion.bytes.truncate(before);
                portion.rest = Rest::Lines;
                return Ok(portion);
            }
        }
    }
    if !reader.fill_buf()?.is_empty() {
        portion.rest = Rest::Lines;
    }
    Ok(portion)
}

enum Line {
    Whole,
    /// `taken` holds its first bytes, the reader stands somewhere inside it.
    TooLong,
    End,
}

fn take_line(reader: &mut impl BufRead, taken: &mut Vec<u8>, room: usize) -> io::Result<Line> {
    let start = taken.len();
    // One more than fits tells a line that is too long from one that just fits.
    io::Read::take(&mut *reader, room as u64 + 1).read_until(b'\n', taken)?;
    let length = taken.len() - start;
    if length > room {
        taken.truncate(start + room);
        return Ok(Line::TooLong);
    }
    Ok(if length == 0 { Line::End } else { Line::Whole })
}

/// Skips without collecting, however long the lines are. Counts into `skipped` how many there were.
pub(super) fn skip_lines(
    reader: &mut impl BufRead,
    lines: u64,
    skipped: &mut u64,
    cancel: &CancellationToken,
) -> io::Result<()> {
    let mut inside_line = false;
    while *skipped < lines {
        if cancel.is_cancelled() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            *skipped += u64::from(inside_line);
            break;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |index| index + 1);
        *skipped += u64::from(end.is_some());
        inside_line = end.is_none();
        reader.consume(used);
    }
    Ok(())
}

/// The length up to a last character that is cut in two; invalid text is left as it is, to be told as such.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    }
}
