//! Server-sent events from bytes: one parser for every dialect, with a size limit, without I/O. Knows nothing
//! of what events mean.

use memchr::memchr2;
use thiserror::Error;

use crate::limits::EVENT_BYTES;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// `message` where the server gave no name.
    pub name: &'a str,
    /// Its data lines, joined.
    pub data: &'a [u8],
}

/// An event is larger than the limit; one that never ends would take all memory.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the model's server sent an event of more than {} MiB", EVENT_BYTES / (1024 * 1024))]
pub struct TooLarge;

/// Feed it bytes as they come, then take events until there is none.
#[derive(Debug, Default)]
pub struct SseParser {
    buffer: Vec<u8>,
    /// Where the current event begins; everything before it has been handed out.
    event: usize,
    /// Where the next line begins.
    line: usize,
    /// There is no line end between `line` and here.
    searched: usize,
    /// The data lines of the event, relative to `event`.
    data: Vec<(usize, usize)>,
    name: (usize, usize),
    /// Data of several lines, joined; a field, so that its memory is reused.
    joined: Vec<u8>,
    /// The last line ended with a carriage return: a line feed right after it belongs to it.
    after_return: bool,
    begun: bool,
}

impl SseParser {
    /// Takes more bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.event > 0 {
            self.buffer.drain(..self.event);
            self.line -= self.event;
            self.searched -= self.event;
            self.event = 0;
        }
        if self.buffer.len() + bytes.len() > EVENT_BYTES + bytes.len().min(EVENT_BYTES) {
            return Err(TooLarge);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole event; skips comments and events without data.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<SseEvent<'_>> {
        self.skip_byte_order_mark()?;
        loop {
            let end = self.line_end()?;
            let (start, next) = (self.line, end + 1);
            self.line = next;
            self.searched = next;
            if start < end {
                self.field(start, end);
                continue;
            }
            let begun = std::mem::replace(&mut self.event, next);
            if self.data.is_empty() {
                self.name = (0, 0);
                continue;
            }
            return Some(self.take(begun));
        }
    }

    /// Where the line at `line` ends. Skips the second half of CRLF.
    fn line_end(&mut self) -> Option<usize> {
        if self.after_return && self.line < self.buffer.len() {
            self.after_return = false;
            if self.buffer[self.line] == b'\n' {
                let at_event = self.event == self.line;
                self.line += 1;
                self.searched = self.searched.max(self.line);
                if at_event {
                    self.event = self.line;
                }
            }
        }
        match memchr2(b'\n', b'\r', &self.buffer[self.searched..]) {
            Some(found) => {
                let end = self.searched + found;
                self.after_return = self.buffer[end] == b'\r';
                Some(end)
            }
            None => {
                self.searched = self.buffer.len();
                None
            }
        }
    }

    fn field(&mut self, start: usize, end: usize) {
        let line = &self.buffer[start..end];
        let value_at = |name: &[u8]| {
            let rest = line.strip_prefix(name)?;
            match rest {
                [] => Some(end),
                [b':', b' ', ..] => Some(start + name.len() + 2),
                [b':', ..] => Some(start + name.len() + 1),
                _ => None,
            }
        };
        if let Some(value) = value_at(b"data") {
            self.data.push((value - self.event, end - self.event));
        } else if let Some(value) = value_at(b"event") {
            self.name = (value - self.event, end - self.event);
        }
    }

    fn take(&mut self, begun: usize) -> SseEvent<'_> {
        let range = |(start, end): (usize, usize)| begun + start..begun + end;
        let name = std::mem::take(&mut self.name);
        let single = match self.data.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        if single.is_none() {
            self.joined.clear();
            for (number, line) in self.data.iter().enumerate() {
                if number > 0 {
                    self.joined.push(b'\n');
                }
                self.joined.extend_from_slice(&self.buffer[range(*line)]);
            }
        }
        self.data.clear();
        let name = std::str::from_utf8(&self.buffer[range(name)]).unwrap_or_default();
        let data = match single {
            Some(only) => &self.buffer[range(only)],
            None => &self.joined,
        };
        SseEvent { name, data }
    }

    /// `None` while the first bytes could still become a mark.
    fn skip_byte_order_mark(&mut self) -> Option<()> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        if self.begun {
            return Some(());
        }
        if self.buffer.len() < MARK.len() && MARK.starts_with(&self.buffer) {
            return None;
        }
        self.begun = true;
        if self.buffer.starts_with(MARK) {
            (self.event, self.line, self.searched) = (MARK.len(), MARK.len(), MARK.len());
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything the parser returns for a body that arrives in pieces of `step` bytes.
    fn events(body: &[u8], step: usize) -> Vec<(String, Vec<u8>)> {
        let mut parser = SseParser::default();
        let mut seen = Vec::new();
        for piece in body.chunks(step.max(1)) {
            parser.feed(piece).unwrap();
            while let Some(event) = parser.next() {
                seen.push((event.name.to_owned(), event.data.to_vec()));
            }
        }
        seen
    }

    fn named(pairs: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
        pairs.iter().map(|(name, data)| ((*name).to_owned(), data.as_bytes().to_vec())).collect()
    }

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut_and_whatever_ends_a_line() {
        let body = "\u{feff}: hello\n\nevent: a\ndata: 1\n\ndata:2\ndata:  3\nid: 7\nretry: 5\n\nevent: lost\n\ndata\n\ndata: é\n\ndata: cut";
        let expected = named(&[("a", "1"), ("", "2\n 3"), ("", ""), ("", "é")]);
        for ending in ["\n", "\r\n", "\r"] {
            let body = body.replace('\n', ending);
            for step in 1..=body.len() {
                assert_eq!(events(body.as_bytes(), step), expected, "{ending:?} in steps of {step}");
            }
        }
    }

    #[test]
    fn an_endless_event_is_refused_and_a_large_one_is_not() {
        let mut parser = SseParser::default();
        let piece = vec![b'x'; 1024 * 1024];
        let mut fed = 0;
        let refused = loop {
            if parser.feed(&piece).is_err() {
                break fed;
            }
            assert!(parser.next().is_none());
            fed += piece.len();
        };
        assert!((EVENT_BYTES..=EVENT_BYTES + piece.len()).contains(&refused));
        let large = [b"data: ".as_slice(), &vec![b'y'; EVENT_BYTES - 64], b"\n\n"].concat();
        assert_eq!(events(&large, 64 * 1024).len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_events(
            body in prop::collection::vec(prop_oneof![
                Just(b"data: x".to_vec()), Just(b"event: e".to_vec()), Just(b"\n".to_vec()), Just(b"\r".to_vec()),
                Just(b"\r\n".to_vec()), Just(b":".to_vec()), prop::collection::vec(any::<u8>(), 0..6),
            ], 0..40).prop_map(|pieces| pieces.concat()),
            step in 1..9_usize,
        ) {
            prop_assert_eq!(events(&body, step), events(&body, usize::MAX));
        }
    }
}
