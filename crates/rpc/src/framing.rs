//! Cuts a byte stream into lines, whatever the pieces it arrives in. Pure: does no I/O and judges no content.

use crate::limits::{DOUBLE_UNTIL_BYTES, KEEP_BUFFER_BYTES, LARGE_LINE_BYTES, READ_CHUNK_BYTES};
use std::borrow::Cow;

/// Feed with [`LineFramer::push`], then take lines with [`LineFramer::next`] until it gives none.
///
/// Holds at most the cap plus one pushed piece. A leading byte order mark and a carriage return before the
/// newline are not part of a line.
#[derive(Debug)]
pub struct LineFramer {
    buffer: Vec<u8>,
    /// Where the current line begins; everything before it was given out.
    start: usize,
    /// Up to where no newline was found, so that a long line is searched once, not once per piece.
    searched: usize,
    /// Set while the rest of a line above the cap is thrown away.
    skipping: bool,
    max_line_bytes: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub enum FramedLine<'a> {
    /// One line without its ending; owned when it is large, so that it can be used up in place.
    Text(Cow<'a, [u8]>),
    /// Told once per line above the cap, as soon as the cap is passed.
    TooLong,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl LineFramer {
    pub fn new(max_line_bytes: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, skipping: false, max_line_bytes }
    }

    pub fn push(&mut self, mut piece: &[u8]) {
        self.forget_consumed();
        if self.skipping {
            let Some(newline) = memchr::memchr(b'\n', piece) else { return };
            self.skipping = false;
            piece = &piece[newline + 1..];
        }
        self.make_room(piece.len());
        self.buffer.extend_from_slice(piece);
    }

    /// Whether [`LineFramer::next`] has something to give.
    pub fn has_next(&mut self) -> bool {
        match memchr::memchr(b'\n', &self.buffer[self.searched..]) {
            Some(offset) => {
                self.searched += offset;
                true
            }
            None => {
                self.searched = self.buffer.len();
                self.buffer.len() - self.start > self.max_line_bytes
            }
        }
    }

    /// The next complete line, or the news that one passed the cap. Not an iterator: lines borrow the buffer.
    #[expect(
        clippy::should_implement_trait,
        reason = "a lending method; the name is the contract of the type"
    )]
    pub fn next(&mut self) -> Option<FramedLine<'_>> {
        let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            if self.buffer.len() - self.start > self.max_line_bytes {
                self.skipping = true;
                self.clear();
                return Some(FramedLine::TooLong);
            }
            return None;
        };
        let (start, end) = (self.start, self.searched + offset);
        self.start = end + 1;
        self.searched = self.start;
        Some(self.cut(start, end))
    }

    /// What follows the last newline once the stream has ended; nothing if the stream ended well.
    pub fn finish(&mut self) -> Option<FramedLine<'_>> {
        let (start, end) = (self.start, self.buffer.len());
        self.start = end;
        self.searched = end;
        match start == end {
            true => None,
            false => Some(self.cut(start, end)),
        }
    }

    /// Bytes of memory held, for tests of the bound.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    fn cut(&mut self, start: usize, end: usize) -> FramedLine<'_> {
        if end - start > self.max_line_bytes {
            return FramedLine::TooLong;
        }
        if start == 0 && end >= LARGE_LINE_BYTES {
            return FramedLine::Text(Cow::Owned(self.give_away(end)));
        }
        FramedLine::Text(Cow::Borrowed(without_marks(&self.buffer[start..end])))
    }

    /// Hands out the buffer itself as the line and goes on with a small one for what follows.
    fn give_away(&mut self, end: usize) -> Vec<u8> {
        let rest = self.buffer.get(end + 1..).unwrap_or_default().to_vec();
        let mut line = std::mem::replace(&mut self.buffer, rest);
        self.start = 0;
        self.searched = 0;
        line.truncate(end);
        if line.ends_with(b"\r") {
            line.pop();
        }
        if line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        line
    }

    fn forget_consumed(&mut self) {
        if self.start == self.buffer.len() {
            self.clear();
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(KEEP_BUFFER_BYTES);
        self.start = 0;
        self.searched = 0;
    }

    fn make_room(&mut self, additional: usize) {
        let needed = self.buffer.len() + additional;
        if needed <= self.buffer.capacity() {
            return;
        }
        let ceiling = self.max_line_bytes.saturating_add(READ_CHUNK_BYTES);
        let wanted = match needed < DOUBLE_UNTIL_BYTES {
            true => needed.next_power_of_two(),
            false => needed.saturating_mul(8).min(ceiling).max(needed),
        };
        self.buffer.reserve_exact(wanted - self.buffer.len());
    }
}

fn without_marks(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
}
